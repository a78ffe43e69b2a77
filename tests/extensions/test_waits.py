"""Who is being waited for is known at any moment, and the user need not wait any longer: real extensions that hang."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hilt.agent.deadlines import Deadlines
from hilt.agent.waiting import Wait, Waits
from hilt.errors import HiltError
from hilt.model.actions import SwitchModel
from hilt.model.contributions import Command, Effect, Invocation, ToolOutput
from hilt.model.conversation import user_text
from hilt.model.events import AssistantMessageAdded, Intercepted, ToolResultAdded
from support.agent import calls, says
from support.agent import tool as builtin
from support.clocks import no_time_passes
from support.extending import DEADLINE, Extended, Made, chaos, extended, tool
from support.hilt_process import Hilt, until
from support.leftovers import nothing_left
from support.offerer import Ask
from support.offering import offering

pytestmark = pytest.mark.usefixtures("dialect")


def hang(ask: Ask) -> Any:
    import time

    time.sleep(60)
    return {}


def guard(name: str, *do: Any, event: str = "tool_call", **manifest: Any) -> Made:
    intercept = {"type": "subscribe", "intercept": [event]}
    judging = {"on": "event_intercept", "do": list(do)}
    return chaos(name, "hello", f"frame:{json.dumps(intercept)}", judging, "ready", **manifest)


def hung(kind: str) -> Made:
    """An extension `h` that never comes to an end with what it is asked."""
    offers: dict[str, tuple[str, dict[str, Any], str]] = {
        "result": ("interceptor", {"name": "i", "priority": 0}, "interceptor/after"),
        "hook": ("messageHook", {"name": "m", "priority": 0}, "messageHook/onMessage"),
        "transformer": ("inputTransformer", {"name": "t", "priority": 0}, "inputTransformer/transform"),
        "compactor": ("compactor", {"name": "c", "threshold": 0}, "compact/execute"),
    }
    match kind:
        case "guard":
            return guard("h", "hang")
        case "guard of a turn":
            return guard("h", "hang", event="turn_start")
        case "command /go":
            return chaos("h", "hello", "register_command:go", {"on": "command_invoked", "do": []}, "ready")
        case "shortcut ctrl+g":
            shortcut = 'register:{"kind":"shortcut","key":"ctrl+g"}'
            return chaos("h", "hello", shortcut, {"on": "shortcut_invoked", "do": []}, "ready")
        case _:
            what, fields, method = offers[kind]
            return offering("h", (what, fields), answers={method: hang})


class Ran:
    """A tool that keeps count of its calls, and changes something as far as anybody knows."""

    def __init__(self) -> None:
        self.times = 0

    async def __call__(self, _: Invocation) -> ToolOutput:
        self.times += 1
        return ToolOutput.of("done")


def now() -> float:
    return asyncio.get_running_loop().time()


async def typed(it: Extended, text: str) -> str:
    """What became of it: what it was refused with, or how the turn ended."""
    try:
        job = await it.session.input(text)
    except HiltError as error:
        return error.message
    assert job and not isinstance(job, tuple)
    return (await job.result()).stop


async def pressed(it: Extended, key: str) -> str:
    try:
        await it.session.press(key)
    except HiltError as error:
        return error.message
    return "it came to an end"


async def compacted(it: Extended) -> str:
    return (await (await it.session.compact()).result()).stop


async def waited(it: Extended, what: str) -> Wait:
    """The one that is waited for, once it is for that. One that sees results is asked before the call, too."""
    await it.until(lambda: [wait.what for wait in it.session.waits.current] == [what], f"a wait for its {what}")
    [wait] = it.session.waits.current
    return wait


@pytest.mark.parametrize(
    ("kind", "what", "begin", "ends", "runs"),
    [
        ("guard", "guard", lambda it: typed(it, "go"), "aborted", 0),
        ("guard of a turn", "guard", lambda it: typed(it, "go"), "aborted", 0),
        ("result", "result", lambda it: typed(it, "go"), "aborted", 1),
        ("hook", "hook", lambda it: typed(it, "go"), "aborted", 0),
        ("transformer", "transformer", lambda it: typed(it, "go"), "rewriting the message was cancelled", 0),
        ("compactor", "compactor", compacted, "aborted", 0),
        ("command /go", "command /go", lambda it: typed(it, "/go"), "/go was cancelled", 0),
        ("shortcut ctrl+g", "shortcut ctrl+g", lambda it: pressed(it, "ctrl+g"), "ctrl+g was cancelled", 0),
    ],
    ids=["guard", "guard of a turn", "result", "hook", "transformer", "compactor", "command", "shortcut"],
)
async def test_whoever_is_waited_for_is_named_and_a_stop_ends_the_wait_at_once(
    tmp_path: Path, kind: str, what: str, begin: Callable[[Extended], Coroutine[Any, Any, str]], ends: str, runs: int
) -> None:
    ran = Ran()
    act = builtin("act", ran, effect=Effect.EXECUTE)
    turns = [calls(("act", {})), says("so")]
    async with (
        asyncio.timeout(DEADLINE),
        nothing_left(),
        extended(tmp_path, hung(kind), tool("well"), turns=turns, offered=(act,)) as it,
        asyncio.TaskGroup() as group,
    ):
        await it.ready()
        it.session.transcript.add(user_text("hello"))  # or there is nothing to compact
        # Only a stop can be what ends it.
        it.session.bench = structs.replace(it.session.bench, deadlines=Deadlines(hook=30.0))
        began = now()
        waiting = group.create_task(begin(it))
        wait = await waited(it, what)
        assert wait.owner == "h" and 0 <= wait.seconds <= now() - began
        with no_time_passes():
            assert it.session.abort()
            assert await waiting == ends
        assert it.session.waits.current == ()
        await it.session.at_rest()
        assert ran.times == runs, "and nothing more afterwards"
        assert not it.of(AssistantMessageAdded) or kind in ("guard", "result")
        assert not it.session.busy and len(it.provider.requests) <= 1
        assert it.status("well").state == "ready"


async def test_a_guard_that_was_waited_for_when_the_user_stopped_has_allowed_nothing(tmp_path: Path) -> None:
    ran = Ran()
    act = builtin("act", ran, effect=Effect.EXECUTE)
    made = guard("h", "hang"), guard("quick", "answer")
    async with extended(tmp_path, *made, turns=[calls(("act", {})), says("so")], offered=(act,)) as it:
        await it.ready()
        job = await it.session.prompt(user_text("go"))
        await it.until(lambda: [wait.owner for wait in it.session.waits.current] == ["h"], "only the one that hangs")
        assert it.session.abort()
        assert (await job.result()).stop == "aborted"
        assert it.of(Intercepted) == [] and it.notes("interception") == []
        [told] = it.of(ToolResultAdded)
        assert (told.status, told.executed, told.is_error) == ("cancelled", False, True)
        assert ran.times == 0


async def test_guards_are_named_as_long_as_their_verdict_is_outstanding_the_oldest_first(tmp_path: Path) -> None:
    go = tmp_path / "go"
    act = builtin("act", Ran(), effect=Effect.EXECUTE)
    made = guard("first", f"wait_for:{go}", "answer"), guard("second", "hang"), guard("third", "answer")
    async with extended(tmp_path, *made, offered=(act,)) as it, asyncio.TaskGroup() as group:
        await it.ready()

        def owners() -> list[str]:
            return [wait.owner for wait in it.session.waits.current]

        calling = group.create_task(it.call("act"))
        await it.until(lambda: owners() == ["first", "second"], "the third has answered")
        go.touch()
        await it.until(lambda: owners() == ["second"], "the first has answered too")
        it.session.abort()
        assert (await calling)[1]
        assert owners() == [] and not any(vars(it.session.waits).values()), "nothing of it is held on to"


async def switched(it: Extended) -> str:
    with pytest.raises(HiltError) as refused:
        await it.session.apply((SwitchModel("later"),), "test")
    return refused.value.message


@pytest.mark.parametrize(
    ("begin", "ends"),
    [
        (lambda it: typed(it, "go"), "aborted"),
        (lambda it: typed(it, "/later"), "/later was cancelled"),
        (switched, "switching to later was cancelled"),
    ],
    ids=["tool", "command", "model"],
)
async def test_one_that_is_being_started_is_named_while_a_call_waits_for_it_and_a_stop_ends_that(
    tmp_path: Path, begin: Callable[[Extended], Coroutine[Any, Any, str]], ends: str
) -> None:
    ran = Ran()
    act = builtin("act", ran, effect=Effect.EXECUTE)
    slow = chaos("slow", "hang", start_timeout_ms=60_000, stop_grace_ms=100)
    turns = [calls(("act", {})), says("so")]
    async with (
        asyncio.timeout(DEADLINE),
        extended(tmp_path, slow, turns=turns, offered=(act,), settling=60.0) as it,
        asyncio.TaskGroup() as group,
    ):
        waiting = group.create_task(begin(it))
        wait = await waited(it, "start")
        assert wait.owner == "slow"
        with no_time_passes():
            assert it.session.abort()
            assert await waiting == ends
        assert it.session.waits.current == () and ran.times == 0


async def test_hooks_that_are_asked_together_are_all_named(tmp_path: Path) -> None:
    def hook(name: str) -> Made:
        return offering(name, ("messageHook", {"name": "m", "priority": 0}), answers={"messageHook/onMessage": hang})

    async with extended(tmp_path, hook("a"), hook("b"), turns=[says("so")]) as it:
        await it.ready()
        job = await it.session.prompt(user_text("go"))
        waits = await it.until(lambda: len(it.session.waits.current) == 2 and it.session.waits.current, "both")
        assert [(wait.owner, wait.what) for wait in waits] == [("a", "hook"), ("b", "hook")]
        it.session.abort()
        assert (await job.result()).stop == "aborted"
        assert it.session.waits.current == ()


async def test_a_built_in_command_is_nobody_that_is_waited_for(tmp_path: Path) -> None:
    seen: list[tuple[Wait, ...]] = []

    async def look(_: str) -> tuple[()]:
        seen.append(it.session.waits.current)
        return ()

    async with extended(tmp_path, offered=(Command("look", "looks", look),)) as it:
        await it.session.command("look")
        assert seen == [()]


async def test_what_waits_is_told_the_oldest_first_and_is_gone_whatever_ends_it() -> None:
    waits = Waits()
    with suppress(ZeroDivisionError), waits.on("a", "hook"):
        with waits.on("b", "result"):
            await asyncio.sleep(0)
            early, late = waits.current
            assert (early.owner, late.owner) == ("a", "b") and early.since <= late.since
        raise ZeroDivisionError
    assert waits.current == ()


def test_a_client_is_told_who_is_waited_for_and_since_when(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    directory = hung("command /go").write(hilt.home / "extensions")
    assert directory.exists()
    with hilt.rpc(*hilt.script(says("hello"))) as rpc:
        rpc.event("ext_status", extension="h", state="ready")
        assert rpc.ask("get_state")["data"]["waiting_for"] == []
        rpc.send(type="command", name="go", id="1")

        def waiting() -> Any:
            return rpc.ask("get_state")["data"]["waiting_for"]

        until(waiting, "the wait is told")
        [wait] = waiting()
        assert (wait.pop("extension"), wait.pop("what")) == ("h", "command /go")
        assert 0 <= wait.pop("seconds") < DEADLINE and wait == {}
        rpc.ask("abort")
        answer = rpc.response("command")
        assert not answer["success"] and "/go was cancelled" in answer["error"]
        assert waiting() == []
