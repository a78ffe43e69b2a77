"""A stand-in for a provider: the scripted HTTP server, speaking Chat Completions."""

import json
from typing import Any

from support.api_server import Reply, events

PROVIDER = ("--provider", "ollama", "--model", "m")


def _chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def answers(text: str) -> Reply:
    return Reply.sse(events(_chunk(content=text), _chunk("stop")) + "data: [DONE]\n\n")


def asks_for(name: str, **args: Any) -> Reply:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
    return Reply.sse(events(_chunk(tool_calls=[call]), _chunk("tool_calls")) + "data: [DONE]\n\n")
