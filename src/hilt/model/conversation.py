"""Messages, what they cost, and the rule that every tool call has one result."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from hilt.model.content import AssistantBlock, ResultBlock, Text, ToolCall, UserBlock

StopReason: TypeAlias = Literal["end", "tool_use", "length", "error", "aborted"]

OUTCOME_UNKNOWN = (
    "No result was recorded for this call: it was interrupted and its outcome is unknown. "
    "Check the state of things before running it again."
)


def now() -> datetime:
    return datetime.now(UTC)


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens as the provider reported them, and their price in US dollars."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.cost_usd + other.cost_usd,
        )

    @property
    def context(self) -> int:
        """How much of the model's window this exchange filled."""
        return self.input + self.cache_read + self.cache_write + self.output


class UserMessage(Struct, frozen=True, tag_field="role", tag="user", omit_defaults=True):
    content: tuple[UserBlock, ...]
    time: datetime
    summary: bool = False
    """True for the message that stands for what compaction removed."""
    extension: str = ""
    """Whose words they are, when an extension spoke in the user's place."""


class AssistantMessage(Struct, frozen=True, tag_field="role", tag="assistant", omit_defaults=True):
    content: tuple[AssistantBlock, ...]
    time: datetime
    provider: str = ""
    model: str = ""
    usage: Usage = Usage()
    stop: StopReason = "end"
    error: str = ""
    shown: str | None = None
    """What people are shown in place of its text, when an interceptor wanted that; empty shows none of it."""

    @property
    def seen(self) -> tuple[AssistantBlock, ...]:
        """The content as people see it. The model is always sent its own words."""
        if self.shown is None:
            return self.content
        others = tuple(block for block in self.content if not isinstance(block, Text))
        return (Text(self.shown), *others) if self.shown else others


class ToolResult(Struct, frozen=True, omit_defaults=True):
    call_id: str
    name: str
    content: tuple[ResultBlock, ...]
    is_error: bool = False
    details: dict[str, Any] = {}
    """Facts for screens and programs (a path, an exit code, a diff); never sent to the model."""


class ToolMessage(Struct, frozen=True, tag_field="role", tag="tool", omit_defaults=True):
    """All the results of one assistant message, in the order of its calls."""

    results: tuple[ToolResult, ...]
    time: datetime


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage


def user_text(text: str, extension: str = "") -> UserMessage:
    return UserMessage((Text(text),), now(), extension=extension)


def tool_calls(message: Message) -> tuple[ToolCall, ...]:
    if not isinstance(message, AssistantMessage):
        return ()
    return tuple(block for block in message.content if isinstance(block, ToolCall))


def unknown_outcome(call: ToolCall, text: str = OUTCOME_UNKNOWN) -> ToolResult:
    return ToolResult(call.id, call.name, (Text(text),), is_error=True)


def pair_calls(messages: Iterable[Message]) -> list[Message]:
    """Give every call exactly one result and every result a call, as all providers demand.

    Results without a call are left out; calls without a result get one that says so. The
    answer shares every message that was already right.
    """
    paired: list[Message] = []
    source = list(messages)
    position = 0
    while position < len(source):
        message = source[position]
        position += 1
        if isinstance(message, ToolMessage):
            continue  # every one that answers a call was consumed with that call below
        paired.append(message)
        calls = tool_calls(message)
        if not calls:
            continue
        found: dict[str, ToolResult] = {}
        first: ToolMessage | None = None
        count = 0
        while position < len(source) and isinstance(answer := source[position], ToolMessage):
            first = first or answer
            count += 1
            for result in answer.results:
                found.setdefault(result.call_id, result)
            position += 1
        results = tuple(found.get(call.id) or unknown_outcome(call) for call in calls)
        if first is not None and count == 1 and first.results == results:
            paired.append(first)
        else:
            paired.append(ToolMessage(results, first.time if first else message.time))
    return paired
