"""Writes its registrations right behind its hello, and has never heard of `ready`."""

import json
import sys
from typing import Any

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def emit(*frames: dict[str, Any]) -> None:
    sys.stdout.write("".join(json.dumps(frame) + "\n" for frame in frames))
    sys.stdout.flush()


emit(
    {"type": "hello", "name": "python-no-ready", "version": "0.1.0", "capabilities": ["commands", "tools"]},
    {"type": "register_command", "name": "reverse", "description": "turn a text round"},
    {"type": "register_tool", "name": "reverse", "description": "Turn a text round.", "schema": TEXT},
)

for line in sys.stdin:
    msg = json.loads(line)
    kind = msg["type"]
    if kind == "hello_ack":
        print(f"connected to {msg['zot_version']} in {msg['cwd']}", file=sys.stderr)
    elif kind == "command_invoked":
        text = msg.get("args", "")
        if text:
            emit({"type": "command_response", "id": msg["id"], "action": "display", "display": text[::-1]})
        else:
            emit({"type": "command_response", "id": msg["id"], "action": "noop", "error": "nothing to reverse"})
    elif kind == "tool_call":
        content = [{"type": "text", "text": msg["args"]["text"][::-1]}]
        emit({"type": "tool_result", "id": msg["id"], "content": content})
    elif kind == "shutdown":
        emit({"type": "shutdown_ack"})
        break
