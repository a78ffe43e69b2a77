"""One conversation of a scripted host with a running extension: what was asked, what came, and what time it is.

Lines are read while something is waited for, and nowhere else, so that what a step sees depends on the conversation
and not on chance. The clock is the conversation's own: a deadline passes when a step says so.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec import Struct

from hilt.authoring.exchange import Id
from hilt.authoring.greeting import NOTHING, Offered, Played, Registered, greet, registered, words
from hilt.authoring.matching import matched
from hilt.authoring.speaking import tongue
from hilt.authoring.speaking.tongue import HAPPENINGS, Answer, Asked, Happened, Result
from hilt.authoring.stage import Actor, Line
from hilt.authoring.streams import Stream
from hilt.authoring.values import Value, brief
from hilt.errors import ChannelClosed, Departure, TransportError
from hilt.wire.faults import INTERNAL, METHOD_NOT_FOUND

_ENDING = 2.0
"""Seconds between the end of its output and its exit that count as one event."""
_LATEST = 20
"""Problems and remarks that are kept."""
_MOST = 64 * 1024 * 1024
"""Characters that are listened to in one conversation, for they are kept."""
_SHOWN = 200
_TOO_MUCH = f"it wrote more than {_MOST // 1024**2} MiB"
_Found = TypeVar("_Found")


class Question(Struct):
    """Something it was asked, and its answer, once there is one."""

    id: Id
    what: str
    call: bool
    """Of a tool: in the frames dialect that is taken back by a frame of its own."""
    patience: int
    until: int
    """Milliseconds: those it has, and when they are over on the clock of the conversation."""
    answer: Value | None = None
    given_up: bool = False


class Scripted(Struct, frozen=True):
    """What the host answers when it is asked for something."""

    method: str
    params: Any
    reply: Any = None
    error: Mapping[str, Any] | None = None


class Dialogue:
    def __init__(self, actor: Actor, host: Played) -> None:
        self.actor = actor
        self.host = host
        self.tongue = tongue(actor.dialect)
        self.lines = Stream(actor.name)
        """Everything it said."""
        self.happened = {kind: Stream(actor.name) for kind in HAPPENINGS}
        self.registered: list[Registered] = []
        self.events: set[str] = set()
        self.intercepts: set[str] = set()
        self.capabilities: tuple[str, ...] = ()
        """What both sides have said they can do."""
        self.panel = ""
        """The one that was opened last."""
        self.problems: list[str] = []
        """What was wrong, whatever the steps are about."""
        self.remarks: list[str] = []
        """What may explain a failure."""
        self.over = False
        self.now = 0
        """Milliseconds, as whole numbers: a deadline is met exactly."""
        self.asked: dict[Id, str] = {}
        """All that it was ever asked, in words, by id."""
        self.answers: Counter[Id] = Counter()
        """How often it has answered."""
        self.offered: Offered = NOTHING
        """Who it is, as of the opening."""
        self._next_id = self.tongue.first_id()
        self._open: dict[Id, Question] = {}
        self._scripted: list[Scripted] = []

    # Before the first step

    async def open(self) -> None:
        """The handshake. Raises `ExtensionStartError`."""
        self.offered = offered = await greet(self.actor, self.host, self._aside)
        for line in offered.lines:
            if line.value is not None:
                self.lines.put(line.value)
        self.registered = list(offered.registered)
        self.events, self.intercepts = set(offered.events), set(offered.intercepts)
        announced = self.host.announced(self.actor.dialect)
        own = set(offered.capabilities)
        self.capabilities = tuple(one for one in announced if one != "tool_cancel" or one in own)

    def script(self, scripted: Scripted) -> None:
        """From now on this is the answer; several to the same question are given in turn, the last for ever."""
        self._scripted.append(scripted)

    # What it offers by now

    def offers(self, kind: str) -> list[Registered]:
        return [one for one in self.registered if one.kind == kind]

    def asked_by_frame(self, event: str) -> bool:
        """Whether it is asked about this by a frame of the first version; a guard is, whatever it subscribes to."""
        guards = self.actor.found.manifest.guard is not None and event == "tool_call"
        return self.actor.dialect == "frames" and (guards or event in self.intercepts)

    def interceptors(self, event: str = "") -> list[Registered]:
        """Those that are asked about this by a method, or all, in the order in which hilt asks them."""
        known = sorted(self.offers("interceptor"), key=_rank)
        return [one for one in known if not event or event in (one.fields.get("events") or ["tool_call"])]

    # Saying

    def send(self, value: Mapping[str, Any]) -> None:
        """Raises `Departure` when it is gone."""
        self._write(lambda: self.actor.send(value), brief(value))

    def send_raw(self, line: bytes) -> None:
        """The same for a line as it stands."""
        self._write(lambda: self.actor.send_raw(line), repr(line[:_SHOWN]))

    def _write(self, write: Callable[[], None], what: str) -> None:
        try:
            write()
        except ChannelClosed:
            raise Departure(f"it could not be sent {what}: {self.end}") from None
        except TransportError as error:
            raise Departure(f"it could not be sent {what}: {error.message}") from None

    def ask(self, what: str, line: Callable[[Id], Value], patience: float, *, call: bool = False) -> Question:
        allowed = round(patience * 1000)
        question = Question(self._next_id, what, call, allowed, self.now + allowed)
        self._next_id = self.tongue.next_id(self._next_id)
        self._open[question.id] = question
        self.asked[question.id] = what
        self.send(line(question.id))
        return question

    def give_up(self, question: Question) -> None:
        """Nobody waits for its answer any more, which it is told if it wants to be."""
        question.given_up = True
        if question.answer is None:
            line = self.tongue.give_up(question.id, call=question.call, capabilities=self.capabilities)
            if line:
                self.send(line)

    def advance(self, milliseconds: int) -> None:
        """Let time pass: what should have been answered by then is given up."""
        self.now += milliseconds
        for question in list(self._open.values()):
            if question.until <= self.now and not question.given_up:
                self.give_up(question)

    # Hearing

    async def until(self, ready: Callable[[], _Found | None], patience: float) -> _Found | None:
        """Read until there is what is looked for, or time or its output is at an end: then None."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        while (found := ready()) is None and not self.over:
            try:
                line = await self.actor.receive(max(deadline - loop.time(), 0.0))
            except TimeoutError:
                return ready()
            if line is None:
                await self._ended()
                return ready()
            self.take(line)
            if self.actor.heard > _MOST:
                self.problems.append(f"{_TOO_MUCH}: nothing after that was read")
                self.over = True
        return found

    async def answer(self, question: Question, patience: float) -> Value:
        """Raises `Departure` when there is none."""
        answer = await self.until(lambda: question.answer, patience)
        if answer is None:
            why = f"before {self.end}" if self.over else f"within {patience:g} s"
            raise Departure(f"{question.what} was not answered {why}")
        return answer

    async def request(self, method: str, params: Value, allowed: float, patience: float) -> Result:
        """Ask by a method: `allowed` are seconds on the clock of the conversation. Raises `Departure`."""
        question = self.ask(method, lambda id_: self.tongue.request(id_, method, params), allowed)
        return self.tongue.answered(await self.answer(question, patience))

    def take(self, line: Line) -> None:
        """What it wrote: kept, and dealt with if it is an answer, a question or a registration."""
        value = line.value
        if value is not None:
            self.lines.put(value)
        if one := registered(line):
            self.registered.append(one)
        elif value and value.get("type") == "subscribe":
            self.events |= set(words(value.get("events")))
            self.intercepts |= set(words(value.get("intercept")))
        else:
            self._aside(line)

    def _aside(self, line: Line) -> None:
        if line.value is None:
            problem = f"it wrote a line that is no JSON object: {line.text[:_SHOWN]!r} ({line.problem})"
            self.problems = [*self.problems, problem][-_LATEST:]
            return
        match heard := self.tongue.heard(line.value):
            case Answer():
                self.answers[heard.id] += 1
                if question := self._open.pop(heard.id, None):
                    question.answer = heard.value
            case Asked():
                self._reply(heard)
            case Happened():
                self.happen(heard)

    def happen(self, happened: Happened) -> None:
        """Also for what an answer makes happen."""
        if happened.kind == "opens":
            self.panel = str(happened.value.get("id", ""))
        if happened.kind == "progress" and (question := self._open.get(happened.of or "")):
            question.until = self.now + question.patience
        self.happened[happened.kind].put({happened.kind: happened.value, "text": in_words(happened.value)})

    def _reply(self, asked: Asked) -> None:
        self.happen(Happened("asks", {"method": asked.method, "params": asked.params}))
        fitting = [one for one in self._scripted if _fits(one, asked)]
        if not fitting:
            remark = f"it asked for {asked.method} {brief(asked.params)}, for which no host step has a reply"
            self.remarks = [*self.remarks, remark][-_LATEST:]
            self.send(self.tongue.refuse(asked, METHOD_NOT_FOUND, f"no reply was scripted for {asked.method}"))
            return
        if len(fitting) > 1:
            self._scripted.remove(fitting[0])
        if error := fitting[0].error:
            self.send(self.tongue.refuse(asked, int(error.get("code", INTERNAL)), str(error.get("message", ""))))
        else:
            self.send(self.tongue.reply(asked, fitting[0].reply))

    async def _ended(self) -> None:
        self.over = True
        self.lines.end()
        try:
            await self.actor.exited(_ENDING)
        except TimeoutError:
            pass

    @property
    def end(self) -> str:
        """How it ended."""
        if self.actor.ending:
            return f"it {self.actor.ending}"
        return _TOO_MUCH if self.actor.heard > _MOST else "it closed its output"


def _rank(one: Registered) -> int:
    priority = one.fields.get("priority", 0)
    return -priority if isinstance(priority, int) else 0


def in_words(value: Any) -> str:
    """What a person would see of it: of a panel its lines, of a note its message."""
    match value:
        case str():
            return value
        case {"message": str(text)} | {"content": str(text)} | {"method": str(text)}:
            return text
        case {"lines": list(lines)}:
            return "\n".join(str(line) for line in (value.get("title", ""), *lines, value.get("footer", "")) if line)
        case {"text": str(text)} | {"title": str(text)}:
            return text
    return ""


def _fits(scripted: Scripted, asked: Asked) -> bool:
    if scripted.method != asked.method:
        return False
    return scripted.params is None or matched(asked.params, scripted.params, {}) is not None
