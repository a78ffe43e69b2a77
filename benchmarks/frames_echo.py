"""The same as `frames_echo.c`, as much of it as Python is measured with: one tool that answers with its text.

Needs nothing but the standard library, so that `python -I -S -E` can run it.
"""

import json
import sys
from typing import Any


def main(tool: str) -> None:
    _send({"type": "hello", "name": tool, "version": "1", "capabilities": ["tools"]})
    _send({"type": "register_tool", "name": tool, "description": "echo", "schema": {"type": "object"}})
    _send({"type": "ready"})
    for line in sys.stdin.buffer:
        frame = json.loads(line)
        if frame["type"] == "tool_call":
            text = {"type": "text", "text": frame["args"].get("text", "")}
            _send({"type": "tool_result", "id": frame["id"], "content": [text]})
        elif frame["type"] == "shutdown":
            return


def _send(frame: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(frame, separators=(",", ":")).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
