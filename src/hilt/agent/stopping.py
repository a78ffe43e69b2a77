"""Stopping a turn, at once where it waits for others, and never in the middle of recording and telling.

A plain `task.cancel()` lands on whatever is awaited: a message could be on disk and never be shown.
So a turn says where it may be stopped, and everything between those places is finished first.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


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
