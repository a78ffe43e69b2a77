"""A conversation made fit to send: the rules that all vendors share, as pure functions.

Each adapter then writes what remains in its own words.
"""

import binascii
import re
from collections.abc import Iterable, Sequence, Set
from typing import Any

import msgspec
from msgspec import structs

from hilt.model.content import (
    BY_EXTENSION,
    AssistantBlock,
    Image,
    ResultBlock,
    Text,
    Thinking,
    ToolCall,
    UserBlock,
    text_of,
)
from hilt.model.conversation import (
    AssistantMessage,
    Message,
    ToolMessage,
    ToolResult,
    UserMessage,
    now,
    pair_calls,
)
from hilt.model.models import Reasoning
from hilt.model.stream import ModelRequest, ToolSpec

STRICT_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
PRINTABLE_ID = re.compile(r"[!-~]{1,64}")
"""Some local models write names and colons into their ids, and expect them back."""

DEFAULT_OUTPUT = 32_000
"""Enough for any file worth writing at once; larger requests crowd the conversation out of the window."""

THINKING_BUDGETS: dict[Reasoning, int] = {"low": 2048, "medium": 8192, "high": 16384}

_CONTINUE = "Continue."
_NO_OUTPUT = "(no output)"
_NAME_CHARS = re.compile(r"[^A-Za-z0-9_-]")
_TOP_LEVEL_ONLY_OBJECTS = ("oneOf", "anyOf", "allOf", "not", "enum", "$schema", "$id")


def sendable(
    request: ModelRequest, provider: str, *, ids: re.Pattern[str] = STRICT_ID, last_thinking: bool = False
) -> list[Message]:
    """The conversation as every vendor takes it.

    Each call has one result and an id of its own, no text is blank, roles alternate, a user
    begins and the assistant does not have the last word. Thoughts go only to the model that had
    them; without `last_thinking` none ends a message, since two vendors refuse that.
    """
    trimmed = [
        kept
        for message in pair_calls(request.messages)
        if (kept := _trimmed(message, provider, request.model.id, last_thinking=last_thinking)) is not None
    ]
    messages = _merged(trimmed)
    if not messages or not isinstance(messages[0], UserMessage):
        messages.insert(0, UserMessage((Text(_CONTINUE),), now()))
    if isinstance(messages[-1], AssistantMessage):
        messages.append(UserMessage((Text(_CONTINUE),), now()))
    return _with_own_ids(messages, ids)


def effort(request: ModelRequest) -> Reasoning:
    """How hard to think; nothing for a model that is known not to reason. Only known models have a price."""
    known = request.model.price is not None
    return "" if known and not request.model.reasoning else request.reasoning


def output_limit(request: ModelRequest) -> int:
    """The most tokens to answer with; 0 when nobody knows."""
    return request.max_tokens or min(request.model.max_output, DEFAULT_OUTPUT)


class ToolNames:
    """Tool names as the vendors allow them, and back."""

    def __init__(self, tools: Iterable[ToolSpec] = ()) -> None:
        self._wire: dict[str, str] = {}
        self._real: dict[str, str] = {}
        for tool in tools:
            wire = _safe_name(tool.name)
            number = 2
            while wire in self._real:
                wire = f"{_safe_name(tool.name)[:60]}_{number}"
                number += 1
            self._wire[tool.name] = wire
            self._real[wire] = tool.name

    def wire(self, name: str) -> str:
        return self._wire.get(name) or _safe_name(name)

    def real(self, wire: str) -> str:
        return self._real.get(wire, wire)


def object_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema the vendors take for arguments: an object, without alternatives at its top.

    Arguments are checked against the full schema before a tool runs, so nothing is lost.
    """
    kept = {key: value for key, value in schema.items() if key not in _TOP_LEVEL_ONLY_OBJECTS}
    return {**kept, "type": "object", "properties": schema.get("properties") or {}}


def with_images(content: Sequence[UserBlock], accepted: Set[str]) -> list[UserBlock]:
    """Put a note in the place of each image that this vendor does not read."""
    return [
        Text(f"[an image of type {block.mime_type} was left out: this model cannot read it]")
        if isinstance(block, Image) and (block.mime_type not in accepted or not block.data)
        else block
        for block in content
    ]


def to_json(value: Any) -> bytes:
    """JSON as UTF-8; halves of surrogate pairs, which no encoder takes, become U+FFFD."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_without_surrogates(value))


def base64_of(image: Image) -> str:
    return binascii.b2a_base64(image.data, newline=False).decode()


def data_url(image: Image) -> str:
    return f"data:{image.mime_type};base64,{base64_of(image)}"


def result_text(content: Iterable[ResultBlock]) -> str:
    return text_of(content, "\n") or _NO_OUTPUT


def _trimmed(message: Message, provider: str, model: str, *, last_thinking: bool) -> Message | None:
    match message:
        case UserMessage():
            content = tuple(block for block in message.content if not _blank(block))
            return structs.replace(message, content=content) if content else None
        case AssistantMessage():
            blocks = _own_blocks(message, provider, model)
            while blocks and isinstance(blocks[-1], Thinking) and not last_thinking:
                blocks.pop()
            return structs.replace(message, content=tuple(blocks)) if blocks else None
        case ToolMessage():
            results = tuple(_trimmed_result(result) for result in message.results)
            return structs.replace(message, results=results)


def _own_blocks(message: AssistantMessage, provider: str, model: str) -> list[AssistantBlock]:
    own = message.model in ("", model)
    blocks: list[AssistantBlock] = []
    for block in message.content:
        if isinstance(block, ToolCall):
            ours = own and message.provider in ("", provider) and not block.state.startswith(BY_EXTENSION)
            blocks.append(block if ours or not block.state else structs.replace(block, state=""))
        elif isinstance(block, Thinking):
            if own and block.provider == provider:
                blocks.append(block)
        elif not _blank(block):
            blocks.append(block)
    return blocks


def _trimmed_result(result: ToolResult) -> ToolResult:
    content = tuple(block for block in result.content if not _blank(block))
    return structs.replace(result, content=content or (Text(_NO_OUTPUT),))


def _blank(block: UserBlock) -> bool:
    return isinstance(block, Text) and not block.text.strip()


def _merged(messages: Iterable[Message]) -> list[Message]:
    merged: list[Message] = []
    for message in messages:
        last = merged[-1] if merged else None
        if (isinstance(message, UserMessage) and isinstance(last, UserMessage)) or (
            isinstance(message, AssistantMessage) and isinstance(last, AssistantMessage)
        ):
            merged[-1] = structs.replace(last, content=(*last.content, *message.content))
        else:
            merged.append(message)
    return merged


def _with_own_ids(messages: Iterable[Message], allowed: re.Pattern[str]) -> list[Message]:
    """Rename the calls whose id is not allowed or already taken. Results follow by position."""
    used: set[str] = set()
    fixed: list[Message] = []
    ids: list[str] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            ids = []
            blocks: list[AssistantBlock] = []
            for block in message.content:
                if isinstance(block, ToolCall):
                    ids.append(_own_id(block.id, used, allowed))
                    block = block if block.id == ids[-1] else structs.replace(block, id=ids[-1])
                blocks.append(block)
            fixed.append(structs.replace(message, content=tuple(blocks)))
        elif isinstance(message, ToolMessage):
            results = (structs.replace(r, call_id=own) for r, own in zip(message.results, ids, strict=True))
            fixed.append(structs.replace(message, results=tuple(results)))
        else:
            fixed.append(message)
    return fixed


def _own_id(wanted: str, used: set[str], allowed: re.Pattern[str]) -> str:
    number = len(used)
    while wanted in used or not allowed.fullmatch(wanted):
        number += 1
        wanted = f"call_{number}"
    used.add(wanted)
    return wanted


def _without_surrogates(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_surrogates(item) for item in value]
    return value


def _safe_name(name: str) -> str:
    return _NAME_CHARS.sub("_", name)[:64] or "_"
