"""What the built-ins and the extensions offer. Each carries its own callable."""

from collections.abc import Awaitable, Callable, Generator, Mapping
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from hilt.model.actions import Action
from hilt.model.content import Args, ResultBlock, Text
from hilt.model.verdicts import GuardPolicy, Interceptable, Question, Verdict


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
    chain: tuple[str, ...] = ()
    """The tools that led to this call, outermost first, when an extension's tool called this one."""


class ToolOutput(Struct, frozen=True):
    content: tuple[ResultBlock, ...]
    is_error: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str, *, is_error: bool = False, **details: Any) -> "ToolOutput":
        return cls((Text(text),), is_error, details)


Exposure: TypeAlias = Literal["direct", "deferred", "codemode", "model-only"]
"""Who sees a tool. `direct`: all. `deferred`: the model knows its name only, until it is activated.
`codemode`: programs only, not the model. `model-only`: the model, but no other extension."""


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
    exposure: Exposure = "direct"
    interactive: bool = False
    """It waits for a person: of no use where there is none."""
    instructions: str = ""
    """What the model should know about using this family of tools; part of the system prompt."""


class Command(Struct, frozen=True):
    name: str
    """Without the slash; matched case-insensitively."""
    description: str
    run: Callable[[str], Awaitable[tuple[Action, ...]]]
    usage: str = ""
    """The arguments it takes, as shown in help: `[path]`."""
    personal: bool = False
    """Nobody may type it for the user: it reads or writes whatever file its arguments name."""


class Shortcut(Struct, frozen=True):
    key: str
    """Such as `ctrl+g`; matched case-insensitively."""
    description: str
    run: Callable[[], Awaitable[tuple[Action, ...]]]


class Asked(Protocol):
    """A question on its way. Await it once, or discard it.

    Raises `ExtensionError` when there is no verdict, no later than the policy's timeout.
    """

    def __await__(self) -> Generator[Any, None, Verdict]: ...

    def discard(self) -> None:
        """Nobody wants the answer any more."""

    @property
    def settled(self) -> bool:
        """Whether the answer has come, or will not come: then awaiting it takes no time."""

    @property
    def elapsed(self) -> float:
        """Seconds until the answer came, whenever it was looked at."""


class Interceptor(Struct, frozen=True):
    """Asked before something happens; may refuse or change it."""

    event: Interceptable
    ask: Callable[[Question], Asked]
    """The question is on its way when this returns, so that several can be asked at once."""
    priority: int = 0
    """Higher is asked first; equals in the order of their owners."""
    policy: GuardPolicy = GuardPolicy()


class PromptSection(Struct, frozen=True):
    """A part of the system prompt."""

    title: str
    content: str
    order: int = 0


Contribution: TypeAlias = Tool | Command | Shortcut | Interceptor | PromptSection
