"""Prompts, compactions and what has to wait for both, done one after the other by a single worker.

What must not hold them up, nor wait for them, runs beside.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol

from msgspec import Struct, field

from hilt.agent.run import Outcome
from hilt.agent.stopping import Stop
from hilt.errors import HiltError, UsageError
from hilt.model.actions import Action
from hilt.model.content import text_of
from hilt.model.conversation import UserMessage

_NEVER = Outcome("aborted", "never started")
_WIND_DOWN = 5.0
"""Seconds a job may take to record and tell how it ended when the session is left."""
_BESIDE = 100
"""Things done beside the jobs at once."""


class Asker(Protocol):
    """Whoever asked for a job and wants to know when its turn comes, or that it never will."""

    async def started(self) -> None: ...

    async def withdrawn(self) -> None: ...

    async def ran(self, actions: tuple[Action, ...]) -> None:
        """A command that had to wait has run, and this was done. It is not told to have started."""

    async def failed(self, error: HiltError) -> None:
        """A command that had to wait was of no use."""


class Job(Struct, eq=False):
    """A prompt; without a message, other work; and without either, a compaction."""

    message: UserMessage | None = None
    asker: Asker | None = None
    work: Callable[[], Awaitable[Outcome]] | None = None
    """What is to be done between turns. No turn begins before it returns."""
    name: str = "/compact"
    """What it is called while it waits, if it is no message."""
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
        return text_of(self.message.content) if self.message else self.name


class Jobs:
    def __init__(self, do: Callable[[Job], Awaitable[None]]) -> None:
        self._do = do
        self._waiting: deque[Job] = deque()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._current: Job | None = None
        self._group: asyncio.TaskGroup | None = None
        self._beside: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> tuple[Job, ...]:
        return tuple(self._waiting)

    @property
    def busy(self) -> bool:
        """Whether a turn runs or anything waits; no longer when `done` is told and nothing waits."""
        job = self._current
        return bool(self._waiting) or (job is not None and job.work is None and not job.over)

    @property
    def between_turns(self) -> bool:
        """Whether the worker is busy with something that is neither a prompt nor a compaction."""
        return self._current is not None and self._current.work is not None

    @property
    def in_a_turn(self) -> bool:
        """Whether a turn runs, or will before anything else is done."""
        return self.busy and not self.between_turns

    def add(self, job: Job) -> None:
        self._waiting.append(job)
        self._idle.clear()
        self._arrived.set()

    def beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Have something done now, whatever else runs. It must not raise; it ends with the session."""
        if self._group is None or len(self._beside) >= _BESIDE:
            work.close()
            raise UsageError(f"{_BESIDE} things are being done already", hint="wait until some of them have ended")
        task = self._group.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return task

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

    async def at_rest(self) -> None:
        """Wait until nothing is being done either that runs beside."""
        await self.idle()
        while self._beside:
            await asyncio.wait(self._beside)
            await self.idle()  # it may have begun something

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Work for the life of the block; leaving it stops what still runs and lets it wind down."""
        async with asyncio.TaskGroup() as group:
            self._group = group
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
                self._group = None
                worker.cancel()
                for task in self._beside:
                    task.cancel()

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
