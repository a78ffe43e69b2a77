"""A running session: what is being done, what waits, and the verbs that every face drives.

Prompts and compactions are jobs, done one after the other by a single worker. What happens comes
back as events on the bus; what a command or an extension asks for is done in `applying`.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, asynccontextmanager

from hilt.agent.activation import Activation
from hilt.agent.applying import apply
from hilt.agent.asking import Nobody
from hilt.agent.breaker import Breaker
from hilt.agent.bus import Bus
from hilt.agent.condensing import compact
from hilt.agent.foreign import call_for
from hilt.agent.interception import Bench
from hilt.agent.jobs import Asker, Job, Jobs
from hilt.agent.loop import failure, finish, mistake, run_prompt
from hilt.agent.notes import Notes
from hilt.agent.panels import Panels
from hilt.agent.parts import ActiveModel, NoExtensions, Parts
from hilt.agent.run import Outcome, Run
from hilt.agent.screen import Screen
from hilt.agent.stopping import Stop, Stopped, Stops
from hilt.agent.toolcalls import Desk, Ran
from hilt.agent.transcript import Transcript
from hilt.agent.typed import Typed
from hilt.agent.waiting import Waits, settled
from hilt.agent.words import Words
from hilt.errors import HiltError, UsageError
from hilt.model.actions import Action
from hilt.model.content import Args
from hilt.model.contributions import ToolOutput
from hilt.model.conversation import Usage, UserMessage, user_text
from hilt.model.events import ConversationMoved, Noticed, StateChanged, UsageReported, UserMessageAdded
from hilt.model.models import ModelInfo
from hilt.model.ports import Extensions, Provider
from hilt.sessions.records import ModelRecord, SpentRecord

log = logging.getLogger(__name__)

_MENTIONS = 100
"""Things that may wait to be told to the model."""


class Session:
    def __init__(self, parts: Parts, bus: Bus) -> None:
        self.parts = parts
        self.bus = bus
        self.extensions: Extensions = NoExtensions()
        self.panels = Panels(bus, lambda: self.extensions)
        self.notes = Notes(bus)
        self.screen = Screen(bus)
        self.activation = Activation()
        self.waits = Waits()
        """Which extensions are being waited for."""
        self.bench = Bench(parts.guards, parts.journal, bus.emit, parts.permissions, parts.deadlines, waits=self.waits)
        self.active = parts.active
        self.transcript = Transcript(parts.journal)
        self._jobs = Jobs(self._do)
        self.words = Words(self._jobs, bus, self.notes, self.screen, one_shot=parts.one_shot)
        self._breaker = Breaker()
        self.stops = Stops()
        """What can be cancelled beside the turn: commands, and calls of tools by extensions."""
        self.typed = Typed(self, self._jobs, self.stops)
        self._mentions: list[UserMessage] = []
        """For the record once what runs has wound down: why it was interrupted, and what was done beside it."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work for the life of the block; leaving it stops what still runs and winds it down."""
        async with self.screen.running(), self.panels.running(), self.notes.running(), self._jobs.working():
            yield

    # What a face can ask for

    async def prompt(self, message: UserMessage, asker: Asker | None = None, *, by: str = "") -> Job:
        """Send it to the model now, or when what runs and waits before it has ended. `by` an extension, or the user."""
        return await self.words.prompt(message, asker, by=by)

    async def steer(self, message: UserMessage, asker: Asker | None = None) -> Job | None:
        """Deliver at the next tool boundary of the running turn; a prompt of its own when idle."""
        return await self.words.steer(message, asker)

    async def compact(self, asker: Asker | None = None) -> Job:
        self.words.make_room()
        return await self.words.enqueue(Job(None, asker))

    async def input(
        self, text: str, asker: Asker | None = None, *, steering: bool = False
    ) -> tuple[Action, ...] | Job | None:
        """Take a line as a person would type it: a slash command, or words for the model.

        Answers the actions taken, the job begun, or None for words that steer the running turn.
        """
        return await self.typed.input(text, asker, steering=steering)

    async def say(self, text: str, asker: Asker | None = None) -> tuple[()] | Job | None:
        """Words as a person types them. Extensions may rewrite them, or deal with them: then there is no job."""
        return await self.typed.say(text, asker)

    def known_command(self, text: str) -> tuple[str, str] | None:
        """The name and the arguments, when the text is a slash command that somebody offers."""
        return self.typed.known_command(text)

    async def command(
        self, name: str, args: str = "", *, by: str = "", asker: Asker | None = None
    ) -> tuple[Action, ...] | Job:
        """Run a slash command and do what it asks for. `by` an extension, or the user.

        One that is not to run beside a turn waits for its own; then the job is the answer, and `asker` hears of it.
        """
        return await self.typed.command(name, args, by=by, asker=asker)

    async def press(self, key: str) -> tuple[Action, ...]:
        """Do what a shortcut of an extension stands for."""
        return await self.typed.press(key)

    async def call_tool(self, name: str, args: Args, source: str, chain: tuple[str, ...] = ()) -> ToolOutput:
        """Run a tool for an extension; `chain` are the tools that led to it."""
        with self.beside(Stop()) as stop:
            return await call_for(self._desk(source, chain, stop), name, args, self.parts.journal)

    def beside(self, stop: Stop) -> AbstractContextManager[Stop]:
        """What runs beside the turn for the life of the block; when the user cancels, it is stopped too."""
        return self.stops.held(stop)

    def abort(self) -> bool:
        """Stop what runs now. Returns at once; `done` follows when it has wound down."""
        others = self.stops.request()
        return self._jobs.stop() or others

    async def take_back(self) -> list[str]:
        """Withdraw everything that waits, newest last, so that it can be changed and sent again."""
        return await self.words.take_back()

    async def idle(self) -> None:
        """Wait until nothing runs and nothing waits."""
        await self._jobs.idle()

    async def at_rest(self) -> None:
        """Wait until commands have ended too that waited for their turn: then it can be left."""
        await self._jobs.at_rest()

    @property
    def busy(self) -> bool:
        """Whether anything runs or waits; no longer when `done` is told and nothing waits."""
        return self._jobs.busy

    @property
    def waiting(self) -> tuple[str, ...]:
        """What will be delivered later, in order."""
        return self.words.waiting

    async def apply(self, actions: Iterable[Action], source: str, *, by: str = "") -> None:
        """Do what a command or an extension asks for. `by` is who wanted it without the user, if an extension did."""
        await apply(self, actions, source, by)

    async def between_turns(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Have something done when nothing runs: now if that is so, and then to its end.

        Otherwise in its turn, and this returns at once, since whoever asks may be part of what runs. If it fails then,
        that is told.
        """
        at_once, failed = not self.busy, list[HiltError]()

        async def doing() -> Outcome:
            try:
                await work()
            except HiltError as error:
                if not at_once:
                    raise
                failed.append(error)
            return Outcome("end")

        self.words.make_room()
        job = await self.words.enqueue(Job(work=doing, name=name))
        if at_once:
            outcome = await job.result()
            if failed or outcome.stop != "end":
                raise failed[0] if failed else HiltError(outcome.error, hint=outcome.hint)

    async def interrupt(self, marker: str, by: str) -> None:
        """Stop the turn; a marker is said by whoever wanted it, where the model sees it.

        Nothing else: it may be a command, or a tool called beside it, that wants the turn to end.
        """
        if self._jobs.in_a_turn:
            self._jobs.stop()
        if not marker:
            return
        await self.mention(user_text(f"[Request interrupted: {marker}]", by))

    async def mention(self, message: UserMessage) -> None:
        """Have the model know of something without asking it: from now on, or from the end of what runs."""
        if not self.busy:
            await self._mark(message)
        elif len(self._mentions) < _MENTIONS:
            self._mentions.append(message)  # what was begun must be on record before it
        else:
            why = f"{_MENTIONS} things already wait to be told to the model after this turn; one more is left out"
            await self.bus.emit(Noticed("warn", why))

    async def _mark(self, message: UserMessage) -> None:
        self.transcript.add(message)
        await self.bus.emit(UserMessageAdded(message.content, message.time, message.extension))

    async def interject(self, text: str, by: str) -> None:
        """Words of an extension, taken as if typed when nothing runs."""
        await self.typed.say_for(text, by)

    async def toggle_step(self, by: str = "") -> bool:
        """Have every tool call wait for the user, or no longer. Whether it is so now. `by` an extension, or nobody."""
        before = self.parts.permissions.step
        on = self.parts.permissions.toggle_step(by)
        if on == before:
            why = "step mode stays off: there is nobody here who could be asked before each tool call"
            await self.bus.emit(Noticed("warn", why))
        else:
            what = "every tool call waits for you now; /step ends it" if on else "tool calls no longer wait for you"
            await self.bus.emit(Noticed("info", what))
            await self.announce()
        return on

    async def tell_moved(self) -> None:
        """The conversation is another one from here on."""
        moved = ConversationMoved(self.parts.log.meta.id, len(self.transcript.messages))
        await self.bus.emit(moved)
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
                self.parts.permissions.step,
            )
        )

    async def model(self) -> ActiveModel:
        """Who answers, once that can be said: of an extension's model not before it has started. Raises `HiltError`."""
        before = self.active
        if before.pending:
            await settled(self.extensions, self.waits)
            if self.active is before:  # nobody has switched meanwhile
                await self.switch(before.pending())
                await self.announce()
        return self.active

    async def find_model(self, model: str) -> ActiveModel:
        """As `/model` takes it; whoever gets it closes it. Raises `HiltError`."""
        try:
            return self.parts.switch(model, self.active)
        except HiltError:
            # One that is being started may answer for it.
            await self.stops.stoppable(settled(self.extensions, self.waits), f"switching to {model}")
            return self.parts.switch(model, self.active)

    async def switch(self, active: ActiveModel) -> None:
        previous, self.active = self.active, active
        if self.parts.log.model != (active.info.provider, active.info.id):
            self.parts.journal.append(ModelRecord(active.info.provider, active.info.id))
        if active.notice:
            await self.bus.emit(Noticed("info", active.notice))
        if previous.provider is not active.provider:
            await previous.provider.aclose()

    async def spend(self, source: str, info: ModelInfo, usage: Usage) -> None:
        """A model was at work beside the conversation for somebody: it counts towards the session's cost."""
        if usage == Usage():
            return
        self.transcript.usage += usage
        self.parts.journal.append(SpentRecord(source, info.provider, info.id, usage))
        await self.bus.emit(UsageReported(usage, self.transcript.usage))

    def only_between_turns(self, what: str) -> None:
        if self._jobs.in_a_turn:
            raise UsageError(f"{what} only between turns", hint="wait for the turn to end, or cancel it")

    # Doing a job

    async def _do(self, job: Job) -> None:
        run = self._run(job, self.active.provider if job.work else await self._answering(job))
        job.outcome = await self._outcome(run, job)
        while self._mentions:
            await self._mark(self._mentions.pop(0))
        await self.words.return_undelivered()
        job.over = True
        if job.message is not None:
            await finish(run, job.outcome)

    async def _answering(self, job: Job) -> Provider:
        """Whoever answers; if nobody does, one that says why when what the user said is on record."""
        try:
            with job.stop.here():
                return (await self.model()).provider
        except Stopped:
            return self.active.provider  # the run stops before it asks
        except HiltError as error:
            return Nobody(self.active.info.provider, error)

    async def _outcome(self, run: Run, job: Job) -> Outcome:
        try:
            if job.asker and job.work is None:
                await job.asker.started()
            await self.words.begun()
            if job.work is not None:
                return await job.work()
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
            ours = mistake(error)
            await self.bus.emit(failure(ours))
            return Outcome("error", ours.message)

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
            direct=True,
            chain=chain,
        )

    def _run(self, job: Job, provider: Provider) -> Run:
        return Run(
            transcript=self.transcript,
            provider=provider,
            model=self.active.info,
            system=self.parts.system,
            registry=self.parts.registry,
            activation=self.activation,
            permissions=self.parts.permissions,
            bench=self.bench,
            emit=self.bus.emit,
            extensions=self.extensions,
            cwd=self.parts.cwd,
            steering=self.words.next_steering,
            stop=job.stop,
            retry=self.parts.retry,
            reasoning=self.parts.reasoning,
            max_steps=self.parts.max_steps,
            compact_at=self.parts.compact_at,
            breaker=self._breaker,
        )


async def _nowhere(_: Ran) -> None:
    """The answer goes back to who asked."""
