"""The seams: what the agent needs of the world, by role."""

from collections.abc import AsyncGenerator
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from hilt.model.content import Args
from hilt.model.contributions import Effect, Preview
from hilt.model.extensions import ExtensionStatus, Reloaded
from hilt.model.stream import ModelRequest, StreamItem


class Provider(Protocol):
    """A model API.

    `stream` yields deltas and ends with exactly one `Completed`. It raises only
    `ProviderError`s. Cancelling the task that reads it must close its connection at once.
    """

    name: str

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]: ...

    async def aclose(self) -> None: ...


class PermissionRequest(Struct, frozen=True):
    """What is about to run, whole: what is shown here is exactly what runs."""

    call_id: str
    tool: str
    effect: Effect
    args: Args
    preview: Preview
    rewritten_by: tuple[str, ...] = ()
    """The interceptors that changed what the model asked for."""
    unchecked_by: tuple[str, ...] = ()
    """The guards that gave no verdict, each with the reason; the question is then whether to go on without them."""
    step: bool = False
    """Asked because the user wants to see every call, not because of what this one does."""


Scope: TypeAlias = Literal["once", "tool", "prefix", "session"]
"""How far a yes reaches: this call, this tool, commands with this prefix, everything."""


class PermissionAnswer(Struct, frozen=True):
    approved: bool
    reason: str = ""
    """Shown to the model when refused."""
    scope: Scope = "once"


class Approver(Protocol):
    """Someone who can be asked before a tool writes or executes."""

    async def ask(self, request: PermissionRequest) -> PermissionAnswer: ...


class Extensions(Protocol):
    """The programs that extend the agent, for whoever shows or steers them."""

    def statuses(self) -> tuple[ExtensionStatus, ...]: ...

    async def reload(self, name: str = "") -> Reloaded:
        """Start one, or all, anew. The old process stays until the new one is up, and for good if it is not."""

    async def enable(self, name: str) -> str:
        """Start one that is disabled, and keep that as the user's wish. What happened, in words. Raises `HiltError`.

        Only for the user: a guard must not be switched off by what it guards against.
        """

    async def disable(self, name: str) -> str:
        """Stop one and have it stay so. When this returns, nothing of it is offered or heard any more."""

    async def settled(self) -> None:
        """Wait, but not for long, until those that are being started have said what they offer."""

    async def caught_up(self) -> None:
        """Wait, but not for long, until they have dealt with what they were told, and what they want done about it
        is done."""

    def panel_key(self, extension: str, panel_id: str, key: str, text: str = "") -> None: ...

    def panel_resize(self, extension: str, panel_id: str, width: int, height: int) -> None: ...

    def panel_closed(self, extension: str, panel_id: str) -> None:
        """The user closed it."""
