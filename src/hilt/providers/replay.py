"""A finished answer as a stream, for the models that need no network.

Owns how `script` and `demo` cut an answer into deltas. What the answer says is theirs.
"""

from collections.abc import Iterable, Iterator

import msgspec

from hilt.model.content import AssistantBlock, Text, Thinking, ToolCall
from hilt.model.conversation import Message, tool_calls
from hilt.model.stream import Delta, TextDelta, ThinkingDelta, ToolUseArgs, ToolUseEnd, ToolUseStart

_MOST_PIECES = 200
"""A long text comes in as many deltas, each of several words: streaming it must not be the slow part."""


def deltas(content: Iterable[AssistantBlock]) -> Iterator[Delta]:
    """A finished message, as a model would have streamed it."""
    for block in content:
        yield from _cut(block)


def _cut(block: AssistantBlock) -> Iterator[Delta]:
    match block:
        case Text(text=text):
            for piece in pieces(text):
                yield TextDelta(piece)
        case Thinking(text=text):
            for piece in pieces(text):
                yield ThinkingDelta(piece)
        case ToolCall(id=call_id, name=name, args=args):
            yield ToolUseStart(call_id, name)
            encoded = msgspec.json.encode(args).decode()
            half = len(encoded) // 2
            for part in (encoded[:half], encoded[half:]):
                yield ToolUseArgs(call_id, part)
            yield ToolUseEnd(call_id)


def pieces(text: str) -> list[str]:
    """Cut after spaces and line ends; joined again they are the text."""
    smallest = len(text) // _MOST_PIECES
    cut: list[str] = []
    start = 0
    for position, character in enumerate(text):
        if character in " \n" and position - start >= smallest:
            cut.append(text[start : position + 1])
            start = position + 1
    if start < len(text):
        cut.append(text[start:])
    return cut


def unused_id(wanted: str, messages: Iterable[Message], also: Iterable[str] = ()) -> str:
    """The wanted call id, or the first numbered one that the conversation does not hold yet."""
    taken = {call.id for message in messages for call in tool_calls(message)}.union(also)
    candidate, number = wanted, 1
    while candidate in taken:
        number += 1
        candidate = f"{wanted}_{number}"
    return candidate
