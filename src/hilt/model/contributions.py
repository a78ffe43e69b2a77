"""What the built-ins and the extensions offer. Each carries its own callable."""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from hilt.model.actions import Action
from hilt.model.content import Args, ResultBlock, Text


class Effect(StrEnum):
    """The worst a tool can do; permission modes decide by it."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"


class Preview(Struct, frozen=True):
    """The whole of what a call would do, for the person who must allow it."""

    kind: Literal["command", "diff", "json"]
    text: str


class Invocation(Struct, frozen=True):
    """One call of one tool."""

    call_id: str
    args: Args
    progress: Callable[[str], Awaitable[None]]
    """Show a piece of output while the tool still runs."""
    shown: Preview | None = None
    """What the permission was given for, if one was needed: a tool that would now do anything else must refuse."""


class ToolOutput(Struct, frozen=True):
    content: tuple[ResultBlock, ...]
    is_error: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str, *, is_error: bool = False, **details: Any) -> "ToolOutput":
        return cls((Text(text),), is_error, details)


class Tool(Struct, frozen=True):
    name: str
    description: str
    schema: dict[str, Any]
    """JSON Schema of the arguments, checked before anything runs."""
    invoke: Callable[[Invocation], Awaitable[ToolOutput]]
    effect: Effect = Effect.EXECUTE
    parallel: bool = False
    """Safe to run beside other calls of the same batch."""
    preview: Callable[[Args], Awaitable[Preview]] | None = None
    """What to show before it runs; without one the arguments are shown as JSON."""


class Command(Struct, frozen=True):
    name: str
    """Without the slash; matched case-insensitively."""
    description: str
    run: Callable[[str], Awaitable[tuple[Action, ...]]]
    usage: str = ""
    """The arguments it takes, as shown in help: `[path]`."""


Contribution: TypeAlias = Tool | Command
