"""Asking interceptors: all at once, counted in one order, asked again only after a change, and never silently skipped.

Owns the order in which answers count and what happens without an answer. Who intercepts and how it is asked is the
contributions' business; what a change must fit is said by whoever asks.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, assert_never

from msgspec import Struct, field, structs

from hilt.agent.deadlines import Deadlines
from hilt.agent.permissions import Permissions
from hilt.agent.waiting import Wait, Waits
from hilt.errors import ExtensionError, FrameError, LineTooLong
from hilt.model.contributions import Asked, Effect
from hilt.model.events import Decided, Deciding, Event, Intercepted, Noticed
from hilt.model.verdicts import (
    STRICTNESS,
    Allow,
    Block,
    OnFailure,
    Question,
    ReplaceText,
    Rewrite,
    SystemPrompt,
    Verdict,
)
from hilt.registry.snapshot import OwnedInterceptor
from hilt.sessions.journal import Journal
from hilt.sessions.records import NoteRecord

_BUDGET = 10.0
"""Seconds for all interceptors of one question together, unless one of them declares more for itself."""
_MARGIN = 0.1
"""Seconds by which that one's own deadline comes first: whoever has failed is then known by name."""
_REASON = 10_000
"""Characters of a refusal: the model reads them."""
_SHOWN = 2000
"""Characters of a system prompt that are kept on record; it comes again with every prompt."""


class GuardRules(Struct, frozen=True):
    """What the user wants when a guard gives no verdict. The strictest of this and the guard's own wish counts."""

    strict: bool = False
    on_failure: OnFailure | None = None
    guards: Mapping[str, OnFailure] = field(default_factory=dict)
    """For single ones, by the extension's name."""


class Bench(Struct, frozen=True):
    """Where interceptors are heard."""

    rules: GuardRules
    journal: Journal
    emit: Callable[[Event], Awaitable[None]]
    permissions: Permissions
    """Who could be asked in place of a guard."""
    deadlines: Deadlines = Deadlines()
    """For all others who are asked."""
    changers: set[str] = field(default_factory=set)
    """The owners whose last answer changed what they were asked."""
    waits: Waits = field(default_factory=Waits)
    """Where it can be seen who is being waited for."""
    complained: set[str] = field(default_factory=set)
    """The owners of whom the user knows already that they do not look at results."""


class Ruling(Struct, frozen=True):
    question: Question
    """As the interceptors left it."""
    blocked_by: str = ""
    reason: str = ""
    changed_by: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    """The guards that gave no verdict and want the user to be asked, each with the reason."""


async def consult(
    owned: Sequence[OwnedInterceptor],
    question: Question,
    bench: Bench,
    *,
    fits: Callable[[Question], str] | None = None,
    effect: Effect = Effect.READ,
) -> Ruling:
    """Ask them all. `fits` says what is wrong with a question as changed; `effect` is what is at stake."""
    if not owned:
        return Ruling(question)
    hearing = _Hearing(owned, question, bench, fits, effect)
    bench.waits.begin(hearing.outstanding)
    try:
        await hearing.hear()
    finally:
        bench.waits.end(hearing.outstanding)
        hearing.dismiss()
    ruling = hearing.ruling()
    await _publish(hearing, ruling, bench)
    return ruling


class _Hearing:
    def __init__(
        self,
        owned: Sequence[OwnedInterceptor],
        question: Question,
        bench: Bench,
        fits: Callable[[Question], str] | None,
        effect: Effect,
    ) -> None:
        self._owned = owned
        self.question = question
        self._rules = bench.rules
        self._changers = bench.changers
        self._barriers = frozenset(bench.changers)
        self._fits = fits
        self._effect = effect
        self._permissions = bench.permissions
        self._asked: list[Asked | None] = [None] * len(owned)
        self._unheard: list[int] = []
        """Those whose answer is still needed, in the order in which it counts."""
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        self._deadline = self._begun + max(_BUDGET, *(one.interceptor.policy.timeout + _MARGIN for one in owned))
        self._since = [self._begun] * len(owned)
        """When each was last asked."""
        self._elapsed = 0.0
        self._seen: list[Question] = [question] * len(owned)
        """The question as each has last had nothing against it."""
        self.decisions: list[Decided] = []
        self._blocked: tuple[str, str] = ("", "")
        self._changed_by: list[str] = []
        self._unsure: list[str] = []

    async def hear(self) -> None:
        await self._hear_each(range(len(self._owned)), self._count)
        if not self._blocked[0] and self.question.event == "tool_call":
            # What will run must have nothing said against it by anyone, also by those asked before it was changed.
            again = [index for index, seen in enumerate(self._seen) if seen is not self.question]
            self._barriers = frozenset()  # no change counts any more
            await self._hear_each(again, self._object)

    async def _hear_each(self, indices: Iterable[int], count: Callable[[int, Verdict], bool]) -> None:
        self._unheard = list(indices)
        while self._unheard and not self._blocked[0]:
            self._ask_ahead()
            index = self._unheard[0]
            verdict = await self._answer(index)
            if verdict is not None and count(index, verdict):
                self.dismiss()  # what the others were asked is no longer the question

    def _ask_ahead(self) -> None:
        """All that are left at once; but no further than to one that made a change last time and may do so again."""
        for index in self._unheard:
            owned = self._owned[index]
            if self._asked[index] is None:
                self._asked[index] = owned.interceptor.ask(self.question)
                self._since[index] = self._loop.time()
                self._seen[index] = self.question
            if owned.owner in self._barriers:
                break

    async def _answer(self, index: int) -> Verdict | None:
        asked = self._asked[index]
        assert asked
        verdict: Verdict | None = None
        try:
            if asked.settled:  # one that has come in time counts, whenever it is looked at
                verdict = await asked
            else:
                async with asyncio.timeout_at(self._deadline) as limit:
                    with self._prolonged(limit, asked):
                        verdict = await asked
            self._elapsed = asked.elapsed
        except TimeoutError:
            self._elapsed = self._loop.time() - self._begun
            self._fail(index, "the time for all guards together is over")
        except ExtensionError as error:
            self._elapsed = asked.elapsed
            self._fail(index, error.message, asked=not isinstance(error.__cause__, FrameError | LineTooLong))
        self._asked[index] = None
        self._unheard.remove(index)
        return verdict

    @contextmanager
    def _prolonged(self, limit: asyncio.Timeout, asked: Asked) -> Iterator[None]:
        """The time for all does not pass while the user is asked, who may take as long as they like."""
        alarm: asyncio.TimerHandle

        def look() -> None:
            nonlocal alarm
            if asked.asks_user:
                self._deadline = self._loop.time() + _BUDGET
                limit.reschedule(self._deadline)
                alarm = self._loop.call_at(self._deadline - _MARGIN, look)

        alarm = self._loop.call_at(self._deadline - _MARGIN, look)
        try:
            yield
        finally:
            alarm.cancel()

    def _count(self, index: int, verdict: Verdict) -> bool:
        """Take one verdict into account. True when it changed the question."""
        match verdict:
            case Allow():
                self._changers.discard(self._owned[index].owner)
                self._decide(index, "allow")
                return False
            case Block(reason=reason):
                self._block(index, reason)
                return False
            case Rewrite(args=args):
                return self._change(index, "rewrite", args, structs.replace(self.question, tool_args=args))
            case ReplaceText(text=text):
                return self._change(index, "replace", text, structs.replace(self.question, text=text))
            case SystemPrompt(text=text):
                shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} characters)"
                return self._change(index, "replace", shown, structs.replace(self.question, system_prompt=text))
            case never:
                assert_never(never)

    def _object(self, index: int, verdict: Verdict) -> bool:
        if isinstance(verdict, Block):
            self._block(index, verdict.reason)
        return False

    def _change(self, index: int, decision: Deciding, changed: Any, question: Question) -> bool:
        if _same(question, self.question):
            self._decide(index, "allow")
            return False
        if wrong := self._fits(question) if self._fits else "":
            self._fail(index, f"the arguments it wants do not fit: {wrong}")
            return False
        self.question = self._seen[index] = question
        self._changed_by.append(self._owned[index].owner)
        self._changers.add(self._owned[index].owner)
        self._decide(index, decision, changed=changed)
        return True

    def _block(self, index: int, reason: str) -> None:
        if len(reason) > _REASON:
            reason = f"{reason[:_REASON]}…"
        self._blocked = (self._owned[index].owner, reason)
        self._decide(index, "suppress" if self.question.event == "assistant_message" else "block", reason)

    def _fail(self, index: int, why: str, *, asked: bool = True) -> None:
        owned = self._owned[index]
        applied = self._policy(owned)
        if not asked and applied == "allow" and self.question.event == "tool_call":
            # Or whoever wants to get past a guard need only make a call too large for it to be asked about.
            applied = "block"
        self._decide(index, "fail", why, applied=applied)
        if applied == "block":
            nobody = ", and there is nobody to ask" if asked and self._demanded(owned) != "block" else ""
            self._blocked = (owned.owner, f"refused, because guard {owned.owner} gave no verdict{nobody}: {why}")
        elif applied == "ask":
            self._unsure.append(f"{owned.owner}: {why}")

    def _policy(self, owned: OwnedInterceptor) -> OnFailure:
        demanded = self._demanded(owned)
        if demanded is None:
            return "ask" if self._permissions.attended and self._effect is not Effect.READ else "allow"
        if demanded != "ask":
            return demanded
        if self.question.event != "tool_call":
            return "allow"  # only about a call is there a question that could be put to the user
        return "ask" if self._permissions.can_ask else "block"

    def _demanded(self, owned: OwnedInterceptor) -> OnFailure | None:
        """The strictest of what the guard and the user want."""
        policy, rules = owned.interceptor.policy, self._rules
        if rules.strict or policy.required:
            return "block"
        wishes = [wish for wish in (policy.on_failure, rules.on_failure, rules.guards.get(owned.owner)) if wish]
        return max(wishes, key=STRICTNESS.index, default=None)

    def _decide(
        self, index: int, decision: Deciding, reason: str = "", *, changed: Any = None, applied: OnFailure | None = None
    ) -> None:
        owner, ms = self._owned[index].owner, round(self._elapsed * 1000, 3)
        self.decisions.append(Decided(owner, decision, ms, reason, applied or "", changed))

    def outstanding(self) -> list[Wait]:
        """Those whose verdict is still to come, as of now."""
        all_ = zip(self._owned, self._asked, self._since, strict=True)
        return [Wait(one.owner, "guard", since) for one, asked, since in all_ if asked and not asked.settled]

    def dismiss(self) -> None:
        """Nobody waits for those that were asked and not heard."""
        for index, asked in enumerate(self._asked):
            if asked:
                asked.discard()
                self._asked[index] = None

    def ruling(self) -> Ruling:
        by, reason = self._blocked
        return Ruling(self.question, by, reason, tuple(self._changed_by), tuple(self._unsure))


def _same(one: Question, other: Question) -> bool:
    return (one.tool_args, one.text, one.system_prompt) == (other.tool_args, other.text, other.system_prompt)


async def _publish(hearing: _Hearing, ruling: Ruling, bench: Bench) -> None:
    """Every decision is on record before it is told."""
    question = ruling.question
    outcome: Any = "blocked" if ruling.blocked_by else "changed" if ruling.changed_by else "allowed"
    told = Intercepted(question.event, outcome, tuple(hearing.decisions), question.tool_id, question.tool_name)
    bench.journal.append(NoteRecord("interception", told))
    for decided in hearing.decisions:
        if decided.decision == "fail":
            data = {"guard": decided.extension, "reason": decided.reason, "decision": decided.applied}
            about = {"event": question.event, "id": question.tool_id, "name": question.tool_name}
            bench.journal.append(NoteRecord("guard_failed", {**data, **about}))
    await bench.emit(told)
    for decided in hearing.decisions:
        if decided.decision == "fail":
            await bench.emit(Noticed("warn", _warning(decided, question)))


def _warning(decided: Decided, question: Question) -> str:
    what = f"the call of {question.tool_name}" if question.tool_name else question.event.replace("_", " ")
    done = {"allow": f"{what} goes on unchecked", "ask": "you are asked instead", "block": f"{what} is refused"}
    return f"guard {decided.extension} gave no verdict ({decided.reason}): {done[decided.applied or 'allow']}"
