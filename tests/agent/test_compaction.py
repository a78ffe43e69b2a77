"""Compaction: where it cuts, when it starts, what is kept, and that failing costs nothing."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.agent.compaction import KEPT, cut_point, estimated_tokens, over_threshold
from hilt.model.content import Text, ToolCall, text_of
from hilt.model.conversation import (
    AssistantMessage,
    Message,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
    now,
    user_text,
)
from hilt.model.events import (
    CompactionDone,
    CompactionStarted,
    Done,
    Failed,
    Noticed,
    Retrying,
    UsageReported,
    UserMessageAdded,
)
from hilt.model.models import ModelInfo
from hilt.sessions.log import SessionLog
from hilt.sessions.records import CompactionRecord, MessageRecord, new_meta
from support.agent import DEADLINE, MODEL, Harness, calls, echo, running, says, script, tool
from support.clocks import no_time_passes
from support.killing import Place

SUMMARY = "They counted to three."
FULL = {"input": 8000, "output": 600}  # of a window of 10,000


def on_disk(tmp_path: Path) -> SessionLog:
    return SessionLog.create(tmp_path / "session.jsonl", new_meta("/project", "script", "script"))


async def count_to_three(harness: Harness) -> None:
    for number in ("one", "two", "three"):
        await harness.say(f"say {number}")


async def compact(harness: Harness) -> Any:
    async with asyncio.timeout(DEADLINE):
        return await (await harness.session.compact()).result()


# Where it cuts


async def test_the_last_four_messages_stay_word_for_word_and_the_rest_becomes_a_summary(tmp_path: Path) -> None:
    model = script(tmp_path, *map(says, ("one", "two", "three")), says(SUMMARY))
    async with running(model) as harness:
        await count_to_three(harness)
        before = harness.session.transcript.messages
        assert (await compact(harness)).text == SUMMARY
        first, *rest = harness.session.transcript.messages
        asked = harness.provider.requests[-1]
    assert isinstance(first, UserMessage) and first.summary and SUMMARY in text_of(first.content)
    assert tuple(rest) == before[-4:]
    record = text_of(asked.messages[0].content)  # type: ignore[union-attr]  # one user message
    assert "say one" in record and "say two" not in record and not asked.tools


async def test_the_tail_never_begins_with_tool_results(tmp_path: Path) -> None:
    model = script(tmp_path, calls(("echo", {"n": 1})), says("one"), says("two"), says(SUMMARY))
    async with running(model, tool("echo", echo)) as harness:
        await harness.say("call")
        await harness.say("say two")  # six messages, of which the last four would begin with the result
        before = harness.session.transcript.messages
        await compact(harness)
        messages = harness.session.transcript.messages
    assert len(messages) == 6 and messages[1] == before[1]
    assert isinstance(messages[2], ToolMessage) and messages[2].results == before[2].results  # type: ignore[union-attr]
    assert messages[3:] == before[3:]


def _conversation(kinds: list[str]) -> list[Message]:
    made: dict[str, Message] = {
        "user": user_text("hello"),
        "summary": UserMessage((Text("before"),), now(), summary=True),
        "assistant": AssistantMessage((Text("hi"),), now()),
        "call": AssistantMessage((ToolCall("c", "bash", {}),), now()),
        "result": ToolMessage((ToolResult("c", "bash", (Text("ok"),)),), now()),
    }
    return [made[kind] for kind in kinds]


@given(st.lists(st.sampled_from(["user", "summary", "assistant", "call", "result"]), max_size=20))
def test_any_cut_leaves_enough_and_leaves_results_with_their_calls(kinds: list[str]) -> None:
    messages = _conversation(kinds)
    cut = cut_point(messages)
    assert 0 <= cut <= max(0, len(messages) - KEPT)
    assert cut == 0 or not isinstance(messages[cut], ToolMessage)


def test_a_summary_alone_is_not_summarised_again() -> None:
    assert cut_point(_conversation(["summary", "user", "assistant", "user", "assistant"])) == 0
    assert cut_point(_conversation(["summary", "user", "assistant", "user", "assistant", "user"])) == 2


async def test_a_second_compaction_builds_on_the_first(tmp_path: Path) -> None:
    model = script(
        tmp_path, *map(says, ("one", "two", "three")), says(SUMMARY), says("four"), says("They counted to four.")
    )
    with on_disk(tmp_path) as log:
        async with running(model, log=log) as harness:
            await count_to_three(harness)
            await compact(harness)
            await harness.say("say four")
            before = harness.session.transcript.messages
            await compact(harness)
            after = harness.session.transcript.messages
            record = text_of(harness.provider.requests[-1].messages[0].content)  # type: ignore[union-attr]
    assert SUMMARY in record and "say two" in record
    assert "They counted to four." in text_of(after[0].content)  # type: ignore[union-attr]
    assert after[1:] == before[-4:]
    with SessionLog.open(tmp_path / "session.jsonl") as log:
        assert tuple(log.messages()) == after


# When it starts by itself


@pytest.mark.parametrize(("tokens", "due"), [(8499, False), (8500, True)])
def test_it_is_due_at_85_percent_of_the_window_and_not_below(tokens: int, due: bool) -> None:
    messages = _conversation(["user", "assistant", "user", "assistant", "user"])
    messages.append(AssistantMessage((Text("hi"),), now(), usage=Usage(tokens - 100, 60, 25, 15)))
    assert estimated_tokens(messages) == tokens
    assert over_threshold(messages, MODEL) is due
    assert not over_threshold(messages, ModelInfo("unknown", "script"))  # a window nobody knows
    assert not over_threshold(messages[-4:], MODEL)  # nothing to cut


async def test_a_full_window_is_compacted_before_the_next_model_call(tmp_path: Path) -> None:
    model = script(tmp_path, says("one"), says("two", usage=FULL), says(SUMMARY), says("three"))
    async with running(model) as harness:
        await count_to_three(harness)
        (started,) = harness.of(CompactionStarted)
        kinds = harness.kinds()
        request = harness.provider.requests[-1]
        assert harness.session.transcript.messages[-1].content == (Text("three"),)  # type: ignore[union-attr]
    assert started.automatic and started.tokens >= 8600
    assert kinds[kinds.index("compact_start") - 1] == "turn_start"
    assert kinds[kinds.index("compact_done") + 1] == "assistant_start"
    assert SUMMARY in text_of(request.messages[0].content)  # type: ignore[union-attr]
    assert text_of(request.messages[-1].content) == "say three"  # type: ignore[union-attr]


async def test_a_window_that_fills_up_within_a_turn_is_compacted_between_its_steps(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        says("one"),
        calls(("echo", {"n": 1})),
        calls(("echo", {"n": 2}), usage=FULL),
        says(SUMMARY),
        says("ok"),
    )
    async with running(model, tool("echo", echo)) as harness:
        await harness.say("say one")
        assert (await harness.say("work")).text == "ok"  # the strict provider took the shortened conversation
        assert len(harness.of(CompactionDone)) == 1


async def test_a_window_that_is_not_full_is_left_alone(tmp_path: Path) -> None:
    model = script(tmp_path, says("one"), says("two", usage={"input": 8000, "output": 400}), says("three"))
    async with running(model) as harness:
        await count_to_three(harness)
        assert not harness.of(CompactionStarted)


async def test_a_compaction_by_hand_is_not_followed_by_an_automatic_one(tmp_path: Path) -> None:
    model = script(tmp_path, says("one"), says("two"), says("three", usage=FULL), says(SUMMARY), says("four"))
    async with running(model) as harness:
        await count_to_three(harness)
        await compact(harness)
        assert (await harness.say("say four")).text == "four"
        assert len(harness.of(CompactionStarted)) == 1


# What is kept


async def test_the_log_keeps_the_original_and_reopens_with_the_compacted_conversation(tmp_path: Path) -> None:
    model = script(tmp_path, *map(says, ("one", "two", "three")), says(SUMMARY))
    with on_disk(tmp_path) as log:
        async with running(model, log=log) as harness:
            await count_to_three(harness)
            original = harness.session.transcript.messages
            await compact(harness)
            compacted = harness.session.transcript.messages
    with SessionLog.open(tmp_path / "session.jsonl") as log:
        records = [log.read(entry) for entry in log.entries()]
        assert [record.message for record in records if isinstance(record, MessageRecord)] == list(original)
        assert [record.summary for record in records if isinstance(record, CompactionRecord)] == [SUMMARY]
        assert tuple(log.messages()) == compacted


async def test_the_summary_is_paid_for(tmp_path: Path) -> None:
    spent = {"input": 1000, "output": 500}
    model = script(tmp_path, *map(says, ("one", "two", "three")), says(SUMMARY, usage=spent))
    async with running(model) as harness:
        await count_to_three(harness)
        before = harness.session.transcript.usage
        await compact(harness)
        reported = harness.of(UsageReported)[-1]
        after = harness.session.transcript.usage
    assert reported.usage == Usage(1000, 500, cost_usd=pytest.approx(0.002))  # type: ignore[arg-type]
    assert after == before + reported.usage == reported.cumulative


async def test_the_summary_is_still_paid_for_after_reopening(tmp_path: Path) -> None:
    spent = {"input": 1000, "output": 500}
    model = script(tmp_path, *map(says, ("one", "two", "three")), says(SUMMARY, usage=spent))
    with on_disk(tmp_path) as log:
        async with running(model, log=log) as harness:
            await count_to_three(harness)
            await compact(harness)
            usage = harness.session.transcript.usage
    with SessionLog.open(tmp_path / "session.jsonl") as log:
        assert log.usage == usage


# When it fails


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        (says(" \n"), "empty summary"),
        ({"content": [], "error": "out of order"}, "out of order"),
        ({"content": [], "error": {"status": 401, "message": "bad key"}}, "bad key"),
    ],
)
async def test_a_compaction_that_fails_says_so_and_leaves_the_conversation_as_it_was(
    tmp_path: Path, turn: dict[str, Any], reason: str
) -> None:
    model = script(tmp_path, *map(says, ("one", "two", "three")), turn, says("four"))
    with on_disk(tmp_path) as log:
        async with running(model, log=log) as harness:
            await count_to_three(harness)
            before = harness.session.transcript.messages
            assert (await compact(harness)).stop == "error"
            assert [reason in failed.message for failed in harness.of(Failed)] == [True]
            assert harness.session.transcript.messages == before and not harness.of(CompactionDone)
            assert (await harness.say("say four")).text == "four"
        assert not [entry for entry in log.entries() if entry.type == CompactionRecord.TYPE]


async def test_an_automatic_compaction_that_fails_is_a_warning_and_the_turn_goes_on(tmp_path: Path) -> None:
    model = script(
        tmp_path, says("one"), says("two", usage=FULL), {"content": [], "error": "out of order"}, says("three")
    )
    async with running(model) as harness:
        await count_to_three(harness)
        (warning,) = harness.of(Noticed)
        messages = harness.session.transcript.messages
    assert warning.level == "warn" and "out of order" in warning.message
    assert len(messages) == 6 and text_of(messages[-1].content) == "three"  # type: ignore[union-attr]


async def test_a_passing_failure_of_the_summary_is_tried_again_and_shown(tmp_path: Path) -> None:
    busy = {"content": [], "error": {"status": 503, "message": "busy"}}
    model = script(tmp_path, *map(says, ("one", "two", "three")), busy, says(SUMMARY))
    async with running(model) as harness:
        await count_to_three(harness)
        assert (await compact(harness)).text == SUMMARY
        assert len(harness.of(Retrying)) == 1


async def test_a_short_conversation_has_nothing_to_compact(tmp_path: Path) -> None:
    async with running(script(tmp_path, says("one"), says("two"))) as harness:
        await harness.say("say one")
        await harness.say("say two")
        assert (await compact(harness)).stop == "error"
        (failed,) = harness.of(Failed)
        assert "nothing to compact" in failed.message and not harness.of(CompactionStarted)
        assert len(harness.provider.requests) == 2


async def test_a_compaction_can_be_cancelled_at_once_and_changes_nothing(tmp_path: Path) -> None:
    model = script(tmp_path, *map(says, ("one", "two", "three")), says(SUMMARY, delay_ms=60_000), says("four"))
    async with running(model) as harness:
        await count_to_three(harness)
        before = harness.session.transcript.messages
        job = await harness.session.compact()
        await harness.seen(CompactionStarted)
        with no_time_passes():
            assert harness.session.abort()
            assert (await job.result()).stop == "aborted"
        assert harness.session.transcript.messages == before and not harness.of(CompactionDone)
        assert (await harness.say("say four")).text == "four"


async def test_cancelling_an_automatic_compaction_ends_the_turn_and_changes_nothing(tmp_path: Path) -> None:
    model = script(tmp_path, says("one"), says("two", usage=FULL), says(SUMMARY, delay_ms=60_000))
    async with running(model) as harness:
        await harness.say("say one")
        await harness.say("say two")
        before = harness.session.transcript.messages
        job = await harness.session.prompt(user_text("say three"))
        await harness.seen(CompactionStarted)
        assert harness.session.abort()
        async with asyncio.timeout(DEADLINE):
            assert (await job.result()).stop == "aborted"
        assert harness.session.transcript.messages[:-1] == before
        assert harness.of(Done)[-1].stop == "aborted" and len(harness.of(UserMessageAdded)) == 3


# Over RPC


def test_over_rpc_a_compaction_ends_with_compact_done_and_without_done(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    turns = place.script("turns", *map(says, ("one", "two", "three")), says(SUMMARY))
    prompts = [{"type": "prompt", "message": f"number {number}"} for number in range(3)]
    lines = [*prompts, {"type": "compact", "id": "c"}]
    ended = place.run("rpc", "--provider", "script", "--script", turns, lines=lines)
    assert ended.code == 0, ended.err
    events = [event for event in ended.events if event["type"] != "queue"]
    kinds = [event["type"] for event in events]
    assert kinds[-4:] == ["response", "compact_start", "usage", "compact_done"]
    assert kinds.count("done") == 3
    response, *_, done = events[-4:]
    assert response == {
        "type": "response", "command": "compact", "success": True, "id": "c", "data": {"started": True}
    }  # fmt: skip
    assert done["summary"] == SUMMARY


def test_over_rpc_a_compaction_that_fails_is_an_error_event_and_the_process_lives_on(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    lines = [{"type": "compact"}, {"type": "prompt", "message": "hello"}]
    ended = place.run("rpc", "--provider", "script", "--script", place.script("turns", says("hi")), lines=lines)
    events = [event for event in ended.events if event["type"] != "queue"]
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["response", "error"] and "nothing to compact" in events[1]["message"]
    assert kinds[-1] == "done" and kinds.count("done") == 1


def test_large_results_count_in_full_towards_the_window() -> None:
    results = tuple(ToolResult(f"c{number}", "read", (Text("x" * 50_000),)) for number in range(10))
    assert estimated_tokens([ToolMessage(results, now())]) == 125_000
