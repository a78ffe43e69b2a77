"""Stopping a turn, at once where it waits for others, and never in the middle of recording and telling.

A plain `task.cancel()` lands on whatever is awaited: a message could be on disk and never be shown.
So a turn says where it may be stopped, and everything between those places is finished first.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hilt.errors import HiltError

_Value = TypeVar("_Value")


class Stopped(Exception):
    """The turn was asked to stop while it waited here, or before."""


class Stop:
    def __init__(self) -> None:
        self.requested = False
        self._waiting: set[asyncio.Task[object]] = set()

    def request(self) -> bool:
        """Ask the turn to stop; False when it was asked already. Returns at once."""
        if self.requested:
            return False
        self.requested = True
        for task in self._waiting:
            task.cancel()
        return True

    @contextmanager
    def here(self) -> Iterator[None]:
        """What is awaited in this block may be stopped: it is cancelled, and `Stopped` comes out."""
        if self.requested:
            raise Stopped
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            yield
        except asyncio.CancelledError:
            # Ours, unless the whole program is being taken down as well.
            if self.requested and task.uncancel() == 0:
                raise Stopped from None
            raise
        finally:
            self._waiting.discard(task)


class Stops:
    """What can be stopped beside the turn."""

    def __init__(self) -> None:
        self._open: set[Stop] = set()

    def __len__(self) -> int:
        return len(self._open)

    def request(self) -> bool:
        """Stop all of it; False when there was nothing."""
        requested = [stop.request() for stop in self._open]
        return any(requested)

    @contextmanager
    def held(self, stop: Stop) -> Iterator[Stop]:
        """For the life of the block it is among them."""
        self._open.add(stop)
        try:
            yield stop
        finally:
            self._open.discard(stop)

    async def stoppable(self, work: Awaitable[_Value], what: str) -> _Value:
        """What is awaited here ends when the user cancels. Raises `HiltError` then."""
        with self.held(Stop()) as stop:
            try:
                with stop.here():
                    return await work
            except Stopped:
                raise HiltError(f"{what} was cancelled") from None
