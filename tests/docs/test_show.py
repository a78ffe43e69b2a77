"""`make run`: what it shows, and that it leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

from docs.fences import ROOT


def test_the_show_runs_offline_to_its_end_and_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
        "LANG": "C.UTF-8",
        "HTTPS_PROXY": "http://127.0.0.1:9",  # nothing may reach a network
        "OPENAI_API_KEY": "sk-of-the-developer",
    }
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    hilt = Path(sys.executable).with_name("hilt")
    shown = subprocess.run(
        ["sh", ROOT / "scripts/show.sh", hilt],
        env=environment,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=30,
    )
    assert shown.returncode == 0, shown.stderr
    commands = [line for line in shown.stdout.splitlines() if line.startswith("$ hilt ")]
    assert len(commands) == 5
    for answer in (
        "`bash` answered:",
        "`todo_scan` answered:\n\n./parser.py:1:TODO: ask Ada what an empty text means\n",
        "parser.py'\nparser.py:1:TODO: ask Ada what an empty text means\n",
        "project-kit refuses this: a forced push overwrites the work of others",
    ):
        assert answer in shown.stdout
    assert shown.stdout.endswith(f"To open it: {hilt}\n")
    assert "no API key found" in shown.stderr
    assert list((tmp_path / "tmp").iterdir()) == list((tmp_path / "home").iterdir()) == []
