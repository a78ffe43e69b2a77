"""What is measured, as every host under measurement offers it.

A suite is given a way to open one, `Opening`, and compares it with a baseline that is opened in the same way:
`prototype` (raw asyncio) or `naive` (streams and the standard library's JSON).

Some goals are meant against a host written in Go, which is not here. The prototype was measured beside it, so they
are restated against the prototype: the goal, divided by how long the prototype took for what the other took 1.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

from programs import Program

Args: TypeAlias = dict[str, Any]


class Caller(Protocol):
    async def call(self, tool: str, args: Args) -> str:
        """The text of the answer, on the way that the model's calls take."""


class Host(Caller, Protocol):
    async def intercept(self, args: Args) -> Args:
        """Put the arguments of a tool call before every interceptor, in the order of the programs; what they became."""

    async def emit(self, step: int) -> None:
        """Tell all who observe it that a turn starts: the event `turn_start` with this step."""

    def lost(self) -> int:
        """How many events never left, of all programs together."""


Opening: TypeAlias = Callable[[Sequence[Program]], AbstractAsyncContextManager[Host]]
"""Its block starts all of these, is entered once every one is ready, and ends them. Preparations come before it."""
