"""A running session: what is being done, what waits, and the one place that applies actions.

Prompts and compactions are jobs, done one after the other by a single worker. Every face drives
the same verbs; what happens comes back as events on the bus.
"""

import asyncio
import logging
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Literal, Protocol, assert_never

from msgspec import Struct, field

from hilt.agent.bus import Bus
from hilt.agent.loop import Outcome, Run, compact, finish, run_prompt
from hilt.agent.permissions import Permissions
from hilt.agent.retry import RetryPolicy
from hilt.agent.transcript import Transcript
from hilt.errors import HiltError, UsageError
from hilt.model.actions import (
    Action,
    Clear,
    Compact,
    Display,
    Insert,
    Noop,
    Prompt,
    Rename,
    SetJail,
    SetPermissions,
    SwitchModel,
    Undo,
)
from hilt.model.content import text_of
from hilt.model.conversation import UserMessage, user_text
from hilt.model.events import Displayed, Failed, Inserted, Noticed, QueueChanged, StateChanged
from hilt.model.models import ModelInfo, Reasoning
from hilt.model.ports import Provider
from hilt.registry.registry import Registry
from hilt.sessions.log import SessionLog
from hilt.sessions.records import ModelRecord, TitleRecord

log = logging.getLogger(__name__)

SELF = "hilt"
"""The owner's name on what built-in commands show."""
_WAITING = 100
_NEVER = Outcome("aborted", "never started")
_COMMAND = re.compile(r"/([A-Za-z0-9_-]+)(?:\s+(.*))?$", re.DOTALL)


class ActiveModel(Struct, frozen=True):
    provider: Provider
    info: ModelInfo
    notice: str = ""
    """Something the user should know about this choice, said once."""


class Jail(Protocol):
    on: bool


class Parts(Struct, frozen=True):
    """Everything a session is made of, put together by the composition root."""

    registry: Registry
    log: SessionLog
    active: ActiveModel
    cwd: str
    system: str
    permissions: Permissions
    jail: Jail
    undo: Callable[[], str]
    """Put back the files of the last change; says what it did."""
    switch: Callable[[str, ActiveModel], ActiveModel]
    """Find another model by id, given the present one; raises UsageError for one that is not to be had."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    reasoning: Reasoning = ""
    max_steps: int = 50


class Job(Struct):
    """A prompt or, without a message, a compaction."""

    message: UserMessage | None
    on_start: Callable[[], Awaitable[None]] | None = None
    """Awaited when its turn comes, before its first event."""
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    outcome: Outcome = _NEVER
    phase: Literal["waiting", "running", "finishing"] = "waiting"
    """Only while it runs may it be cancelled; finishing, it is over but for telling so."""
    stopping: bool = False
    """It was told to stop. Not the task's own count of cancels: every timeout within adds to that for a moment."""

    async def result(self) -> Outcome:
        await self.finished.wait()
        return self.outcome

    @property
    def label(self) -> str:
        return text_of(self.message.content) if self.message else "/compact"


class Session:
    def __init__(self, parts: Parts, bus: Bus) -> None:
        self.parts = parts
        self.bus = bus
        self.active = parts.active
        self.transcript = Transcript(parts.log)
        self._waiting: deque[Job] = deque()
        self._steering: deque[UserMessage] = deque()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._current: asyncio.Task[None] | None = None
        self._job: Job | None = None
        self._queue_shown = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work for the life of the block; leaving it cancels what still runs and winds it down."""
        async with asyncio.TaskGroup() as group:
            worker = group.create_task(self._work(group), name="session")
            try:
                yield
            finally:
                self._waiting.clear()
                if self._current:
                    self._current.cancel()
                    await asyncio.wait({self._current}, timeout=5)
                worker.cancel()

    # What a face can ask for

    async def prompt(self, message: UserMessage, on_start: Callable[[], Awaitable[None]] | None = None) -> Job:
        """Send it to the model now, or when what runs and waits before it has ended."""
        return await self._enqueue(Job(message, on_start))

    async def compact(self, on_start: Callable[[], Awaitable[None]] | None = None) -> Job:
        return await self._enqueue(Job(None, on_start))

    async def steer(self, message: UserMessage, on_start: Callable[[], Awaitable[None]] | None = None) -> Job | None:
        """Deliver at the next tool boundary of the running turn; a prompt of its own when idle."""
        if not self.busy:
            return await self.prompt(message, on_start)
        self._steering.append(message)
        await self._show_queue()
        return None

    async def input(self, text: str, on_start: Callable[[], Awaitable[None]] | None = None) -> tuple[Action, ...] | Job:
        """Take a line as a person would type it: a slash command, or words for the model."""
        if command := _COMMAND.match(text.strip()):
            return await self.command(command[1], command[2] or "")
        if not text.strip():
            return ()
        return await self.prompt(user_text(text), on_start)

    async def command(self, name: str, args: str = "") -> tuple[Action, ...]:
        owned = self.parts.registry.snapshot().command(name.removeprefix("/"))
        if owned is None:
            raise UsageError(f"unknown command /{name.removeprefix('/')} — type /help to see the list")
        actions = await owned.command.run(args.strip())
        await self.apply(actions, owned.owner)
        return actions

    def abort(self) -> bool:
        """Stop what runs now. Returns at once; `done` follows when it has wound down."""
        running = self._job if self._job and self._job.phase != "finishing" else None
        job = running or (self._waiting[0] if self._waiting else None)
        if job is None or job.stopping:
            return False
        job.stopping = True  # one that has not begun looks at this itself
        if self._current and job.phase == "running":
            self._current.cancel()
        return True

    async def take_back(self) -> list[str]:
        """Withdraw everything that waits, newest last, so that it can be changed and sent again."""
        texts = list(self.waiting)
        for job in self._waiting:
            job.finished.set()
        self._waiting.clear()
        self._steering.clear()
        await self._show_queue()
        return texts

    async def idle(self) -> None:
        """Wait until nothing runs and nothing waits."""
        await self._idle.wait()

    @property
    def busy(self) -> bool:
        """Whether anything runs or waits; no longer when `done` is told and nothing waits."""
        return bool(self._waiting) or (self._job is not None and self._job.phase != "finishing")

    @property
    def waiting(self) -> tuple[str, ...]:
        """What will be delivered later, in order."""
        return (*(text_of(message.content) for message in self._steering), *(job.label for job in self._waiting))

    async def apply(self, actions: Iterable[Action], source: str) -> None:
        """The one place where what a command asks for is done."""
        for action in actions:
            match action:
                case Prompt(prompt=text):
                    if text.strip():
                        await self.prompt(user_text(text))
                case Insert(insert=text):
                    await self.bus.emit(Inserted(source, text))
                case Display(display=text):
                    await self.bus.emit(Displayed(source, text))
                case Compact():
                    await self.compact()
                case Undo():
                    self._not_while_busy("changes can be undone")
                    await self.bus.emit(Displayed(source, self.parts.undo()))
                case Noop():
                    pass
                case SwitchModel() | Clear() | SetPermissions() | SetJail() | Rename():
                    await self._change(action)
                case _:
                    assert_never(action)

    async def _change(self, action: SwitchModel | Clear | SetPermissions | SetJail | Rename) -> None:
        match action:
            case SwitchModel(model=model):
                self._not_while_busy("the model can be switched")
                await self._switch(self.parts.switch(model, self.active))
            case Clear():
                self._not_while_busy("the conversation can be cleared")
                self.transcript.clear()
            case SetPermissions(mode=mode):
                self.parts.permissions.mode = mode
            case SetJail(on=on):
                self.parts.jail.on = on
            case Rename(title=title):
                self.parts.log.append(TitleRecord(title))
        await self.announce()

    async def announce(self) -> None:
        """Tell every face how things stand."""
        await self.bus.emit(
            StateChanged(
                self.active.info.provider,
                self.active.info.id,
                self.parts.permissions.mode,
                self.parts.jail.on,
                self.parts.log.meta.id,
            )
        )

    async def _switch(self, active: ActiveModel) -> None:
        previous, self.active = self.active, active
        self.parts.log.append(ModelRecord(active.info.provider, active.info.id))
        if active.notice:
            await self.bus.emit(Noticed("info", active.notice))
        if previous.provider is not active.provider:
            await previous.provider.aclose()

    def _not_while_busy(self, what: str) -> None:
        if self.busy:
            raise UsageError(f"{what} only between turns", hint="wait for the turn to end, or cancel it")

    # The worker

    async def _enqueue(self, job: Job) -> Job:
        if len(self._waiting) >= _WAITING:
            raise UsageError(f"{_WAITING} messages already wait for the running turn", hint="cancel it, or wait")
        was_busy = self.busy
        self._waiting.append(job)
        self._idle.clear()
        self._arrived.set()
        if was_busy:
            await self._show_queue()
        return job

    async def _show_queue(self) -> None:
        self._queue_shown = bool(self.waiting)
        await self.bus.emit(QueueChanged(self.waiting))

    async def _work(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                self._job = self._waiting.popleft()
                self._current = group.create_task(self._do(self._job), name="job")
                await asyncio.wait({self._current})
                self._current = self._job = None
            self._idle.set()

    async def _do(self, job: Job) -> None:
        run = self._run()
        job.outcome = await self._outcome(run, job)
        job.phase = "finishing"
        if job.message is not None:
            await finish(run, job.outcome)
        await self._return_undelivered()
        job.finished.set()

    async def _outcome(self, run: Run, job: Job) -> Outcome:
        try:
            if job.on_start:
                await job.on_start()
            if self._queue_shown:
                await self._show_queue()
            if job.stopping:
                return Outcome("aborted", "cancelled")
            job.phase = "running"
            if job.message is None:
                return Outcome("end", text=await compact(run))
            return await run_prompt(run, job.message)
        except HiltError as error:
            await self.bus.emit(Failed(error.message, error.hint))
            return Outcome("error", error.message, error.hint)
        except asyncio.CancelledError:
            return Outcome("aborted", "cancelled")
        except Exception as error:
            # A mistake of ours must cost one turn, not the session and what waits in it.
            log.exception("a job failed")
            message = f"internal error: {type(error).__name__}: {error}"
            await self.bus.emit(Failed(message, "this is a bug in hilt; the log has the details"))
            return Outcome("error", message)

    async def _return_undelivered(self) -> None:
        """Steering that found no boundary goes back to where it was typed."""
        while self._steering:
            await self.bus.emit(Inserted(SELF, text_of(self._steering.popleft().content)))

    def _run(self) -> Run:
        return Run(
            transcript=self.transcript,
            provider=self.active.provider,
            model=self.active.info,
            system=self.parts.system,
            registry=self.parts.registry,
            permissions=self.parts.permissions,
            emit=self.bus.emit,
            steering=self._take_steering,
            retry=self.parts.retry,
            reasoning=self.parts.reasoning,
            max_steps=self.parts.max_steps,
        )

    async def _take_steering(self) -> list[UserMessage]:
        taken = list(self._steering)
        self._steering.clear()
        if taken:
            await self._show_queue()
        return taken
