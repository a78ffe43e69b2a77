"""Agents in the background: each has a name, its end is told to all and kept, and none outlives the session."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

from msgspec import Struct

from hilt.agent.session import Session
from hilt.agent.stopping import Stop
from hilt.errors import HiltError, UsageError
from hilt.model.conversation import Usage
from hilt.model.events import BackgroundChanged
from hilt.model.extensions import Note, NoteLevel
from hilt.model.services import AgentReport, AgentTask
from hilt.sessions.records import NoteRecord

log = logging.getLogger(__name__)

_AT_ONCE = 4
_NAMED = 20
"""Characters of the prompt."""
_SECONDS = 1800.0
"""No longer, however few turns it may have."""
_WIND_DOWN = 2.0
_NOTED = 2000
"""Characters of what it said that the user is shown; all of it is on record."""

Work: TypeAlias = Callable[[AgentTask, str, Stop], Awaitable[AgentReport]]
_State: TypeAlias = Literal["done", "failed", "cancelled"]
_LEVELS: dict[_State, NoteLevel] = {"done": "info", "failed": "error", "cancelled": "warn"}


class _Worker(Struct, eq=False):
    name: str
    prompt: str
    source: str
    stop: Stop
    cancelled: bool = False
    """Somebody did not want it any more; it may also be stopped for what it used."""


class Background:
    def __init__(self, session: Session, work: Work, turns: int) -> None:
        self._session = session
        self._work = work
        self._turns = turns
        self._workers: dict[str, _Worker] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._group: asyncio.TaskGroup | None = None

    @property
    def running(self) -> bool:
        return bool(self._workers)

    async def start(self, prompt: str, source: str) -> None:
        name = prompt.strip()[:_NAMED]
        if not name:
            raise UsageError("an agent needs a task")
        if name in self._workers:
            raise UsageError(f"a background agent {name!r} is already running", hint="wait for it, or cancel it")
        if len(self._workers) >= _AT_ONCE:
            raise UsageError(f"{_AT_ONCE} background agents already run", hint="wait for one of them, or cancel them")
        if self._group is None:
            raise UsageError("nothing can be started in the background now: the session is ending")
        worker = _Worker(name, prompt, source, Stop())
        self._workers[name] = worker
        task = self._group.create_task(self._see_through(worker), name=f"background {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await self._session.bus.emit(BackgroundChanged(name, "started", source))

    def cancel(self) -> None:
        for worker in self._workers.values():
            worker.cancelled = worker.stop.request() or worker.cancelled

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                self.cancel()
                if self._tasks:
                    await asyncio.wait(self._tasks, timeout=_WIND_DOWN)
                for task in self._tasks:
                    task.cancel()

    async def _see_through(self, worker: _Worker) -> None:
        report = AgentReport("", 0, Usage(), "it was ended")
        try:
            task = AgentTask(worker.prompt, max_turns=self._turns, seconds=_SECONDS)
            report = await self._work(task, worker.source, worker.stop)
        except HiltError as error:
            report = AgentReport("", 0, Usage(), error.message)
        except Exception as error:
            # A mistake of ours must cost this one, not the session.
            log.exception("the background agent %r failed", worker.name)
            report = AgentReport("", 0, Usage(), f"internal error: {type(error).__name__}: {error}")
        finally:
            del self._workers[worker.name]
            self._record(worker, report)
        await self._tell(worker, report)

    def _record(self, worker: _Worker, report: AgentReport) -> None:
        facts = {"extension": worker.source, "name": worker.name, "prompt": worker.prompt}
        told = {"state": _state(worker, report), "text": report.text, "error": report.error, "turns": report.turns}
        self._session.parts.journal.append(NoteRecord("background", {**facts, **told}))

    async def _tell(self, worker: _Worker, report: AgentReport) -> None:
        state = _state(worker, report)
        text = "\n".join(filter(None, (report.text, report.error)))
        await self._session.bus.emit(BackgroundChanged(worker.name, state, worker.source, text))
        shown = text if len(text) <= _NOTED else f"{text[:_NOTED]}…"
        await self._session.notes.add(
            Note(worker.source, _LEVELS[state], f"background agent {worker.name!r} {state}: {shown}".rstrip(": "))
        )


def _state(worker: _Worker, report: AgentReport) -> _State:
    if worker.cancelled:
        return "cancelled"
    return "failed" if report.error else "done"
