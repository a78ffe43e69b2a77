"""What one extension wants done: in its order where order matters, side by side where it must not wait for itself.

An extension that asks for more than can be done is not read until there is room again; one that asks for too much
at once is refused. Either way the cost is its own.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from hilt.extensions.brake import Brake

Work: TypeAlias = Callable[[], Awaitable[None]]

_HIGH, _LOW = 256, 64
_AT_ONCE = 32
_WAITING = 224


class Chores:
    """One after the other. None of them may wait for the extension itself, which is not read meanwhile if many wait."""

    def __init__(self, brake: Brake) -> None:
        self._brake = brake
        self._todo: deque[Work] = deque()
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._none.set()

    def add(self, work: Work) -> None:
        self._todo.append(work)
        self._some.set()
        self._none.clear()
        if len(self._todo) >= _HIGH:
            self._brake.hold(self)

    async def run(self) -> None:
        while True:
            await self._some.wait()
            while self._todo:
                await self._todo.popleft()()
                if len(self._todo) <= _LOW:
                    self._brake.release(self)
            self._some.clear()
            self._none.set()

    async def done(self) -> None:
        """Wait until nothing is left to do."""
        await self._none.wait()


class Errands:
    """Side by side, so many at once; the next ones wait, and beyond that they are refused. Each can be cancelled."""

    def __init__(self, group: asyncio.TaskGroup, waiting: int = _WAITING) -> None:
        self._group = group
        self._most = waiting
        self._running: dict[str, asyncio.Task[None]] = {}
        self._waiting: deque[tuple[str, Coroutine[Any, Any, None]]] = deque()
        self._keys: set[str] = set()
        """Of those that wait."""

    def __len__(self) -> int:
        return len(self._running) + len(self._waiting)

    def run(self, key: str, work: Coroutine[Any, Any, None]) -> bool:
        """False, and nothing is done, when there are too many or there is one of this key."""
        if key in self._running or key in self._keys or len(self._waiting) >= self._most:
            work.close()
            return False
        self._waiting.append((key, work))
        self._keys.add(key)
        self._go_on()
        return True

    def cancel(self, key: str) -> bool:
        if task := self._running.get(key):
            return task.cancel()
        for entry in self._waiting:
            if entry[0] == key:
                self._waiting.remove(entry)
                self._keys.discard(key)
                entry[1].close()
                return True
        return False

    def cancel_all(self) -> None:
        for _, work in self._waiting:
            work.close()
        self._waiting.clear()
        self._keys.clear()
        for task in self._running.values():
            task.cancel()

    def _go_on(self) -> None:
        while self._waiting and len(self._running) < _AT_ONCE:
            key, work = self._waiting.popleft()
            self._keys.discard(key)
            task = self._running[key] = self._group.create_task(work)
            task.add_done_callback(lambda _, key=key: self._done(key))  # type: ignore[misc]  # the default binds the key

    def _done(self, key: str) -> None:
        del self._running[key]
        self._go_on()
