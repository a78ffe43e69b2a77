"""What extensions need of the world: the agent they extend, and programs to talk to. Seams, by role."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

from hilt.extensions.memory import Memory
from hilt.model.actions import Action
from hilt.model.content import Args
from hilt.model.contributions import ToolOutput
from hilt.model.events import Event
from hilt.packages.discovery import Untrusted
from hilt.transport.channels import Channel
from hilt.transport.launch import Spec
from hilt.transport.process import Exit

if TYPE_CHECKING:
    from hilt.extensions.services.answering import Services
    from hilt.extensions.services.ports import Facilities
    from hilt.extensions.trace import Trace


class Agent(Protocol):
    """Whom extensions call back. `source` is always the extension's name."""

    async def apply(self, actions: tuple[Action, ...], source: str) -> None:
        """Do what it asks for. Raises `HiltError`."""

    async def slash(self, text: str, source: str) -> None:
        """Run a slash command as if it had been typed. Raises `HiltError`."""

    async def call_tool(self, name: str, args: Args, source: str, chain: tuple[str, ...]) -> ToolOutput:
        """Run a tool through everything a model's call goes through. A refusal is an error result."""

    async def tell(self, event: Event) -> None:
        """Tell every face."""


class Program(Protocol):
    """A process being talked to; `transport.process.Child` is one."""

    @property
    def pid(self) -> int: ...

    @property
    def channel(self) -> Channel: ...

    async def exited(self) -> Exit: ...

    def last_words(self) -> list[str]: ...

    def complaints(self) -> str: ...

    def remark(self, text: str) -> None: ...

    @property
    def log_failure(self) -> OSError | None: ...


Opener: TypeAlias = Callable[[Spec], AbstractAsyncContextManager[Program]]
"""Starts a program for the life of a block. Raises `StartError`."""


Consent: TypeAlias = Callable[[tuple[Untrusted, ...]], Awaitable[bool]]
"""Asks whether what came with the folder may run, and keeps the answer. May take as long as a person takes."""


Keep: TypeAlias = Callable[[str, bool], None]
"""Keeps the user's wish whether an extension is to run, for later sessions and for what is found from now on. Blocks.
Raises `HiltError`, and nothing has changed."""


class Places(Struct, frozen=True):
    root: Path
    """All that is hilt's own, keys and trust among it."""
    logs: Path
    """Each has its `ext-<name>.log` here."""
    data: Path
    """Where those live that keep their data apart from their code, a directory each."""
    outputs: Path
    """The whole of results that are too long for the model."""
    environments: Path | None = None
    """What those that are one file need of Python, a directory each."""


class Surroundings(Struct, frozen=True):
    """Where an extension finds itself; fixed when the host is started."""

    provider: str
    model: str
    cwd: str


class House(Struct, frozen=True):
    """What all extensions of one host share."""

    agent: Agent
    open: Opener
    places: Places
    surroundings: Surroundings
    session_id: Callable[[], str]
    """Of the session that is open now."""
    attended: bool
    """Whether tools that wait for a person may run."""
    memory: Memory
    consent: Consent | None = None
    """Somebody who can be asked; None where there is nobody."""
    keep: Keep | None = None
    """None where nothing is kept: then it holds for the session."""
    keys: tuple[str, ...] = ()
    """Names of the environment variables that hold hilt's own keys."""
    facilities: "Facilities | None" = None
    """What stands behind the services; None where there are none."""
    services: "Services | None" = None
    """What extensions can ask for by method; the host makes them of the facilities."""
    trace: "Trace | None" = None
    """Where all that is said goes as well, if anybody wants that."""
