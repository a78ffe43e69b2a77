"""The 17 events, with the keys extensions know."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from hilt.model.content import Image, Text
from hilt.model.conversation import AssistantMessage, ToolMessage, ToolResult, UserMessage
from hilt.wire import jsonrpc_events as events
from hilt.wire.jsonrpc import request
from hilt.wire.jsonrpc_types import EventDispatch

AT = datetime(2026, 5, 1, 10, 0, 0, tzinfo=UTC)
SAID = AssistantMessage((Text("x"),), AT, "p", "m")
RESULTS = ToolMessage((ToolResult("c", "add", (Text("2"),)),), AT)
USAGE = {"inputTokens": 0, "outputTokens": 0, "cacheReadTokens": 0, "cacheWriteTokens": 0, "cost": 0}
SAID_DATA = {
    "role": "assistant",
    "content": [{"type": "text", "text": "x"}],
    "model": "m",
    "provider": "p",
    "usage": USAGE,
    "stopReason": "stop",
    "timestamp": "2026-05-01T10:00:00Z",
}
RESULT_DATA = {
    "role": "tool_result",
    "toolCallId": "c",
    "toolName": "add",
    "content": [{"type": "text", "text": "2"}],
    "isError": False,
    "timestamp": "2026-05-01T10:00:00Z",
}
CALL = {"ToolCallID": "c", "ToolName": "add"}

BUILT: list[tuple[EventDispatch, str, dict[str, Any]]] = [
    (events.agent_start(), "EventAgentStart", {}),
    (events.session_load(3), "EventSessionLoad", {"MessageCount": 3}),
    (events.agent_init(4), "EventAgentInit", {"ToolCount": 4}),
    (events.prompt_build("S"), "EventPromptBuild", {"System": "S"}),
    (events.message_pre("hi"), "EventMessagePre", {"Content": "hi"}),
    (events.turn_start(), "EventTurnStart", {}),
    (events.stream_delta("toolcall", 1, "d"), "EventStreamDelta", {"Kind": "toolcall", "Index": 1, "Delta": "d"}),
    (events.stream_done(SAID), "EventStreamDone", {"Message": SAID_DATA}),
    (events.step_wait("c", "add", {"a": 1}), "EventStepWait", CALL | {"Args": {"a": 1}}),
    (events.tool_start("c", "add", {}), "EventToolStart", CALL | {"Args": None}),
    (events.tool_update("c", "add", "half"), "EventToolUpdate", CALL | {"Partial": "half"}),
    (
        events.tool_end("c", "add", (Text("2"),), {}, is_error=False),
        "EventToolEnd",
        CALL | {"Result": None, "IsError": False},
    ),
    (events.turn_end(SAID, RESULTS), "EventTurnEnd", {"Assistant": SAID_DATA, "ToolResults": [RESULT_DATA]}),
    (events.retry(1, 3, 500, "e"), "EventRetry", {"Attempt": 1, "Max": 3, "DelayMs": 500, "Error": "e"}),
    (events.max_turns(30, 30), "EventMaxTurns", {"Count": 30, "Max": 30}),
    (events.compact(9, 2, 50_000), "EventCompact", {"Before": 9, "After": 2, "TokensAtCompact": 50_000}),
    (events.agent_end((SAID, RESULTS)), "EventAgentEnd", {"Messages": [SAID_DATA, RESULT_DATA]}),
]


def dispatched(event: EventDispatch) -> Any:
    return json.loads(request(1, "event/dispatch", event))["params"]


@pytest.mark.parametrize(("event", "type_", "data"), BUILT, ids=[type_ for _, type_, _ in BUILT])
def test_an_event_has_the_type_and_the_data_extensions_know(
    event: EventDispatch, type_: str, data: dict[str, Any]
) -> None:
    assert dispatched(event) == {"type": type_, "data": data}


def test_there_are_seventeen() -> None:
    assert tuple(type_ for _, type_, _ in BUILT) == events.EVENTS
    assert len(set(events.EVENTS)) == 17


def test_what_is_empty_is_null() -> None:
    assert dispatched(events.turn_end(None, None))["data"] == {"Assistant": None, "ToolResults": None}
    assert dispatched(events.agent_end(()))["data"] == {"Messages": None}


def test_the_end_of_a_tool_tells_its_facts_or_what_went_wrong() -> None:
    assert events.tool_end("c", "w", (Text("ok"),), {"added": 1}, is_error=False).data["Result"] == {"added": 1}
    failed = dispatched(events.tool_end("c", "w", (Text("no"),), {"added": 1}, is_error=True))
    assert failed["data"]["Result"] == [{"type": "text", "text": "no"}] and failed["data"]["IsError"]


def test_of_a_long_conversation_the_beginning_is_left_out_and_counted() -> None:
    messages = [UserMessage((Text(f"{number} " + "x" * 300_000),), AT) for number in range(20)]
    data = dispatched(events.agent_end(messages))["data"]
    assert data["Omitted"] == 10
    assert [message["content"].split()[0] for message in data["Messages"]] == [str(n) for n in range(10, 20)]


def test_large_images_are_described() -> None:
    image = Image("image/png", bytes(1_000_000))
    small = Image("image/png", bytes(9))
    results = ToolMessage((ToolResult("c", "shot", (image, small)),), AT)
    data = dispatched(events.agent_end((UserMessage((Text("x"), image), AT), results)))["data"]
    told = "[an image of type image/png, 1,000,002 bytes, 5ceb3a51]"
    assert data["Messages"][0]["blocks"] == [{"type": "text", "text": told}]
    assert [block["type"] for block in data["Messages"][1]["content"]] == ["text", "image"]


def test_no_event_is_too_long_for_a_line_and_text_that_is_no_utf8_does_not_stop_it() -> None:
    text = "\x00" * 800_000  # each needs six bytes
    for event in (
        events.prompt_build(text),
        events.message_pre(text),
        events.tool_update("c", "t", text),
        events.stream_done(AssistantMessage((Text(text),), AT, "p")),
        events.turn_end(
            AssistantMessage((Text("\x00" * 200_000),), AT, "p"),
            ToolMessage(tuple(ToolResult("c", "t", (Text("\x00" * 200_000),)) for _ in range(5)), AT),
        ),
    ):
        assert len(request(1, "event/dispatch", event)) < 4 * 1024 * 1024
    assert dispatched(events.stream_done(AssistantMessage((Text(text),), AT, "p")))["data"] == {"Message": None}
    lone = events.agent_end((UserMessage((Text("a\ud800"),), AT),))
    assert dispatched(lone)["data"]["Messages"][0]["content"] == "a�"
