"""Guards that are late, dead, mistaken or not yet there: a decision that was not made is never a silent yes."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hilt.agent.permissions import Permissions
from hilt.extensions import guards as guards_module
from hilt.extensions import life, supervisor
from hilt.model.contributions import Effect, Tool
from hilt.model.conversation import user_text
from hilt.model.events import Intercepted, ToolResultAdded
from hilt.model.extensions import Dialect
from hilt.model.ports import PermissionAnswer, PermissionRequest
from hilt.model.verdicts import GuardPolicy, OnFailure
from hilt.packages.manifest import Guard
from support.agent import calls, echo, says
from support.agent import tool as builtin
from support.clocks import no_time_passes
from support.extending import FRAMES_ONLY, JSONRPC_ONLY, Extended, Made, chaos, extended, tool
from support.hilt_process import Hilt
from support.leftovers import nothing_left

pytestmark = pytest.mark.usefixtures("dialect")
SLACK = 4.0
"""Seconds that a busy machine may take for what should take none."""
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}}
ACT = builtin("act", echo, effect=Effect.EXECUTE, schema=NUMBER)
LOOK = builtin("look", echo, effect=Effect.READ)


def now() -> float:
    return asyncio.get_running_loop().time()


def guard(name: str, *do: Any, on_failure: OnFailure | None = None, **manifest: Any) -> Made:
    """An extension that judges tool calls: `do` is what it does about each, or further entries of its script."""
    entries = [item for item in do if isinstance(item, dict)]
    verbs = [item for item in do if not isinstance(item, dict)]
    judging = [{"on": "event_intercept", "do": verbs}] if verbs else []
    if on_failure:
        manifest = {**manifest, "guard": {**manifest.get("guard", {}), "on_failure": on_failure}}
    # One dialect has the priority in the manifest, the other where it says what it intercepts.
    intercept = {"type": "subscribe", "intercept": ["tool_call"], "priority": manifest.get("priority", 0)}
    return chaos(name, "hello", f"frame:{json.dumps(intercept)}", *entries, *judging, "ready", **manifest)


@asynccontextmanager
async def beside(
    tmp_path: Path, *made: Made, ready: bool = True, offered: tuple[Tool, ...] = (ACT, LOOK), **options: Any
) -> AsyncIterator[Extended]:
    """All of these beside one that is well, and is still well at the end; nothing is left of any of them."""
    async with nothing_left(), extended(tmp_path, *made, tool("well"), offered=offered, **options) as it:
        await it.ready(*([] if ready else ["well"]))
        yield it
        assert it.status("well").state == "ready"
        assert it.status("well").restarts == it.status("well").mistakes == 0


def decisions(it: Extended, number: int = -1) -> list[tuple[str, str]]:
    return [(decided.extension, decided.decision) for decided in it.of(Intercepted)[number].decisions]


def failed(it: Extended, number: int = -1) -> tuple[str, str, str]:
    """A guard's failure as the session keeps it: which, why, and what was done."""
    note = it.notes("guard_failed")[number]
    return note["guard"], note["reason"], note["decision"]


class Person:
    def __init__(self, *, approves: bool = True) -> None:
        self.approves = approves
        self.asked: list[PermissionRequest] = []

    async def ask(self, request: PermissionRequest) -> PermissionAnswer:
        self.asked.append(request)
        return PermissionAnswer(self.approves)


# G1


@FRAMES_ONLY
def test_a_guard_has_five_seconds_unless_its_manifest_says_otherwise() -> None:
    assert Guard().timeout_ms == 5000
    assert GuardPolicy().timeout == 5.0


async def test_every_verdict_is_told_and_on_record_with_who_what_and_how_long(tmp_path: Path) -> None:
    pace = guard("pace", "sleep:0.1", 'rewrite:{"n":2}', priority=1)
    async with beside(tmp_path, pace, guard("plain"), turns=[calls(("act", {"n": 1})), says("so")]) as it:
        await it.say()
        assert it.result() == '{"n": 2}'
        (told,) = it.of(Intercepted)
        assert (told.event, told.outcome, told.name) == ("tool_call", "changed", "act")
        rewrote, allowed = told.decisions
        assert (rewrote.extension, rewrote.decision, rewrote.changed) == ("pace", "rewrite", {"n": 2})
        assert (allowed.extension, allowed.decision) == ("plain", "allow")
        assert rewrote.ms >= 100
        assert 0 < allowed.ms < 100 + 1000 * SLACK
        (note,) = it.notes("interception")
        assert note["id"] == told.id and [d["ms"] for d in note["decisions"]] == [rewrote.ms, allowed.ms]
        assert it.notes("guard_failed") == it.warnings() == []


async def test_a_verdict_that_comes_too_late_is_shown_to_the_user_and_the_policy_has_been_applied(
    tmp_path: Path,
) -> None:
    go = tmp_path / "go"
    late = guard("late", f"wait_for:{go}", "block:that was dangerous", guard={"timeout_ms": 400})
    async with beside(tmp_path, late) as it:
        began = now()
        assert await it.call("act", n=1) == ('{"n": 1}', False), "nobody is there to be asked, and nobody demands more"
        assert 0.4 <= now() - began < 0.4 + SLACK
        name, reason, decision = failed(it)
        assert (name, decision) == ("late", "allow") and "timeout waiting for late" in reason
        assert await it.warned("guard late", "timeout", "act goes on unchecked")
        assert it.status("late").unchecked == 1
        go.touch()
        assert await it.warned("guard late", "refused", "only after", "that was dangerous")
        assert it.status("late").restarts == 0


@pytest.mark.parametrize("approves", [True, False])
async def test_a_late_guard_leaves_the_decision_to_the_user_where_there_is_one(tmp_path: Path, approves: bool) -> None:
    person = Person(approves=approves)
    late = guard("late", "hang", guard={"timeout_ms": 300})
    async with beside(tmp_path, late, permissions=Permissions("accept-edits", person)) as it:
        assert (await it.call("act", n=1))[1] is not approves
        (request,) = person.asked
        assert "late: timeout" in request.unchecked_by[0]
        assert (failed(it)[0], failed(it)[2]) == ("late", "ask")
        assert (await it.call("look"))[1] is False
        assert len(person.asked) == 1, "for what only reads nobody is asked"
        assert failed(it)[2] == "allow"


async def test_a_late_guard_that_must_not_fail_refuses(tmp_path: Path) -> None:
    late = guard("late", "hang", on_failure="block", guard={"timeout_ms": 300})
    async with beside(tmp_path, late, turns=[calls(("act", {})), says("so")]) as it:
        await it.say()
        (result,) = it.of(ToolResultAdded)
        assert (result.status, result.executed) == ("blocked", False)
        assert "guard late gave no verdict" in it.result() and "timeout" in it.result()


# G2


@pytest.mark.parametrize(("end", "told"), [("exit:7", "exited with code 7"), ("signal:SEGV", "SIGSEGV")])
async def test_a_crash_while_it_judges_is_known_at_once(tmp_path: Path, end: str, told: str) -> None:
    crash = {"on": "event_intercept", "once": str(tmp_path / "once"), "do": end}
    async with beside(tmp_path, guard("g", crash, "block:no", on_failure="block")) as it:
        began = now()
        text, is_error = await it.call("act", n=1)
        assert now() - began < SLACK, "and not after five seconds"
        assert is_error and "guard g" in text and told in text
        assert told in failed(it)[1] and failed(it)[2] == "block"
        assert await it.warned("guard g", told, "refused")
        await it.state("g", "restarting")
        await it.ready("g")
        assert (await it.call("act", n=1))[0] == "no (refused by guard g)"


# G3, G4


def crashing(name: str, up: Path, *do: str, **manifest: Any) -> Made:
    """A guard that ends at the command /die, and comes back only as far as its hello as long as `up` is not there."""
    return chaos(
        name,
        "hello",
        f"wait_for:{up}",
        "intercept:tool_call",
        "register_command:die",
        {"on": "command_invoked", "do": ["answer", "exit:3"]},
        {"on": "event_intercept", "do": list(do) or ["answer"]},
        "ready",
        **manifest,
    )


async def down(it: Extended, name: str, up: Path) -> None:
    """Have it end, and see to it that it is not ready again."""
    up.unlink()
    await it.session.command("die")
    await it.state(name, "restarting")


async def test_a_guard_that_died_between_calls_keeps_its_place_and_its_policy(tmp_path: Path, dialect: Dialect) -> None:
    up = tmp_path / "up"
    up.touch()
    async with beside(tmp_path, crashing("g", up, "block:no")) as it:
        assert (await it.call("act"))[0] == "no (refused by guard g)"
        await down(it, "g", up)
        with no_time_passes():  # that it is dead is known
            assert (await it.call("act", n=1))[1] is False
        name, reason, decision = failed(it)
        assert (name, decision) == ("g", "allow") and "exited with code 3" in reason
        assert await it.warned("guard g", "exited with code 3", "unchecked")
        assert it.status("g").guards == ("tool_call",)
        if dialect == "frames":
            # It is back as far as its hello, and has not said again that it guards.
            await it.until(lambda: it.status("g").pid)
            assert (await it.call("act", n=1))[1] is False
            assert decisions(it) == [("g", "fail")]
            assert it.status("g").unchecked == 2
            # It has been silent for so long that it counts as ready.
            await it.ready("g")
            assert (await it.call("act", n=1))[1] is False
            assert "has not said yet" in failed(it)[1]
            assert it.status("g").unchecked == 3
        up.touch()
        await it.until(lambda: it.status("g").commands)
        assert (await it.call("act"))[0] == "no (refused by guard g)"


async def test_nothing_runs_without_a_required_guard_until_it_is_back(tmp_path: Path) -> None:
    up = tmp_path / "up"
    up.touch()
    needed = crashing("g", up, guard={"required": True, "timeout_ms": 700})
    async with beside(tmp_path, needed) as it:
        assert (await it.call("act", n=1))[1] is False
        await down(it, "g", up)
        began = now()
        for name in ("act", "look"):
            text, is_error = await it.call(name)
            assert is_error and "guard g" in text
            assert failed(it)[2] == "block"
        assert 1.3 < now() - began < 1.4 + SLACK, "it is waited for, within its time"
        async with asyncio.TaskGroup() as group:
            held = group.create_task(it.call("act", n=2))
            await it.until(lambda: it.session.stops)
            up.touch()
            assert await held == ('{"n": 2}', False)
        assert decisions(it) == [("g", "allow")]


async def test_a_guard_that_will_not_come_back_keeps_its_policy_and_nobody_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_CRASHES", 1)
    up = tmp_path / "up"
    up.touch()
    async with beside(tmp_path, crashing("g", up, guard={"required": True})) as it:
        await it.session.command("die")
        await it.state("g", "failed")
        with no_time_passes():
            text, is_error = await it.call("look")
        assert is_error and "guard g" in text and "exited with code 3" in text
        reloaded = await it.host.reload("g")
        assert reloaded.ready == 1
        assert (await it.call("look"))[1] is False


async def test_a_declared_guard_that_cannot_be_started_at_all_keeps_its_policy(tmp_path: Path) -> None:
    broken = chaos("g", "log:no config", "exit:2", guard={"required": True})
    async with beside(tmp_path, broken, ready=False) as it:
        await it.state("g", "failed")
        text, is_error = await it.call("look")
        assert is_error and "guard g" in text and "exited with code 2" in text


# G5


LATE_TO_WORK = """
import json, os, sys, threading, time
def send(**frame):
    print(json.dumps(frame), flush=True)
watching = False
def begin():
    global watching
    while not os.path.exists("../../up"):
        time.sleep(0.005)
    watching = True
    send(type="subscribe", intercept=["tool_call"])
    send(type="ready")
send(type="hello", name="g", version="1")
threading.Thread(target=begin, daemon=True).start()
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "event_intercept":
        send(type="event_intercept_response", id=frame["id"], block=watching, reason="seen it")
    if frame["type"] == "shutdown":
        break
"""


def late_to_work(**manifest: Any) -> Made:
    """A guard that lets everything pass as long as it has not said that it guards, as several SDKs do."""
    program = {"exec": sys.executable, "args": ["-I", "-S", "guard.py"]}
    return Made("g", {**program, **manifest}, {"guard.py": LATE_TO_WORK})


@FRAMES_ONLY
@pytest.mark.parametrize(("settling", "silent"), [(0.0, False), (20.0, False), (0.0, True)])
async def test_a_declared_guard_is_waited_for_before_the_first_call_of_any_tool(
    tmp_path: Path, settling: float, silent: bool
) -> None:
    """Also when it is silent for so long that it counts as ready."""
    made = late_to_work(guard={"timeout_ms": 10_000})
    async with beside(tmp_path, made, ready=False, settling=settling) as it, asyncio.TaskGroup() as group:
        await it.until(lambda: it.status("g").pid, "it has said hello")
        if silent:
            await it.ready("g")
        tasks = [group.create_task(it.call(name)) for name in ("act", "look")]
        await it.until(lambda: len(it.session.stops) == 2)
        assert not any(task.done() for task in tasks)
        (tmp_path / "up").touch()
        for task in tasks:
            assert await task == ("seen it (refused by guard g)", True)


@JSONRPC_ONLY
@pytest.mark.parametrize("declared", [True, False])
async def test_a_guard_that_has_not_answered_initialize_is_waited_for(tmp_path: Path, declared: bool) -> None:
    up, manifest = tmp_path / "up", {"guard": {"timeout_ms": 10_000}} if declared else {}
    made = chaos(
        "g",
        "hello",
        f"wait_for:{up}",
        "intercept:tool_call",
        "ready",
        {"on": "event_intercept", "do": "block:seen it"},
        **manifest,  # type: ignore[arg-type]  # there is no dialect among it
    )
    settling = 0.0 if declared else 20.0
    async with beside(tmp_path, made, ready=False, settling=settling) as it, asyncio.TaskGroup() as group:
        task = group.create_task(it.call("act"))
        await it.until(lambda: it.session.stops)
        assert not task.done()
        up.touch()
        assert await task == ("seen it (refused by guard g)", True)


async def test_a_declared_guard_is_not_waited_for_longer_than_its_time(tmp_path: Path) -> None:
    never = chaos("g", "hang", guard={"timeout_ms": 400}, start_timeout_ms=20_000, stop_grace_ms=0)
    async with beside(tmp_path, never, ready=False, settling=0.0) as it:
        began = now()
        assert (await it.call("act", n=1))[1] is False
        assert 0.4 <= now() - began < 0.4 + SLACK
        assert "not ready" in failed(it)[1]


@FRAMES_ONLY
async def test_a_guard_that_is_not_declared_is_waited_for_before_what_writes_or_executes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life, "_IDLE", 20.0)  # or it may count as ready before it is asked
    made = late_to_work()
    async with beside(tmp_path, made, ready=False, settling=20.0) as it, asyncio.TaskGroup() as group:
        task = group.create_task(it.call("act"))
        await it.until(lambda: it.session.stops)
        assert (await it.call("look"))[1] is False
        (tmp_path / "up").touch()
        assert await task == ("seen it (refused by guard g)", True)


# G6, G8


async def test_guards_count_by_priority_then_in_the_order_they_were_found_every_time(tmp_path: Path) -> None:
    made = [guard("c"), guard("z", priority=5), guard("a"), guard("m", priority=-5), guard("b", "sleep:0.02", "answer")]
    async with beside(tmp_path, *made) as it:
        for _ in range(5):
            await it.call("act")
        expected = [(name, "allow") for name in ("z", "c", "a", "b", "m")]
        assert [decisions(it, number) for number in range(5)] == [expected] * 5


@pytest.mark.parametrize("blocker_first", [True, False])
async def test_a_block_wins_over_a_rewrite(tmp_path: Path, blocker_first: bool) -> None:
    made = [guard("blocker", "block:no"), guard("rewriter", 'rewrite:{"n":2}')]
    async with beside(tmp_path, *(made if blocker_first else reversed(made))) as it:
        assert await it.call("act", n=1) == ("no (refused by guard blocker)", True)


async def test_what_will_run_is_put_before_every_guard_again(tmp_path: Path) -> None:
    strict = guard("strict", {"on": "event_intercept", "match": {"tool_args": {"n": 2}}, "do": "block:not 2"})
    rewriter = guard("rewriter", 'rewrite:{"n":2}')
    async with beside(tmp_path, strict, rewriter) as it:
        assert await it.call("act", n=1) == ("not 2 (refused by guard strict)", True)
        assert decisions(it) == [("strict", "allow"), ("rewriter", "rewrite"), ("strict", "block")]


async def test_a_refusal_that_was_not_needed_is_neither_late_nor_a_mistake(tmp_path: Path) -> None:
    go = tmp_path / "go"
    said = f"touch:{tmp_path / 'said'}"
    second = chaos(
        "second",
        "hello",
        "intercept:tool_call",
        "register_command:sync",
        {"on": "event_intercept", "do": [f"wait_for:{go}", "block:me too", said]},
        "ready",
    )
    made = [guard("first", "block:no"), second]
    async with beside(tmp_path, *made) as it:
        assert (await it.call("act"))[0] == "no (refused by guard first)"
        go.touch()
        await it.until((tmp_path / "said").exists)
        await it.session.command("sync")  # whatever it wrote before has been read by then
        assert it.warnings() == []
        assert it.status("second").mistakes == it.status("second").unchecked == 0


# G7


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ('rewrite:{"n":"two"}', "n:"),
        ('rewrite:"x"', "modified_args"),
        ("rewrite:[1]", "modified_args"),
        ('answer:{"block":"yes"}', "block"),
        ("duplicate_keys", "twice"),
    ],
)
async def test_a_verdict_that_cannot_be_used_is_a_failure_of_the_guard_at_once(
    tmp_path: Path, dialect: Dialect, answer: str, told: str
) -> None:
    if dialect == "jsonrpc":
        told = {"modified_args": "args", "block": "allow"}.get(told, told)
    do = [answer, "block:no"] if answer == "duplicate_keys" else [answer]
    async with beside(tmp_path, guard("g", *do, on_failure="block"), guard("other")) as it:
        began = now()
        text, is_error = await it.call("act", n=1)
        assert now() - began < SLACK
        assert is_error and "guard g" in text and told in text
        assert failed(it)[0] == "g" and told in failed(it)[1]
        assert await it.warned("guard g", told)


@JSONRPC_ONLY
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("refuse:out of order", "interceptor guard before: out of order"),
        ('raw:{"jsonrpc":"2.0","id":$ID}', "blocked by interceptor: guard"),
        ('raw:{"jsonrpc":"2.0","id":$ID,"result":{"args":{"n":2}}}', "blocked by interceptor: guard"),
        ('raw:{"jsonrpc":"2.0","id":$ID,"result":{"allow":true},"error":{"message":"both"}}', "before: both"),
        ("suppress", "blocked by interceptor: guard"),
    ],
    ids=["an error", "nothing", "no word of allowing", "both", "no reason"],
)
async def test_whoever_does_not_say_that_it_allows_a_call_refuses_it(tmp_path: Path, answer: str, told: str) -> None:
    """Also where a guard that fails is no reason to refuse: this one has answered."""
    async with beside(tmp_path, guard("g", answer, on_failure="allow")) as it:
        text, is_error = await it.call("act", n=1)
        assert is_error and told in text
        assert it.status("g").unchecked == 0 and it.notes("guard_failed") == []


async def test_arguments_that_are_null_are_none_at_all(tmp_path: Path) -> None:
    async with beside(tmp_path, guard("g", "rewrite:null")) as it:
        assert await it.call("act", n=1) == ('{"n": 1}', False)
        assert decisions(it) == [("g", "allow")]


# G9


async def test_a_stop_while_guards_are_asked_means_that_it_does_not_run(tmp_path: Path) -> None:
    begun, ran = tmp_path / "begun", tmp_path / "ran"
    slow = guard("slow", f"touch:{begun}", "hang")
    victim = tool("victim", {"on": "tool_call", "do": [f"touch:{ran}", "answer"]})
    async with beside(tmp_path, slow, victim, turns=[calls(("victim", {})), says("so")]) as it:
        job = await it.session.prompt(user_text("go"))
        await it.until(begun.exists)
        with no_time_passes():
            assert it.session.abort()
            outcome = await job.result()
        assert outcome.stop == "aborted"
        (result,) = it.of(ToolResultAdded)
        assert (result.status, result.executed) == ("cancelled", False)
        assert not ran.exists()
        assert it.status("slow").unchecked == 0, "it was not given its time"


@JSONRPC_ONLY
async def test_a_guard_is_told_when_its_verdict_is_no_longer_wanted_and_not_when_it_has_given_it(
    tmp_path: Path,
) -> None:
    frames = tmp_path / "frames"
    slow = {"on": "event_intercept", "match": {"tool_name": "act"}, "do": []}
    made = guard("g", {"do": f"record:{frames}"}, slow, guard={"timeout_ms": 1500})
    go = user_text("go")
    async with beside(tmp_path, made, turns=[calls(("act", {})), says("so"), calls(("look", {})), says("x")]) as it:

        def told() -> list[int]:
            notes = [frame["params"] for frame in it.frames("frames") if frame["type"] == "ext_notify"]
            return [note["id"] for note in notes]

        def questions() -> list[int]:
            return [frame["id"] for frame in it.frames("frames") if frame["type"] == "event_intercept"]

        assert (await it.call("act"))[1] is False
        await it.until(lambda: told() == questions(), "its time was over")
        job = await it.session.prompt(go)
        await it.until(lambda: len(questions()) == 2)
        assert it.session.abort()
        await job.result()
        await it.until(lambda: told() == questions(), "the turn was stopped")
        assert (await it.call("look"))[1] is False
        assert len(questions()) == 3 and len(told()) == 2


# G10


async def test_many_slow_guards_are_waited_for_together(tmp_path: Path) -> None:
    made = [guard(f"g{number}", "hang", guard={"timeout_ms": 600}) for number in range(12)]
    async with beside(tmp_path, *made) as it:
        began = now()
        assert (await it.call("act", n=1))[1] is False
        assert now() - began < 0.6 + SLACK, "and not for 7 seconds"
        assert decisions(it) == [(one.name, "fail") for one in made]
        assert [note["guard"] for note in it.notes("guard_failed")] == [one.name for one in made]


# Guards that cannot be asked


async def test_a_guard_that_does_not_read_has_failed_at_its_deadline_even_if_the_question_is_unsent(
    tmp_path: Path,
) -> None:
    text = builtin("text", echo, effect=Effect.EXECUTE)
    deaf = guard("deaf", {"do": "stop_reading"}, on_failure="block", guard={"timeout_ms": 400}, stop_grace_ms=100)
    async with beside(tmp_path, deaf, offered=(text,)) as it:
        began = now()
        told, is_error = await it.call("text", text="x" * 2_000_000)
        assert 0.4 <= now() - began < 0.4 + SLACK
        assert is_error and "guard deaf" in told and "timeout" in told


async def test_a_question_that_no_line_can_hold_is_a_failure_of_the_guard_at_once(tmp_path: Path) -> None:
    text = builtin("text", echo, effect=Effect.EXECUTE)
    async with beside(tmp_path, guard("g", on_failure="block"), offered=(text,)) as it:
        began = now()
        told, is_error = await it.call("text", text="x" * 4_200_000)
        assert now() - began < SLACK
        assert is_error and "guard g" in told and "bytes" in told
        assert (await it.call("text", text="x"))[1] is False


# The breaker


async def test_after_three_failures_in_a_row_a_guard_is_hardly_waited_for_until_it_answers_again(
    tmp_path: Path,
) -> None:
    well = tmp_path / "well"
    well_again = {"on": "event_intercept", "needs": str(well), "do": "answer"}
    hung = guard("g", well_again, "hang", on_failure="ask", guard={"timeout_ms": 1500})
    async with beside(tmp_path, hung) as it:
        for _ in range(4):
            text, is_error = await it.call("act")
            assert is_error and "guard g" in text and "timeout" in text, "the policy stays"
        times = [told.decisions[0].ms for told in it.of(Intercepted)]
        assert min(times[:3]) >= 1490 and times[3] < 1400
        assert it.status("g").unchecked == 4
        well.touch()
        async with asyncio.timeout(20):
            while (await it.call("act", n=1))[1]:
                pass  # it has little time, and the machine may be busy
        well.unlink()
        await it.call("act")
        assert it.of(Intercepted)[-1].decisions[0].ms >= 1490, "it is trusted again"


async def test_a_new_process_is_not_blamed_for_the_failures_of_the_last_one(tmp_path: Path) -> None:
    assert guards_module._IMPATIENCE < 0.2
    hung = {"on": "event_intercept", "needs": str(tmp_path / "hung"), "do": []}
    slow = guard("g", hung, "sleep:0.3", "answer", on_failure="block", guard={"timeout_ms": 1500})
    (tmp_path / "hung").touch()
    async with beside(tmp_path, slow) as it:
        for _ in range(3):
            assert (await it.call("act"))[1]
        (tmp_path / "hung").unlink()
        assert (await it.call("act"))[1], "too slow for one that is not trusted"
        await it.host.reload("g")
        assert (await it.call("act", n=1))[1] is False


# From the command line


def test_headless_a_failed_guard_is_told_on_stderr_and_strictness_is_the_users_choice(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    made = guard("sentry", "exit:3").write(tmp_path)
    script = hilt.script(calls(("bash", {"command": "echo ran"})), says("done"))
    common = ("--json", "go", "--ext", str(made), *script)

    def result(*flags: str) -> tuple[dict[str, Any], str]:
        ended = hilt.run(*common, *flags)
        (found,) = [event for event in ended.events if event["type"] == "tool_result"]
        return found, ended.err

    ran, err = result()
    assert not ran["is_error"] and "ran" in json.dumps(ran["content"])
    assert "guard sentry" in err and "unchecked" in err
    (session,) = hilt.sessions()
    assert "guard_failed" in session.read_text() and "sentry" in session.read_text()
    refused, err = result("--strict-guards", "--no-session")
    assert refused["is_error"] and "guard sentry" in json.dumps(refused["content"])
    hilt.home.joinpath("config.toml").write_text('[guards.by_name]\nsentry = "block"\n')
    refused, err = result("--no-session")
    assert refused["is_error"] and "guard sentry" in json.dumps(refused["content"])
