"""A running session: what is being done, what waits, and the one place that applies actions.

Prompts and compactions are jobs, done one after the other by a single worker. Every face drives
the same verbs; what happens comes back as events on the bus.
"""

import logging
import re
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, assert_never

from msgspec import Struct, field

from hilt.agent.bus import Bus
from hilt.agent.jobs import Asker, Job, Jobs
from hilt.agent.loop import Outcome, Run, compact, failure, finish, run_prompt
from hilt.agent.permissions import Permissions
from hilt.agent.retry import RetryPolicy
from hilt.agent.stopping import Stopped
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


class Session:
    def __init__(self, parts: Parts, bus: Bus) -> None:
        self.parts = parts
        self.bus = bus
        self.active = parts.active
        self.transcript = Transcript(parts.log)
        self._jobs = Jobs(self._do)
        self._steering: deque[UserMessage] = deque()
        self._queue_shown = False

    def running(self) -> AbstractAsyncContextManager[None]:
        """Work for the life of the block; leaving it stops what still runs and winds it down."""
        return self._jobs.working()

    # What a face can ask for

    async def prompt(self, message: UserMessage, asker: Asker | None = None) -> Job:
        """Send it to the model now, or when what runs and waits before it has ended."""
        return await self._enqueue(Job(message, asker))

    async def compact(self, asker: Asker | None = None) -> Job:
        return await self._enqueue(Job(None, asker))

    async def steer(self, message: UserMessage, asker: Asker | None = None) -> Job | None:
        """Deliver at the next tool boundary of the running turn; a prompt of its own when idle."""
        if not self.busy:
            return await self.prompt(message, asker)
        self._make_room()
        self._steering.append(message)
        await self._show_queue()
        return None

    async def input(
        self, text: str, asker: Asker | None = None, *, steering: bool = False
    ) -> tuple[Action, ...] | Job | None:
        """Take a line as a person would type it: a slash command, or words for the model.

        Answers the actions taken, the job begun, or None for words that steer the running turn.
        """
        if command := _COMMAND.match(text.strip()):
            return await self.command(command[1], command[2] or "")
        if not text.strip():
            return ()
        deliver = self.steer if steering else self.prompt
        return await deliver(user_text(text), asker)

    def known_command(self, text: str) -> tuple[str, str] | None:
        """The name and the arguments, when the text is a slash command that somebody offers."""
        typed = _COMMAND.match(text.strip())
        if typed and self.parts.registry.snapshot().command(typed[1]):
            return typed[1], typed[2] or ""
        return None

    async def command(self, name: str, args: str = "") -> tuple[Action, ...]:
        owned = self.parts.registry.snapshot().command(name.removeprefix("/"))
        if owned is None:
            raise UsageError(f"unknown command /{name.removeprefix('/')} — type /help to see the list")
        actions = await owned.command.run(args.strip())
        await self.apply(actions, owned.owner)
        return actions

    def abort(self) -> bool:
        """Stop what runs now. Returns at once; `done` follows when it has wound down."""
        return self._jobs.stop()

    async def take_back(self) -> list[str]:
        """Withdraw everything that waits, newest last, so that it can be changed and sent again."""
        texts = list(self.waiting)
        withdrawn = self._jobs.withdraw()
        self._steering.clear()
        for job in withdrawn:
            if job.asker:
                await job.asker.withdrawn()
        await self._show_queue()
        return texts

    async def idle(self) -> None:
        """Wait until nothing runs and nothing waits."""
        await self._jobs.idle()

    @property
    def busy(self) -> bool:
        """Whether anything runs or waits; no longer when `done` is told and nothing waits."""
        return self._jobs.busy

    @property
    def waiting(self) -> tuple[str, ...]:
        """What will be delivered later, in order."""
        return (*(text_of(message.content) for message in self._steering), *(job.label for job in self._jobs.waiting))

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

    # Doing a job

    async def _enqueue(self, job: Job) -> Job:
        self._make_room()
        was_busy = self.busy
        self._jobs.add(job)
        if was_busy:
            await self._show_queue()
        return job

    def _make_room(self) -> None:
        if len(self._jobs.waiting) + len(self._steering) >= _WAITING:
            raise UsageError(f"{_WAITING} messages already wait for the running turn", hint="cancel it, or wait")

    async def _show_queue(self) -> None:
        self._queue_shown = bool(self.waiting)
        await self.bus.emit(QueueChanged(self.waiting))

    async def _do(self, job: Job) -> None:
        run = self._run(job)
        job.outcome = await self._outcome(run, job)
        await self._return_undelivered()
        job.over = True
        if job.message is not None:
            await finish(run, job.outcome)

    async def _outcome(self, run: Run, job: Job) -> Outcome:
        try:
            if job.asker:
                await job.asker.started()
            if self._queue_shown:
                await self._show_queue()
            if job.message is None:
                return Outcome("end", text=await compact(run))
            return await run_prompt(run, job.message)
        except Stopped:
            return Outcome("aborted", "cancelled")
        except HiltError as error:
            await self.bus.emit(failure(error))
            return Outcome("error", error.message, error.hint)
        except Exception as error:
            # A mistake of ours must cost one turn, not the session and what waits in it.
            log.exception("a job failed")
            message = f"internal error: {type(error).__name__}: {error}"
            await self.bus.emit(Failed(message, "this is a bug in hilt; the log has the details"))
            return Outcome("error", message)

    async def _return_undelivered(self) -> None:
        """Steering that found no boundary goes back to where it was typed."""
        if not self._steering:
            return
        while self._steering:
            await self.bus.emit(Inserted(SELF, text_of(self._steering.popleft().content)))
        await self._show_queue()

    def _run(self, job: Job) -> Run:
        return Run(
            transcript=self.transcript,
            provider=self.active.provider,
            model=self.active.info,
            system=self.parts.system,
            registry=self.parts.registry,
            permissions=self.parts.permissions,
            emit=self.bus.emit,
            steering=self._next_steering,
            stop=job.stop,
            retry=self.parts.retry,
            reasoning=self.parts.reasoning,
            max_steps=self.parts.max_steps,
        )

    async def _next_steering(self) -> UserMessage | None:
        if not self._steering:
            return None
        message = self._steering.popleft()
        await self._show_queue()
        return message
