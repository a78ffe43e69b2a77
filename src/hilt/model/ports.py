"""The seams: what the agent needs of the world, by role."""

from collections.abc import AsyncGenerator
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from hilt.model.content import Args
from hilt.model.contributions import Effect, Preview
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
