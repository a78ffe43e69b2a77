"""Extensions that shorten the conversation: when they are asked, what is taken of an answer, what a failure costs."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.agent.breaker import Breaker
from hilt.agent.compaction import sound, wanted
from hilt.agent.deadlines import Deadlines
from hilt.errors import ExtensionError, HiltError
from hilt.model.content import Text, ToolCall, text_of
from hilt.model.contributions import Compactor
from hilt.model.conversation import (
    AssistantMessage,
    Message,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
    now,
    tool_calls,
    user_text,
)
from hilt.model.events import CompactionDone, CompactionFailed, CompactionStarted, Failed, Noticed
from hilt.sessions.log import SessionLog
from hilt.sessions.records import MessageRecord, new_meta
from support.agent import DEADLINE, Harness, calls, echo, running, says, script, tool
from support.properties import patient

FULL = {"input": 8000, "output": 600}  # of a window of 10,000
SHORT = Deadlines(compactor=0.02)


def compactor(*answer: Message, threshold: int = 0) -> Compactor:
    async def compact(_: tuple[Message, ...]) -> tuple[Message, ...]:
        return answer

    return Compactor("c", compact, threshold)


def keeping(count: int, threshold: int = 0) -> Compactor:
    async def compact(messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return (user_text("before: much"), *messages[-count:])

    return Compactor("c", compact, threshold)


async def moody(_: tuple[Message, ...]) -> tuple[Message, ...]:
    raise ExtensionError("moody", "not today")


async def never(_: tuple[Message, ...]) -> tuple[Message, ...]:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


def texts(messages: Sequence[Message]) -> list[str]:
    return [text_of(message.content) for message in messages if not isinstance(message, ToolMessage)]


async def compact(harness: Harness) -> Any:
    async with asyncio.timeout(DEADLINE):
        return await (await harness.session.compact()).result()


async def count_to_four(harness: Harness) -> None:
    for number in ("one", "two", "three", "four"):
        await harness.say(f"please say {number}")


def four(*more: dict[str, Any], **last: Any) -> list[dict[str, Any]]:
    return [*map(says, ("one", "two", "three")), says("four", **last), *more]


# By hand


async def test_a_compactor_serves_a_compaction_and_no_model_is_asked(tmp_path: Path) -> None:
    with SessionLog.create(tmp_path / "s.jsonl", new_meta("/project", "script", "script")) as log:
        async with running(script(tmp_path, *four()), ("short", keeping(2)), log=log) as harness:
            await count_to_four(harness)
            assert (await compact(harness)).text == "before: much"
            kept = texts(harness.session.transcript.messages)
            assert len(harness.provider.requests) == 4
            started, done = harness.of(CompactionStarted)[0], harness.of(CompactionDone)[0]
        records = [log.read(entry) for entry in log.entries()]
    assert kept == ["before: much", "please say four", "four"]
    assert (started.messages, done.messages, started.automatic) == (8, 3, False) and started.id == done.id
    assert sum(isinstance(record, MessageRecord) for record in records) == 8  # the log keeps all that was said
    with SessionLog.open(tmp_path / "s.jsonl") as again:
        assert texts(again.messages()) == kept


async def test_a_compactor_that_fails_leaves_everything_as_it_is_and_the_error_names_it(tmp_path: Path) -> None:
    async with running(script(tmp_path, *four()), ("moody", Compactor("c", moody))) as harness:
        await count_to_four(harness)
        before = harness.session.transcript.messages
        outcome = await compact(harness)
        assert harness.session.transcript.messages == before
        (failed,) = harness.of(Failed)
    assert outcome.stop == "error" and outcome.error == "compactor of moody: not today"
    assert failed.message == outcome.error and "left as it is" in failed.hint
    assert [event.error for event in harness.of(CompactionFailed)] == [outcome.error]


async def test_a_compactor_that_does_not_answer_fails_at_its_deadline(tmp_path: Path) -> None:
    async with running(script(tmp_path, *four()), ("slow", Compactor("c", never)), deadlines=SHORT) as harness:
        await count_to_four(harness)
        outcome = await compact(harness)
        assert len(harness.session.transcript.messages) == 8
    assert "compactor of slow: no answer within" in outcome.error


async def test_cancelling_ends_a_compactor_that_hangs(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def hang(messages: tuple[Message, ...]) -> tuple[Message, ...]:
        asked.set()
        return await never(messages)

    async with running(script(tmp_path, *four()), Compactor("c", hang)) as harness:
        await count_to_four(harness)
        job = await harness.session.compact()
        async with asyncio.timeout(DEADLINE):
            await asked.wait()
            harness.session.abort()
            outcome = await job.result()
        assert outcome.stop == "aborted" and len(harness.session.transcript.messages) == 8


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((), "nothing in the conversation"),
        ((user_text(" \n"), AssistantMessage((), now())), "nothing in the conversation"),
        ((user_text("x" * 2000),), "no shorter"),
    ],
    ids=["nothing", "blanks", "longer"],
)
async def test_a_conversation_that_cannot_be_gone_on_with_is_not_taken(
    tmp_path: Path, answer: tuple[Message, ...], why: str
) -> None:
    async with running(script(tmp_path, *four()), ("odd", compactor(*answer))) as harness:
        await count_to_four(harness)
        before = harness.session.transcript.messages
        outcome = await compact(harness)
        assert harness.session.transcript.messages == before
    assert outcome.stop == "error" and "compactor of odd" in outcome.error and why in outcome.error


async def test_what_the_user_said_last_is_put_back_when_a_compactor_forgot_it(tmp_path: Path) -> None:
    async with running(script(tmp_path, *four(says("go on"))), compactor(user_text("a summary"))) as harness:
        await count_to_four(harness)
        await compact(harness)
        assert texts(harness.session.transcript.messages) == ["a summary", "please say four"]
        assert (await harness.say("and?")).text == "go on"


def test_words_that_are_quoted_count_as_kept_unless_they_are_few_enough_to_be_there_by_chance() -> None:
    long = "please have a look at the third test and tell me why it fails"
    padding = AssistantMessage((Text("x" * 400),), now())
    assert texts(sound([user_text(long), padding], [user_text(f"They asked: {long}")])) == [f"They asked: {long}"]
    assert texts(sound([user_text("go"), padding], [user_text("It went good")])) == ["It went good", "go"]
    assert texts(sound([user_text("go"), padding], [user_text("It went"), user_text(" go\n")])) == ["It went", " go\n"]


async def test_what_is_said_while_a_compactor_is_at_work_is_kept(tmp_path: Path) -> None:
    harnesses: list[Harness] = []

    async def meanwhile(_: tuple[Message, ...]) -> tuple[Message, ...]:
        harnesses[0].session.transcript.add(user_text("by the way"))
        return (user_text("all before"),)

    async with running(script(tmp_path, *four()), Compactor("c", meanwhile)) as harness:
        harnesses.append(harness)
        await count_to_four(harness)
        await compact(harness)
        assert texts(harness.session.transcript.messages) == ["all before", "please say four", "by the way"]


@pytest.mark.parametrize("count", [1, 20])
async def test_a_conversation_that_was_replaced_meanwhile_is_not_replaced_again(tmp_path: Path, count: int) -> None:
    harnesses: list[Harness] = []

    async def meanwhile(_: tuple[Message, ...]) -> tuple[Message, ...]:
        harnesses[0].session.transcript.replace((user_text("something else"),) * count, "other")
        return (user_text("all before"),)

    async with running(script(tmp_path, *four()), Compactor("c", meanwhile)) as harness:
        harnesses.append(harness)
        await count_to_four(harness)
        outcome = await compact(harness)
        assert texts(harness.session.transcript.messages) == ["something else"] * count
    assert "replaced while" in outcome.error


# By itself


async def test_a_compactor_is_asked_when_the_conversation_reaches_what_it_wants(tmp_path: Path) -> None:
    turns = four(says("five"), says("six"), usage={"input": 900, "output": 100})
    async with running(script(tmp_path, *turns), ("short", keeping(1, threshold=1000))) as harness:
        await count_to_four(harness)
        assert not harness.of(CompactionStarted)
        await harness.say("please say five")
        await harness.say("please say six")  # what was used before is no longer there: it is not asked again
        (started,) = harness.of(CompactionStarted)
        asked = harness.provider.requests[4]
    assert started.automatic and started.tokens >= 1000
    assert texts(asked.messages) == ["before: much", "please say five"]


@pytest.mark.parametrize(("count", "tokens", "expected"), [(8, 1000, True), (7, 1000, False), (8, 999, False)])
def test_a_short_conversation_is_not_shortened_however_much_it_used(count: int, tokens: int, expected: bool) -> None:
    messages = [AssistantMessage((Text("x"),), now(), usage=Usage(input=tokens))] * count
    assert wanted(messages, 1000) is expected
    assert not wanted(messages, 0)


async def test_a_full_window_is_the_compactors_to_empty_and_a_summary_does_it_when_that_fails(tmp_path: Path) -> None:
    turns = four(says("They counted."), says("five"), usage=FULL)
    async with running(script(tmp_path, *turns), ("moody", Compactor("c", moody))) as harness:
        await count_to_four(harness)
        assert (await harness.say("please say five")).text == "five"
        first = harness.session.transcript.messages[0]
        told = [event.message for event in harness.of(Noticed)]
    assert isinstance(first, UserMessage) and first.summary and "They counted." in text_of(first.content)
    assert told == ["compactor of moody: not today"]


async def test_what_only_the_compactor_wanted_costs_nothing_when_it_fails(tmp_path: Path) -> None:
    turns = four(says("five"), usage={"input": 900, "output": 100})
    async with running(script(tmp_path, *turns), ("moody", Compactor("c", moody, threshold=1000))) as harness:
        await count_to_four(harness)
        assert (await harness.say("please say five")).text == "five"
        assert len(harness.session.transcript.messages) == 10 and len(harness.provider.requests) == 5


async def test_after_three_failures_in_a_row_a_compactor_is_left_alone_for_a_while(tmp_path: Path) -> None:
    used = {"input": 900, "output": 100}
    turns = four(*(says(str(number), usage=used) for number in range(5, 10)), usage=used)
    async with running(script(tmp_path, *turns), ("moody", Compactor("c", moody, threshold=1000))) as harness:
        await count_to_four(harness)
        for number in range(5, 10):
            await harness.say(f"please say {number}")
        told = [event.message for event in harness.of(Noticed)]
        assert len(harness.of(CompactionStarted)) == 3
        outcome = await compact(harness)  # by hand it is asked all the same
    assert "not asked again for 5 minutes" in told[-1] and not any("again" in one for one in told[:-1])
    assert outcome.error == "compactor of moody: not today"


async def test_a_success_in_between_makes_up_for_failures(tmp_path: Path) -> None:
    asked: list[int] = []

    async def tiring(messages: tuple[Message, ...]) -> tuple[Message, ...]:
        asked.append(len(messages))
        return (user_text("s"), *messages[-8:]) if len(asked) == 3 else await moody(messages)

    used = {"input": 900, "output": 100}
    turns = four(*(says(str(number), usage=used) for number in range(5, 11)), usage=used)
    async with running(script(tmp_path, *turns), ("tired", Compactor("c", tiring, threshold=1000))) as harness:
        await count_to_four(harness)
        for number in range(5, 11):
            await harness.say(f"please say {number}")
        assert len(harness.of(CompactionDone)) == 1
    assert len(asked) == 6


def test_the_breaker_counts_failures_in_a_row_and_closes_again_after_its_rest() -> None:
    now_ = [0.0]
    breaker = Breaker(failures=2, rest=10, clock=lambda: now_[0])
    assert not breaker.failed() and not breaker.open
    breaker.succeeded()
    assert not breaker.failed()
    assert breaker.failed() and breaker.open
    now_[0] = 9.9
    assert breaker.open
    now_[0] = 10.0
    assert not breaker.open


async def test_the_users_own_limit_has_the_conversation_summarised_before_the_window_is_full(tmp_path: Path) -> None:
    turns = four(says("They counted."), says("five"), usage={"input": 1900, "output": 100})
    async with running(script(tmp_path, *turns), compact_at=2000) as harness:
        await count_to_four(harness)
        await harness.say("please say five")
        assert len(harness.of(CompactionDone)) == 1


async def test_a_summary_can_follow_what_a_compactor_made(tmp_path: Path) -> None:
    asked: list[int] = []

    async def once(messages: tuple[Message, ...]) -> tuple[Message, ...]:
        asked.append(len(messages))
        return (user_text("before: much"), *messages[-6:]) if len(asked) == 1 else await moody(messages)

    turns = four(says("five", usage=FULL), says("They counted."), says("six"))
    with SessionLog.create(tmp_path / "s.jsonl", new_meta("/project", "script", "script")) as log:
        async with running(script(tmp_path, *turns), ("tired", Compactor("c", once)), log=log) as harness:
            await count_to_four(harness)
            await compact(harness)
            await harness.say("please say five")
            await harness.say("please say six")
            kept = texts(harness.session.transcript.messages)
    assert asked == [8, 10]
    assert "They counted." in kept[0] and kept[-4:] == ["please say five", "five", "please say six", "six"]
    with SessionLog.open(tmp_path / "s.jsonl") as again:
        assert texts(again.messages()) == kept


async def test_compaction_within_a_turn_keeps_calls_and_results_together(tmp_path: Path) -> None:
    used = {"input": 900, "output": 100}
    model = script(tmp_path, *[calls(("echo", {"n": n}), usage=used) for n in range(8)], says("done"))
    async with running(model, tool("echo", echo), ("short", keeping(3, threshold=1000))) as harness:
        outcome = await harness.say("please call it eight times")
        assert harness.of(CompactionDone)
        first = harness.session.transcript.messages[0]
        assert outcome.text == "done" and "before: much" in texts([first])
        assert any("please call it eight times" in text for text in texts(harness.session.transcript.messages))


# What is taken of an answer, whatever it is


def _message(kind: str, number: int) -> Message:
    match kind:
        case "user":
            return user_text(f"said {number}")
        case "blank":
            return user_text("")
        case "assistant":
            return AssistantMessage((Text(f"answer {number}"),), now())
        case "call":
            return AssistantMessage((ToolCall(f"c{number}", "t", {}),), now())
        case _:
            return ToolMessage((ToolResult(f"c{number - 1}", "t", (Text("out"),)),), now())


KINDS = st.lists(st.sampled_from(["user", "blank", "assistant", "call", "result"]), max_size=12)


@patient
@given(before=KINDS, answer=KINDS)
def test_what_is_taken_can_be_sent_holds_the_users_last_words_and_is_shorter(
    before: list[str], answer: list[str]
) -> None:
    said = [_message(kind, number) for number, kind in enumerate(before)]
    padding = AssistantMessage((Text("x" * 200),), now())
    try:
        taken = sound([*said, padding], [_message(kind, number + 100) for number, kind in enumerate(answer)])
    except HiltError:
        return
    for position, message in enumerate(taken):
        following = taken[position + 1] if position + 1 < len(taken) else None
        if wanted_calls := tool_calls(message):
            assert isinstance(following, ToolMessage)
            assert [result.call_id for result in following.results] == [call.id for call in wanted_calls]
    last = [text_of(m.content) for m in said if isinstance(m, UserMessage) and text_of(m.content)][-1:]
    assert taken and all(any(words in text for text in texts(taken)) for words in last)
