"""Result interceptors: the order, what they may change, and that a tool that ran has a result whatever they do."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hilt.agent import results
from hilt.agent.deadlines import Deadlines
from hilt.errors import ExtensionError, ToolError
from hilt.model.content import Text, text_of
from hilt.model.contributions import Finished, Invocation, ResultInterceptor, ToolOutput
from hilt.model.conversation import ToolMessage, ToolResult, user_text
from hilt.model.events import Noticed, ToolResultAdded
from hilt.sessions.records import NoteRecord
from support.agent import DEADLINE, Harness, calls, running, says, script, tool

SHORT = Deadlines(result=0.02)


async def secret(_: Invocation) -> ToolOutput:
    return ToolOutput.of("the key is 1234", lines=1)


def after(change: Callable[[str], str], priority: int = 0) -> ResultInterceptor:
    async def changed(finished: Finished) -> ToolOutput:
        text = change(text_of(finished.output.content))
        return structs.replace(finished.output, content=(Text(text),))

    return ResultInterceptor(changed, priority)


async def untouched(finished: Finished) -> ToolOutput:
    return finished.output


async def never(_: Finished) -> ToolOutput:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


async def moody(_: Finished) -> ToolOutput:
    raise ExtensionError("moody", "not today")


def result(harness: Harness, number: int = -1) -> ToolResult:
    """As the model is sent it."""
    messages = [m for m in harness.session.transcript.messages if isinstance(m, ToolMessage)]
    return messages[number].results[0]


def notes(harness: Harness, kind: str) -> list[dict[str, Any]]:
    log = harness.session.parts.log
    records = [log.read(entry) for entry in log.entries()]
    return [record.data for record in records if isinstance(record, NoteRecord) and record.kind == kind]


async def test_each_sees_what_the_one_before_left_those_of_high_priority_first(tmp_path: Path) -> None:
    model = script(tmp_path, calls(("t", {})), says("ok"))
    second, first = after(lambda text: f"[{text}]", 10), after(lambda text: text.replace("1234", "…"), 20)
    async with running(model, tool("t", secret), ("framer", second), ("redactor", first)) as harness:
        await harness.say("go")
        (told,) = harness.of(ToolResultAdded)
        assert text_of(result(harness).content) == text_of(told.content) == "[the key is …]"
        assert told.changed_by == ("redactor", "framer")
        (note,) = notes(harness, "result_changed")
    assert list(note["by"]) == ["redactor", "framer"] and note["name"] == "t" and note["id"] == told.id
    assert note["original"]["content"] == [{"type": "text", "text": "the key is 1234"}]


async def test_whether_it_failed_and_the_details_can_be_changed_and_what_is_left_alone_stays(tmp_path: Path) -> None:
    async def fails(finished: Finished) -> ToolOutput:
        return structs.replace(finished.output, is_error=True, details={**finished.output.details, "seen": True})

    model = script(tmp_path, calls(("t", {})), says("ok"))
    async with running(model, tool("t", secret), ResultInterceptor(fails)) as harness:
        await harness.say("go")
        (told,) = harness.of(ToolResultAdded)
        kept = result(harness)
    assert kept.is_error and told.is_error and told.status == "failed"
    assert kept.details == told.details == {"lines": 1, "seen": True}
    assert text_of(kept.content) == "the key is 1234"


async def test_what_a_tool_says_when_it_fails_is_seen_too_and_what_never_ran_is_not(tmp_path: Path) -> None:
    seen: list[tuple[str, bool]] = []

    async def watch(finished: Finished) -> ToolOutput:
        seen.append((text_of(finished.output.content), finished.output.is_error))
        return finished.output

    async def broken(_: Invocation) -> ToolOutput:
        raise ToolError("no such file")

    model = script(tmp_path, calls(("t", {}), ("unknown", {})), says("ok"))
    async with running(model, tool("t", broken), ResultInterceptor(watch)) as harness:
        await harness.say("go")
        assert not notes(harness, "result_changed")
        assert [event.changed_by for event in harness.of(ToolResultAdded)] == [(), ()]
    assert seen == [("no such file", True)]


async def test_one_that_fails_or_is_slow_leaves_the_result_as_it_was_and_is_told_once(tmp_path: Path) -> None:
    model = script(tmp_path, calls(("t", {}), ("t", {})), says("ok"))
    async with running(
        model,
        tool("t", secret),
        ("first", after(str.upper, 9)),
        ("slow", ResultInterceptor(never, 8)),
        ("moody", ResultInterceptor(moody, 7)),
        ("last", after(lambda text: text + "!", 6)),
        deadlines=SHORT,
    ) as harness:
        await harness.say("go")
        assert [text_of(event.content) for event in harness.of(ToolResultAdded)] == ["THE KEY IS 1234!"] * 2
        unchecked = [note["extension"] for note in notes(harness, "result_unchecked")]
        told = [event.message for event in harness.of(Noticed)]
    assert unchecked == ["slow", "moody"] * 2  # every time on record
    assert len(told) == 2 and "result interceptor of slow: no answer within" in told[0]
    assert "result interceptor of moody: not today" in told[1]


async def test_cancelling_ends_one_that_hangs_and_keeps_what_the_tool_said(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def hang(finished: Finished) -> ToolOutput:
        asked.set()
        return await never(finished)

    model = script(tmp_path, calls(("t", {})), says("never"))
    async with running(
        model,
        tool("t", secret),
        ("first", after(str.upper, 9)),
        ("stuck", ResultInterceptor(hang)),
        deadlines=Deadlines(result=600),
    ) as harness:
        job = await harness.session.prompt(user_text("go"))
        async with asyncio.timeout(DEADLINE):
            await asked.wait()
            harness.session.abort()
            outcome = await job.result()
        (told,) = harness.of(ToolResultAdded)
    assert outcome.stop == "aborted" and len(harness.provider.requests) == 1
    assert text_of(told.content) == "THE KEY IS 1234" and told.status == "completed" and told.changed_by == ("first",)


async def test_they_see_the_calls_that_extensions_make_themselves(tmp_path: Path) -> None:
    async with running(script(tmp_path), tool("t", secret), ("redactor", after(lambda _: "gone"))) as harness:
        async with asyncio.timeout(DEADLINE):
            output = await harness.session.call_tool("t", {}, "caller")
        (told,) = harness.of(ToolResultAdded)
    assert text_of(output.content) == "gone"
    assert told.extension == "caller" and told.changed_by == ("redactor",)


async def test_a_result_left_without_content_still_says_something(tmp_path: Path) -> None:
    async def wipe(finished: Finished) -> ToolOutput:
        return structs.replace(finished.output, content=())

    model = script(tmp_path, calls(("t", {})), says("ok"))
    async with running(model, tool("t", secret), ResultInterceptor(wipe)) as harness:
        await harness.say("go")
        assert text_of(result(harness).content) == "(no output)"


async def test_parallel_calls_are_looked_at_side_by_side(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    async def meet(finished: Finished) -> ToolOutput:
        async with asyncio.timeout(DEADLINE):
            await both.wait()
        return finished.output

    looking: Callable[[Finished], Awaitable[ToolOutput]] = meet
    model = script(tmp_path, calls(("t", {}), ("t", {})), says("ok"))
    async with running(model, tool("t", secret, parallel=True), ResultInterceptor(looking)) as harness:
        assert (await harness.say("go")).text == "ok"


async def test_one_that_failed_is_hardly_waited_for_until_it_answers_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "_IMPATIENCE", 0.02)
    asked = 0

    async def moody(finished: Finished) -> ToolOutput:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise ExtensionError("moody", "not now")
        if asked == 2:
            await asyncio.Event().wait()
        return finished.output

    model = script(tmp_path, calls(("t", {})), calls(("t", {})), calls(("t", {})), says("ok"))
    patient = Deadlines(result=600)
    async with running(model, tool("t", secret), ("moody", ResultInterceptor(moody)), deadlines=patient) as harness:
        assert (await harness.say("go")).text == "ok"
        assert asked == 3 and harness.session.bench.complained == set()
