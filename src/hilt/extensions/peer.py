"""Questions to one process of an extension and their answers, whoever asked and in whatever order.

Owns ids, deadlines and the matching of answers. A question ends exactly once: answered, too late, unusable, or
because the process is gone. What that took is entered into the extension's account. What an extension says of its own
accord is passed on; what it means is not known here.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from hilt.errors import (
    ChannelClosed,
    ExtensionError,
    ExtensionGone,
    ExtensionProtocolError,
    ExtensionTimeout,
    HiltError,
    TransportError,
)
from hilt.extensions.account import Account
from hilt.extensions.progress import Progress
from hilt.model.verdicts import Question
from hilt.transport.channels import Channel
from hilt.transport.lines import TooLong
from hilt.wire.line import Malformed, Unknown

Id: TypeAlias = str | int
Purpose: TypeAlias = Literal["call", "command", "verdict", "method", "start"]
"""A tool is called, a command or a shortcut is run, a verdict is asked for, or anything else; or it is to introduce
itself, which is part of its start and not to its account."""

_ASKED: Mapping[Purpose, str] = MappingProxyType(
    {"call": "tool ", "command": "command ", "verdict": "verdict on ", "method": "", "start": ""}
)
"""What comes before the name of what was asked, where it stands alone."""
_REMEMBERED = 256
"""Questions nobody waits for any more whose answers are still told apart from nonsense."""
_TYPES_NAMED = 32
"""Unknown types that are reported by name, once each."""
_SHOWN = 64
"""Characters of a type, which may be as long as a line."""
_LONG_LINES = 3
_LONG_WITHIN = 60.0


class Tongue(Protocol):
    """How lines of one dialect are read, and how questions are numbered in it."""

    @property
    def answers(self) -> tuple[type[Any], ...]:
        """What is said in answer to something; all of these have an `id`."""

    @property
    def expected(self) -> Mapping[Purpose, type]:
        """An id counts only together with the kind of answer."""

    def new_id(self) -> Id:
        """One that was not used before."""

    def decode(self, line: bytes) -> Any:
        """What the line says, or that it is `Unknown` or `Malformed`. Never raises."""

    def peek(self, head: bytes) -> tuple[str, Id]:
        """The type and the id of a line of which only the beginning was read."""


class Pending(Struct, eq=False):
    """One question under way."""

    id: Id
    purpose: Purpose
    expects: type
    what: str
    """As an error names it: the tool, the command, what is being decided."""
    future: "asyncio.Future[Any]"
    asked: float
    deadline: float
    patience: float
    """Seconds it may take, counted anew at each sign of progress."""
    limit: float
    """When it ends in any case."""
    ended: float = inf
    """When a verdict came, or when it was known that none would."""
    call_id: str = ""
    """As the model calls this call."""
    chain: tuple[str, ...] = ()
    """The tools that led to this call."""
    show: Callable[[str], Awaitable[None]] | None = None
    """Where its progress is shown."""
    progress: Progress | None = None
    """What there is of it, once there is some."""
    question: tuple[Question, str] | None = None
    """What is to be decided, and by which interceptor."""


class Listener(Protocol):
    """Whom a peer tells what its extension says unasked. Must neither block nor raise."""

    def said(self, frame: Any) -> None: ...

    def too_late(self, pending: Pending, answer: Any) -> None:
        """The answer to a question that has already been given up."""

    def erred(self, mistake: str, example: str = "") -> None:
        """A line could not be used; nothing else is affected. The example is how it began."""

    def hopeless(self, reason: str) -> None:
        """It should be ended."""

    def asks_user(self) -> bool:
        """Whether a question of its own is before the user."""


class Peer:
    def __init__(self, name: str, channel: Channel, listener: Listener, tongue: Tongue, account: Account) -> None:
        self._name = name
        self._account = account
        self._channel = channel
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._new_id = tongue.new_id
        self._decode = tongue.decode
        self._peek = tongue.peek
        self._answers: Any = tongue.answers
        self._expected = tongue.expected
        self._pending: dict[Id, Pending] = {}
        self._since = 0.0
        """From when on there was always a question under way, if there is one now."""
        self._given_up: OrderedDict[Id, Pending] = OrderedDict()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = inf
        self._gone: Callable[[str], ExtensionError] | None = None
        self._unknown: set[str] = set()
        self._long_lines: list[float] = []
        self.mistakes = 0
        """Lines that could not be used, and answers nobody waited for."""

    @property
    def pending(self) -> int:
        """Questions under way."""
        return len(self._pending)

    @property
    def busy(self) -> float:
        """Seconds for which there has been a question under way; its account has those before."""
        return self._loop.time() - self._since if self._pending else 0.0

    @property
    def calls(self) -> list[Pending]:
        """Tool calls under way."""
        return [pending for pending in self._pending.values() if pending.purpose == "call"]

    @property
    def verdicts(self) -> list[Pending]:
        """Verdicts under way."""
        return [pending for pending in self._pending.values() if pending.purpose == "verdict"]

    def call(self, id_: Id) -> Pending | None:
        """The tool call under way that has this id."""
        pending = self._pending.get(id_)
        return pending if pending and pending.purpose == "call" else None

    @property
    def working(self) -> bool:
        """Whether it has a tool call or a command to deal with, within its time."""
        return any(pending.purpose in ("call", "command") for pending in self._pending.values())

    def ask(
        self,
        purpose: Purpose,
        line: Callable[[Any], bytes],
        what: str,
        patience: float,
        limit: float = 0.0,
        expects: type | None = None,
    ) -> Pending:
        """Send a question now. Its future fails with an `ExtensionError`, and at once when it cannot be sent.

        `line` writes it, given the id. `patience` is how long it may take in seconds, and `limit` how long with
        progress.
        """
        now = self._loop.time()
        id_ = self._new_id()
        deadline = now + patience
        future: asyncio.Future[Any] = asyncio.Future(loop=self._loop)
        kind = expects or self._expected[purpose]
        pending = Pending(id_, purpose, kind, what, future, now, deadline, patience, now + limit)
        if self._gone:
            self._fail(pending, self._gone(f"and {_not_done(purpose, what)}"))
            return pending
        try:
            self._channel.send(line(id_))
        except HiltError as error:
            self._fail(pending, self._unsent(purpose, what, error))
            return pending
        if not self._pending:
            self._since = now
        self._pending[id_] = pending
        if deadline < self._alarm_at:
            self._set_alarm(deadline)
        return pending

    def _unsent(self, purpose: Purpose, what: str, error: HiltError) -> ExtensionError:
        if isinstance(error, ChannelClosed):
            return ExtensionGone(self._name, f"extension {self._name} is gone: {_not_done(purpose, what)}")
        message = f"extension {self._name}: {what} was not sent: {error.message}"
        unsent = ExtensionError(self._name, message, hint=error.hint)
        unsent.__cause__ = error  # whoever asked may know what to do about a line that is too long
        return unsent

    def tell(self, line: bytes) -> bool:
        """Something it must hear, in its turn. False when it cannot be told any more."""
        try:
            self._channel.send(line)
        except TransportError:
            return False
        return True

    def give_up(self, pending: Pending) -> bool:
        """Nobody waits for the answer any more. False when there is one, or never will be."""
        if self._pending.pop(pending.id, None) is None:
            return False
        self._rest()
        self._remember(pending)
        return True

    async def idle(self) -> None:
        """Wait until nothing is under way."""
        while self._pending:
            await asyncio.wait({pending.future for pending in self._pending.values()})

    def gone(self, why: Callable[[str], ExtensionError]) -> None:
        """The process has ended: so has every question, now and from here on. `why` is told what that means for it."""
        self._gone = self._gone or why  # the first to know knows why
        if self._alarm:
            self._alarm.cancel()
        for pending in self._pending.values():
            # Where nothing can have been done that may not be done twice, whoever asked decides what follows.
            begun = pending.purpose in ("call", "command")
            unknown = "; it was not retried, and its outcome is unknown" if begun else ""
            self._fail(pending, why(f"before it answered {pending.what}{unknown}"))
        if self._pending:
            self._pending.clear()
            self._rest()

    # What the channel tells

    def line(self, line: bytes) -> None:
        frame: Any = self._decode(line)
        if type(frame) in self._answers:
            id_ = frame.id
            pending = self._pending.get(id_)
            if pending is None or type(frame) is not pending.expects:
                self._unexpected(frame)
                return
            del self._pending[id_]
            now, purpose = self._loop.time(), pending.purpose
            if purpose == "verdict":
                pending.ended = now
            if purpose != "start":
                account, took = self._account, now - pending.asked
                account.calls += 1
                account.seconds += took
                if took > account.worst:
                    account.worst = took
                if not self._pending:
                    account.busy += now - self._since
            if not pending.future.done():
                pending.future.set_result(frame)
        elif isinstance(frame, Malformed):
            self._malformed(frame, line)
        elif isinstance(frame, Unknown):
            self._note_unknown(frame.type)
        else:
            self._listener.said(frame)

    def overlong(self, line: TooLong) -> None:
        kind, id_ = self._peek(line.head)
        self._malformed(Malformed(f"a line of {line.size:,} bytes is too long", kind, id_), line.head)
        now = self._loop.time()
        self._long_lines = [when for when in self._long_lines if now - when < _LONG_WITHIN] + [now]
        if len(self._long_lines) >= _LONG_LINES:
            self._listener.hopeless(f"it sent {_LONG_LINES} lines too long to read within a minute")

    # Answers

    def _rest(self) -> None:
        """A question is no longer under way, for want of an answer."""
        if not self._pending:
            self._account.busy += self._loop.time() - self._since

    def _unexpected(self, answer: Any) -> None:
        late = self._given_up.pop(answer.id, None)
        if late and not late.future.done():
            return  # it was no longer needed before anyone waited for it, which is not its fault
        self.mistakes += 1
        if late and type(answer) is late.expects:
            self._listener.too_late(late, answer)

    def _malformed(self, frame: Malformed, line: bytes) -> None:
        self.mistakes += 1
        pending = self._pending.pop(frame.id, None)
        if pending is not None:
            self._rest()
            message = f"extension {self._name} gave an unusable answer to {pending.what}: {frame.reason}"
            self._fail(pending, ExtensionProtocolError(self._name, message))
        began = f" (it began {line[:_SHOWN].decode(errors='replace')!r})"
        self._listener.erred(f"{frame.type[:_SHOWN] or 'a line'} could not be used: {frame.reason}", began)

    def _note_unknown(self, type_: str) -> None:
        self.mistakes += 1
        type_ = type_[:_SHOWN]
        if type_ not in self._unknown and len(self._unknown) < _TYPES_NAMED:
            self._unknown.add(type_)
            self._listener.erred(f"a frame of unknown type {type_!r} is ignored, and others of that type")

    # Deadlines. One alarm serves all questions: it is set when an earlier deadline than all before comes up, and is
    # not touched when answers arrive, which is what nearly always happens.

    def extend(self, pending: Pending) -> None:
        """It shows progress: its time begins anew, within its limit."""
        pending.deadline = min(self._loop.time() + pending.patience, pending.limit)

    def _set_alarm(self, when: float) -> None:
        if self._alarm:
            self._alarm.cancel()
        self._alarm_at = when
        self._alarm = self._loop.call_at(when, self._ring) if when < inf else None

    def _ring(self) -> None:
        now = self._loop.time()
        for pending in [pending for pending in self._pending.values() if pending.deadline <= now]:
            if pending.purpose in ("call", "command", "verdict") and self._listener.asks_user():
                # The user takes as long as they like, and may be asked on behalf of this very call, or whether to
                # allow it.
                pending.deadline = now + pending.patience
                pending.limit = max(pending.limit, pending.deadline)
                continue
            del self._pending[pending.id]
            self._rest()
            self._remember(pending)
            self._account.erred(f"{_ASKED[pending.purpose]}{pending.what} timed out after {now - pending.asked:.3g} s")
            message = f"timeout waiting for {self._name}/{pending.what} ({now - pending.asked:.3g} s)"
            self._fail(pending, ExtensionTimeout(self._name, message))
        self._alarm = None
        self._set_alarm(min((pending.deadline for pending in self._pending.values()), default=inf))

    def _remember(self, pending: Pending) -> None:
        self._given_up[pending.id] = pending
        if len(self._given_up) > _REMEMBERED:
            self._given_up.popitem(last=False)

    def _fail(self, pending: Pending, error: ExtensionError) -> None:
        pending.ended = self._loop.time()
        if not pending.future.done():
            pending.future.set_exception(error)
            pending.future.exception()  # whoever asked may have left: that is no news


def _not_done(purpose: Purpose, what: str) -> str:
    """Of a question that came too late: calls and commands are run, all else is only asked."""
    return f"{what} was not run" if purpose in ("call", "command") else f"it could not be asked about {what}"
