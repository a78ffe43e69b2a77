"""A running session: what is being done, what waits, and the one place that applies actions.

Prompts and compactions are jobs, done one after the other by a single worker. Every face drives
the same verbs; what happens comes back as events on the bus.
"""

import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar, assert_never

from msgspec import Struct, field

from hilt.agent.activation import Activation
from hilt.agent.bus import Bus
from hilt.agent.foreign import call_for
from hilt.agent.interception import Bench, GuardRules
from hilt.agent.jobs import Asker, Job, Jobs
from hilt.agent.loop import Outcome, Run, compact, failure, finish, run_prompt
from hilt.agent.notes import Notes
from hilt.agent.panels import Panels
from hilt.agent.permissions import Permissions
from hilt.agent.retry import RetryPolicy
from hilt.agent.screen import Screen
from hilt.agent.stopping import Stop, Stopped
from hilt.agent.toolcalls import Desk, Ran
from hilt.agent.transcript import Transcript
from hilt.errors import HiltError, UsageError
from hilt.model.actions import (
    Abort,
    Action,
    AttachImage,
    Clear,
    ClearNotes,
    CloseOverlay,
    ClosePanel,
    Compact,
    DetachImage,
    Display,
    Insert,
    Noop,
    Notify,
    OpenPanel,
    Prompt,
    Quit,
    Rename,
    RenderPanel,
    SendMessage,
    SetInput,
    SetJail,
    SetPermissions,
    SetStatus,
    Settle,
    SetWidget,
    ShowOverlay,
    Steer,
    Submit,
    SwitchModel,
    ToolPrompt,
    Undo,
)
from hilt.model.content import Args, Text, text_of
from hilt.model.contributions import ToolOutput
from hilt.model.conversation import UserMessage, user_text
from hilt.model.events import (
    Displayed,
    Failed,
    Inserted,
    Noticed,
    PromptSubmitted,
    QueueChanged,
    QuitAsked,
    StateChanged,
    UserMessageAdded,
)
from hilt.model.extensions import ExtensionStatus, Note, Reloaded
from hilt.model.models import ModelInfo, Reasoning
from hilt.model.ports import Extensions, Provider
from hilt.registry.registry import Registry
from hilt.sessions.log import SessionLog
from hilt.sessions.records import ModelRecord, TitleRecord

log = logging.getLogger(__name__)

SELF = "hilt"
"""The owner's name on what built-in commands show."""
_WAITING = 100
_UNASKED = 3
"""Turns in a row that extensions may start without the user saying anything."""
_Value = TypeVar("_Value")
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
    guards: GuardRules = GuardRules()
    one_shot: bool = False
    """It ends with the first prompt's answer, so nothing can be asked for later."""


class NoExtensions:
    """The port `Extensions` where there are none."""

    def statuses(self) -> tuple[ExtensionStatus, ...]:
        return ()

    async def reload(self, name: str = "") -> Reloaded:
        raise UsageError(f"there is no extension {name}" if name else "there are no extensions")

    async def settled(self) -> None:
        pass

    def panel_key(self, extension: str, panel_id: str, key: str, text: str = "") -> None:
        pass

    def panel_resize(self, extension: str, panel_id: str, width: int, height: int) -> None:
        pass

    def panel_closed(self, extension: str, panel_id: str) -> None:
        pass


class Session:
    def __init__(self, parts: Parts, bus: Bus) -> None:
        self.parts = parts
        self.bus = bus
        self.extensions: Extensions = NoExtensions()
        self.panels = Panels(bus, lambda: self.extensions)
        self.notes = Notes(bus)
        self.screen = Screen(bus)
        self.activation = Activation()
        self.bench = Bench(parts.guards, parts.log, bus.emit, parts.permissions)
        self.active = parts.active
        self.transcript = Transcript(parts.log)
        self._jobs = Jobs(self._do)
        self._steering: deque[UserMessage] = deque()
        self._stops: set[Stop] = set()
        """What can be cancelled beside the turn: commands, and calls of tools by extensions."""
        self._markers: list[UserMessage] = []
        """Why what runs was interrupted, for the record once it has wound down."""
        self._unasked = 0
        self._queue_shown = False

    def running(self) -> AbstractAsyncContextManager[None]:
        """Work for the life of the block; leaving it stops what still runs and winds it down."""
        return self._jobs.working()

    # What a face can ask for

    async def prompt(self, message: UserMessage, asker: Asker | None = None, *, by: str = "") -> Job:
        """Send it to the model now, or when what runs and waits before it has ended. `by` an extension, or the user."""
        if not by:
            self._unasked = 0
            await self.notes.clear_all()
        job = Job(message, asker)
        self._make_room()
        await self.bus.emit(PromptSubmitted(message.content, self.busy, by))
        return await self._enqueue(job)

    async def compact(self, asker: Asker | None = None) -> Job:
        self._make_room()
        return await self._enqueue(Job(None, asker))

    async def steer(self, message: UserMessage, asker: Asker | None = None) -> Job | None:
        """Deliver at the next tool boundary of the running turn; a prompt of its own when idle."""
        if not self.busy:
            return await self.prompt(message, asker)
        self._make_room()
        self._unasked = 0
        await self.bus.emit(PromptSubmitted(message.content, queued=True))
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

    async def command(self, name: str, args: str = "", *, by: str = "") -> tuple[Action, ...]:
        """Run a slash command and do what it asks for. `by` an extension, or the user."""
        name = name.removeprefix("/")
        if not by:
            self._unasked = 0
        owned = self.parts.registry.snapshot().command(name)
        if owned is None:
            await self.extensions.settled()  # one that is being started may offer it
            owned = self.parts.registry.snapshot().command(name)
        if owned is None:
            raise UsageError(f"unknown command /{name} — type /help to see the list")
        if by and owned.command.personal:
            # Or one that is confined could have files written by us, who are not.
            raise UsageError(f"/{name} is for the user alone: extension {by} may not have files read or written")
        actions = await self._stoppable(owned.command.run(args.strip()), f"/{name}")
        if by and any(isinstance(action, SetPermissions | SetJail) for action in actions):
            # Or whoever may type for the user could answer for them whatever they are asked.
            raise UsageError(f"/{name} is for the user alone: extension {by} may not decide what needs permission")
        if by and self.busy and any(isinstance(action, Clear | SwitchModel | Undo) for action in actions):
            # As if typed: a person would end the turn first.
            self.abort()
            await self.idle()
        await self.apply(actions, owned.owner, by=by)
        return actions

    async def press(self, key: str) -> tuple[Action, ...]:
        """Do what a shortcut of an extension stands for."""
        owned = self.parts.registry.snapshot().shortcuts.get(key.lower())
        if owned is None:
            raise UsageError(f"no extension has a shortcut for {key}")
        actions = await self._stoppable(owned.shortcut.run(), key)
        await self.apply(actions, owned.owner)
        return actions

    async def call_tool(self, name: str, args: Args, source: str, chain: tuple[str, ...] = ()) -> ToolOutput:
        """Run a tool for an extension; `chain` are the tools that led to it."""
        stop = Stop()
        self._stops.add(stop)
        try:
            return await call_for(self._desk(source, chain, stop), name, args, self.parts.log)
        finally:
            self._stops.discard(stop)

    def abort(self) -> bool:
        """Stop what runs now. Returns at once; `done` follows when it has wound down."""
        others = [stop.request() for stop in self._stops]
        return self._jobs.stop() or any(others)

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

    async def apply(self, actions: Iterable[Action], source: str, *, by: str = "") -> None:
        """The one place where what a command or an extension asks for is done.

        `source` owns the action; `by` is the extension that wanted it without the user, if one did.
        """
        for action in actions:
            match action:
                case Prompt(prompt=text):
                    if text.strip():
                        whose = "" if source == SELF else source
                        await (self._submit(text, by) if by else self.prompt(user_text(text, whose)))
                case Submit(text=text):
                    await self._submit(text, source)
                case ToolPrompt():
                    await self._tool_prompt(action, source, by)
                case SendMessage(text=text):
                    await self._interject(text, source, typed=True)
                case Steer(text=text):
                    await self._interject(text, source, typed=False)
                case Abort(marker=marker):
                    await self._abort(marker, source)
                case Insert(insert=text):
                    await self.bus.emit(Inserted(source, text))
                case SetInput(text=text):
                    await self.bus.emit(Inserted(source, text, replace=True))
                case Display(display=text):
                    await self.bus.emit(Displayed(source, text))
                case Compact():
                    await self.compact()
                case Undo():
                    self._not_while_busy("changes can be undone")
                    await self.bus.emit(Displayed(source, self.parts.undo()))
                case Noop():
                    pass
                case OpenPanel() | RenderPanel() | ClosePanel() | Notify() | ClearNotes() | Settle():
                    await self._show(action, source)
                case SetWidget() | ShowOverlay() | CloseOverlay() | SetStatus() | AttachImage() | DetachImage():
                    await self.screen.do(action, source)
                case Quit():
                    await self.bus.emit(QuitAsked(source))
                case SwitchModel() | Clear() | SetPermissions() | SetJail() | Rename():
                    await self._change(action)
                case _:
                    assert_never(action)

    async def _show(
        self, action: OpenPanel | RenderPanel | ClosePanel | Notify | ClearNotes | Settle, source: str
    ) -> None:
        match action:
            case OpenPanel(open_panel=panel):
                await self.panels.show(source, panel)
            case RenderPanel(panel=panel):
                await self.panels.render(source, panel)
            case ClosePanel(panel_id=panel_id):
                await self.panels.close_own(source, panel_id)
            case Notify(level=level, message=message):
                await self.notes.add(Note(source, level, message))
            case ClearNotes():
                await self.notes.clear(source)
            case Settle(reason=reason):
                await self.panels.bereave(source, reason)
                await self.screen.bereave(source)

    async def _submit(self, text: str, by: str) -> None:
        """A turn that nobody asked for: allowed, but not for ever."""
        if self.parts.one_shot:
            await self.bus.emit(Noticed("warn", f"extension {by} wants to say more, which a single prompt cannot hold"))
        elif self._unasked > _UNASKED:
            log.debug("extension %s goes on submitting: %s", by, text)  # it has been told, and so has the user
        elif self._unasked == _UNASKED:
            self._unasked += 1
            why = f"extension {by} has had {_UNASKED} turns in a row without you; what it wants to say is up to you now"
            await self.bus.emit(Noticed("warn", why))
            await self.bus.emit(Inserted(by, text))
        else:
            self._unasked += 1
            await self.prompt(user_text(text, by), by=by)

    async def _interject(self, text: str, by: str, *, typed: bool) -> None:
        """Words of an extension: into the turn that runs, or else a turn of their own, `typed` as the user would."""
        if not text.strip():
            return
        if self.busy:
            self._make_room()
            await self.bus.emit(PromptSubmitted((Text(text),), queued=True, extension=by))
            self._steering.append(user_text(text, by))
            await self._show_queue()
        elif typed and (command := self.known_command(text)):
            await self.command(*command, by=by)
        else:
            await self._submit(text, by)

    async def _abort(self, marker: str, by: str) -> None:
        """Stop what runs; a marker is said by whoever wanted it, where the model sees it."""
        self.abort()
        if not marker:
            return
        message = user_text(f"[Request interrupted: {marker}]", by)
        if self.busy:
            self._markers.append(message)  # what was begun must be on record before it
        else:
            await self._mark(message)

    async def _mark(self, message: UserMessage) -> None:
        self.transcript.add(message)
        await self.bus.emit(UserMessageAdded(message.content, message.time, message.extension))

    async def _tool_prompt(self, action: ToolPrompt, source: str, by: str) -> None:
        """Have the model look at what a tool has to say."""
        output = await self.call_tool(action.tool_name, action.tool_args, source)
        head = f"{action.tool_name} failed" if output.is_error else f"{action.tool_name} returned"
        text = "\n\n".join(filter(None, (action.prompt.strip(), f"{head}:\n{text_of(output.content)}")))
        await self.apply((Prompt(text),), source, by=by)

    async def _change(self, action: SwitchModel | Clear | SetPermissions | SetJail | Rename) -> None:
        match action:
            case SwitchModel(model=model):
                self._not_while_busy("the model can be switched")
                await self._switch(self.parts.switch(model, self.active))
            case Clear():
                self._not_while_busy("the conversation can be cleared")
                self.transcript.clear()
                await self.notes.clear_all()
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
        while self._markers:
            await self._mark(self._markers.pop(0))
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
        """Steering that found no boundary goes back to where it was typed; an extension's is a prompt of its own."""
        if not self._steering:
            return
        while self._steering:
            message = self._steering.popleft()
            if message.extension:
                await self._submit(text_of(message.content), message.extension)
            else:
                await self.bus.emit(Inserted(SELF, text_of(message.content)))
        await self._show_queue()

    async def _stoppable(self, work: Awaitable[_Value], what: str) -> _Value:
        """What is awaited here ends when the user cancels."""
        stop = Stop()
        self._stops.add(stop)
        try:
            with stop.here():
                return await work
        except Stopped:
            raise HiltError(f"{what} was cancelled") from None
        finally:
            self._stops.discard(stop)

    def _desk(self, source: str, chain: tuple[str, ...], stop: Stop) -> Desk:
        return Desk(
            registry=self.parts.registry,
            activation=self.activation,
            permissions=self.parts.permissions,
            bench=self.bench,
            emit=self.bus.emit,
            deliver=_nowhere,
            stop=stop,
            extensions=self.extensions,
            origin=source,
            chain=chain,
        )

    def _run(self, job: Job) -> Run:
        return Run(
            transcript=self.transcript,
            provider=self.active.provider,
            model=self.active.info,
            system=self.parts.system,
            registry=self.parts.registry,
            activation=self.activation,
            permissions=self.parts.permissions,
            bench=self.bench,
            emit=self.bus.emit,
            extensions=self.extensions,
            cwd=self.parts.cwd,
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


async def _nowhere(_: Ran) -> None:
    """The answer goes back to who asked."""
