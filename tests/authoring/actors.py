"""Extensions to be put on the stage: plain programs of both dialects that keep to the protocol, or break one rule."""

import json
import sys
from pathlib import Path
from typing import Any

FRAMES = Path(__file__).with_name("frames_actor.py")
JSONRPC = Path(__file__).with_name("jsonrpc_actor.py")


def frames(folder: Path, bad: str = "", **manifest: Any) -> Path:
    """One with tools, commands, a guard, a panel and an event; `bad` is the rule it breaks."""
    directory = folder / "actor"
    directory.mkdir()
    given = {"exec": sys.executable, "args": ["-I", "-S", str(FRAMES), bad], **manifest}
    (directory / "extension.json").write_text(json.dumps({"name": "actor", "version": "1", **given}))
    return directory


def jsonrpc(folder: Path, bad: str = "", **manifest: Any) -> Path:
    """The same in the other dialect."""
    directory = folder / "actor"
    directory.mkdir()
    (directory / "run.sh").write_text(f'exec "{sys.executable}" -I -S "{JSONRPC}" "{bad}"\n')
    given = {"runtime": "/bin/sh", "entry": "run.sh", "pipes": "fd", **manifest}
    (directory / "manifest.yaml").write_text(json.dumps({"name": "actor", "version": "1", **given}))
    return directory


def fixture(folder: Path, *lines: dict[str, Any], name: str = "f") -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
