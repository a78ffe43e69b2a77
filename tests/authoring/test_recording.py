"""Fixtures made of traces: the steps say what was asked and what came of it, and play as they are."""

import json
from pathlib import Path
from typing import Any

import pytest

from authoring.actors import frames
from hilt.authoring.fixtures import read_fixture
from hilt.authoring.recording import fixture_of, fixture_text, loosened
from hilt.authoring.trying import try_fixture
from hilt.errors import UsageError
from hilt.extensions.trace_line import Traced


def traced(dialect: str, *lines: tuple[str, dict[str, Any]]) -> list[Traced]:
    """`>` is what the extension heard, `<` what it said."""
    ways = {">": "to_extension", "<": "from_extension"}
    return [
        Traced("", 0.0, "actor", 1, dialect, ways[way], frame)  # type: ignore[arg-type]  # one of the two
        for way, frame in lines
    ]


def text(said: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": said}]


LIST = {"command": "ls"}
FRAMES = traced(
    "frames",
    ("<", {"type": "hello", "name": "actor"}),
    ("<", {"type": "register_tool", "name": "add"}),
    ("<", {"type": "ready"}),
    (">", {"type": "hello_ack"}),
    (">", {"type": "event", "event": "turn_end", "stop": "end", "session_id": "s", "cwd": "/x", "sequence": 4}),
    ("<", {"type": "notify", "level": "success", "message": "turn_end: end"}),
    (
        ">",
        {
            "type": "event_intercept",
            "id": "1",
            "event": "tool_call",
            "tool_name": "bash",
            "tool_args": LIST,
        },
    ),
    ("<", {"type": "event_intercept_response", "id": "1", "modified_args": {"command": "ls -1"}}),
    (">", {"type": "tool_call", "id": "2", "name": "add", "args": {"a": 1, "b": 2}}),
    ("<", {"type": "tool_result", "id": "2", "content": text("3")}),
    (">", {"type": "tool_call", "id": "3", "name": "think", "args": {"about": "cats"}}),
    ("<", {"type": "host_request", "id": "q1", "method": "host/chat", "params": {"prompt": "cats"}}),
    (">", {"type": "tool_call", "id": "4", "name": "add", "args": {}}),
    ("<", {"type": "tool_result", "id": "4", "content": text("a and b are needed"), "is_error": True}),
    (">", {"type": "host_response", "id": "q1", "result": {"text": "they purr"}}),
    ("<", {"type": "tool_result", "id": "3", "content": text("they purr")}),
    (">", {"type": "command_invoked", "id": "5", "name": "board"}),
    ("<", {"type": "command_response", "id": "5", "action": "open_panel", "open_panel": {"id": "board"}}),
    (">", {"type": "panel_key", "panel_id": "board", "key": "rune", "text": "x"}),
    ("<", {"type": "panel_render", "panel_id": "board", "lines": ["pressed x"]}),
    (">", {"type": "shutdown"}),
    ("<", {"type": "shutdown_ack"}),
)


async def test_what_was_recorded_names_no_ids_and_plays_as_it_is(tmp_path: Path) -> None:
    values = fixture_of(FRAMES, "as recorded")

    assert values == [
        {"about": "as recorded", "dialect": "frames"},
        {"host": "host/chat", "params": {"prompt": "cats"}, "reply": {"text": "they purr"}},
        {"event": "turn_end", "data": {"stop": "end"}},
        {"notes": {"level": "success", "message": "turn_end: end"}},
        {"intercept": "bash", "args": {"command": "ls"}, "verdict": "rewrite", "to": {"command": "ls -1"}},
        {"call": "add", "args": {"a": 1, "b": 2}, "result": "3"},
        {"call": "think", "args": {"about": "cats"}, "wait": False, "as": "call 3"},
        {"call": "add", "args": {}, "error": "a and b are needed"},
        {"answer": "call 3", "result": "they purr"},
        {"run": "/board", "opens": {"id": "board"}},
        {"key": "rune", "text": "x", "panel": "board"},
        {"renders": {"lines": ["pressed x"], "id": "board"}},
    ]
    path = tmp_path / "recorded.jsonl"
    path.write_text(fixture_text(values))
    outcome = await try_fixture(frames(tmp_path), read_fixture(path), tmp_path)
    assert outcome.state == "passed", outcome.message


def test_messages_of_the_other_dialect_become_the_same_steps() -> None:
    values = fixture_of(
        traced(
            "jsonrpc",
            (">", {"id": 1, "method": "initialize", "params": {}}),
            ("<", {"method": "register/tool", "params": {"name": "add"}}),
            ("<", {"id": 1, "result": {"name": "actor"}}),
            ("<", {"method": "register/tool", "params": {"name": "late"}}),
            (">", {"id": 2, "method": "tool/execute", "params": {"callId": "c", "name": "add", "args": {"a": 1}}}),
            ("<", {"method": "tool/progress", "params": {"callId": "c", "text": "half"}}),
            ("<", {"id": 2, "error": {"code": -32603, "message": "no b"}}),
            (">", {"id": 3, "method": "interceptor/before", "params": {"name": "g", "toolName": "x", "args": {}}}),
            ("<", {"id": 3, "result": {"allow": True}}),
            (">", {"id": 4, "method": "command/execute", "params": {"name": "hi", "args": "Ada"}}),
            ("<", {"method": "showMessage", "params": {"text": "hello, Ada"}}),
            ("<", {"id": 4, "result": {}}),
            (">", {"method": "shutdown"}),
        ),
        "a",
    )
    assert values[1:] == [
        {"registers": {"kind": "tool", "name": "late"}},
        {"call": "add", "args": {"a": 1}, "error": "no b"},
        {"progress": "half"},
        {"ask": "interceptor/before", "params": {"name": "g", "toolName": "x", "args": {}}, "result": {"allow": True}},
        {"run": "/hi Ada"},
        {"shows": "hello, Ada"},
    ]
    assert json.loads(fixture_text([loosened(values[2])])) == {"call": "add", "args": {"a": 1}}


def test_a_trace_in_which_nothing_was_asked_is_no_test() -> None:
    with pytest.raises(UsageError, match="hilt asked nothing of it"):
        fixture_of(FRAMES[:4], "a")
    with pytest.raises(UsageError, match="nothing of this extension"):
        fixture_of([], "a")
