"""The TypeScript SDK, by its own tests: `node --test` and the TypeScript compiler."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.sdk_table import missing_from

SDK = Path(__file__).resolve().parents[2] / "sdks" / "typescript"
OLDEST = 20
COMPILER = ("typescript@7", "@types/node@20")


def _node() -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not there")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
    if int(version.removeprefix("v").partition(".")[0]) < OLDEST:
        pytest.skip(f"node is {version.strip()}, the SDK needs {OLDEST} or newer")
    return node


@pytest.mark.timeout(180)
def test_the_sdk_passes_its_own_tests_and_plays_every_transcript(tmp_path: Path) -> None:
    table = tmp_path / "table.jsonl"
    environment = {name: value for name, value in os.environ.items() if name != "NODE_OPTIONS"}
    environment["HILT_SDK_TABLE"] = str(table)
    ran = _ran([_node(), "--test", "--test-reporter=spec"], cwd=SDK, env=environment)
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    assert missing_from(table, "typescript") == []


@pytest.mark.timeout(180)
def test_the_sdk_and_an_extension_without_annotations_have_sound_types(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    node = _node()
    modules = _compiler(request)
    for name in ("src", "tests", "package.json", "tsconfig.json"):
        (tmp_path / name).symlink_to(SDK / name)
    (tmp_path / "node_modules").symlink_to(modules)
    ran = _ran([node, str(modules / "typescript" / "bin" / "tsc"), "-p", str(tmp_path), "--preserveSymlinks"])
    assert ran.returncode == 0, ran.stdout


def _compiler(request: pytest.FixtureRequest) -> Path:
    """The compiler and Node's types, fetched once and kept with pytest's cache."""
    cache = request.config.cache
    npm = shutil.which("npm")
    if npm is None or cache is None:
        pytest.skip("npm is not there to fetch the TypeScript compiler")
    place = cache.mkdir("typescript-compiler")
    modules = Path(place) / "node_modules"
    if not (modules / "@types" / "node").is_dir():
        quiet = ("--no-audit", "--no-fund", "--no-package-lock", "--silent")
        try:
            fetched = _ran([npm, "install", "--prefix", str(place), *quiet, *COMPILER])
        except subprocess.TimeoutExpired:
            pytest.skip("npm cannot fetch the TypeScript compiler")
        if fetched.returncode:
            pytest.skip(f"npm cannot fetch the TypeScript compiler: {fetched.stderr.strip()[:200]}")
    return modules


def _ran(
    command: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
