"""Every event of the jsonrpc dialect, from plain values: what `event/dispatch` carries.

The keys of the data begin with a capital and an empty list is null, as extensions know them; messages inside have
their usual form. So that an event fits a line, long texts are cut, large images are described, and of a long
conversation the beginning is left out, which `Omitted` counts.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from hilt.model.content import Args, ResultBlock
from hilt.model.conversation import AssistantMessage, Message, ToolMessage
from hilt.wire.freeform import pack
from hilt.wire.jsonrpc_bare import Bare, ImageBlock, TextBlock
from hilt.wire.jsonrpc_light import without_images
from hilt.wire.jsonrpc_messages import bare
from hilt.wire.jsonrpc_types import EventDispatch
from hilt.wire.limits import TEXT_LIMIT
from hilt.wire.results import relayed

MESSAGES_LIMIT = 3 * 1024 * 1024
"""Bytes of messages one event carries."""

IMAGE_LIMIT = 256 * 1024
"""Characters of base64 of an image an event carries."""

DeltaKind: TypeAlias = Literal["text", "thinking", "toolcall"]

EVENTS = (
    "EventAgentStart",
    "EventSessionLoad",
    "EventAgentInit",
    "EventPromptBuild",
    "EventMessagePre",
    "EventTurnStart",
    "EventStreamDelta",
    "EventStreamDone",
    "EventStepWait",
    "EventToolStart",
    "EventToolUpdate",
    "EventToolEnd",
    "EventTurnEnd",
    "EventRetry",
    "EventMaxTurns",
    "EventCompact",
    "EventAgentEnd",
)


def agent_start() -> EventDispatch:
    return EventDispatch("EventAgentStart", {})


def session_load(message_count: int) -> EventDispatch:
    return EventDispatch("EventSessionLoad", {"MessageCount": message_count})


def agent_init(tool_count: int) -> EventDispatch:
    return EventDispatch("EventAgentInit", {"ToolCount": tool_count})


def prompt_build(system: str) -> EventDispatch:
    return EventDispatch("EventPromptBuild", {"System": _cut(system)})


def message_pre(content: str) -> EventDispatch:
    return EventDispatch("EventMessagePre", {"Content": _cut(content)})


def turn_start() -> EventDispatch:
    return EventDispatch("EventTurnStart", {})


def stream_delta(kind: DeltaKind, index: int, delta: str) -> EventDispatch:
    return EventDispatch("EventStreamDelta", {"Kind": kind, "Index": index, "Delta": _cut(delta)})


def stream_done(message: AssistantMessage) -> EventDispatch:
    return EventDispatch("EventStreamDone", {"Message": _one(message)})


def step_wait(call_id: str, tool_name: str, args: Args) -> EventDispatch:
    return EventDispatch("EventStepWait", _call(call_id, tool_name) | {"Args": args or None})


def tool_start(call_id: str, tool_name: str, args: Args) -> EventDispatch:
    return EventDispatch("EventToolStart", _call(call_id, tool_name) | {"Args": args or None})


def tool_update(call_id: str, tool_name: str, partial: str) -> EventDispatch:
    return EventDispatch("EventToolUpdate", _call(call_id, tool_name) | {"Partial": _cut(partial)})


def tool_end(
    call_id: str, tool_name: str, content: Iterable[ResultBlock], details: dict[str, Any], *, is_error: bool
) -> EventDispatch:
    """The result is what was said, if the tool failed, and otherwise its own facts about it."""
    result = _blocks(content) if is_error else details or None
    return EventDispatch("EventToolEnd", _call(call_id, tool_name) | {"Result": result, "IsError": is_error})


def turn_end(assistant: AssistantMessage | None, results: ToolMessage | None) -> EventDispatch:
    """Without an assistant's message when the model's API failed."""
    said = None if assistant is None else _one(assistant)
    kept, omitted = _newest(() if results is None else (results,), MESSAGES_LIMIT // 2)
    data = {"Assistant": said, "ToolResults": kept or None}
    return EventDispatch("EventTurnEnd", data | omitted)


def retry(attempt: int, limit: int, delay_ms: int, error: str) -> EventDispatch:
    return EventDispatch("EventRetry", {"Attempt": attempt, "Max": limit, "DelayMs": delay_ms, "Error": _cut(error)})


def max_turns(count: int, limit: int) -> EventDispatch:
    return EventDispatch("EventMaxTurns", {"Count": count, "Max": limit})


def compact(before: int, after: int, tokens: int) -> EventDispatch:
    """Messages before and after, and how many tokens it took to compact."""
    return EventDispatch("EventCompact", {"Before": before, "After": after, "TokensAtCompact": tokens})


def agent_end(messages: Sequence[Message]) -> EventDispatch:
    kept, omitted = _newest(messages, MESSAGES_LIMIT)
    return EventDispatch("EventAgentEnd", {"Messages": kept or None} | omitted)


def _call(call_id: str, tool_name: str) -> dict[str, Any]:
    return {"ToolCallID": call_id, "ToolName": tool_name}


def _blocks(content: Iterable[ResultBlock]) -> list[TextBlock | ImageBlock]:
    shown, _ = relayed(content)
    return [TextBlock(part.text) if part.type == "text" else ImageBlock(part.data, part.mime_type) for part in shown]


def _one(message: AssistantMessage) -> Bare | None:
    kept, _ = _newest((message,), MESSAGES_LIMIT // 2)
    return kept[0] if kept else None


def _newest(messages: Iterable[Message], room: int) -> tuple[list[Bare], dict[str, int]]:
    """The last messages that there is room for, and how many were left out if any were."""
    parts = bare(messages)
    kept: list[Bare] = []
    for part in reversed(parts):
        light = without_images(part, IMAGE_LIMIT)
        room -= len(memoryview(pack(light)))
        if room < 0:
            break
        kept.append(light)
    omitted = len(parts) - len(kept)
    return kept[::-1], {"Omitted": omitted} if omitted else {}


def _cut(text: str) -> str:
    return text[:TEXT_LIMIT]
