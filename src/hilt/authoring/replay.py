"""A trace played again: hilt's side of it to an extension that was just started, and what that does differently.

Nothing is timed. What hilt says next waits, with a deadline, for what the extension said before it in the trace; what
the extension asks is answered as it was answered then. Its lines are compared by what they are, in any order: answers
by the question, everything else by its kind.
"""

import asyncio
from collections.abc import Collection
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from hilt.authoring.comparing import Places, changes
from hilt.authoring.differences import Difference
from hilt.authoring.exchange import role_of, said
from hilt.authoring.recorded import Recorded, Said
from hilt.authoring.speaking import tongue
from hilt.authoring.speaking.tongue import Asked
from hilt.authoring.stage import Actor, Line
from hilt.authoring.traces import Numbered
from hilt.authoring.values import Value, brief
from hilt.errors import TransportError
from hilt.extensions.trace_line import Secrets, Traced
from hilt.transport.process import Exit
from hilt.wire.faults import INTERNAL

_MISSES = 3
"""Times in a row that what is waited for does not come, after which no more is waited for."""
_MOST = 64 * 1024 * 1024
"""Characters that it may say, for they are kept."""
_NEW = 100
"""Lines that are told of those that are not in the trace."""
_NOT_RECORDED = "this was not asked when the trace was written, so there is no answer to it"

Kind: TypeAlias = Literal["changed", "missing", "new", "exit", "stopped"]


class Finding(Struct, frozen=True, omit_defaults=True):
    """Something that is not as it was."""

    kind: Kind
    what: str
    line: int = 0
    """Of the trace; 0 for what is not in it."""
    recorded: Any = None
    now: Any = None
    differences: tuple[Difference, ...] = ()


class Replayed(Struct):
    sent: int = 0
    """Lines of hilt's."""
    same: int = 0
    """Lines of the extension's that are as they were."""
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What could not be played, answered or compared."""
    log: list[str] = field(default_factory=list)
    """The last lines it wrote to stderr."""


async def replay(
    lines: list[Numbered], actor: Actor, patience: float, secrets: Secrets, ignored: Collection[str] = ()
) -> Replayed:
    """Play the lines of one process. `patience`: seconds that each answer may take; `ignored` members may differ.

    `secrets` are hidden, as they are in the trace.
    """
    player = _Player(Recorded(lines, ignored), actor, patience, secrets)
    await player.play()
    await player.end()
    player.replayed.log = [secrets.hide(line) for line in actor.log()]
    return player.replayed


class _Player:
    def __init__(self, recorded: Recorded, actor: Actor, patience: float, secrets: Secrets) -> None:
        self._recorded = recorded
        self._actor = actor
        self._tongue = tongue(actor.dialect)
        self._patience = patience
        self._secrets = secrets
        self._places = Places.of(recorded.opening, _present(actor))
        self._expected: list[Said] = []
        """What must have come before hilt says more."""
        self._ahead = [
            self._then(number, line) for number, line in recorded.lines if line.direction == "from_extension"
        ]
        """What the trace has of the extension from here on."""
        self._unclaimed: list[Said] = []
        """What has come before its turn, or is not in the trace at all."""
        self._starting = actor.found.manifest.start_timeout_ms / 1000
        self._heard = False
        """It has said something: it has started."""
        self._misses = 0
        self._over = False
        self.replayed = Replayed()

    def _then(self, number: int, line: Traced) -> Said:
        cut = isinstance(line.cut, int)
        if isinstance(line.frame, dict):
            return self._recorded.said(line.frame, number, cut=cut)
        return self._recorded.said_raw(line.raw if isinstance(line.raw, str) else "", number, cut=cut)

    async def play(self) -> None:
        for number, line in self._recorded.lines:
            if self._over:
                return
            if line.direction == "from_extension":
                self._expect(self._ahead.pop(0))
            elif line.direction == "to_extension":
                await self._say(number, line)
        await self._settle()

    async def end(self) -> None:
        """Let it end by itself, and hear what else it has to say."""
        self._over = True
        grace = self._actor.found.manifest.stop_grace_ms / 1000 + self._patience
        await self._actor.close_input()
        try:
            self._ended(await self._actor.exited(grace))
        except TimeoutError:
            self._find("exit", f"it did not end within {grace:g} s of the end of its input")
        while (line := await self._rest()) is not None:
            self._take(line)
        for new in self._unclaimed[:_NEW]:
            self._find("new", new.what, now=new.value)
        if more := self._unclaimed[_NEW:]:
            self._note(f"{len(more)} more lines are not in the trace, of which the last is {more[-1].what}")

    async def _rest(self) -> Line | None:
        try:
            return await self._actor.receive(0)
        except TimeoutError:
            return None

    def _ended(self, exit_: Exit) -> None:
        then = self._recorded.exit_code
        if then is not None and exit_.code != then:
            self._find("exit", f"it {self._actor.ending}; then it exited with code {then}")

    # hilt's side

    async def _say(self, number: int, line: Traced) -> None:
        if not isinstance(line.frame, dict):
            self._note(f"line {number} is not whole in the trace, and was not played")
            return
        if role_of(line.frame).part == "answer":
            return  # it is given when it is asked for
        await self._settle()
        if isinstance(line.cut, int):
            self._note(f"line {number} was shortened in the trace, and was played like that")
        opening = line.frame is self._recorded.opening
        self._send(self._places.opening(line.frame) if opening else self._places.here(line.frame))

    def _send(self, value: Value) -> None:
        if self._over:
            return
        try:
            self._actor.send(value)
        except TransportError as error:
            self._stop(f"{role_of(value).what} could not be sent: {error.message}")
        else:
            self.replayed.sent += 1

    def _answer(self, question: Value) -> None:
        then = self._recorded.answer(self._places.there(question))
        if then is not None:
            self._send({**self._places.here(then), "id": question["id"]})
            return
        what = f"{role_of(question).what} {brief(said(question))}"
        self._note(f"it asked for {what}, to which the trace has no answer: it was refused")
        if isinstance(asked := self._tongue.heard(question), Asked):
            self._send(self._tongue.refuse(asked, INTERNAL, _NOT_RECORDED))

    # The extension's side

    def _expect(self, then: Said) -> None:
        for now in self._unclaimed:
            if now.key == then.key and (now.key[0] == "answer" or then.cut or now.same(then)):
                self._unclaimed.remove(now)
                self._compare(then, now)
                return
        self._expected.append(then)

    async def _settle(self) -> None:
        """Until all that is expected has come, each within its time."""
        clock = asyncio.get_running_loop().time
        patience = self._patience if self._heard else max(self._patience, self._starting)
        deadline = clock() + patience
        while (left := len(self._expected)) and not self._over:
            try:
                # Not anew for each line: one may talk without end and never say what is waited for.
                line = await self._actor.receive(max(0.0, deadline - clock()))
            except TimeoutError:
                self._missed(f"did not come within {patience:g} s")
                return
            if line is None:
                self._missed("did not come before it closed its output")
                self._stop("it closed its output")
                return
            self._take(line)
            if self._actor.heard > _MOST:
                self._missed("did not come")
                self._stop(f"it wrote more than {_MOST // 1024**2} MiB")
                return
            self._pair(only_if_enough=True)
            if len(self._expected) < left:
                patience = self._patience
                deadline = clock() + patience

    def _take(self, line: Line) -> None:
        self._heard = True
        if line.value is None:
            now = self._recorded.said_raw(self._secrets.hide(line.text))
        else:
            value = self._secrets.harmless(line.value)
            now = self._recorded.said(self._places.there(value))
            if now.key[0] == "question":
                self._answer({**value, "id": line.value["id"]})
        alike = [then for then in self._expected if then.key == now.key]
        sure = [then for then in alike if now.key[0] == "answer" or then.cut or then.same(now)]
        named = [then for then in alike if then.name and then.name == now.name and not self._foreseen(now)]
        if found := next(iter((*sure, *named)), None):
            self._expected.remove(found)
            self._misses = 0
            self._compare(found, now)
        else:
            self._unclaimed.append(now)

    def _foreseen(self, now: Said) -> bool:
        """It is in the trace, only further on."""
        return any(then.same(now) for then in self._ahead)

    def _pair(self, *, only_if_enough: bool) -> None:
        """Take what has come for what is expected of the same kind, once there is as much of it."""
        for key in {then.key for then in self._expected}:
            then = [one for one in self._expected if one.key == key]
            now = [one for one in self._unclaimed if one.key == key and not self._foreseen(one)]
            if len(now) < len(then) and only_if_enough:
                continue
            for old, new in zip(then, now, strict=False):
                self._expected.remove(old)
                self._unclaimed.remove(new)
                self._misses = 0
                self._compare(old, new)

    def _missed(self, why: str) -> None:
        self._pair(only_if_enough=False)
        for then in self._expected:
            self._find("missing", f"{then.what} {why}", then.line, recorded=then.value)
        self._expected = []
        self._misses += 1
        if self._misses == _MISSES:
            self._stop(f"it has not said what was expected {_MISSES} times in a row")

    def _compare(self, then: Said, now: Said) -> None:
        if then.cut:
            self._note(f"line {then.line} ({then.what}) is not whole in the trace, and was not compared")
        elif different := changes(then.value, now.value):
            self._find("changed", then.what, then.line, then.value, now.value, tuple(different))
        else:
            self.replayed.same += 1

    def _note(self, note: str) -> None:
        """Once: one may ask for the same without end."""
        if note not in self.replayed.notes and len(self.replayed.notes) < _NEW:
            self.replayed.notes.append(note)

    def _stop(self, why: str) -> None:
        self._over = True
        self._find("stopped", why)

    def _find(
        self,
        kind: Kind,
        what: str,
        line: int = 0,
        recorded: Any = None,
        now: Any = None,
        different: tuple[Difference, ...] = (),
    ) -> None:
        self.replayed.findings.append(Finding(kind, what, line, recorded, now, different))


def _present(actor: Actor) -> dict[str, str]:
    return {
        "cwd": str(actor.cwd),
        "configdir": str(actor.data),
        "datadir": str(actor.data),
        "extensiondir": str(actor.found.directory),
    }
