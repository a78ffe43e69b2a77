"""Waiting for an answer, and waiting for one's turn."""

from __future__ import annotations

from _thread import allocate_lock

from hilt_sdk.runner import Job, Pace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Waiting:
    """A question to the host that has no answer yet."""

    __slots__ = ("error", "hear", "lock", "value")

    def __init__(self, hear: Callable[[Any], object] | None = None) -> None:
        self.hear = hear
        """Called with the answer before the next line is read."""
        self.lock = allocate_lock()
        self.lock.acquire()
        self.value: Any = None
        self.error: BaseException | None = None

    def answer(self, value: Any, error: BaseException | None = None) -> None:
        self.value = value
        self.error = error
        self.lock.release()


class Lane:
    """Things to be done one after the other, in the order in which they came."""

    __slots__ = ("busy", "lock", "pace", "waiting")

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.busy = False
        self.lock = allocate_lock()
        self.pace = Pace()

    def add(self, work: Callable[[], None]) -> Job | None:
        """A job that does all that waits; None when one is at it."""
        with self.lock:
            self.waiting.append(work)
            if self.busy:
                return None
            self.busy = True
        return Job(self._drain, self.pace)

    def _drain(self) -> None:
        while True:
            with self.lock:
                if not self.waiting:
                    self.busy = False
                    return
                work = self.waiting.pop(0)
            work()
