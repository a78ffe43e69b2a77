"""Commands that must not run beside a turn: they wait for their own, can be taken back, and hold nothing up."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hilt.agent.deadlines import Deadlines
from hilt.agent.jobs import Job
from hilt.errors import ExtensionError, HiltError, UsageError
from hilt.model.actions import Action, Clear, Display, Prompt, SendMessage
from hilt.model.content import text_of
from hilt.model.contributions import Command, InputTransformer, Invocation, ToolOutput, Transformed
from hilt.model.conversation import user_text
from hilt.model.events import Displayed, Done, Failed, QueueChanged, ToolCalled, UserMessageAdded
from support.agent import DEADLINE, Harness, calls, running, says, script, tool


class Waiter:
    """Whoever asked for a command, and what became of it."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.answered = asyncio.Event()

    async def started(self) -> None:
        self._hear("started")

    async def withdrawn(self) -> None:
        self._hear("withdrawn")

    async def ran(self, actions: tuple[Action, ...]) -> None:
        self._hear(actions)

    async def failed(self, error: HiltError) -> None:
        self._hear(error.message)

    def _hear(self, what: Any) -> None:
        self.heard.append(what)
        self.answered.set()


class Turn:
    """A turn that is in the middle of a tool until it is let go."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.tool = tool("wait", self._wait)

    async def _wait(self, _: Invocation) -> ToolOutput:
        await self.go_on.wait()
        return ToolOutput.of("waited")

    async def begin(self, harness: Harness) -> Job:
        job = await harness.session.prompt(user_text("go"))
        await harness.seen(ToolCalled)
        return job


def command(run: Callable[[str], Awaitable[tuple[Action, ...]]], *, immediate: bool = False) -> Command:
    return Command("c", "", run, immediate=immediate)


async def show(args: str) -> tuple[Action, ...]:
    return (Display(f"ran {args}"),)


async def idle(harness: Harness) -> None:
    async with asyncio.timeout(DEADLINE):
        await harness.session.idle()


async def test_it_waits_for_the_turn_and_runs_when_that_has_ended(tmp_path: Path) -> None:
    turn, waiter = Turn(), Waiter()
    async with running(script(tmp_path, calls(("wait", {})), says("done")), turn.tool, command(show)) as harness:
        await turn.begin(harness)
        assert isinstance(await harness.session.command("c", " a b ", asker=waiter), Job)
        assert harness.session.waiting == ("/c a b",) and not waiter.heard and not harness.of(Displayed)
        assert harness.of(QueueChanged)[-1].waiting == ("/c a b",)
        turn.go_on.set()
        await idle(harness)
        kinds = harness.kinds()
        assert kinds.index("done") < kinds.index("ext_display")
        assert harness.of(QueueChanged)[-1].waiting == ()
    assert waiter.heard == [(Display("ran a b"),)]


async def test_one_that_is_immediate_runs_beside_the_turn_and_one_that_is_not_runs_at_once_between_turns(
    tmp_path: Path,
) -> None:
    turn = Turn()
    async with running(
        script(tmp_path, calls(("wait", {})), says("done")), turn.tool, command(show, immediate=True)
    ) as harness:
        await turn.begin(harness)
        assert await harness.session.command("c", "now") == (Display("ran now"),)
        turn.go_on.set()
        await idle(harness)
    async with running(script(tmp_path), command(show)) as harness:
        assert await harness.session.input("/c at once") == (Display("ran at once"),)


async def test_it_keeps_its_place_among_prompts(tmp_path: Path) -> None:
    turn = Turn()
    model = script(tmp_path, calls(("wait", {})), *map(says, "abc"))
    async with running(model, turn.tool, command(show)) as harness:
        await turn.begin(harness)
        await harness.session.input("before")
        await harness.session.input("/c x")
        await harness.session.input("after")
        assert harness.session.waiting == ("before", "/c x", "after")
        turn.go_on.set()
        await idle(harness)
        order = [
            text_of(event.content) if isinstance(event, UserMessageAdded) else event.text
            for event in harness.events
            if isinstance(event, UserMessageAdded | Displayed)
        ]
    assert order == ["go", "before", "ran x", "after"]


async def test_it_can_be_taken_back(tmp_path: Path) -> None:
    turn, waiter = Turn(), Waiter()
    async with running(script(tmp_path, calls(("wait", {})), says("done")), turn.tool, command(show)) as harness:
        await turn.begin(harness)
        await harness.session.input("/c x", waiter)
        assert await harness.session.take_back() == ["/c x"]
        turn.go_on.set()
        await idle(harness)
        assert waiter.heard == ["withdrawn"] and not harness.of(Displayed)


async def test_there_is_a_limit_to_how_many_wait(tmp_path: Path) -> None:
    turn = Turn()
    async with running(script(tmp_path, calls(("wait", {})), says("done")), turn.tool, command(show)) as harness:
        await turn.begin(harness)
        for _ in range(100):
            await harness.session.input("/c")
        with pytest.raises(UsageError, match="100 messages already wait"):
            await harness.session.input("/c")
        await harness.session.take_back()
        turn.go_on.set()
        await idle(harness)


async def test_a_failure_goes_to_who_asked_or_else_to_all(tmp_path: Path) -> None:
    async def fail(args: str) -> tuple[Action, ...]:
        if args == "oddly":
            raise RuntimeError("nobody foresaw it")
        raise ExtensionError("ext", "not today")

    turn, one, other = Turn(), Waiter(), Waiter()
    async with running(script(tmp_path, calls(("wait", {})), says("done")), turn.tool, command(fail)) as harness:
        await turn.begin(harness)
        await harness.session.input("/c", one)
        await harness.session.input("/c oddly", other)
        await harness.session.input("/c")
        turn.go_on.set()
        await idle(harness)
        assert [event.message for event in harness.of(Failed)] == ["not today"]
    assert one.heard == ["not today"]
    assert other.heard == ["internal error: RuntimeError: nobody foresaw it"]


async def test_it_may_ask_for_what_is_possible_only_between_turns_though_others_wait(tmp_path: Path) -> None:
    async def clear(_: str) -> tuple[Action, ...]:
        return (Clear(), Prompt("a new beginning"))

    turn, waiter = Turn(), Waiter()
    model = script(tmp_path, calls(("wait", {})), says("done"), says("x"), says("y"))
    async with running(model, turn.tool, command(clear)) as harness:
        await turn.begin(harness)
        await harness.session.input("/c", waiter)
        await harness.session.input("next")
        turn.go_on.set()
        await idle(harness)
        said = [text_of(event.content) for event in harness.of(UserMessageAdded)]
        assert len(harness.session.transcript.messages) == 4
    assert waiter.heard == [(Clear(), Prompt("a new beginning"))]
    assert said == ["go", "next", "a new beginning"]


async def test_one_that_waits_for_what_waits_behind_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    harnesses: list[Harness] = []

    async def wait(_: str) -> tuple[Action, ...]:
        await harnesses[0].session.idle()
        return (Display("at last"),)

    turn, waiter = Turn(), Waiter()
    model = script(tmp_path, calls(("wait", {})), says("done"), says("next"))
    async with running(model, turn.tool, command(wait), deadlines=Deadlines(command=0.02)) as harness:
        harnesses.append(harness)
        await turn.begin(harness)
        await harness.session.input("/c", waiter)
        await harness.session.input("behind it")
        turn.go_on.set()
        async with asyncio.timeout(DEADLINE):
            await waiter.answered.wait()
        assert len(harness.of(Done)) == 2
    assert waiter.heard == [(Display("at last"),)]


async def test_cancelling_ends_one_that_hangs_in_its_turn(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def hang(_: str) -> tuple[Action, ...]:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    turn, waiter = Turn(), Waiter()
    async with running(script(tmp_path, calls(("wait", {})), says("done")), turn.tool, command(hang)) as harness:
        await turn.begin(harness)
        await harness.session.input("/c", waiter)
        turn.go_on.set()
        async with asyncio.timeout(DEADLINE):
            await begun.wait()
            assert harness.session.abort()
            await waiter.answered.wait()
    assert waiter.heard == ["/c was cancelled"]


async def test_leaving_the_session_ends_one_that_hangs(tmp_path: Path) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hang(_: str) -> tuple[Action, ...]:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError("nobody sets it")

    turn = Turn()
    model = script(tmp_path, calls(("wait", {})), says("done"))
    async with asyncio.timeout(DEADLINE):
        async with running(model, turn.tool, command(hang), deadlines=Deadlines(command=0.02)) as harness:
            await turn.begin(harness)
            await harness.session.input("/c")
            turn.go_on.set()
            await begun.wait()
            await harness.session.idle()  # nothing waits for it any more
        assert ended.is_set()


async def test_there_is_a_limit_to_what_runs_beside_and_a_command_beyond_it_is_refused(tmp_path: Path) -> None:
    async def hang(_: str) -> Transformed:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    turn, waiter = Turn(), Waiter()
    model = script(tmp_path, calls(("wait", {})), says("done"))
    async with running(model, turn.tool, command(show), InputTransformer(hang)) as harness:
        for _ in range(100):
            await harness.session.apply((SendMessage("x"),), "ext")
        with pytest.raises(UsageError, match="100 things"):
            await harness.session.apply((SendMessage("x"),), "ext")
        await turn.begin(harness)
        await harness.session.input("/c", waiter)
        turn.go_on.set()
        await idle(harness)
    assert waiter.heard == ["100 things are being done already"]


async def test_whoever_leaves_in_good_order_can_wait_for_it(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def slow(_: str) -> tuple[Action, ...]:
        await gate.wait()
        return (Display("slowly"), Prompt("and more"))

    turn = Turn()
    model = script(tmp_path, calls(("wait", {})), says("done"), says("more"))
    async with running(model, turn.tool, command(slow), deadlines=Deadlines(command=0.02)) as harness:
        await turn.begin(harness)
        await harness.session.input("/c")
        turn.go_on.set()
        async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
            await harness.session.idle()
            resting = group.create_task(harness.session.at_rest())
            gate.set()
            await resting
        assert harness.of(Displayed) and len(harness.of(Done)) == 2


async def test_an_extension_that_has_one_run_is_not_held_up(tmp_path: Path) -> None:
    turn = Turn()
    async with running(script(tmp_path, calls(("wait", {})), says("done")), turn.tool, command(show)) as harness:
        await turn.begin(harness)
        async with asyncio.timeout(DEADLINE):
            assert isinstance(await harness.session.command("c", "x", by="ext"), Job)
        turn.go_on.set()
        await idle(harness)
        assert [event.text for event in harness.of(Displayed)] == ["ran x"]
