"""A model that says what a file tells it to: for tests and for authors of extensions.

The file is JSONL, one assistant turn per line; blank lines and lines that begin with `#` or
`//` are skipped. All of it is read and checked when the provider is made, so that a bad line
is reported before anything runs. Every model call takes the next line, retries and summaries
included; past the end the answer is `(script ended)`.
"""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from stat import S_ISREG
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from hilt.errors import AuthError, BadRequest, ConfigError, ContextOverflow, ProviderError, RateLimited, Unavailable
from hilt.model.content import Args, AssistantBlock, Text, Thinking, ToolCall, text_of
from hilt.model.conversation import AssistantMessage, Message, StopReason, ToolMessage, Usage, UserMessage
from hilt.model.stream import Completed, ModelRequest, StreamItem
from hilt.providers.replay import deltas, unused_id

ENDED = "(script ended)"
_LARGEST_FILE = 64 * 1024 * 1024
_LINE_HINT = (
    'each line is one turn, such as {"content": [{"type": "text", "text": "Hello"}]}; '
    "blocks are text, thinking or tool_call, and other keys are usage, delay_ms, error, expect and stop"
)
_SEEN_LIMIT = 500
"""How much of an unexpected message its report shows."""

_Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
_Filled: TypeAlias = Annotated[str, Meta(min_length=1)]


class TextLine(Struct, frozen=True, tag_field="type", tag="text", forbid_unknown_fields=True):
    text: str


class ThinkingLine(Struct, frozen=True, tag_field="type", tag="thinking", forbid_unknown_fields=True):
    text: str


class CallLine(Struct, frozen=True, tag_field="type", tag="tool_call", forbid_unknown_fields=True):
    name: _Filled
    args: Args = {}
    id: str = ""
    """Made up when empty, and numbered when the conversation already has it."""


class UsageLine(Struct, frozen=True, forbid_unknown_fields=True):
    input: _Count = 0
    output: _Count = 0
    cache_read: _Count = 0
    cache_write: _Count = 0


class StatusLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A failure as an API would answer it, so that retries can be exercised."""

    status: Annotated[int, Meta(ge=400, le=599)]
    message: str = ""
    retry_after: Annotated[float, Meta(ge=0)] | None = None
    """Seconds."""


class Expectation(Struct, frozen=True, forbid_unknown_fields=True):
    """What the newest message of the request must be."""

    contains: str = ""
    role: Annotated[str, Meta(pattern="^(user|assistant|tool)?$")] = ""


class Turn(Struct, frozen=True, forbid_unknown_fields=True):
    """One line of the script."""

    content: tuple[TextLine | ThinkingLine | CallLine, ...] = ()
    usage: UsageLine | None = None
    delay_ms: Annotated[int, Meta(ge=0, le=86_400_000)] = 0
    """A wait before the answer; it can be cancelled."""
    error: _Filled | StatusLine | None = None
    """Fails the turn, after its content was streamed."""
    expect: Expectation | None = None
    stop: StopReason | None = None
    """Without it: `tool_use` when there is a call, else `end`."""


class Script:
    name = "script"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turns = _parse(path, _read(path))
        self._next = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        number, turn = self._take()
        if turn.expect:
            _check(turn.expect, request.messages, f"{self._path.name}, line {number}")
        await asyncio.sleep(turn.delay_ms / 1000)
        content = _content(turn, number, request.messages)
        for delta in deltas(content):
            yield delta
            await asyncio.sleep(0)  # nothing else waits here, and what never waits cannot be cancelled
        if turn.error is not None:
            raise _failure(turn.error)
        called = any(isinstance(block, ToolCall) for block in content)
        usage = turn.usage or UsageLine()
        yield Completed(
            content,
            turn.stop or ("tool_use" if called else "end"),
            Usage(usage.input, usage.output, usage.cache_read, usage.cache_write),
        )

    def _take(self) -> tuple[int, Turn]:
        """The next line and its number; a failed or cancelled call has used its line up too."""
        if self._next >= len(self._turns):
            return 0, Turn((TextLine(ENDED),))
        self._next += 1
        return self._turns[self._next - 1]

    async def aclose(self) -> None:
        """Nothing is held open."""


def _read(path: Path) -> bytes:
    hint = "give --script a JSONL file with one assistant turn per line"
    try:
        facts = path.stat()
        # A pipe or a device could keep us waiting for ever.
        if not S_ISREG(facts.st_mode):
            raise ConfigError(f"the script {path} is not a regular file", hint=hint)
        if facts.st_size > _LARGEST_FILE:
            raise ConfigError(f"the script {path} is larger than {_LARGEST_FILE // 2**20} MiB", hint=hint)
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL byte
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"cannot read the script {path}: {reason}", hint=hint) from error


def _parse(path: Path, data: bytes) -> list[tuple[int, Turn]]:
    """The turns with their line numbers."""
    decoder = msgspec.json.Decoder(Turn)
    turns: list[tuple[int, Turn]] = []
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        line = raw.strip()
        if not line or line.startswith((b"#", b"//")):
            continue
        try:
            turns.append((number, decoder.decode(line)))
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path}, line {number}: {error}", hint=_LINE_HINT) from error
    return turns


def _content(turn: Turn, number: int, messages: tuple[Message, ...]) -> tuple[AssistantBlock, ...]:
    content: list[AssistantBlock] = []
    given: list[str] = []
    for block in turn.content:
        match block:
            case TextLine(text=text):
                content.append(Text(text))
            case ThinkingLine(text=text):
                content.append(Thinking(text, provider=Script.name))
            case CallLine(name=name, args=args, id=wanted):
                call_id = unused_id(wanted or f"call_{number}_{len(given) + 1}", messages, given)
                given.append(call_id)
                content.append(ToolCall(call_id, name, args))
    return tuple(content)


def _failure(error: str | StatusLine) -> ProviderError:
    if isinstance(error, str):
        return ProviderError(error)
    message = error.message or f"the script answered with status {error.status}"
    match error.status:
        case 401 | 403:
            return AuthError(message)
        case 400 | 404 | 422:
            return BadRequest(message)
        case 413:
            return ContextOverflow(message)
        case 429:
            return RateLimited(message, retry_after=error.retry_after)
        case 408 | 409:
            return Unavailable(message, retry_after=error.retry_after)
        case status if status >= 500:
            return Unavailable(message, retry_after=error.retry_after)
    return ProviderError(message)


def _check(expected: Expectation, messages: tuple[Message, ...], where: str) -> None:
    role, text = _seen(messages[-1]) if messages else ("nobody", "")
    if (not expected.role or expected.role == role) and expected.contains in text:
        return
    wanted = f"a message from {expected.role}" if expected.role else "a message"
    if expected.contains:
        wanted += f" that contains {_quote(expected.contains)}"
    raise ProviderError(f"{where}: expected {wanted}; the newest is from {role} and says {_quote(text)}")


def _seen(message: Message) -> tuple[str, str]:
    match message:
        case UserMessage(content=content):
            return "user", text_of(content, "\n")
        case AssistantMessage(content=content):
            return "assistant", text_of(content, "\n")
        case ToolMessage(results=results):
            return "tool", "\n".join(text_of(result.content, "\n") for result in results)


def _quote(text: str) -> str:
    return repr(text) if len(text) <= _SEEN_LIMIT else f"{text[:_SEEN_LIMIT]!r} (and {len(text) - _SEEN_LIMIT} more)"
