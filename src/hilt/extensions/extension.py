"""One process of an extension, whatever dialect it speaks: what it offers, how it is watched, what is said of it.

Lives between the start of the process and its end, both of which are the supervisor's business. How it is asked and
told things, and what it says of its own accord, is the business of its dialect: `frames`, `jsonrpc`.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Raw, UnsetType

from hilt.errors import ExtensionError, ExtensionFailure, ExtensionGone, ExtensionTimeout, FrameError, HiltError
from hilt.extensions.account import Account
from hilt.extensions.agent import House, Program
from hilt.extensions.brake import Brake
from hilt.extensions.capabilities import Capabilities, needed_to_decide, needed_to_do
from hilt.extensions.chores import Chores, Errands
from hilt.extensions.confinement import data_directory, make_data_directory
from hilt.extensions.peer import Id, Peer, Pending, Purpose, Tongue
from hilt.extensions.progress import Progress
from hilt.extensions.recollection import Recollection
from hilt.extensions.registrations import Registrations
from hilt.extensions.results import brief
from hilt.extensions.switches import Switches
from hilt.model.actions import Action
from hilt.model.contributions import Contribution, Invocation, ToolOutput
from hilt.model.events import Noticed
from hilt.model.verdicts import Allow, Block, Question, Rewrite, Verdict
from hilt.packages.discovery import Found
from hilt.transport.lines import TooLong

if TYPE_CHECKING:
    from hilt.extensions.methods.methods import Methods

_PROGRESS_CAP = 10
"""A call that shows progress may take so many times its deadline in all."""
FOREVER = 10 * 365 * 86400.0
"""Seconds for what waits for a person. Cancelling it works at any time."""
_MOMENT = 5.0
_REQUESTS = 4096
"""What it may have asked for that waits until it is its turn."""
_TOLD = 20
"""Mistakes of one process that the user is told of; the log has more of them."""
_LOGGED = 200
_SLOW = 1.0
"""Seconds after which to stop waiting says something about whoever was waited for."""


class Keeper(Protocol):
    """Who keeps the process. Must neither block nor raise."""

    def changed(self) -> None:
        """It offers something else than before."""

    def trouble(self) -> None:
        """Something about it needs attention: see `fault`, `closed_output`, `ready`."""

    before_asking: Callable[[], None]
    """A question is about to be sent: what happened before it must be told before it."""
    account: Account
    """Of all processes of this extension."""


class Tally(Protocol):
    """Counts whether verdicts come when they are asked for."""

    def answered(self) -> None: ...

    def missed(self) -> None: ...


class Extension(ABC):
    greeting: str
    """What it begins with: its `hello`."""
    opening: str
    """What it must do first, for its author."""
    silence: str
    """What it did not do when it was not heard of."""
    methods: "Methods"
    """What is said by method; its dialect makes it."""

    def __init__(
        self, found: Found, house: House, program: Program, keeper: Keeper, group: asyncio.TaskGroup, tongue: Tongue
    ) -> None:
        self.name = found.name
        self.found = found
        self.house = house
        self.program = program
        self.keeper = keeper
        self.before_asking = keeper.before_asking
        self.tongue = tongue
        patience = found.manifest.tool_timeout_ms / 1000
        self._call_times = (patience, patience * _PROGRESS_CAP)
        self.account = keeper.account
        self.peer = Peer(self.name, program.channel, self, tongue, self.account)
        self.capabilities = Capabilities(found.permissions, self.name)
        self.switches = Switches(found.choices.off)
        if found.manifest.guard:
            self.switches.off("guard", "tool_call")  # it is one before it says so
        self.registrations = Registrations(self, self.capabilities, self.switches, self.report)
        self.brake = Brake(program.channel)
        self.chores = Chores(self.brake)
        self.errands = Errands(group)
        self.requests = Errands(group, waiting=_REQUESTS)
        self.recollection = Recollection(found, house.memory, lambda: self.registrations.tools, Errands(group), self)
        self.line: Callable[[bytes], None] = self.introduce
        """Takes what it writes: first until it has introduced itself, from then on as its peer does."""
        self.introduced = False
        """It has said who it is, and can be asked things."""
        self.version = ""
        """As it says itself."""
        self.ready = False
        """It has said that its first registrations are complete."""
        self.lines = 0
        """How many it has sent: as long as this grows, it is not silent."""
        self.fault = ""
        """Why it must be ended, once that is certain."""
        self.closed_output = False
        self.unsendable = 0
        """Events that no line could hold."""
        self.stuck = False
        self._told_of_loss = False
        self._second_look: asyncio.TimerHandle | None = None
        self._numbers = count(1)
        self._reported = 0
        self._told: set[str] = set()

    @property
    def pid(self) -> int:
        return self.program.pid

    @property
    def events_lost(self) -> int:
        return self.unsendable + self.program.channel.dropped

    def contributions(self) -> tuple[Contribution, ...]:
        return self.registrations.contributions()

    def idle_switches(self) -> tuple[str, ...]:
        """Parts that the user switched off and that it does not have."""
        return self.switches.idle

    def data_dir(self) -> str:
        """Where it keeps what is its own; made if need be."""
        try:
            return str(make_data_directory(self.found, self.house.places))
        except OSError as error:
            self.report(f"its data directory {error.filename} cannot be made: {error.strerror or error}")
            return str(data_directory(self.found, self.house.places))

    # What its dialect does

    @abstractmethod
    def begin(self) -> None:
        """It has just been started and is listened to: say what is to be said first."""

    @abstractmethod
    def introduce(self, line: bytes) -> None:
        """Take a line that came before it has introduced itself."""

    @abstractmethod
    async def call_tool(
        self, tool: str, invocation: Invocation, *, interactive: bool, detached: bool = False
    ) -> ToolOutput:
        """`interactive`: it waits for a person. `detached`: it goes on when nobody waits for it any more."""

    @abstractmethod
    async def run_command(self, command: str, args: str) -> tuple[Action, ...]: ...

    @abstractmethod
    async def press(self, key: str) -> tuple[Action, ...]: ...

    @abstractmethod
    def question(self, question: Question, name: str, patience: float) -> Pending:
        """Ask for a verdict, now; `name` is that of the interceptor, where there are several."""

    @abstractmethod
    def verdict(self, answer: Any, question: Question, name: str) -> Verdict:
        """What it answered. Raises `ExtensionError` for what cannot be used."""

    @abstractmethod
    def panel_key(self, panel_id: str, key: str, text: str) -> None: ...

    @abstractmethod
    def panel_resize(self, panel_id: str, width: int, height: int) -> None: ...

    @abstractmethod
    def panel_closed(self, panel_id: str) -> None: ...

    @abstractmethod
    def shut_down(self) -> None:
        """Tell it that this is the end."""

    @abstractmethod
    def said(self, frame: Any) -> None:
        """Something that it says of its own accord."""

    # Methods, which both dialects have: each carries them in its own way

    @abstractmethod
    def request_line(self, id_: Any, method: str, params: Any) -> bytes:
        """Asks it. Raises `FrameError` for what no line can hold, as does the next one."""

    @abstractmethod
    def notice_line(self, method: str, params: Any) -> bytes:
        """Tells it."""

    def ask_method(
        self,
        method: str,
        params: Any,
        what: str,
        patience: float,
        *,
        limit: float = 0.0,
        purpose: Purpose = "method",
    ) -> Pending:
        """Ask now; `outcome` says what the answer means."""

        def line(id_: Id) -> bytes:
            return self.request_line(id_, method, params)

        return self.peer.ask(purpose, line, what, patience, limit, self.tongue.expected["method"])

    def tell_method(self, method: str, params: Any) -> None:
        """Something it must hear, in its turn."""
        self._write(method, params, self.peer.tell)

    def post_method(self, method: str, params: Any) -> None:
        """The same of which the oldest gives way to newer ones when it does not read."""
        self._write(method, params, self.post)

    def _write(self, method: str, params: Any, send: Callable[[bytes], object]) -> None:
        try:
            send(self.notice_line(method, params))
        except FrameError as error:
            self.unsendable += 1
            self.report(error.message)

    @abstractmethod
    def outcome(self, answer: Any) -> Raw | UnsetType:
        """The result. Raises `ExtensionFailure` when it answered that it failed."""

    @abstractmethod
    def reply(self, id_: Id, result: Any) -> None:
        """Answer what it asked. Raises `FrameError` for what no line can hold."""

    @abstractmethod
    def refuse(self, id_: Id, code: int, message: str) -> None: ...

    def new_number(self) -> int:
        """One that nothing else of this process has, where its dialect counts by numbers."""
        id_ = self.tongue.new_id()
        return id_ if isinstance(id_, int) else next(self._numbers)

    def spare(self, pending: Pending, *, late: bool = False) -> None:  # noqa: ARG002 - it makes a difference to others
        """Nobody waits for its verdict any more; `late` when its time is over."""
        self.peer.give_up(pending)

    def forsake(self, pending: Pending) -> None:
        """Nobody waits for the answer any more, and it may as well know."""
        if self.peer.give_up(pending):
            self.tell_method("$/cancelRequest", {"id": pending.id})

    def waited_in_vain(self, pending: Pending) -> None:
        """Whoever asked has stopped waiting. It may be the user who did not want to wait any longer."""
        took = asyncio.get_running_loop().time() - pending.asked
        if took >= _SLOW:
            self.account.erred(f"{pending.what}: no answer for {took:.3g} s, then it was no longer waited for")

    # Asking it

    def patience(self, *, interactive: bool) -> tuple[float, float]:
        """Seconds a call may take, and how many if it shows progress."""
        return (FOREVER, FOREVER) if interactive else self._call_times

    def failed(self, tool: str, error: ExtensionError, **details: bool) -> ToolOutput:
        hint = f"\n{error.hint}" if error.hint else ""
        return ToolOutput.of(f"extension {self.name}/{tool} failed: {error.message}{hint}", is_error=True, **details)

    def allowed_action(self, action: Action, shown: str) -> Action:
        """What a command or a shortcut came to, if it may have that done. Raises `ExtensionFailure`."""
        if refusal := self.capabilities.refusal(*needed_to_do(action)):
            self.note(refusal)
            raise ExtensionFailure(self.name, f"extension {shown}: {refusal}")
        return action

    def failure(self, message: str, code: int) -> ExtensionFailure:
        """It answered that it failed."""
        return ExtensionFailure(self.name, brief(message) or f"error {code}")

    def intercept(self, question: Question, name: str, patience: float, tally: Tally) -> "Asked":
        """Ask now; await the answer later."""
        self.before_asking()
        return Asked(self, self.question(question, name, patience), question, name, tally)

    def permitted(self, verdict: Verdict, question: Question) -> Verdict:
        """What counts of its verdict. Raises `ExtensionError` where that cannot be left out: a call that it wants to
        be another one is not a call it allows."""
        refusal = self.capabilities.refusal(*needed_to_decide(question, verdict))
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
        self.program.channel.post(line)
        if self.program.channel.dropped and not self._told_of_loss:
            self._told_of_loss = True
            self.report("it does not read its events as fast as they come: the oldest are lost")

    def gone(self, how: str) -> None:
        """The process has ended, or is about to be: fail what waits for it, with its last words."""
        words = self.last_words()
        last = f"; its last words: {words}" if words else ""

        def error(fate: str) -> ExtensionGone:
            return ExtensionGone(self.name, f"{self.name} {how} {fate}{last}")

        self.line = _unheard
        self.peer.gone(error)
        self.errands.cancel_all()
        self.requests.cancel_all()
        self.recollection.stop()
        self.methods.left()
        if self._second_look:
            self._second_look.cancel()

    def last_words(self) -> str:
        lines = [line.strip() for line in self.program.last_words()]
        return " | ".join(line[:300] for line in lines if line)

    def do(self, action: Action) -> None:
        """Have the agent do something for it, if it may, in its turn among all that it wants done."""
        if refusal := self.capabilities.refusal(*needed_to_do(action)):
            self.report(refusal)
        else:
            self.chores.add(lambda: self._apply(action))

    async def _apply(self, action: Action) -> None:
        try:
            await self.house.agent.apply((action,), self.name)
        except HiltError as error:
            self.report(error.message)

    def progressed(self, pending: Pending | None, text: str) -> None:
        """A call of a tool has something to show: its time begins anew. None when there is no such call."""
        if pending is None:
            self.peer.mistakes += 1
            return
        self.peer.extend(pending)
        if pending.show and text:
            pending.progress = pending.progress or Progress(pending.show, self.chores.add)
            pending.progress.push(text)

    async def caught_up(self) -> None:
        """Wait until it has dealt with what it was told, and what it wants done is done."""
        await self.methods.dispatch.settled()
        await self.chores.done()

    # What the channel tells

    def overlong(self, line: TooLong) -> None:
        self.peer.overlong(line)

    def ended(self) -> None:
        self.closed_output = True
        self.keeper.trouble()

    def broken(self) -> None:
        """It does not read any more. That alone is no reason to end it: it may be about to end by itself."""
        return

    def stalled(self) -> None:
        self.stuck = True
        self.check_stuck()

    def check_stuck(self) -> None:
        # One that is busy with a call may well not read meanwhile: then the call's deadline decides.
        self.stuck = self.program.channel.stalled
        if self.stuck and not self.peer.working:
            self.fail("it has stopped reading")

    def look_again(self) -> None:
        """What kept it from reading is over: now it should, if it is given a moment."""
        if self._second_look:
            self._second_look.cancel()
        if self.line is not _unheard:  # it is not gone
            self._second_look = asyncio.get_running_loop().call_later(_MOMENT, self.check_stuck)

    def fail(self, fault: str) -> None:
        self.fault = self.fault or fault
        self.keeper.trouble()

    # What the peer tells

    def too_late(self, pending: Pending, answer: Any) -> None:
        """Usually of no interest; but a refusal that came too late is worth knowing."""
        if pending.purpose != "verdict" or pending.question is None:
            return
        try:
            decided = self.verdict(answer, *pending.question)
        except ExtensionError:
            return
        if isinstance(decided, Block):
            took = asyncio.get_running_loop().time() - pending.asked
            self.tell(
                "warn",
                f"guard {self.name} refused, but only after {took:.3g} s, in answer to {pending.what}: "
                f"{decided.reason}",
            )

    def erred(self, mistake: str, example: str = "") -> None:
        self.lines += 1
        self.report(mistake, example)

    def hopeless(self, reason: str) -> None:
        self.fail(reason)

    def asks_user(self) -> bool:
        return self.methods.serving.asks_user

    def report(self, mistake: str, example: str = "") -> None:
        """Something it did wrong that costs nobody else anything. The user is told once however often it happens."""
        self.note(f"{mistake}{example}")
        self.account.erred(mistake)
        if mistake not in self._told and len(self._told) < _TOLD:
            self._told.add(mistake)
            more = "; what follows is in its log only" if len(self._told) == _TOLD else ""
            self.tell("warn", f"extension {self.name}: {mistake}{example}{more}")

    def note(self, text: str) -> None:
        """For its log alone, and not without end."""
        self._reported += 1
        if self._reported <= _LOGGED:
            self.program.remark(text)

    def tell(self, level: Literal["info", "warn"], message: str) -> None:
        """Tell the user, in its turn."""
        self.chores.add(lambda: self.house.agent.tell(Noticed(level, message)))


def _unheard(_: bytes) -> None:
    """There is nobody left to do what it asks for."""


class Asked:
    """A question to an interceptor on its way."""

    def __init__(self, extension: Extension, pending: Pending, question: Question, name: str, tally: Tally) -> None:
        self._extension = extension
        self._pending = pending
        self._pending.question = (question, name)
        self._question = question
        self._name = name
        self._tally = tally

    def __await__(self) -> Generator[Any, None, Verdict]:
        try:
            answer = yield from self._pending.future
            decided = self._extension.verdict(answer, self._question, self._name)
        except asyncio.CancelledError:
            self._extension.waited_in_vain(self._pending)
            self.discard()
            raise
        except ExtensionError as error:
            if isinstance(error, ExtensionTimeout):
                self._extension.spare(self._pending, late=True)
            self._tally.missed()
            raise
        self._tally.answered()
        try:
            return self._extension.permitted(decided, self._question)
        except ExtensionError:
            self._tally.missed()  # but it has answered: one that does so is waited for
            raise

    def discard(self) -> None:
        self._extension.spare(self._pending)

    @property
    def settled(self) -> bool:
        return self._pending.future.done()

    @property
    def asks_user(self) -> bool:
        return self._extension.asks_user()

    @property
    def elapsed(self) -> float:
        return self._pending.ended - self._pending.asked
