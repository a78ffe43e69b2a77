"""Whom the agent waits for right now on behalf of the user: which extension, for what, and since when.

Owns the register and nothing else. Whoever waits enters it for as long as that lasts, and a face looks at it when it
wants to know. Tools are not in it, since every face sees them run.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from msgspec import Struct

from hilt.model.ports import Extensions


class Wait(Struct, frozen=True):
    owner: str
    """The extension."""
    what: str
    """`guard`, `hook`, `transformer`, `compactor`, `result`, `command /NAME`, `shortcut KEY`, `start`."""
    since: float
    """By the clock of the loop."""

    @property
    def seconds(self) -> float:
        """So far."""
        return asyncio.get_running_loop().time() - self.since


Outstanding: TypeAlias = Callable[[], Iterable[Wait]]
"""Says whom somebody who waits for several is still waiting for."""


class Waits:
    def __init__(self) -> None:
        self._all: dict[Outstanding, None] = {}

    @property
    def current(self) -> tuple[Wait, ...]:
        """The oldest first."""
        return tuple(sorted((wait for one in self._all for wait in one()), key=lambda wait: wait.since))

    def begin(self, outstanding: Outstanding) -> None:
        """Whom it names is waited for, until this is ended. Costs nothing but its place as long as nobody looks."""
        self._all[outstanding] = None

    def end(self, outstanding: Outstanding) -> None:
        self._all.pop(outstanding, None)

    @contextmanager
    def on(self, owner: str, what: str) -> Iterator[None]:
        """For the life of the block this one is waited for."""
        wait = Wait(owner, what, asyncio.get_running_loop().time())

        def outstanding() -> tuple[Wait]:
            return (wait,)

        self.begin(outstanding)
        try:
            yield
        finally:
            self.end(outstanding)


async def settled(extensions: Extensions, waits: Waits) -> None:
    """Wait, but not for long, for those that are being started: what they offer and guard may matter."""
    since = asyncio.get_running_loop().time()

    def starting() -> Iterable[Wait]:
        return [Wait(one.name, "start", since) for one in extensions.statuses() if one.state == "starting"]

    waits.begin(starting)  # and no context manager: nearly always there is nothing to wait for, with every call
    try:
        await extensions.settled()
    finally:
        waits.end(starting)
