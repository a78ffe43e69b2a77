"""The Go SDK, by its own tests, and the program in its README in the real hilt."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.hilt_process import Hilt
from support.sdk_table import missing_from

SDK = Path(__file__).resolve().parents[2] / "sdks" / "go"
PATIENCE = 240
"""Seconds; a cold cache builds Go's own library first."""


def _go() -> str:
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not there")
    return go


def _ran(argv: Sequence[str], cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GOFLAGS": "-buildvcs=false", "GOWORK": "off", **more}
    return subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.timeout(PATIENCE)
def test_the_sdk_is_formatted_vetted_passes_its_own_tests_and_plays_every_transcript(tmp_path: Path) -> None:
    go = _go()
    gofmt = shutil.which("gofmt") or str(Path(go).resolve().with_name("gofmt"))
    formatted = _ran([gofmt, "-l", "."], SDK)
    assert (formatted.stdout, formatted.stderr) == ("", "")
    vetted = _ran([go, "vet", "./..."], SDK)
    assert vetted.returncode == 0, vetted.stderr
    table = tmp_path / "table.jsonl"
    tested = _ran([go, "test", "./..."], SDK, HILT_SDK_TABLE=str(table))
    assert tested.returncode == 0, tested.stdout[-8000:] + tested.stderr[-2000:]
    assert missing_from(table, "go") == []


@pytest.mark.timeout(PATIENCE)
def test_the_program_of_the_readme_runs_in_hilt_in_both_dialects(tmp_path: Path) -> None:
    program = (SDK / "README.md").read_text(encoding="utf-8").partition("```go\n")[2].partition("```")[0]
    built = tmp_path / "weather"
    built.mkdir()
    (built / "main.go").write_text(program, encoding="utf-8")
    (built / "go.mod").write_text(
        f"module weather\n\ngo 1.22\n\nrequire hilt-sdk v0.0.0\n\nreplace hilt-sdk => {SDK}\n", encoding="utf-8"
    )
    made = _ran([_go(), "build", "-o", "weather", "."], built)
    assert made.returncode == 0, made.stderr
    (built / "extension.json").write_text('{"name": "weather", "exec": "./weather"}', encoding="utf-8")
    other = tmp_path / "piglet"
    other.mkdir()
    shutil.copy(built / "weather", other)
    (other / "manifest.yaml").write_text("name: weather\nruntime: ./weather\n", encoding="utf-8")
    hilt = Hilt(tmp_path)
    for place in (built, other):
        done = hilt.run("--provider", "demo", "--ext", str(place), "-p", 'weather city="Rome" days=2')
        assert "Rome: sunny for 2 days" in done.out, done.err
