"""One process of an extension that speaks the frames dialect: what it offers, and how it is asked for it.

Lives between the start of the process and its end, both of which are the supervisor's business. What the process
says of its own accord is taken apart in `inbound`.
"""

import asyncio
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Literal, Protocol

from hilt.errors import (
    ExtensionError,
    ExtensionFailure,
    ExtensionGone,
    ExtensionProtocolError,
    ExtensionStartError,
    ExtensionTimeout,
)
from hilt.extensions.agent import House, Program
from hilt.extensions.capabilities import Capabilities, needed_to_decide, needed_to_do
from hilt.extensions.chores import Chores, Errands
from hilt.extensions.confinement import data_directory, make_data_directory
from hilt.extensions.handshake import Handshake, hello_ack
from hilt.extensions.inbound import Inbound
from hilt.extensions.peer import Answer, Peer, Pending
from hilt.extensions.recollection import Recollection
from hilt.extensions.registrations import Registrations
from hilt.extensions.results import bounded
from hilt.extensions.switches import Switches
from hilt.model.actions import Action
from hilt.model.contributions import Contribution, Invocation, ToolOutput
from hilt.model.events import Noticed
from hilt.model.verdicts import Allow, Question, Rewrite, Verdict
from hilt.packages.discovery import Found
from hilt.transport.lines import TooLong
from hilt.wire.frames import encode, tool_call_line
from hilt.wire.frames_answers import CommandFailed, command_answer, verdict
from hilt.wire.frames_questions import intercept_line
from hilt.wire.frames_results import short_text, tool_output
from hilt.wire.frames_types import (
    CommandInvoked,
    CommandResponse,
    EventInterceptResponse,
    ExtensionFrame,
    Hello,
    Malformed,
    PanelClose,
    PanelKey,
    PanelResize,
    Ready,
    ShortcutInvoked,
    Shutdown,
    ToolCancel,
    ToolResult,
)

COMMAND_PATIENCE = 30.0
INTERACTIVE = "interactive extension tools require an interactive host"
_PROGRESS_CAP = 10
"""A call that shows progress may take so many times its deadline in all."""
_FOREVER = 10 * 365 * 86400.0
_MOMENT = 5.0
_TOLD = 20
"""Mistakes of one process that the user is told of; the log has more of them."""
_LOGGED = 200


class Keeper(Protocol):
    """Who keeps the process. Must neither block nor raise."""

    def changed(self) -> None:
        """It offers something else than before."""

    def trouble(self) -> None:
        """Something about it needs attention: see `fault`, `closed_output`, `ready`."""

    before_asking: Callable[[], None]
    """A question is about to be sent: what happened before it must be told before it."""


class Tally(Protocol):
    """Counts whether verdicts come when they are asked for."""

    def answered(self) -> None: ...

    def missed(self) -> None: ...


class Extension:
    def __init__(self, found: Found, house: House, program: Program, keeper: Keeper, group: asyncio.TaskGroup) -> None:
        self.name = found.name
        self.found = found
        self._house = house
        self._program = program
        self._keeper = keeper
        self._before_asking = keeper.before_asking
        patience = found.manifest.tool_timeout_ms / 1000
        self._call_times = (patience, patience * _PROGRESS_CAP)
        self.peer = Peer(self.name, program.channel, self)
        self._capabilities = Capabilities(found.permissions, self.name)
        self._switches = Switches(found.choices.off)
        if found.manifest.guard:
            self._switches.off("guard", "tool_call")  # it is one before it says so
        self.registrations = Registrations(self, self._capabilities, self._switches, self.report)
        self.chores = Chores(program.channel)
        self.recollection = Recollection(found, house.memory, lambda: self.registrations.tools, Errands(group), self)
        self._errands = Errands(group)
        self._inbound = Inbound(
            self.name,
            house.agent,
            self.peer,
            self.registrations,
            self.chores,
            self._errands,
            self._capabilities,
            changed=keeper.changed,
            report=self.report,
        )
        self._handshake = Handshake(self.name)
        self.line: Callable[[bytes], None] = self._introduce
        """Takes what it writes: first until its hello, from then on as its peer does."""
        self.hello: Hello | None = None
        self.ready = False
        """It has said that its first registrations are complete."""
        self.lines = 0
        """How many it has sent: as long as this grows, it is not silent."""
        self.fault = ""
        """Why it must be ended, once that is certain."""
        self.closed_output = False
        self.unsendable = 0
        """Events that no line could hold."""
        self._told_of_loss = False
        self._stuck = False
        self._second_look: asyncio.TimerHandle | None = None
        self._reported = 0
        self._told: set[str] = set()

    @property
    def pid(self) -> int:
        return self._program.pid

    @property
    def events_lost(self) -> int:
        return self.unsendable + self._program.channel.dropped

    def contributions(self) -> tuple[Contribution, ...]:
        return self.registrations.contributions()

    # Asking it

    async def call_tool(self, tool: str, invocation: Invocation, *, interactive: bool) -> ToolOutput:
        patience, limit = self._call_times
        if interactive:
            if not self._house.attended:
                return ToolOutput.of(INTERACTIVE, is_error=True)
            patience = limit = _FOREVER
        self._before_asking()
        args = invocation.args
        pending = self.peer.ask(ToolResult, partial(tool_call_line, tool, args), tool, patience, limit)
        pending.chain = invocation.chain
        pending.show = invocation.progress
        try:
            answer = await pending.future
        except asyncio.CancelledError:
            self._cancel(pending)
            raise
        except ExtensionTimeout as error:
            self._cancel(pending)
            self._check_stuck()
            return self._failed(tool, error, timed_out=True)
        except ExtensionError as error:
            return self._failed(tool, error)
        finally:
            if self._inbound.children:
                self._inbound.give_up_children(pending.id)
            if self._stuck:
                self._look_again()
        if pending.progress:
            await pending.progress.flush()
        assert type(answer) is ToolResult
        if output := short_text(answer):
            return output  # nearly always
        return await bounded(tool_output(answer, self.name, tool), tool, self._house.places.outputs)

    def _failed(self, tool: str, error: ExtensionError, **details: bool) -> ToolOutput:
        hint = f"\n{error.hint}" if error.hint else ""
        return ToolOutput.of(f"extension {self.name}/{tool} failed: {error.message}{hint}", is_error=True, **details)

    def _cancel(self, pending: Pending) -> None:
        self.peer.give_up(pending)
        if self.hello and "tool_cancel" in self.hello.capabilities:
            self.peer.tell(encode(ToolCancel(pending.id)))

    async def run_command(self, command: str, args: str) -> tuple[Action, ...]:
        return await self._act(f"/{command}", command, lambda id_: encode(CommandInvoked(id_, command, args)))

    async def press(self, key: str) -> tuple[Action, ...]:
        return await self._act(f"shortcut {key}", key, lambda id_: encode(ShortcutInvoked(id_, key)))

    async def _act(self, shown: str, what: str, line: Callable[[str], bytes]) -> tuple[Action, ...]:
        self._before_asking()
        pending = self.peer.ask(CommandResponse, line, what, COMMAND_PATIENCE)
        try:
            answer = await pending.future
        except asyncio.CancelledError:
            self.peer.give_up(pending)
            raise
        except ExtensionError as error:
            self._check_stuck()
            error.message = f"extension {shown}: {error.message}"
            raise
        finally:
            if self._stuck:
                self._look_again()
        assert isinstance(answer, CommandResponse)
        action = command_answer(answer)
        if isinstance(action, CommandFailed):
            raise ExtensionFailure(self.name, f"extension {shown}: {action.message}")
        if refusal := self._capabilities.refusal(*needed_to_do(action)):
            self.note(refusal)
            raise ExtensionFailure(self.name, f"extension {shown}: {refusal}")
        return (action,)

    def intercept(self, question: Question, patience: float, tally: Tally) -> "Asked":
        """Ask now; await the answer later."""
        self._before_asking()
        what = f"{question.event} of {question.tool_name}" if question.tool_name else question.event
        pending = self.peer.ask(EventInterceptResponse, lambda id_: intercept_line(id_, question), what, patience)
        return Asked(self, pending, question, tally)

    def permitted(self, verdict: Verdict, question: Question) -> Verdict:
        """What counts of its verdict. Raises `ExtensionError` where that cannot be left out: a call that it wants to
        be another one is not a call it allows."""
        refusal = self._capabilities.refusal(*needed_to_decide(question, verdict))
        if not refusal:
            return verdict
        if isinstance(verdict, Rewrite):
            self.note(refusal)  # the user is told of every call that went on without its guard
            raise ExtensionError(self.name, f"it wants other arguments; {refusal}")
        self.report(refusal)
        return Allow()

    # Telling it

    def post(self, line: bytes) -> None:
        """An event; dropped, and counted, when it does not read."""
        self._program.channel.post(line)
        if self._program.channel.dropped and not self._told_of_loss:
            self._told_of_loss = True
            self.report("it does not read its events as fast as they come: the oldest are lost")

    def panel_key(self, panel_id: str, key: str, text: str) -> None:
        self.peer.tell(encode(PanelKey(panel_id, key, text)))

    def panel_resize(self, panel_id: str, width: int, height: int) -> None:
        self.peer.tell(encode(PanelResize(panel_id, width, height)))

    def panel_closed(self, panel_id: str) -> None:
        self.peer.tell(encode(PanelClose(panel_id)))

    def shut_down(self) -> None:
        self.peer.tell(encode(Shutdown()))

    def gone(self, how: str) -> None:
        """The process has ended, or is about to be: fail what waits for it, with its last words."""
        words = self.last_words()
        last = f"; its last words: {words}" if words else ""

        def error(fate: str) -> ExtensionGone:
            return ExtensionGone(self.name, f"{self.name} {how} {fate}{last}")

        self.line = _unheard
        self.peer.gone(error)
        self._errands.cancel_all()
        self.recollection.stop()
        if self._second_look:
            self._second_look.cancel()

    def idle_switches(self) -> tuple[str, ...]:
        """Parts that the user switched off and that it does not have."""
        return self._switches.idle

    def last_words(self) -> str:
        lines = [line.strip() for line in self._program.last_words()]
        return " | ".join(line[:300] for line in lines if line)

    # What the channel tells

    def overlong(self, line: TooLong) -> None:
        if self.hello:
            self.peer.overlong(line)
        else:
            self._fail(f"its first line has {line.size:,} bytes and is no hello")

    def ended(self) -> None:
        self.closed_output = True
        self._keeper.trouble()

    def broken(self) -> None:
        """It does not read any more. That alone is no reason to end it: it may be about to end by itself."""

    def stalled(self) -> None:
        self._stuck = True
        self._check_stuck()

    def _introduce(self, line: bytes) -> None:
        if self.fault:
            return  # a hello comes too late now
        try:
            hello = self._handshake.take(line)
        except ExtensionStartError as error:
            self._fail(f"{error.message} ({error.hint})")
            return
        if hello is None:
            return
        self.hello = hello
        self.line = self.peer.line
        self.peer.tell(encode(hello_ack(self._house.surroundings, str(self.found.directory), self._data_dir())))
        if stray := self._handshake.stray:
            for one in stray:
                self._program.remark(f"before its hello: {one}")
            told = f"{len(stray)} line{'s' * (len(stray) > 1)} before its hello ignored"
            self.report(f"{told}, the first was {stray[0]!r}")
        if hello.name != self.found.manifest.name:
            self.report(f"it calls itself {hello.name[:64]!r}; the manifest's name counts")
        self._keeper.trouble()

    def _data_dir(self) -> str:
        try:
            return str(make_data_directory(self.found, self._house.places))
        except OSError as error:
            self.report(f"its data_dir {error.filename} cannot be made: {error.strerror or error}")
            return str(data_directory(self.found, self._house.places))

    def _check_stuck(self) -> None:
        # One that is busy with a call may well not read meanwhile: then the call's deadline decides.
        self._stuck = self._program.channel.stalled
        if self._stuck and not self.peer.working:
            self._fail("it has stopped reading")

    def _look_again(self) -> None:
        """What kept it from reading is over: now it should, if it is given a moment."""
        if self._second_look:
            self._second_look.cancel()
        if self.line is not _unheard:  # it is not gone
            self._second_look = asyncio.get_running_loop().call_later(_MOMENT, self._check_stuck)

    def _fail(self, fault: str) -> None:
        self.fault = self.fault or fault
        self._keeper.trouble()

    # What the peer tells

    def said(self, frame: ExtensionFrame) -> None:
        self.lines += 1
        match frame:
            case Hello():
                self.peer.mistakes += 1
                self.report("a second hello is ignored")
            case Ready():
                self.ready = True
                self._keeper.changed()
                self._keeper.trouble()
            case _:
                self._inbound.take(frame)

    def too_late(self, pending: Pending, answer: Answer) -> None:
        """Usually of no interest; but a refusal that came too late is worth knowing."""
        if isinstance(answer, EventInterceptResponse) and answer.block:
            took = asyncio.get_running_loop().time() - pending.asked
            reason = f": {answer.reason}" if answer.reason else ""
            self.tell(
                "warn", f"guard {self.name} refused, but only after {took:.3g} s, in answer to {pending.what}{reason}"
            )

    def erred(self, mistake: str, example: str = "") -> None:
        self.lines += 1
        self.report(mistake, example)

    def hopeless(self, reason: str) -> None:
        self._fail(reason)

    def report(self, mistake: str, example: str = "") -> None:
        """Something it did wrong that costs nobody else anything. The user is told once however often it happens."""
        self.note(f"{mistake}{example}")
        if mistake not in self._told and len(self._told) < _TOLD:
            self._told.add(mistake)
            more = "; what follows is in its log only" if len(self._told) == _TOLD else ""
            self.tell("warn", f"extension {self.name}: {mistake}{example}{more}")

    def note(self, text: str) -> None:
        """For its log alone, and not without end."""
        self._reported += 1
        if self._reported <= _LOGGED:
            self._program.remark(text)

    def tell(self, level: Literal["info", "warn"], message: str) -> None:
        """Tell the user, in its turn."""
        self.chores.add(lambda: self._house.agent.tell(Noticed(level, message)))


def _unheard(_: bytes) -> None:
    """There is nobody left to do what it asks for."""


class Asked:
    """A question to an interceptor on its way."""

    def __init__(self, extension: Extension, pending: Pending, question: Question, tally: Tally) -> None:
        self._extension = extension
        self._pending = pending
        self._question = question
        self._tally = tally

    def __await__(self) -> Generator[Any, None, Verdict]:
        try:
            answer = yield from self._pending.future
            assert isinstance(answer, EventInterceptResponse)
            decided = verdict(answer, self._question.event)
            if isinstance(decided, Malformed):
                name = self._extension.name
                raise ExtensionProtocolError(name, f"{name} gave an unusable verdict: {decided.reason}")
        except asyncio.CancelledError:
            self.discard()
            raise
        except ExtensionError:
            self._tally.missed()
            raise
        self._tally.answered()
        try:
            return self._extension.permitted(decided, self._question)
        except ExtensionError:
            self._tally.missed()  # but it has answered: one that does so is waited for
            raise

    def discard(self) -> None:
        self._extension.peer.give_up(self._pending)

    @property
    def settled(self) -> bool:
        return self._pending.future.done()

    @property
    def elapsed(self) -> float:
        return self._pending.ended - self._pending.asked
