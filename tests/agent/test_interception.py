"""The chain of interceptors: who is asked what and when, whose answer counts, and what holds without an answer."""

import asyncio
import itertools
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hilt.agent import interception
from hilt.agent.interception import Bench, GuardRules, Ruling, consult
from hilt.agent.permissions import Permissions
from hilt.errors import ExtensionError
from hilt.model.content import text_of
from hilt.model.contributions import Effect, Interceptor
from hilt.model.conversation import AssistantMessage, user_text
from hilt.model.events import (
    AssistantMessageAdded,
    AssistantReplaced,
    Decided,
    Event,
    Failed,
    Intercepted,
    Noticed,
    ToolCalled,
    ToolResultAdded,
    TurnEnded,
)
from hilt.model.ports import PermissionAnswer, PermissionRequest
from hilt.model.verdicts import (
    Allow,
    Block,
    GuardPolicy,
    Interceptable,
    OnFailure,
    Question,
    ReplaceText,
    Rewrite,
    SystemPrompt,
    Verdict,
)
from hilt.registry.registry import Registry
from hilt.registry.snapshot import OwnedInterceptor, Owner
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.records import NoteRecord, new_meta
from support.agent import MODEL, calls, echo, says, tool
from support.extending import Extended, extended

DEADLINE = 45.0
NO_ANSWER = ExtensionError("g", "g is out for lunch")


class Answer:
    """What a guard will say, once it says it."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Verdict] = loop.create_future()
        self.discarded = False
        self.asks_user = False
        self._asked = self._ended = loop.time()
        self.future.add_done_callback(lambda _: setattr(self, "_ended", loop.time()))

    def __await__(self) -> Generator[Any, None, Verdict]:
        return (yield from self.future)

    def discard(self) -> None:
        self.discarded = True

    @property
    def settled(self) -> bool:
        return self.future.done()

    @property
    def elapsed(self) -> float:
        return self._ended - self._asked

    def give(self, verdict: Verdict | ExtensionError) -> None:
        if isinstance(verdict, ExtensionError):
            self.future.set_exception(verdict)
            self.future.exception()
        else:
            self.future.set_result(verdict)


@dataclass
class Guard:
    """An interceptor of this process. It answers at once what `says` makes of the question, or when the test does."""

    name: str
    says: Callable[[Question], Verdict | ExtensionError | None] = lambda _: Allow()
    priority: int = 0
    policy: GuardPolicy = field(default_factory=GuardPolicy)
    questions: list[Question] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    def ask(self, question: Question) -> Answer:
        answer = Answer()
        self.questions.append(question)
        self.answers.append(answer)
        if (said := self.says(question)) is not None:
            answer.give(said)
        return answer

    def interceptor(self, event: Interceptable = "tool_call") -> Interceptor:
        return Interceptor(event, self.ask, self.priority, self.policy)

    def owned(self) -> OwnedInterceptor:
        return OwnedInterceptor(self.name, self.interceptor())

    @property
    def seen(self) -> list[Any]:
        """The arguments it was asked about."""
        return [question.tool_args for question in self.questions]


def always(verdict: Verdict | ExtensionError | None) -> Callable[[Question], Verdict | ExtensionError | None]:
    return lambda _: verdict


def silent(_: Question) -> None:
    """The test answers for it, or nobody does."""


def rewrites(**args: Any) -> Callable[[Question], Verdict]:
    return always(Rewrite(args))  # type: ignore[return-value]


def denies(**args: Any) -> Callable[[Question], Verdict]:
    """Nothing but these arguments."""
    return lambda question: Block(f"not {args}") if question.tool_args == args else Allow()


class Somebody:
    """There is a person, but a hearing never asks: it only says that one should be asked."""

    async def ask(self, request: PermissionRequest) -> PermissionAnswer:
        raise AssertionError(request)


class Court:
    """Where guards are heard, and what came of it."""

    def __init__(self, rules: GuardRules | None = None, *, attended: bool = False) -> None:
        self.log = SessionLog.in_memory(new_meta("/project", MODEL.provider, MODEL.id))
        self.events: list[Event] = []
        permissions = Permissions("ask", Somebody()) if attended else Permissions("yolo")
        self.bench = Bench(rules or GuardRules(), Journal(self.log), self._told, permissions)
        self._recorded_first = True

    async def _told(self, event: Event) -> None:
        if isinstance(event, Intercepted):
            self._recorded_first = msgspec.json.decode(msgspec.json.encode(event)) in self.notes("interception")
        self.events.append(event)

    async def hear(
        self,
        *guards: Guard,
        effect: Effect = Effect.EXECUTE,
        fits: Callable[[Question], str] | None = None,
        **args: Any,
    ) -> Ruling:
        question = Question("tool_call", tool_id="call-1", tool_name="bash", tool_args=args)
        async with asyncio.timeout(DEADLINE):
            ruling = await consult([guard.owned() for guard in guards], question, self.bench, fits=fits, effect=effect)
        assert self._recorded_first, "an event means that its record is there"
        return ruling

    @property
    def told(self) -> Intercepted:
        (told,) = (event for event in self.events if isinstance(event, Intercepted))
        return told

    @property
    def decisions(self) -> list[tuple[str, str]]:
        return [(decided.extension, decided.decision) for decided in self.told.decisions]

    def decided(self, name: str) -> Decided:
        (decided,) = (decided for decided in self.told.decisions if decided.extension == name)
        return decided

    def notes(self, kind: str) -> list[Any]:
        records = [self.log.read(entry) for entry in self.log.entries()]
        return [record.data for record in records if isinstance(record, NoteRecord) and record.kind == kind]

    @property
    def warnings(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Noticed)]


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)


# Order


async def test_answers_count_by_priority_then_in_load_order_then_as_registered() -> None:
    registry = Registry()
    guards = [Guard("late"), Guard("first", priority=5), Guard("early"), Guard("last", priority=-1), Guard("early")]
    orders = {"late": 9, "first": 7, "early": 1, "last": 0}
    with ExitStack() as stack:
        for guard in guards:  # published in another order than they were found in
            owner = Owner(guard.name, order=orders[guard.name])
            stack.enter_context(registry.publish(owner, [guard.interceptor()]))
        owned = registry.snapshot().guards("tool_call")
        court = Court()
        await consult(owned, Question("tool_call", tool_name="bash"), court.bench)
    assert [one.owner for one in owned] == ["first", "early", "early", "late", "last"]
    assert [decided.extension for decided in court.told.decisions] == ["first", "early", "early", "late", "last"]


async def test_all_are_asked_at_once_and_answers_count_in_order_however_they_come() -> None:
    a, b, c = guards = [Guard(name, silent) for name in "abc"]
    court = Court()
    async with asyncio.TaskGroup() as group:
        hearing = group.create_task(court.hear(*guards, n=1))
        await settle()
        assert a.seen == b.seen == c.seen == [{"n": 1}]
        c.answers[0].give(Block("c says no"))
        await settle()
        assert not hearing.done(), "a has yet to answer, and it counts before"
        b.answers[0].give(Allow())
        a.answers[0].give(Block("a says no"))
    assert (hearing.result().blocked_by, hearing.result().reason) == ("a", "a says no")
    assert court.decisions == [("a", "block")]


async def test_without_a_rewrite_everybody_is_asked_once() -> None:
    guards = [Guard(name) for name in "abc"]
    court = Court()
    ruling = await court.hear(*guards, n=1)
    assert [guard.seen for guard in guards] == [[{"n": 1}]] * 3
    assert ruling.question.tool_args == {"n": 1}
    assert ruling.changed_by == ()
    assert (court.told.outcome, court.decisions) == ("allowed", [("a", "allow"), ("b", "allow"), ("c", "allow")])


async def test_a_rewrite_that_changes_nothing_is_an_approval() -> None:
    a, b = Guard("a", rewrites(n=1)), Guard("b")
    court = Court()
    ruling = await court.hear(a, b, n=1)
    assert (a.seen, b.seen) == ([{"n": 1}], [{"n": 1}])
    assert ruling.changed_by == ()
    assert court.decisions == [("a", "allow"), ("b", "allow")]


async def test_after_a_rewrite_everybody_but_its_author_is_asked_about_what_will_run() -> None:
    a, b, c = Guard("a"), Guard("b", rewrites(n=2)), Guard("c")
    court = Court()
    ruling = await court.hear(a, b, c, n=1)
    assert a.seen == [{"n": 1}, {"n": 2}]
    assert b.seen == [{"n": 1}]
    assert c.seen == [{"n": 1}, {"n": 2}]
    assert ruling.question.tool_args == {"n": 2}
    assert ruling.changed_by == ("b",)
    assert court.told.outcome == "changed"
    assert court.decided("b").changed == {"n": 2}


async def test_answers_to_what_has_been_rewritten_since_do_not_count() -> None:
    a, b = Guard("a", silent), Guard("b", silent)
    court = Court()
    async with asyncio.TaskGroup() as group:
        hearing = group.create_task(court.hear(a, b, n=1))
        await settle()
        b.answers[0].give(Block("1 is too little"))
        a.answers[0].give(Rewrite({"n": 2}))
        await settle()
        assert b.answers[0].discarded
        b.answers[1].give(Allow())
    assert hearing.result().blocked_by == ""
    assert hearing.result().question.tool_args == {"n": 2}


async def test_rewrites_build_on_each_other() -> None:
    def add(name: str) -> Callable[[Question], Verdict]:
        return lambda question: Rewrite({**question.tool_args, name: True})

    a, b = Guard("a", add("a")), Guard("b", add("b"))
    court = Court()
    ruling = await court.hear(a, b, n=1)
    assert ruling.question.tool_args == {"n": 1, "a": True, "b": True}
    assert ruling.changed_by == ("a", "b")
    assert [decided.changed for decided in court.told.decisions] == [
        {"n": 1, "a": True},
        {"n": 1, "a": True, "b": True},
    ]


async def test_one_that_made_a_change_last_time_is_asked_before_those_behind_it_so_that_they_are_asked_once() -> None:
    court, change = Court(), [True]
    a, c = Guard("a"), Guard("c")
    b = Guard("b", lambda _: Rewrite({"n": 2}) if change[0] else Allow())
    await court.hear(a, b, c, n=1)
    assert c.seen == [{"n": 1}, {"n": 2}]
    await court.hear(a, b, c, n=1)
    assert c.seen[2:] == [{"n": 2}]
    assert a.seen == [{"n": 1}, {"n": 2}] * 2
    change[0] = False
    for _ in range(2):
        ruling = await court.hear(a, b, c, n=1)
        assert ruling.question.tool_args == {"n": 1}
    assert c.seen[3:] == [{"n": 1}] * 2
    b.says = silent
    async with asyncio.TaskGroup() as group:
        group.create_task(court.hear(a, b, c, n=1))
        await settle()
        assert len(c.seen) == 6, "it changes nothing any more, so nobody waits for it"
        b.answers[-1].give(Allow())


# Refusing


@pytest.mark.parametrize("order", ["blocker first", "rewriter first"])
async def test_a_block_wins_over_a_rewrite(order: str) -> None:
    blocker, rewriter = Guard("blocker", always(Block("no"))), Guard("rewriter", rewrites(n=2))
    guards = [blocker, rewriter] if order == "blocker first" else [rewriter, blocker]
    court = Court()
    ruling = await court.hear(*guards, n=1)
    assert (ruling.blocked_by, ruling.reason) == ("blocker", "no")
    assert court.told.outcome == "blocked"
    assert court.decided("blocker").reason == "no"


async def test_what_will_run_passes_every_guard_again_and_an_earlier_one_may_still_refuse_it() -> None:
    strict, rewriter = Guard("strict", denies(n=2)), Guard("rewriter", rewrites(n=2))
    court = Court()
    ruling = await court.hear(strict, rewriter, n=1)
    assert strict.seen == [{"n": 1}, {"n": 2}]
    assert (ruling.blocked_by, ruling.reason) == ("strict", "not {'n': 2}")
    assert court.decisions == [("strict", "allow"), ("rewriter", "rewrite"), ("strict", "block")]


async def test_an_earlier_guard_that_has_no_answer_to_what_will_run_has_failed() -> None:
    def once(question: Question) -> Verdict | ExtensionError:
        return Allow() if question.tool_args == {"n": 1} else NO_ANSWER

    fickle, rewriter = Guard("fickle", once, policy=GuardPolicy("block")), Guard("rewriter", rewrites(n=2))
    ruling = await Court().hear(fickle, rewriter, n=1)
    assert ruling.blocked_by == "fickle"
    assert "out for lunch" in ruling.reason


async def test_two_guards_that_rewrite_each_others_rewrites_do_not_go_on_for_ever() -> None:
    a, b = Guard("a", rewrites(n="a")), Guard("b", rewrites(n="b"))
    ruling = await Court().hear(a, b, n=1)
    assert ruling.question.tool_args == {"n": "b"}, "the last in order has the last word"
    assert len(a.seen) + len(b.seen) <= 4


async def test_once_refused_nobody_else_is_waited_for() -> None:
    slow, blocker, deaf = Guard("slow", silent, priority=-1), Guard("blocker", always(Block("no"))), Guard("z", silent)
    ruling = await Court().hear(blocker, deaf, slow, n=1)
    assert ruling.blocked_by == "blocker"
    assert slow.answers[0].discarded
    assert deaf.answers[0].discarded


# Rewritten arguments


async def test_a_rewrite_that_does_not_fit_is_a_failure_of_its_author_and_changes_nothing() -> None:
    rewriter, other = Guard("rewriter", rewrites(n="x")), Guard("other")
    court = Court()
    ruling = await court.hear(rewriter, other, n=1, fits=lambda question: "n: not a number")
    assert ruling.question.tool_args == {"n": 1}
    assert ruling.changed_by == ()
    assert other.seen == [{"n": 1}]
    failed = court.decided("rewriter")
    assert (failed.decision, failed.applied) == ("fail", "allow")
    assert "n: not a number" in failed.reason
    assert court.notes("guard_failed")[0]["guard"] == "rewriter"
    (warning,) = court.warnings
    assert "rewriter" in warning and "n: not a number" in warning


async def test_a_rewrite_that_does_not_fit_refuses_the_call_where_the_guard_must_not_fail() -> None:
    rewriter = Guard("rewriter", rewrites(n="x"), policy=GuardPolicy(required=True))
    ruling = await Court().hear(rewriter, n=1, fits=lambda question: "n: not a number")
    assert ruling.blocked_by == "rewriter"


# Without an answer: the policy


def strictest(*wishes: OnFailure | None) -> OnFailure | None:
    return next((level for level in ("block", "ask", "allow") if level in wishes), None)


WISHES: tuple[OnFailure | None, ...] = (None, "allow", "ask", "block")
TABLE = [
    # manifest, config, config for it alone, strict, required, attended, effect: what is done
    (None, None, None, False, False, True, Effect.EXECUTE, "ask"),
    (None, None, None, False, False, True, Effect.WRITE, "ask"),
    (None, None, None, False, False, True, Effect.READ, "allow"),
    (None, None, None, False, False, False, Effect.EXECUTE, "allow"),
    ("allow", None, None, False, False, True, Effect.EXECUTE, "allow"),
    ("ask", None, None, False, False, True, Effect.READ, "ask"),
    ("ask", None, None, False, False, False, Effect.READ, "block"),  # there is nobody to ask
    ("block", "allow", "allow", False, False, False, Effect.READ, "block"),
    ("allow", "ask", None, False, False, True, Effect.EXECUTE, "ask"),
    ("allow", "allow", "block", False, False, False, Effect.EXECUTE, "block"),
    (None, "allow", None, False, False, True, Effect.EXECUTE, "allow"),
    ("allow", "allow", "allow", True, False, False, Effect.READ, "block"),
    ("allow", "allow", "allow", False, True, False, Effect.READ, "block"),
]


@pytest.mark.parametrize(("manifest", "config", "alone", "strict", "required", "attended", "effect", "applied"), TABLE)
async def test_the_strictest_wish_counts(
    manifest: OnFailure | None,
    config: OnFailure | None,
    alone: OnFailure | None,
    strict: bool,
    required: bool,
    attended: bool,
    effect: Effect,
    applied: OnFailure,
) -> None:
    rules = GuardRules(strict, config, {"g": alone} if alone else {})
    guard = Guard("g", always(NO_ANSWER), policy=GuardPolicy(manifest, required=required))
    court = Court(rules, attended=attended)
    ruling = await court.hear(guard, Guard("well"), effect=effect)
    assert court.decided("g").applied == applied
    assert court.notes("guard_failed") == [
        {
            "guard": "g",
            "reason": "g is out for lunch",
            "decision": applied,
            "event": "tool_call",
            "id": "call-1",
            "name": "bash",
        }
    ]
    assert ruling.blocked_by == ("g" if applied == "block" else "")
    assert ruling.unsure == (("g: g is out for lunch",) if applied == "ask" else ())
    (warning,) = court.warnings
    assert "guard g" in warning and "out for lunch" in warning
    assert {"allow": "unchecked", "ask": "asked", "block": "refused"}[applied] in warning


async def test_no_combination_is_laxer_than_any_wish_and_nothing_is_stricter_without_one() -> None:
    flags = (False, True)
    for manifest, config, alone in itertools.product(WISHES, repeat=3):
        for strict, required, attended, effect in itertools.product(flags, flags, flags, Effect):
            court = Court(GuardRules(strict, config, {"g": alone} if alone else {}), attended=attended)
            await court.hear(
                Guard("g", always(NO_ANSWER), policy=GuardPolicy(manifest, required=required)), effect=effect
            )
            unsaid: OnFailure = "ask" if attended and effect is not Effect.READ else "allow"
            demanded: OnFailure | None = "block" if strict or required else None
            expected = strictest(manifest, config, alone, demanded) or unsaid
            if expected == "ask" and not attended:
                expected = "block"
            case = (manifest, config, alone, strict, required, attended, effect)
            assert court.decided("g").applied == expected, case


async def test_a_setting_for_one_guard_does_not_concern_another() -> None:
    court = Court(GuardRules(guards={"other": "block"}))
    ruling = await court.hear(Guard("g", always(NO_ANSWER)))
    assert ruling.blocked_by == ""


async def test_a_guard_that_fails_does_not_spare_the_others() -> None:
    broken, blocker = Guard("broken", always(NO_ANSWER)), Guard("blocker", always(Block("no")))
    court = Court()
    ruling = await court.hear(broken, blocker)
    assert ruling.blocked_by == "blocker"
    assert court.decisions == [("broken", "fail"), ("blocker", "block")]


async def test_every_guard_that_fails_is_named() -> None:
    court = Court(attended=True)
    ruling = await court.hear(Guard("a", always(NO_ANSWER)), Guard("b", always(NO_ANSWER)))
    assert [unsure.partition(":")[0] for unsure in ruling.unsure] == ["a", "b"]
    assert [note["guard"] for note in court.notes("guard_failed")] == ["a", "b"]
    assert len(court.warnings) == 2


# Time


async def test_all_guards_together_have_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interception, "_BUDGET", 0.2)
    guards = [Guard(f"g{number}", silent, policy=GuardPolicy("ask", timeout=0.2)) for number in range(20)]
    court = Court(attended=True)
    began = asyncio.get_running_loop().time()
    ruling = await court.hear(*guards)
    assert asyncio.get_running_loop().time() - began < 2
    assert len(ruling.unsure) == len(court.notes("guard_failed")) == 20
    assert all("time" in decided.reason for decided in court.told.decisions)
    assert all(150 < decided.ms < 2000 for decided in court.told.decisions)
    assert all(guard.answers[0].future.cancelled() or guard.answers[0].discarded for guard in guards)


async def test_a_guard_that_declares_more_time_for_itself_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interception, "_BUDGET", 0.05)
    patient = Guard("patient", silent, policy=GuardPolicy("block", timeout=0.3))
    court = Court()
    began = asyncio.get_running_loop().time()
    ruling = await court.hear(patient)
    assert asyncio.get_running_loop().time() - began >= 0.3
    assert ruling.blocked_by == "patient"
    assert court.decided("patient").ms >= 290


async def test_while_a_guard_asks_the_user_time_does_not_pass_and_afterwards_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interception, "_BUDGET", 0.2)
    asking, loop = Guard("asking", silent, policy=GuardPolicy("block", timeout=0.1)), asyncio.get_running_loop()
    court = Court()
    began = loop.time()
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
        hearing = group.create_task(court.hear(asking))
        while not asking.answers:
            await asyncio.sleep(0)
        asking.answers[0].asks_user = True
        await asyncio.sleep(0.6)  # three times what there is
        assert not hearing.done()
        asking.answers[0].asks_user = False
    assert hearing.result().blocked_by == "asking" and loop.time() - began < DEADLINE


async def test_what_has_been_said_in_time_counts_though_another_used_up_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interception, "_BUDGET", 0.1)
    hung = Guard("hung", silent, policy=GuardPolicy("allow", timeout=0.1))
    court = Court()
    ruling = await court.hear(hung, Guard("blocker", always(Block("no"))), n=1)
    assert (ruling.blocked_by, ruling.reason) == ("blocker", "no")
    assert court.decisions == [("hung", "fail"), ("blocker", "block")]


async def test_after_the_time_is_over_a_rewrite_counts_and_whoever_has_not_seen_it_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interception, "_BUDGET", 0.1)
    first = Guard("first", lambda question: Allow() if question.tool_args == {"n": 1} else None)
    hung = Guard("hung", silent, policy=GuardPolicy("allow", timeout=0.1))
    court = Court(GuardRules(guards={"first": "block"}))
    ruling = await court.hear(first, hung, Guard("rewriter", rewrites(n=2)), n=1)
    assert ruling.blocked_by == "first"
    assert court.decisions[:3] == [("first", "allow"), ("hung", "fail"), ("rewriter", "rewrite")]


async def test_how_long_each_took_is_told() -> None:
    a, b = Guard("a", silent), Guard("b", silent)
    court = Court()
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        group.create_task(court.hear(a, b))
        await settle()
        b.answers[0].give(Allow())
        loop.call_later(0.1, a.answers[0].give, Allow())
    assert court.decided("a").ms >= 99
    assert court.decided("a").ms - court.decided("b").ms > 90, "that it was looked at later is not its doing"


async def test_who_gives_up_leaves_nobody_waiting_and_nothing_decided() -> None:
    guards = [Guard(name, silent) for name in "ab"]
    court = Court()
    async with asyncio.TaskGroup() as group:
        hearing = group.create_task(court.hear(*guards))
        await settle()
        hearing.cancel()
    assert hearing.cancelled()
    assert all(guard.answers[0].discarded for guard in guards)
    assert court.events == []


async def test_nobody_to_ask_means_nothing_to_record() -> None:
    court = Court()
    ruling = await court.hear(n=1)
    assert ruling.question.tool_args == {"n": 1}
    assert court.events == []
    assert court.notes("interception") == []


# In a turn


class Person:
    def __init__(self, *, approves: bool) -> None:
        self.approves = approves
        self.asked: list[PermissionRequest] = []

    async def ask(self, request: PermissionRequest) -> PermissionAnswer:
        self.asked.append(request)
        return PermissionAnswer(self.approves)


@contextmanager
def guarded(it: Extended, *guards: Guard, event: Interceptable = "tool_call") -> Iterator[None]:
    with ExitStack() as stack:
        for order, guard in enumerate(guards):
            owner = Owner(guard.name, order=order)
            stack.enter_context(it.session.parts.registry.publish(owner, [guard.interceptor(event)]))
        yield


NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}}
ACT = tool("act", echo, effect=Effect.EXECUTE, schema=NUMBER)


async def test_what_the_user_is_shown_is_what_runs_and_the_transcript_keeps_what_the_model_said(
    tmp_path: Path,
) -> None:
    person = Person(approves=True)
    turns = [calls(("act", {"n": 1})), says("done")]
    async with extended(tmp_path, turns=turns, offered=(ACT,), permissions=Permissions("ask", person)) as it:
        with guarded(it, Guard("g", rewrites(n=2))):
            await it.say()
        (request,) = person.asked
        assert request.args == {"n": 2} and '"n": 2' in request.preview.text
        assert request.rewritten_by == ("g",)
        assert it.result() == '{"n": 2}'
        assert it.of(ToolCalled)[0].args == {"n": 1}
        assert it.of(ToolResultAdded)[0].args == {"n": 2}
        (message,) = [m for m in it.session.transcript.messages if isinstance(m, AssistantMessage) and m.stop != "end"]
        assert '"n":1' in msgspec.json.encode(message).decode()
        (note,) = it.notes("interception")
        assert (note["id"], note["name"]) == (it.of(ToolCalled)[0].id, "act")
        assert [(d["extension"], d["decision"], d["changed"]) for d in note["decisions"]] == [
            ("g", "rewrite", {"n": 2})
        ]


async def test_a_refusal_reaches_the_model_with_the_guards_words_and_name(tmp_path: Path) -> None:
    turns = [calls(("act", {"n": 1})), says("done")]
    async with extended(tmp_path, turns=turns, offered=(ACT,)) as it:
        with guarded(it, Guard("g", always(Block("not on a Sunday")))):
            await it.say()
        (result,) = it.of(ToolResultAdded)
    assert text_of(result.content) == "not on a Sunday (refused by guard g)"
    assert (result.is_error, result.executed, result.status) == (True, False, "blocked")


async def test_arguments_that_the_schema_refuses_are_a_failure_of_the_guard_that_wants_them(tmp_path: Path) -> None:
    turns = [calls(("act", {"n": 1})), says("done")]
    async with extended(tmp_path, turns=turns, offered=(ACT,)) as it:
        with guarded(it, Guard("g", rewrites(n="two"))):
            await it.say()
        assert it.result() == '{"n": 1}', "headless, and nobody demands more"
        (note,) = it.notes("guard_failed")
        assert note["guard"] == "g" and "n:" in note["reason"] and note["decision"] == "allow"
        assert await it.warned("guard g", "n:", "unchecked")


async def test_no_call_is_judged_that_cannot_run_anyway(tmp_path: Path) -> None:
    guard = Guard("g")
    async with extended(tmp_path, turns=[calls(("nothing", {})), says("done")], offered=(ACT,)) as it:
        with guarded(it, guard):
            await it.say()
        assert "unknown tool" in it.result()
    assert guard.questions == []


@pytest.mark.parametrize("approves", [True, False])
async def test_in_place_of_a_guard_the_user_is_asked_even_where_the_mode_would_not(
    tmp_path: Path, approves: bool
) -> None:
    person = Person(approves=approves)
    write = tool("write", echo, effect=Effect.WRITE)
    turns = [calls(("write", {})), says("done")]
    permissions = Permissions("accept-edits", person)
    async with extended(tmp_path, turns=turns, offered=(write,), permissions=permissions) as it:
        with guarded(it, Guard("g", always(NO_ANSWER))):
            await it.say()
        (request,) = person.asked
        assert request.unchecked_by == ("g: g is out for lunch",)
        (result,) = it.of(ToolResultAdded)
        assert result.executed is approves
        assert it.notes("guard_failed")[0]["decision"] == "ask"


async def test_a_yes_to_the_missing_guard_is_asked_for_again_the_next_time(tmp_path: Path) -> None:
    person = Person(approves=True)
    turns = [calls(("act", {}), ("act", {})), says("done")]
    async with extended(tmp_path, turns=turns, offered=(ACT,), permissions=Permissions("ask", person)) as it:
        with guarded(it, Guard("g", always(NO_ANSWER))):
            await it.say()
    assert len(person.asked) == 2


async def test_with_nobody_to_ask_in_place_of_a_guard_the_call_is_refused_and_says_why(tmp_path: Path) -> None:
    turns = [calls(("act", {})), says("done")]
    async with extended(tmp_path, turns=turns, offered=(ACT,), guards=GuardRules(on_failure="ask")) as it:
        with guarded(it, Guard("g", always(NO_ANSWER))):
            await it.say()
        (result,) = it.of(ToolResultAdded)
        text = text_of(result.content)
        assert not result.executed
        assert "g is out for lunch" in text and "nobody to ask" in text


@pytest.mark.parametrize("rules", [GuardRules(strict=True), GuardRules(on_failure="block")])
async def test_where_a_guard_must_not_fail_the_call_is_refused_naming_it(tmp_path: Path, rules: GuardRules) -> None:
    turns = [calls(("act", {})), says("done")]
    async with extended(tmp_path, turns=turns, offered=(ACT,), guards=rules) as it:
        with guarded(it, Guard("watchdog", always(NO_ANSWER))):
            await it.say()
        (result,) = it.of(ToolResultAdded)
        text = text_of(result.content)
    assert (result.executed, result.status) == (False, "blocked")
    assert "guard watchdog" in text and "out for lunch" in text


async def test_a_stop_while_guards_are_asked_means_that_it_does_not_run(tmp_path: Path) -> None:
    guard = Guard("g", silent)
    async with extended(tmp_path, turns=[calls(("act", {})), says("done")], offered=(ACT,)) as it:
        with guarded(it, guard):
            job = await it.session.prompt(user_text("go"))
            await it.until(lambda: guard.answers)
            assert it.session.abort()
            async with asyncio.timeout(DEADLINE):
                outcome = await job.result()
        (result,) = it.of(ToolResultAdded)
    assert outcome.stop == "aborted"
    assert (result.status, result.executed) == ("cancelled", False)
    assert guard.answers[0].discarded


async def test_calls_of_extensions_are_judged_too_and_the_guard_knows_whose_they_are(tmp_path: Path) -> None:
    guard = Guard("g", always(Block("no")))
    async with extended(tmp_path, offered=(ACT,)) as it:
        with guarded(it, guard):
            text, is_error = await it.call("act", n=1)
    assert is_error and text == "no (refused by guard g)"
    assert guard.questions[0].origin == "test"


# Other events


async def test_a_turn_that_is_refused_does_not_reach_the_model_and_what_the_user_said_stays(tmp_path: Path) -> None:
    guard = Guard("g", always(Block("enough for today")))
    async with extended(tmp_path, turns=[says("hello")]) as it:
        with guarded(it, guard, event="turn_start"):
            outcome = await it.say("hi")
        assert (outcome.stop, outcome.error) == ("error", "enough for today")
        assert "g" in outcome.hint
        assert it.provider.requests == []
        assert it.of(TurnEnded)[0].error == "enough for today"
        assert len(it.session.transcript.messages) == 1
        (note,) = it.notes("interception")
        assert (note["event"], note["outcome"]) == ("turn_start", "blocked")
    assert guard.questions[0].step == 1


async def test_a_reply_that_is_replaced_is_shown_so_and_kept_as_it_was(tmp_path: Path) -> None:
    guards = [
        Guard("a", lambda question: ReplaceText(question.text.replace("secret", "***"))),
        Guard("b", lambda question: ReplaceText(question.text + "!")),
    ]
    async with extended(tmp_path, turns=[says("the secret"), says("on")]) as it:
        with guarded(it, *guards, event="assistant_message"):
            outcome = await it.say("hi")
        assert outcome.text == "the ***!"
        (replaced,) = it.of(AssistantReplaced)
        assert (replaced.text, replaced.suppressed, replaced.extension) == ("the ***!", False, "a, b")
        assert text_of(it.of(AssistantMessageAdded)[0].content) == "the ***!"
        await it.say("and?")
        sent = it.provider.requests[-1].messages[1]
        assert text_of(sent.content) == "the secret"  # type: ignore[union-attr]
        (note,) = it.notes("interception")
        assert [(d["extension"], d["decision"], d["changed"]) for d in note["decisions"]] == [
            ("a", "replace", "the ***"),
            ("b", "replace", "the ***!"),
        ]


async def test_a_reply_that_is_suppressed_is_not_shown(tmp_path: Path) -> None:
    async with extended(tmp_path, turns=[says("rude")]) as it:
        with guarded(it, Guard("g", always(Block("rude"))), event="assistant_message"):
            outcome = await it.say("hi")
        assert outcome.text == ""
        assert it.of(AssistantReplaced)[0].suppressed
        assert it.of(AssistantMessageAdded) == []
        assert it.notes("interception")[0]["decisions"][0]["decision"] == "suppress"


async def test_the_system_prompt_is_what_the_last_interceptor_made_of_it(tmp_path: Path) -> None:
    a = Guard("a", lambda question: SystemPrompt(question.system_prompt + ", a"))
    b = Guard("b", lambda question: SystemPrompt(question.system_prompt + ", b"))
    async with extended(tmp_path, turns=[says("x")]) as it:
        with guarded(it, a, b, event="before_agent_start"):
            await it.say("hi")
        assert it.provider.requests[0].system == "be brief, a, b"
    assert a.questions[0].session_id and a.questions[0].run_id and a.questions[0].cwd == str(tmp_path)
    assert len(a.questions) == 1, "only what runs is put before everybody again"


@pytest.mark.parametrize("event", ["turn_start", "before_agent_start"])
async def test_a_turn_does_not_begin_without_a_guard_of_it_that_must_not_fail(
    tmp_path: Path, event: Interceptable
) -> None:
    async with extended(tmp_path, turns=[says("hello")], guards=GuardRules(strict=True)) as it:
        with guarded(it, Guard("g", always(NO_ANSWER)), event=event):
            outcome = await it.say("hi")
        assert outcome.stop == "error"
        assert "guard g" in outcome.error and "out for lunch" in outcome.error
        assert it.provider.requests == []
        assert "guard g" in it.of(Failed)[0].message
        assert it.notes("guard_failed")[0]["decision"] == "block"


@pytest.mark.parametrize("rules", [GuardRules(), GuardRules(on_failure="ask")], ids=["no wish", "ask"])
async def test_elsewhere_a_turn_goes_on_without_it_with_a_warning(tmp_path: Path, rules: GuardRules) -> None:
    async with extended(tmp_path, turns=[says("hello")], guards=rules) as it:
        with guarded(it, Guard("g", always(NO_ANSWER)), event="turn_start"):
            assert (await it.say("hi")).text == "hello"
        assert await it.warned("guard g", "turn start goes on unchecked")
        assert it.notes("guard_failed")[0]["event"] == "turn_start"


async def test_where_nobody_can_be_asked_in_place_of_a_guard_nobody_is_told_that_they_were(tmp_path: Path) -> None:
    """Only about a call is there a question that could be put to the user."""
    rules, permissions = GuardRules(on_failure="ask"), Permissions("ask", Person(approves=True))
    async with extended(tmp_path, turns=[says("hello")], guards=rules, permissions=permissions) as it:
        with guarded(it, Guard("g", always(NO_ANSWER)), event="assistant_message"):
            assert (await it.say("hi")).text == "hello"
        assert it.notes("guard_failed")[0]["decision"] == "allow"
        assert await it.warned("guard g", "assistant message goes on unchecked")
