"""Telling of what changes by key, however often it does: each key at most so often, and the last change always.

Owns what has been told and what is still to be. What is told of a key must say all there is to say of it, for what
came in between is left out. The cost of a flood is bounded, also towards a listener that takes its time.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from hilt.model.events import Event

Key: TypeAlias = tuple[str, ...]

EVERY = 1 / 30


class Pacing:
    def __init__(self, emit: Callable[[Event], Awaitable[None]]) -> None:
        self._emit = emit
        self._lately: dict[Key, float] = {}
        """When each was told, if that was a moment ago; oldest first."""
        self._late: dict[Key, tuple[Event, bool]] = {}
        """What is still to be told, in the order of the last changes."""
        self._known: set[Key] = set()
        """What listeners believe to be there."""
        self._some = asyncio.Event()

    async def tell(self, key: Key, event: Event, *, gone: bool) -> None:
        """At once if it can be, and soon otherwise. `gone`: there is nothing of this key any more."""
        self._late.pop(key, None)
        if gone and key not in self._known:
            return  # it came and went, and nobody has heard of it
        if self._late or not self._may(key):  # nothing overtakes what waits
            self._late[key] = (event, gone)
            self._some.set()
        else:
            await self._say(key, event, gone=gone)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """For the life of the block, tell what had to wait."""
        async with asyncio.TaskGroup() as group:
            catching_up = group.create_task(self._catch_up(), name="screen")
            try:
                yield
            finally:
                catching_up.cancel()

    async def _catch_up(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            while self._late:
                await asyncio.sleep(EVERY)  # whatever comes meanwhile is told with it
                for _ in range(len(self._late)):
                    if key := next(iter(self._late), None):  # some may have gone meanwhile
                        event, gone = self._late.pop(key)
                        await self._say(key, event, gone=gone)

    def _may(self, key: Key) -> bool:
        now = asyncio.get_running_loop().time()
        while self._lately and now - next(iter(self._lately.values())) >= EVERY:
            del self._lately[next(iter(self._lately))]
        return key not in self._lately

    async def _say(self, key: Key, event: Event, *, gone: bool) -> None:
        self._lately.pop(key, None)
        self._lately[key] = asyncio.get_running_loop().time()
        (self._known.discard if gone else self._known.add)(key)
        await self._emit(event)
