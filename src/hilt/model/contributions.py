"""What the built-ins and the extensions offer. Each carries its own callable."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from hilt.model.actions import Action
from hilt.model.content import Args, ResultBlock, Text
from hilt.model.conversation import Message
from hilt.model.models import ModelInfo
from hilt.model.stream import ModelRequest, StreamItem
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
    hint: str = ""
    """A word on when to use this one; part of the system prompt."""


class Command(Struct, frozen=True):
    name: str
    """Without the slash; matched case-insensitively."""
    description: str
    run: Callable[[str], Awaitable[tuple[Action, ...]]]
    usage: str = ""
    """The arguments it takes, as shown in help: `[path]`."""
    personal: bool = False
    """Nobody may type it for the user: it reads or writes whatever file its arguments name."""
    immediate: bool = True
    """It may run beside a turn; otherwise it waits until nothing else runs."""


class Shortcut(Struct, frozen=True):
    key: str
    """Such as `ctrl+g`; matched case-insensitively."""
    description: str
    run: Callable[[], Awaitable[tuple[Action, ...]]]


class Asked(Protocol):
    """A question on its way. Await it once, or discard it.

    Raises `ExtensionError` when there is no verdict, no later than the policy's timeout; but as long as it asks the
    user, no time passes.
    """

    def __await__(self) -> Generator[Any, None, Verdict]: ...

    def discard(self) -> None:
        """Nobody wants the answer any more."""

    @property
    def settled(self) -> bool:
        """Whether the answer has come, or will not come: then awaiting it takes no time."""

    @property
    def asks_user(self) -> bool:
        """Whether whoever is asked has a question of its own before the user."""

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


class Finished(Struct, frozen=True):
    """A tool's result, before anyone else sees it."""

    call_id: str
    tool_name: str
    output: ToolOutput


class ResultInterceptor(Struct, frozen=True):
    """Sees what a tool returned, and may change it."""

    after: Callable[[Finished], Awaitable[ToolOutput]]
    """The result as it should be; the same one when there is nothing to change. Raises `ExtensionError`."""
    priority: int = 0
    """Higher is asked first, as before the call."""


class PromptSection(Struct, frozen=True):
    """A part of the system prompt."""

    title: str
    content: str
    order: int = 0
    tokens: int = 0
    """How long its author thinks it is; 0 if it does not say."""


class MessageHook(Struct, frozen=True):
    """Adds to what the model is told when the user says something: for the next answer only."""

    on_message: Callable[[str], Awaitable[str]]
    """Given what was said; empty when there is nothing to add. Raises `ExtensionError`."""
    priority: int = 0
    """Lower is asked first."""


class Transformed(Struct, frozen=True):
    text: str
    handled: bool = False
    """There is nothing left to send."""


class InputTransformer(Struct, frozen=True):
    """Rewrites what the user typed before anything else is done with it."""

    transform: Callable[[str], Awaitable[Transformed]]
    """Raises `ExtensionError`, and then nothing is sent."""
    priority: int = 0
    """Lower is asked first."""


class Compactor(Struct, frozen=True):
    """Makes a long conversation short in its own way."""

    name: str
    compact: Callable[[tuple[Message, ...]], Awaitable[tuple[Message, ...]]]
    """The conversation to go on with. Raises `ExtensionError`."""
    threshold: int = 0
    """Tokens from which on it wants to be asked; 0 leaves it to the agent."""


class ModelSource(Struct, frozen=True):
    """Answers in place of the built-in adapters, for all models of one API, and for models of its own."""

    api: str
    stream: Callable[[ModelRequest], AsyncGenerator[StreamItem, None]]
    """As `ports.Provider.stream`."""
    models: tuple[ModelInfo, ...] = ()
    """Those that nobody else knows."""


Contribution: TypeAlias = (
    Tool
    | Command
    | Shortcut
    | Interceptor
    | ResultInterceptor
    | PromptSection
    | MessageHook
    | InputTransformer
    | Compactor
    | ModelSource
)
