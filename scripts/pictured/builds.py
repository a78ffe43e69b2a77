"""An extension for the pictures: a panel with the builds of a project, a widget and a word in the status line."""

import json
import sys
from typing import Any

GREEN, RED, DIM, PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[2m", "\x1b[0m"
LINES = [
    f"  main      {GREEN}passed{PLAIN}    412 tests   1 m 08 s",
    f"  parser    {GREEN}passed{PLAIN}    415 tests   1 m 11 s",
    f"> release   {RED}failed{PLAIN}    409 tests   0 m 52 s",
    "",
    f"  {DIM}tests/test_empty.py::test_an_empty_file{PLAIN}",
    f"  {RED}IndexError: list index out of range{PLAIN}",
]


def send(**frame: Any) -> None:
    print(json.dumps(frame), flush=True)


send(type="hello", name="builds", version="0.3.0")
send(type="register_command", name="builds", description="watch the builds of this project")
send(type="ready")
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "command_invoked":
        footer = "r run again · o open its log"
        panel = {"id": "builds", "title": "release: 1 of 3 failed", "lines": LINES, "footer": footer}
        send(type="command_response", id=frame["id"], action="open_panel", open_panel=panel)
        send(type="host_notify", method="setStatus", params={"key": "builds", "text": "1 red"})
        send(type="notify", level="warn", message="release is red since 14:02")
