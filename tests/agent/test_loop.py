"""The loop: events and their order, tools, limits, failures and cancelling."""

import asyncio
import time
from collections.abc import AsyncGenerator
from itertools import groupby
from pathlib import Path

import pytest

from hilt.agent.retry import RetryPolicy
from hilt.errors import Unavailable
from hilt.model.content import Text, text_of
from hilt.model.contributions import Invocation, PromptSection, ToolOutput
from hilt.model.conversation import AssistantMessage, ToolMessage, UserMessage
from hilt.model.events import (
    AssistantMessageAdded,
    Done,
    Failed,
    Retrying,
    RunStarted,
    StepLimitReached,
    ToolCalled,
    ToolProgressed,
    ToolResultAdded,
    TurnEnded,
    TurnStarted,
    UsageReported,
    UserMessageAdded,
)
from hilt.model.stream import Completed, ModelRequest, StreamItem, TextDelta, ThinkingDelta, ToolUseStart
from support.agent import DEADLINE, calls, echo, running, says, script, tool
from support.clocks import no_time_passes


async def test_the_events_of_a_prompt_come_once_and_in_order(tmp_path: Path) -> None:
    async def slow(invocation: Invocation) -> ToolOutput:
        await invocation.progress("half way")
        return ToolOutput.of("there")

    model = script(tmp_path, calls(("walk", {})), says("arrived"))
    async with running(model, tool("walk", slow)) as harness:
        await harness.say("go")
        kinds = [kind for kind, _ in groupby(harness.kinds()) if kind != "text_delta"]
    assert kinds == [
        "user_message",
        "turn_start",
        "assistant_start",
        "tool_use_start",
        "tool_use_args",
        "tool_use_end",
        "usage",
        "assistant_message",
        "tool_call",
        "turn_end",
        "tool_progress",
        "tool_result",
        "turn_start",
        "assistant_start",
        "usage",
        "assistant_message",
        "turn_end",
        "done",
    ]


async def test_thinking_is_streamed_beside_text(tmp_path: Path) -> None:
    model = script(
        tmp_path, {"content": [{"type": "thinking", "text": "hm, well"}, {"type": "text", "text": "so it is"}]}
    )
    async with running(model) as harness:
        await harness.say("why?")
        assert "".join(event.delta for event in harness.of(ThinkingDelta)) == "hm, well"
        assert "".join(event.delta for event in harness.of(TextDelta)) == "so it is"


async def test_calls_of_parallel_safe_tools_run_at_once_and_keep_the_models_order(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    async def meet(invocation: Invocation) -> ToolOutput:
        async with asyncio.timeout(DEADLINE):
            await both.wait()  # returns only if the other call runs at the same time
        if invocation.args["n"] == 1:
            await asyncio.sleep(0.02)  # the first call finishes last
        return ToolOutput.of(str(invocation.args["n"]))

    model = script(tmp_path, calls(("meet", {"n": 1}), ("meet", {"n": 2})), says("ok"))
    async with running(model, tool("meet", meet, parallel=True)) as harness:
        await harness.say("go")
        assert [text_of(event.content) for event in harness.of(ToolResultAdded)] == ["1", "2"]


async def test_a_batch_with_one_tool_that_is_not_parallel_safe_runs_in_order(tmp_path: Path) -> None:
    at_work = 0
    most = 0

    async def count(invocation: Invocation) -> ToolOutput:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.01)
        at_work -= 1
        return ToolOutput.of("")

    model = script(tmp_path, calls(("safe", {}), ("unsafe", {}), ("safe", {})), says("ok"))
    async with running(model, tool("safe", count, parallel=True), tool("unsafe", count)) as harness:
        await harness.say("go")
    assert most == 1


async def test_one_failing_call_of_a_parallel_batch_leaves_its_siblings_alone(tmp_path: Path) -> None:
    async def half(invocation: Invocation) -> ToolOutput:
        if invocation.args["n"] == 1:
            raise RuntimeError("broken")
        await asyncio.sleep(0.01)
        return ToolOutput.of("whole")

    model = script(tmp_path, calls(("half", {"n": 1}), ("half", {"n": 2})), says("ok"))
    async with running(model, tool("half", half, parallel=True)) as harness:
        await harness.say("go")
        first, second = harness.of(ToolResultAdded)
    assert first.is_error and "RuntimeError: broken" in text_of(first.content)
    assert not second.is_error and text_of(second.content) == "whole"


async def test_the_step_limit_ends_the_turn_and_says_its_number(tmp_path: Path) -> None:
    model = script(tmp_path, *[calls(("echo", {})) for _ in range(9)])
    async with running(model, tool("echo", echo), max_steps=3) as harness:
        outcome = await harness.say("loop")
        assert outcome.stop == "error" and outcome.error == "max steps (3) exceeded"
        assert len(harness.of(TurnStarted)) == 3
        assert [failed.code for failed in harness.of(Failed)] == ["step_limit"]
        assert harness.of(StepLimitReached) == [StepLimitReached(3, 3)]
        assert harness.kinds()[-1] == "done"


async def test_a_run_is_announced_once_with_what_the_model_is_going_to_be_told(tmp_path: Path) -> None:
    model = script(tmp_path, calls(("echo", {})), says("one"), says("two"))
    section = PromptSection("House rules", "Be kind.")
    async with running(model, tool("echo", echo), tool("other", echo), section) as harness:
        await harness.say("first")
        await harness.say("second")
        first, second = harness.of(RunStarted)
        kinds = [type(event) for event in harness.events]
    system = "be brief\n\n# House rules\n\nBe kind."
    assert first == RunStarted("first", system, tools=2, history=0)
    assert second == RunStarted("second", system, tools=2, history=4)
    assert kinds.index(UserMessageAdded) < kinds.index(RunStarted) < kinds.index(TurnStarted)


async def test_an_observer_can_tell_unknown_tools_and_sees_the_details_of_results(tmp_path: Path) -> None:
    async def detailed(_: Invocation) -> ToolOutput:
        return ToolOutput.of("ok", added=3)

    model = script(tmp_path, calls(("t", {}), ("unknown", {})), says("ok"))
    async with running(model, tool("t", detailed)) as harness:
        await harness.say("go")
        assert [(event.name, event.known) for event in harness.of(ToolCalled)] == [("t", True), ("unknown", False)]
        assert [event.details for event in harness.of(ToolResultAdded)] == [{"added": 3}, {}]


async def test_a_reply_cut_off_at_the_output_limit_runs_none_of_its_calls(tmp_path: Path) -> None:
    ran: list[str] = []

    async def note(invocation: Invocation) -> ToolOutput:
        ran.append(invocation.call_id)
        return ToolOutput.of("ran")

    model = script(tmp_path, calls(("note", {}), stop="length"), says("shorter now"))
    async with running(model, tool("note", note)) as harness:
        outcome = await harness.say("write a lot")
        (result,) = harness.of(ToolResultAdded)
    assert not ran and result.is_error and "output limit" in text_of(result.content)
    assert outcome.text == "shorter now"


async def test_invalid_arguments_go_back_naming_the_field_and_nothing_runs(tmp_path: Path) -> None:
    ran: list[str] = []

    async def note(invocation: Invocation) -> ToolOutput:
        ran.append(invocation.call_id)
        return ToolOutput.of("ran")

    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    model = script(tmp_path, calls(("note", {"path": 3}), ("note", {})), says("sorry"))
    async with running(model, tool("note", note, schema=schema)) as harness:
        await harness.say("go")
        wrong, missing = harness.of(ToolResultAdded)
    assert not ran
    assert wrong.is_error and "path: 3 is not of type" in text_of(wrong.content)
    assert missing.is_error and '"path" is a required property' in text_of(missing.content)


async def test_an_unknown_tool_is_an_answer_that_lists_the_known_ones(tmp_path: Path) -> None:
    model = script(tmp_path, calls(("fly", {})), says("I cannot"))
    async with running(model, tool("walk", echo)) as harness:
        await harness.say("go")
        (result,) = harness.of(ToolResultAdded)
    assert result.is_error and 'unknown tool "fly"; the tools are: walk' in text_of(result.content)


async def test_a_schema_that_refers_to_another_document_is_never_fetched(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    model = script(tmp_path, calls(("t", {})), says("no"))
    async with running(model, tool("t", echo, schema={"$ref": secret.as_uri()})) as harness:
        await harness.say("go")
        (result,) = harness.of(ToolResultAdded)
    assert result.is_error and "not followed" in text_of(result.content)


# Failures of the provider


async def test_transient_failures_are_retried_and_shown(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        {"content": [], "error": {"status": 503, "message": "busy"}},
        {"content": [], "error": {"status": 529, "message": "overloaded"}},
        says("at last"),
    )
    async with running(model) as harness:
        outcome = await harness.say("hello")
        shown = harness.of(Retrying)
    assert outcome.text == "at last"
    assert [(event.attempt, event.attempts) for event in shown] == [(2, 4), (3, 4)]
    assert "busy" in shown[0].reason and "overloaded" in shown[1].reason


async def test_retries_end_after_the_last_attempt(tmp_path: Path) -> None:
    model = script(tmp_path, *[{"content": [], "error": {"status": 500, "message": "no"}} for _ in range(9)])
    async with running(model) as harness:
        outcome = await harness.say("hello")
        assert outcome.stop == "error"
        assert len(harness.provider.requests) == 4
        assert harness.kinds() == ["user_message", "turn_start", "retry", "retry", "retry", "turn_end", "error", "done"]


async def test_retry_after_is_waited_for(tmp_path: Path) -> None:
    model = script(
        tmp_path, {"content": [], "error": {"status": 429, "message": "slow", "retry_after": 0.3}}, says("now")
    )
    async with running(model) as harness:
        began = time.monotonic()
        await harness.say("hello")
        assert time.monotonic() - began >= 0.3
        assert harness.of(Retrying)[0].delay_ms >= 300


async def test_a_retry_after_beyond_all_patience_fails_at_once(tmp_path: Path) -> None:
    model = script(tmp_path, {"content": [], "error": {"status": 429, "message": "tomorrow", "retry_after": 86400}})
    async with running(model) as harness:
        outcome = await harness.say("hello")
    assert outcome.stop == "error" and "tomorrow" in outcome.error


@pytest.mark.parametrize("status", [400, 401, 413])
async def test_failures_that_will_not_pass_are_not_retried(tmp_path: Path, status: int) -> None:
    model = script(tmp_path, {"content": [], "error": {"status": status, "message": "no"}}, says("never"))
    async with running(model) as harness:
        outcome = await harness.say("hello")
        assert outcome.stop == "error" and not harness.of(Retrying) and len(harness.provider.requests) == 1


async def test_an_overflow_offers_compaction(tmp_path: Path) -> None:
    model = script(tmp_path, {"content": [], "error": {"status": 413, "message": "too long"}})
    async with running(model) as harness:
        outcome = await harness.say("hello")
        (failed,) = harness.of(Failed)
    assert failed.code == "context_overflow" and "/compact" in failed.hint and "/compact" in outcome.hint


class Breaking:
    """Says something, then loses the connection; the next attempt succeeds."""

    name = "breaking"

    def __init__(self) -> None:
        self.attempts = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self.attempts += 1
        yield TextDelta("half ")
        if self.attempts == 1:
            raise Unavailable("connection reset")
        yield TextDelta("whole")
        yield Completed((Text("half whole"),), "end")

    async def aclose(self) -> None:
        pass


async def test_a_stream_that_breaks_off_is_begun_again_and_its_beginning_forgotten() -> None:
    async with running(Breaking()) as harness:
        outcome = await harness.say("hello")
        assert outcome.text == "half whole"
        assert harness.kinds().count("assistant_start") == 1
        messages = harness.session.transcript.messages
    assert [type(message) for message in messages] == [UserMessage, AssistantMessage]


class Endless:
    """Streams a little and then never again."""

    name = "endless"

    def __init__(self, *first: StreamItem) -> None:
        self.first = first
        self.closed = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        try:
            for item in self.first:
                yield item
            await asyncio.Event().wait()
        finally:
            self.closed.set()

    async def aclose(self) -> None:
        pass


async def test_a_stream_that_ends_without_its_end_is_a_transient_failure() -> None:
    class Short(Breaking):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
            self.attempts += 1
            yield TextDelta("half")
            if self.attempts > 1:
                yield Completed((Text("whole"),), "end")

    async with running(Short()) as harness:
        assert (await harness.say("hello")).text == "whole"
        assert len(harness.of(Retrying)) == 1


# Cancelling


async def test_cancelling_a_silent_provider_returns_control_at_once() -> None:
    provider = Endless(TextDelta("I was about to"))
    async with running(provider) as harness:
        saying = asyncio.ensure_future(harness.say("hello"))
        await harness.seen(TextDelta)
        with no_time_passes():
            assert harness.session.abort()
            outcome = await saying
        assert outcome.stop == "aborted" and provider.closed.is_set()
        assert harness.kinds()[-4:] == ["usage", "assistant_message", "turn_end", "done"]
        assert harness.of(TurnEnded)[-1].stop == "aborted" and harness.of(Done)[-1].stop == "aborted"
        assert not harness.of(Failed)
        last = harness.session.transcript.messages[-1]
    assert isinstance(last, AssistantMessage) and text_of(last.content) == "I was about to"


async def test_a_tool_call_that_was_still_being_written_is_dropped_when_cancelled() -> None:
    async with running(Endless(ToolUseStart("c1", "bash")), tool("bash", echo)) as harness:
        saying = asyncio.ensure_future(harness.say("hello"))
        await harness.seen(ToolUseStart)
        harness.session.abort()
        await saying
        assert [type(message) for message in harness.session.transcript.messages] == [UserMessage]
        assert not harness.of(AssistantMessageAdded) and not harness.of(ToolCalled)


async def test_cancelling_tools_returns_at_once_and_leaves_a_transcript_providers_accept(tmp_path: Path) -> None:
    async def stuck(invocation: Invocation) -> ToolOutput:
        await invocation.progress("working")
        await asyncio.Event().wait()
        raise AssertionError

    model = script(tmp_path, calls(("echo", {}), ("stuck", {}), ("echo", {})), says("what happened?"))
    async with running(model, tool("echo", echo), tool("stuck", stuck)) as harness:
        saying = asyncio.ensure_future(harness.say("go"))
        await harness.seen(ToolProgressed)
        with no_time_passes():
            harness.session.abort()
            assert (await saying).stop == "aborted"
        results = harness.of(ToolResultAdded)
        assert [result.is_error for result in results] == [False, True, True]
        assert all("outcome" in text_of(result.content) for result in results[1:])
        assert (await harness.say("go on")).text == "what happened?"  # the strict provider would have refused
        assert isinstance(harness.session.transcript.messages[2], ToolMessage)


async def test_cancelling_parallel_tools_keeps_what_had_finished(tmp_path: Path) -> None:
    async def wait(invocation: Invocation) -> ToolOutput:
        if invocation.args["n"] == 2:
            await invocation.progress("second is done")
            return ToolOutput.of("finished")
        await asyncio.Event().wait()
        raise AssertionError

    model = script(tmp_path, calls(("wait", {"n": 1}), ("wait", {"n": 2})), says("ok"))
    async with running(model, tool("wait", wait, parallel=True)) as harness:
        saying = asyncio.ensure_future(harness.say("go"))
        await harness.seen(ToolProgressed)
        await asyncio.sleep(0)  # let it return
        harness.session.abort()
        await saying
        first, second = harness.of(ToolResultAdded)
    assert first.is_error and "unknown" in text_of(first.content)
    assert text_of(second.content) == "finished"


async def test_a_second_cancel_changes_nothing(tmp_path: Path) -> None:
    async with running(Endless(TextDelta("well"))) as harness:
        saying = asyncio.ensure_future(harness.say("hello"))
        await harness.seen(TextDelta)
        assert harness.session.abort()
        assert not harness.session.abort()
        await saying
        assert len(harness.of(Done)) == 1
        assert not harness.session.abort()


# What it costs


async def test_each_turn_and_the_session_are_priced(tmp_path: Path) -> None:
    usage = {"input": 1000, "output": 500}
    model = script(tmp_path, calls(("echo", {}), usage=usage), says("ok", usage=usage))
    async with running(model, tool("echo", echo)) as harness:
        await harness.say("go")
        first, second = harness.of(UsageReported)
    assert first.usage.cost_usd == pytest.approx((1000 * 1 + 500 * 2) / 1e6)
    assert second.cumulative.input == 2000
    assert second.cumulative.cost_usd == pytest.approx(2 * first.usage.cost_usd)


def test_delays_grow_whatever_the_jitter_and_never_beyond_the_cap() -> None:
    policy = RetryPolicy(attempts=9, base=0.5, cap=20)
    for _ in range(50):
        delays = [policy.delay(attempt, Unavailable("down")) for attempt in range(1, 9)]
        assert all(delay is not None and delay <= 20 for delay in delays)
        assert sorted(delays[:6]) == delays[:6]  # type: ignore[type-var]
    assert len({policy.delay(1, Unavailable("down")) for _ in range(20)}) > 1
    assert policy.delay(9, Unavailable("down")) is None


async def test_text_that_a_retry_made_void_is_not_kept_when_stopped_during_the_pause() -> None:
    async with running(Breaking(), retry=RetryPolicy(attempts=3, base=60)) as harness:
        saying = asyncio.ensure_future(harness.say("hello"))
        await harness.seen(Retrying)
        harness.session.abort()
        assert (await saying).stop == "aborted"
        assert [type(message) for message in harness.session.transcript.messages] == [UserMessage]
