"""The conversation in the form of the jsonrpc dialect, both ways.

On the wire a message is bare: which of the three it is, and what its blocks are, must be guessed from its keys.
What is written here says so besides (`role`, `type`), for many extensions look for it, and carries in `hilt` what
the bare form has no place for, so that a message which comes back as it was sent is the message it was. Reading
takes bare and wrapped messages (`{"type", "data"}`) alike, and what cannot be read is reported, not dropped.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, structs

from hilt.errors import FrameError
from hilt.model.content import AssistantBlock, Image, ToolCall, text_of
from hilt.model.conversation import (
    AssistantMessage,
    Message,
    StopReason,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
    now,
)
from hilt.wire.jsonrpc_bare import (
    AnyMessage,
    AssistantExtra,
    Bare,
    BareAssistant,
    BareToolResult,
    BareUser,
    MessageUsage,
    UserExtra,
    Wrapped,
    Wrapper,
)
from hilt.wire.jsonrpc_blocks import assistant_block, image_block, read_blocks, result_block, spoken, text_or_image
from hilt.wire.jsonrpc_light import light, with_images
from hilt.wire.jsonrpc_reading import shaped

UNNAMED = "hilt"
"""The provider of an assistant message that has none: without one it would be taken for a user's."""

MESSAGES_LIMIT = 10_000
BLOCKS_LIMIT = 50_000
"""What is read of a conversation: reading more would hold up everyone else."""

_MOST_USED = 2**50
"""Tokens or dollars that one message can have cost."""

_STOPS: dict[StopReason, str] = {
    "end": "stop",
    "tool_use": "toolUse",
    "length": "length",
    "error": "error",
    "aborted": "aborted",
}
_REASONS: dict[str, StopReason] = {said: stop for stop, said in _STOPS.items()}

Role: TypeAlias = Literal["user", "assistant", "tool_result"]
_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "tool_result": "tool_result",
    "toolresult": "tool_result",
    "tool": "tool_result",
}


def timestamp(time: datetime) -> str:
    """RFC 3339 in UTC; a time without a zone is taken for UTC."""
    try:
        zoned = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except OverflowError:
        zoned = time  # near the end of all time, where UTC is beyond it
    return zoned.isoformat().replace("+00:00", "Z")


def bare(messages: Iterable[Message]) -> tuple[Bare, ...]:
    """Each tool result is a message of its own here."""
    return tuple(part for message in messages for part in _parts(message))


def wrapped(messages: Iterable[Message]) -> tuple[Wrapped, ...]:
    """For a compactor. It need not see all the images."""
    return tuple(Wrapped(str(part.__struct_config__.tag), part) for part in light(bare(messages)))


def read_messages(values: Iterable[Any], known: Iterable[Message] = ()) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """Messages, and what is wrong with those that are not among them.

    What is still as the `known` ones were sent gets back from them what the bare form cannot carry, and images that
    were only described.
    """
    known = tuple(known)
    messages: list[Message] = []
    problems: list[str] = []
    blocks = 0
    for number, value in enumerate(values, 1):
        if number > MESSAGES_LIMIT or blocks > BLOCKS_LIMIT:
            problems.append(f"message {number} and those after it: that is more than anyone can read")
            break
        try:
            message = read_message(value)
        except FrameError as error:
            problems.append(f"message {number}: {error.message}")
            continue
        blocks += _length(message)
        messages.append(message)
    return tuple(_reunited(with_images(_gathered(messages), known), known)), tuple(problems)


def read_message(value: Any) -> Message:
    """One message, bare or wrapped. Raises `FrameError`."""
    if not isinstance(value, dict):
        raise FrameError("it must be an object")
    wrapper = shaped(value, Wrapper)
    inside = wrapper.data if isinstance(wrapper.data, dict) else value
    message = shaped(inside, AnyMessage)
    match _role(wrapper.type if inside is wrapper.data else "", message):
        case "user":
            return _user(message)
        case "assistant":
            return _assistant(message)
        case "tool_result":
            return _tool_result(message)


def _length(message: Message) -> int:
    if isinstance(message, ToolMessage):
        return sum(len(result.content) for result in message.results)
    return len(message.content)


def _gathered(messages: Iterable[Message]) -> Iterator[Message]:
    """All the results of one assistant message belong together."""
    results: list[ToolResult] = []
    first = None
    for message in messages:
        if isinstance(message, ToolMessage):
            first = first or message
            results += message.results
            continue
        if first is not None:
            yield ToolMessage(tuple(results), first.time)
            results, first = [], None
        yield message
    if first is not None:
        yield ToolMessage(tuple(results), first.time)


def _reunited(messages: Iterable[Message], known: Iterable[Message]) -> Iterator[Message]:
    """Give tool results their facts again, and a user's words and images their order."""
    users: dict[Bare, UserMessage] = {}
    results: dict[Bare, ToolResult] = {}
    for message in known:
        if isinstance(message, ToolMessage):
            results |= {_result_part(result): result for result in message.results}
        elif isinstance(message, UserMessage):
            users[_user_part(message)] = message
    for message in messages:
        if isinstance(message, ToolMessage) and results:
            found = (results.get(_result_part(result), result) for result in message.results)
            yield ToolMessage(tuple(found), message.time)
        elif isinstance(message, UserMessage) and (same := users.get(_user_part(message))):
            yield structs.replace(message, content=same.content)
        else:
            yield message


def _parts(message: Message) -> tuple[Bare, ...]:
    time = timestamp(message.time)
    match message:
        case UserMessage():
            return (_user_part(message, time),)
        case AssistantMessage():
            usage = message.usage
            return (
                BareAssistant(
                    content=tuple(map(assistant_block, message.content)),
                    model=message.model,
                    provider=message.provider or ("" if message.model else UNNAMED),
                    usage=MessageUsage(usage.input, usage.output, usage.cache_read, usage.cache_write, usage.cost_usd),
                    stop_reason=_STOPS[message.stop],
                    error=message.error,
                    timestamp=time,
                    hilt=UNSET if message.shown is None else AssistantExtra(message.shown),
                ),
            )
        case ToolMessage():
            return tuple(_result_part(result, time) for result in message.results)


def _user_part(message: UserMessage, time: str = "") -> BareUser:
    images = tuple(image_block(block) for block in message.content if isinstance(block, Image))
    extra = UserExtra(message.summary, message.extension) if message.summary or message.extension else UNSET
    return BareUser(content=text_of(message.content, "\n"), blocks=images, timestamp=time, hilt=extra)


def _result_part(result: ToolResult, time: str = "") -> BareToolResult:
    return BareToolResult(
        tool_call_id=result.call_id,
        tool_name=result.name,
        content=tuple(map(result_block, result.content)),
        is_error=result.is_error,
        timestamp=time,
    )


def _role(said: str, message: AnyMessage) -> Role:
    """Which of the three it is: as it says, or by the keys the reference looks at."""
    if said := said or message.role:
        role = _ROLES.get(said.casefold())
        if role is None:
            raise FrameError(f"{said[:64]!r} is no kind of message: use user, assistant or tool_result")
        return role
    if message.tool_call_id:
        return "tool_result"
    if message.provider or message.model or message.stop_reason:
        return "assistant"
    if message.content is None and message.blocks is None:  # taken for a user's, any object would be a message
        raise FrameError("it has neither `role` nor `content`, so it is no message")
    return "user"


def _user(message: AnyMessage) -> UserMessage:
    blocks = (*read_blocks(message.content, "content"), *read_blocks(message.blocks, "blocks"))
    extra = shaped(message.hilt, UserExtra)
    return UserMessage(tuple(map(text_or_image, blocks)), _time(message.timestamp), extra.summary, extra.extension)


def _assistant(message: AnyMessage) -> AssistantMessage:
    content = tuple(spoken(block) for block in read_blocks(message.content, "content"))
    shown = shaped(message.hilt, AssistantExtra).shown
    return AssistantMessage(
        content,
        _time(message.timestamp),
        "" if message.provider == UNNAMED and not message.model else message.provider,
        message.model,
        _usage(message.usage),
        _stop(message.stop_reason, content),
        message.error,
        None if shown is UNSET else shown,
    )


def _tool_result(message: AnyMessage) -> ToolMessage:
    if not message.tool_call_id:
        raise FrameError("`toolCallId` is missing")
    content = tuple(text_or_image(block) for block in read_blocks(message.content, "content"))
    result = ToolResult(message.tool_call_id, message.tool_name, content, message.is_error)
    return ToolMessage((result,), _time(message.timestamp))


def _stop(said: str, content: Iterable[AssistantBlock]) -> StopReason:
    """Where none is given, or one that nobody knows, the content tells."""
    calls = any(isinstance(block, ToolCall) for block in content)
    return _REASONS.get(said, "tool_use" if calls else "end")


def _usage(usage: MessageUsage | None) -> Usage:
    """No less than nothing, and no more than can be written: sums are made of it, and budgets kept by it."""
    if usage is None:
        return Usage()
    return Usage(
        min(max(usage.input_tokens, 0), _MOST_USED),
        min(max(usage.output_tokens, 0), _MOST_USED),
        min(max(usage.cache_read_tokens, 0), _MOST_USED),
        min(max(usage.cache_write_tokens, 0), _MOST_USED),
        min(max(usage.cost, 0.0), _MOST_USED),
    )


def _time(text: str) -> datetime:
    """When it was; now, when it does not say: an empty text and the year 1 are ways of not saying."""
    try:
        time = msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return now()
    zoned = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return zoned if zoned.year > 1 else now()
