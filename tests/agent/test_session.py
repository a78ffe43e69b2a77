"""The session: queueing, steering, commands and actions."""

import asyncio
from pathlib import Path

import pytest

from hilt.agent.jobs import Job
from hilt.errors import UsageError
from hilt.model.actions import Action, Display, Insert, Prompt
from hilt.model.content import text_of
from hilt.model.contributions import Command, Invocation, ToolOutput
from hilt.model.conversation import ToolMessage, UserMessage, user_text
from hilt.model.events import (
    AssistantMessageAdded,
    Displayed,
    Done,
    Event,
    Inserted,
    QueueChanged,
    ToolProgressed,
    ToolResultAdded,
    UserMessageAdded,
)
from support.agent import DEADLINE, Harness, calls, echo, running, says, script, tool


class Gate:
    """A tool that runs until it is told to finish."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, invocation: Invocation) -> ToolOutput:
        await invocation.progress("waiting")
        async with asyncio.timeout(DEADLINE):
            await self.open.wait()
        return ToolOutput.of("through")


async def test_a_message_sent_during_a_turn_is_shown_as_waiting_and_delivered_at_its_end(tmp_path: Path) -> None:
    gate = Gate()
    model = script(tmp_path, calls(("gate", {})), says("first"), says("second"))
    async with running(model, tool("gate", gate)) as harness:
        first = await harness.session.prompt(user_text("one"))
        await harness.seen(ToolProgressed)
        second = await harness.session.prompt(user_text("two"))
        assert harness.session.waiting == ("two",)
        gate.open.set()
        assert (await first.result()).text == "first"
        assert (await second.result()).text == "second"
        kinds = harness.kinds()
        assert kinds.index("done") < len(kinds) - 1 - kinds[::-1].index("user_message")
        assert [event.waiting for event in harness.of(QueueChanged)] == [("two",), ()]


async def test_steering_is_delivered_at_the_next_tool_boundary(tmp_path: Path) -> None:
    gate = Gate()
    model = script(tmp_path, calls(("gate", {})), says("as you wish", expect={"role": "user", "contains": "left"}))
    async with running(model, tool("gate", gate)) as harness:
        job = await harness.session.prompt(user_text("go right"))
        await harness.seen(ToolProgressed)
        assert await harness.session.steer(user_text("no, left")) is None
        gate.open.set()
        assert (await job.result()).text == "as you wish"
        assert len(harness.of(Done)) == 1
        said = [text_of(event.content) for event in harness.of(UserMessageAdded)]
    assert said == ["go right", "no, left"]


async def test_steering_that_found_no_boundary_goes_back_to_the_input(tmp_path: Path) -> None:
    gate = Gate()
    async with running(script(tmp_path, calls(("gate", {}))), tool("gate", gate)) as harness:
        job = await harness.session.prompt(user_text("go"))
        await harness.seen(ToolProgressed)
        await harness.session.steer(user_text("and wave"))
        harness.session.abort()
        await job.result()
        assert [event.text for event in harness.of(Inserted)] == ["and wave"]


async def test_an_abort_between_steered_messages_loses_none_of_them(tmp_path: Path) -> None:
    gate = Gate()
    async with running(script(tmp_path, calls(("gate", {})), says("no")), tool("gate", gate)) as harness:
        job = await harness.session.prompt(user_text("go"))
        await harness.seen(ToolProgressed)
        for word in ("one", "two", "three"):
            await harness.session.steer(user_text(word))

        async def stop_at_the_first(event: Event) -> None:
            if isinstance(event, UserMessageAdded) and text_of(event.content) == "one":
                harness.session.abort()

        with harness.session.bus.subscribed(stop_at_the_first):
            gate.open.set()
            assert (await job.result()).stop == "aborted"
        assert [text_of(event.content) for event in harness.of(UserMessageAdded)] == ["go", "one"]
        assert [event.text for event in harness.of(Inserted)] == ["two", "three"]
        assert harness.of(QueueChanged)[-1].waiting == ()
        assert harness.kinds()[-1] == "done"


async def test_what_is_recorded_is_told_whenever_the_abort_comes(tmp_path: Path) -> None:
    """One abort at each event of a turn: the transcript and the events must tell the same story every time."""
    turns = (calls(("echo", {}), ("echo", {})), says("done"))
    async with running(script(tmp_path, *turns), tool("echo", echo)) as harness:
        await harness.say("go")
        moments = len(harness.events)
    for moment in range(1, moments):
        async with running(script(tmp_path, *turns, *turns), tool("echo", echo)) as harness:
            seen = 0

            async def stop_then(_: Event, moment: int = moment, harness: Harness = harness) -> None:
                nonlocal seen
                seen += 1
                if seen == moment:
                    harness.session.abort()
                    await asyncio.sleep(0)  # a listener that takes its time

            with harness.session.bus.subscribed(stop_then):
                await harness.say("go")
            told = [event for event in harness.events if isinstance(event, UserMessageAdded | AssistantMessageAdded)]
            messages = harness.session.transcript.messages
            spoken = [message for message in messages if not isinstance(message, ToolMessage)]
            assert [event.content for event in told] == [message.content for message in spoken], moment
            results = [result for message in messages if isinstance(message, ToolMessage) for result in message.results]
            assert [event.id for event in harness.of(ToolResultAdded)] == [result.call_id for result in results], moment
            assert harness.kinds().count("turn_start") == harness.kinds().count("turn_end"), moment
            assert harness.kinds().count("done") == 1 and harness.kinds()[-1] == "done"
            await harness.say("again")  # the strict provider refuses calls without results


async def test_an_abort_while_a_turn_says_it_is_done_leaves_the_next_one_alone(tmp_path: Path) -> None:
    async with running(script(tmp_path, says("one"), says("two"))) as harness:

        async def stop_at_done(event: Event) -> None:
            if isinstance(event, Done):
                harness.session.abort()

        with harness.session.bus.subscribed(stop_at_done):
            first = await harness.session.prompt(user_text("1"))
            second = await harness.session.prompt(user_text("2"))
            assert [(await job.result()).stop for job in (first, second)] == ["end", "end"]


async def test_what_waits_can_be_taken_back(tmp_path: Path) -> None:
    gate = Gate()
    async with running(script(tmp_path, calls(("gate", {})), says("done")), tool("gate", gate)) as harness:
        first = await harness.session.prompt(user_text("one"))
        await harness.seen(ToolProgressed)
        second = await harness.session.prompt(user_text("two"))
        assert await harness.session.take_back() == ["two"]
        gate.open.set()
        await first.result()
        assert (await second.result()).stop == "aborted"
        async with asyncio.timeout(DEADLINE):
            await harness.session.idle()
        assert len(harness.of(UserMessageAdded)) == 1


async def test_an_abort_right_after_a_prompt_stops_it_before_it_begins(tmp_path: Path) -> None:
    async with running(script(tmp_path, says("never"), says("after"))) as harness:
        job = await harness.session.prompt(user_text("one"))
        assert harness.session.abort()
        async with asyncio.timeout(DEADLINE):
            assert (await job.result()).stop == "aborted"
        assert harness.kinds() == ["user_message", "turn_start", "turn_end", "done"]
        assert harness.provider.requests == []
        assert (await harness.say("two")).text == "never"


async def test_an_abort_between_the_start_of_a_job_and_its_first_step_ends_it(tmp_path: Path) -> None:
    for steps in range(8):
        async with running(script(tmp_path, says("hello"))) as harness:
            job = await harness.session.prompt(user_text("one"))
            for _ in range(steps):
                await asyncio.sleep(0)
            harness.session.abort()
            async with asyncio.timeout(DEADLINE):
                await job.result()
            assert len(harness.of(Done)) == 1


async def test_an_abort_is_not_lost_while_a_timeout_inside_the_turn_expires(tmp_path: Path) -> None:
    async def ticking(invocation: Invocation) -> ToolOutput:
        await invocation.progress("ticking")
        while True:
            try:
                async with asyncio.timeout(0):
                    await asyncio.sleep(1)
            except TimeoutError:
                pass

    async with running(script(tmp_path, *[calls(("tick", {}))] * 50), tool("tick", ticking)) as harness:
        for number in range(1, 51):
            job = await harness.session.prompt(user_text("go"))
            await harness.seen(ToolProgressed, number)
            for _ in range(number % 5):
                await asyncio.sleep(0)
            assert harness.session.abort()
            async with asyncio.timeout(DEADLINE):
                assert (await job.result()).stop == "aborted"


async def test_the_session_is_free_when_done_is_told(tmp_path: Path) -> None:
    busy: list[bool] = []
    async with running(script(tmp_path, says("hello"))) as harness:

        async def look(event: Event) -> None:
            if isinstance(event, Done):
                busy.append(harness.session.busy)

        with harness.session.bus.subscribed(look):
            await harness.say("hi")
    assert busy == [False]


async def test_too_many_waiting_messages_are_refused_with_a_hint(tmp_path: Path) -> None:
    gate = Gate()
    async with running(script(tmp_path, calls(("gate", {}))), tool("gate", gate)) as harness:
        await harness.session.prompt(user_text("go"))
        await harness.seen(ToolProgressed)
        for number in range(50):
            await harness.session.prompt(user_text(str(number)))
            await harness.session.steer(user_text(str(number)))
        with pytest.raises(UsageError, match="already wait"):
            await harness.session.prompt(user_text("one too many"))
        with pytest.raises(UsageError, match="already wait"):
            await harness.session.steer(user_text("one too many"))


async def test_slash_commands_run_case_insensitively_with_trimmed_arguments(tmp_path: Path) -> None:
    async def shout(args: str) -> tuple[Action, ...]:
        return (Display(f"<{args.upper()}>"), Insert("more"))

    async with running(script(tmp_path), Command("shout", "shout", shout)) as harness:
        await harness.session.input("/SHOUT   hello\nthere  ")
        assert [(event.extension, event.text) for event in harness.of(Displayed)] == [("test", "<HELLO\nTHERE>")]
        assert [event.text for event in harness.of(Inserted)] == ["more"]


async def test_an_unknown_command_is_an_error_and_a_path_is_a_prompt(tmp_path: Path) -> None:
    async with running(script(tmp_path, says("a path"))) as harness:
        with pytest.raises(UsageError, match="unknown command /nope"):
            await harness.session.input("/nope now")
        job = await harness.session.input("/usr/bin/env is what?")
        assert isinstance(job, Job)
        assert (await job.result()).text == "a path"


async def test_a_command_that_answers_with_a_prompt_starts_a_turn(tmp_path: Path) -> None:
    async def ask(_: str) -> tuple[Action, ...]:
        return (Prompt("what is new?"),)

    async with running(script(tmp_path, says("nothing")), Command("news", "", ask)) as harness:
        await harness.session.command("news")
        await harness.seen(Done)
        message = harness.session.transcript.messages[0]
    assert isinstance(message, UserMessage) and text_of(message.content) == "what is new?"


async def test_a_mistake_of_ours_costs_one_turn_and_not_the_session(tmp_path: Path) -> None:
    async with running(script(tmp_path, says("fine"))) as harness:
        provider, harness.session.active.provider.stream = harness.session.active.provider.stream, None  # type: ignore[assignment, method-assign]
        outcome = await harness.say("hello")
        assert outcome.stop == "error" and "internal error" in outcome.error
        assert harness.kinds()[-1] == "done"
        harness.session.active.provider.stream = provider  # type: ignore[method-assign]
        assert (await harness.say("hello again")).text == "fine"


async def test_leaving_the_session_cancels_what_runs_and_records_it(tmp_path: Path) -> None:
    async with running(script(tmp_path, calls(("gate", {}))), tool("gate", Gate()), tool("echo", echo)) as harness:
        await harness.session.prompt(user_text("go"))
        await harness.seen(ToolProgressed)
    results = harness.session.transcript.messages[-1]
    assert results.results[0].is_error  # type: ignore[union-attr]
