"""hilt's own log: private, small, without keys, and never a reason to fail."""

import logging
from pathlib import Path
from stat import S_IMODE

from hilt.cli.logfile import LogFile
from hilt.model.masking import Mask
from support.hilt_process import Hilt

KEY = "sk-test-0123456789abcdef"


def write(folder: Path, text: str) -> Path:
    """Straight to the handler: what pytest captures of logs must be UTF-8."""
    path = folder / "logs" / "hilt.log"
    LogFile(path, Mask([KEY])).handle(logging.makeLogRecord({"msg": text, "levelno": logging.ERROR}))
    return path


def test_a_failure_is_written_privately_and_without_keys(tmp_path: Path) -> None:
    path = write(tmp_path, f"the key {KEY} and half a pair \udcff")
    text = path.read_text()
    assert "[key hidden] and half a pair \\udcff" in text and KEY not in text
    assert S_IMODE(path.stat().st_mode) == 0o600 and S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_log_that_has_grown_large_is_put_aside(tmp_path: Path) -> None:
    for _ in range(3):
        path = write(tmp_path, "x" * 3_000_000)
    assert path.with_suffix(".log.1").stat().st_size > 5_000_000
    assert path.stat().st_size < 4_000_000


def test_a_link_in_place_of_the_log_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "hilt.log").symlink_to(precious)
    write(tmp_path, "hello")
    assert precious.read_text() == "mine"


def test_a_mistake_of_ours_is_explained_in_a_line_and_its_details_are_in_the_log(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    broken = tmp_path / "site"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import sys, types\nsys.modules['hilt.providers.catalogue'] = types.ModuleType('hilt.providers.catalogue')\n"
    )
    done = hilt.run("models", env={"PYTHONPATH": str(broken)})
    assert done.code == 1 and done.out == ""
    assert done.err.startswith("hilt: internal error: ImportError: ") and done.err.count("\n") == 2
    assert "Traceback" in (hilt.home / "logs" / "hilt.log").read_text()
