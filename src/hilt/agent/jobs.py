"""Prompts and compactions, done one after the other by a single worker."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from msgspec import Struct, field

from hilt.agent.loop import Outcome
from hilt.agent.stopping import Stop
from hilt.model.content import text_of
from hilt.model.conversation import UserMessage

_NEVER = Outcome("aborted", "never started")
_WIND_DOWN = 5.0
"""Seconds a job may take to record and tell how it ended when the session is left."""


class Asker(Protocol):
    """Whoever asked for a job and wants to know when its turn comes, or that it never will."""

    async def started(self) -> None: ...

    async def withdrawn(self) -> None: ...


class Job(Struct, eq=False):
    """A prompt or, without a message, a compaction."""

    message: UserMessage | None
    asker: Asker | None = None
    stop: Stop = field(default_factory=Stop)
    over: bool = False
    """Done but for telling so: too late to stop it."""
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    outcome: Outcome = _NEVER

    async def result(self) -> Outcome:
        await self.finished.wait()
        return self.outcome

    @property
    def label(self) -> str:
        return text_of(self.message.content) if self.message else "/compact"


class Jobs:
    def __init__(self, do: Callable[[Job], Awaitable[None]]) -> None:
        self._do = do
        self._waiting: deque[Job] = deque()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._current: Job | None = None

    @property
    def waiting(self) -> tuple[Job, ...]:
        return tuple(self._waiting)

    @property
    def busy(self) -> bool:
        """Whether anything runs or waits; no longer when `done` is told and nothing waits."""
        return bool(self._waiting) or (self._current is not None and not self._current.over)

    def add(self, job: Job) -> None:
        self._waiting.append(job)
        self._idle.clear()
        self._arrived.set()

    def stop(self) -> bool:
        """Stop what runs, or what is about to. False when there is nothing that could be stopped."""
        job = self._current or next(iter(self._waiting), None)
        return job is not None and not job.over and job.stop.request()

    def withdraw(self) -> list[Job]:
        """Forget everything that waits."""
        withdrawn = list(self._waiting)
        self._waiting.clear()
        for job in withdrawn:
            job.finished.set()
        return withdrawn

    async def idle(self) -> None:
        """Wait until nothing runs and nothing waits."""
        await self._idle.wait()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Work for the life of the block; leaving it stops what still runs and lets it wind down."""
        async with asyncio.TaskGroup() as group:
            worker = group.create_task(self._work(), name="jobs")
            try:
                yield
            finally:
                self.withdraw()
                self.stop()
                try:
                    async with asyncio.timeout(_WIND_DOWN):
                        await self.idle()
                except TimeoutError:
                    pass
                worker.cancel()

    async def _work(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                self._current = self._waiting.popleft()
                try:
                    await self._do(self._current)
                finally:
                    self._current.finished.set()
                    self._current = None
            self._idle.set()
