"""An extension that shows more than anybody can see: told by a command what, it tells the host of it over and over.

Needs nothing but the standard library, so that `python -I -S -E` can run it.
"""

import json
import sys
from typing import Any

_AT_ONCE = 500
"""Lines that are written together."""


def main(kind: str, times: int, last: str) -> None:
    _send({"type": "hello", "name": "flooder", "version": "1", "capabilities": ["commands", "panels"]})
    _send({"type": "register_command", "name": "flood", "description": "shows more than anybody can see"})
    _send({"type": "ready"})
    for line in sys.stdin.buffer:
        frame = json.loads(line)
        if frame["type"] == "command_invoked":
            _send({"type": "command_response", "id": frame["id"], "action": "noop"})
            _flood(kind, times)
            _send({"type": "notify", "level": "info", "message": last})
        elif frame["type"] == "shutdown":
            return


def _flood(kind: str, times: int) -> None:
    if kind == "panels":
        _send({"type": "open_panel", "panel": {"id": "p", "title": "flood", "lines": ["none yet"]}})
    for first in range(0, times, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, times))
        sys.stdout.buffer.write(b"".join([_line(_frame(kind, number)) for number in numbers]))


def _frame(kind: str, number: int) -> dict[str, Any]:
    if kind == "notes":
        return {"type": "notify", "level": "info", "message": f"note {number}"}
    if kind == "panels":
        return {"type": "panel_render", "panel_id": "p", "lines": [f"line {row} of {number}" for row in range(10)]}
    shown = {"key": f"w{number % 4}", "placement": "above-input", "content": f"widget {number}"}
    return {"type": "host_notify", "method": "setWidget", "params": shown}


def _line(frame: dict[str, Any]) -> bytes:
    return json.dumps(frame, separators=(",", ":")).encode() + b"\n"


def _send(frame: dict[str, Any]) -> None:
    sys.stdout.buffer.write(_line(frame))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
