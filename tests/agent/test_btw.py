"""Questions beside the conversation: what the model is shown, what stays of it, and how it ends."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hilt.agent.btw import SideChat
from hilt.errors import BadRequest, HiltError, ProviderError, Unavailable, UsageError
from hilt.model.content import Text, ToolCall, text_of
from hilt.model.contributions import Invocation, PromptSection, ToolOutput
from hilt.model.conversation import ToolMessage, Usage
from hilt.model.events import UsageReported
from hilt.model.stream import ModelRequest
from hilt.sessions.log import SessionLog
from hilt.sessions.records import SpentRecord, new_meta
from support.agent import DEADLINE, Harness, calls, running, says, script, tool
from support.sources import Source


class _Provider:
    """A source, asked directly."""

    name = "script"

    def __init__(self, source: Source) -> None:
        self.stream = source.stream

    async def aclose(self) -> None: ...


def last_words(request: ModelRequest) -> str:
    message = request.messages[-1]
    assert not isinstance(message, ToolMessage)
    return text_of(message.content)


async def ask(chat: SideChat, question: str) -> tuple[str, str]:
    """The answer, and what was told of it while it came."""
    pieces: list[str] = []
    async with asyncio.timeout(DEADLINE):
        return await chat.ask(question, pieces.append), "".join(pieces)


async def test_a_side_question_is_answered_from_the_conversation_without_tools_and_leaves_no_trace_in_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "session.jsonl"
    log = SessionLog.create(path, new_meta("/p", "script", "script"))
    turns = (says("hello"), says("forty-two", usage={"input": 100, "output": 20}), says("bye"))
    section = PromptSection("Rules", "be kind")
    async with running(script(tmp_path, *turns), section, tool("look", _never), log=log) as harness:
        await harness.say("hi")
        before, told = harness.session.transcript.messages, len(harness.events)
        answer, streamed = await ask(SideChat(harness.session), "how much?")
        assert answer == streamed == "forty-two"
        request = harness.provider.requests[-1]
        assert request.tools == () and request.messages[:-1] == before
        assert request.system == "be brief\n\n# Rules\n\nbe kind"
        assert last_words(request).endswith("how much?") and "no tools" in last_words(request)
        assert harness.session.transcript.messages == before
        assert [type(event) for event in harness.events[told:]] == [UsageReported]
        await harness.say("go on")
        assert "how much?" not in str(harness.provider.requests[-1].messages)
        records = [log.read(entry) for entry in log.entries()]
        (spent,) = [record for record in records if isinstance(record, SpentRecord)]
        assert (spent.extension, spent.usage.input, spent.usage.output) == ("hilt", 100, 20)
        total = harness.session.transcript.usage
    log.close()
    assert "how much" not in path.read_text() and "forty-two" not in path.read_text()
    with SessionLog.open(path) as again:
        assert again.usage == total and total.cost_usd > 0


async def test_questions_go_on_from_each_other_over_the_conversation_as_it_was(tmp_path: Path) -> None:
    async with running(script(tmp_path, says("one"), says("side one"), says("two"), says("side two"))) as harness:
        await harness.say("first")
        chat = SideChat(harness.session)
        await ask(chat, "and?")
        await harness.say("second")
        assert await ask(chat, "why?") == ("side two", "side two")
        words = [
            text_of(one.content) for one in harness.provider.requests[-1].messages if not isinstance(one, ToolMessage)
        ]
        assert words[:2] == ["first", "one"] and words[3] == "side one" and len(words) == 5
        assert words[2].endswith("and?") and words[4].endswith("why?")


async def test_a_call_that_is_still_running_is_said_to_be_so(tmp_path: Path) -> None:
    begun, done = asyncio.Event(), asyncio.Event()

    async def dig(_: Invocation) -> ToolOutput:
        begun.set()
        await done.wait()
        return ToolOutput.of("gold")

    turns = script(tmp_path, calls(("look", {})), calls(("dig", {}), ("dig", {})), says("aside"), says("found"))
    async with running(turns, tool("dig", dig), tool("look", _looks)) as harness:
        async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
            turn = group.create_task(harness.say("go"))
            await begun.wait()
            assert (await ask(SideChat(harness.session), "what are you doing?"))[0] == "aside"
            done.set()
        assert turn.result().text == "found"
        results = [
            (text_of(result.content), result.is_error)
            for message in harness.provider.requests[2].messages
            if isinstance(message, ToolMessage)
            for result in message.results
        ]
        assert results[0] == ("seen", False) and len(results) == 3
        assert all("still running" in text and not failed for text, failed in results[1:])


async def test_cancelling_a_question_closes_its_stream_and_the_next_one_follows_the_last_answer() -> None:
    source = Source("script", [Text("fine")], [], [Text("again")])
    async with asyncio.timeout(DEADLINE), running(_Provider(source)) as harness:
        chat = SideChat(harness.session)
        await ask(chat, "how are you?")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(ask(chat, "never mind"))
            await source.hanging.wait()
            with pytest.raises(UsageError, match="still being answered"):
                await chat.ask("too early", _unheard)
            harness.session.abort()  # the turn's business, and not the chat's
            task.cancel()
        assert task.cancelled() and source.closed == 2
        assert await ask(chat, "and now?") == ("again", "again")
        assert len(source.requests[-1].messages) == 3 and "never mind" not in str(source.requests[-1].messages)


async def test_a_cancelled_turn_does_not_end_the_chat() -> None:
    source = Source("script", [], [Text("calm")])
    async with asyncio.timeout(DEADLINE), running(_Provider(source)) as harness:
        release = asyncio.Event()

        def on_delta(_: str) -> None:
            harness.session.abort()
            release.set()

        async with asyncio.TaskGroup() as group:
            turn = group.create_task(harness.say("go"))
            await source.hanging.wait()
            assert await SideChat(harness.session).ask("ok?", on_delta) == "calm"
        assert turn.result().stop == "aborted" and release.is_set()


async def test_what_fails_is_told_as_an_error_and_a_passing_failure_voids_what_came(tmp_path: Path) -> None:
    broken: dict[str, Any] = says("half", error={"status": 503, "message": "busy"})
    turns = script(tmp_path, broken, says("whole"), *[broken] * 4, says("x", error={"status": 400}), says(" "))
    async with running(turns) as harness:
        chat = SideChat(harness.session)
        told: list[str] = []

        def again(reason: str) -> None:
            told.append(f"again: {reason}")

        async with asyncio.timeout(DEADLINE):
            assert await chat.ask("try", told.append, again) == "whole"
        assert "".join(told) == "halfagain: busywhole"
        for kind in (Unavailable, BadRequest, ProviderError):
            assert isinstance(await _failure(chat), kind)
        with pytest.raises(UsageError, match="no question"):
            await chat.ask(" \n", _unheard)
        assert len(harness.provider.requests[-1].messages) == 3  # none of those that failed is remembered
        assert harness.session.transcript.usage == Usage() and _ends(harness)


async def test_a_model_that_calls_a_tool_all_the_same_calls_nothing() -> None:
    source = Source("script", [Text("let me look"), ToolCall("1", "look", {})], [Text("well")])
    async with asyncio.timeout(DEADLINE), running(_Provider(source), tool("look", _never)) as harness:
        chat = SideChat(harness.session)
        assert (await ask(chat, "what is there?"))[0] == "let me look"
        assert (await ask(chat, "so?"))[0] == "well"


async def _failure(chat: SideChat) -> HiltError:
    with pytest.raises(HiltError) as caught:
        await ask(chat, "try")
    return caught.value


def _ends(harness: Harness) -> bool:
    return harness.events == [] and harness.session.transcript.messages == ()


def _unheard(_: str) -> None:
    raise AssertionError("there was something to hear")


async def _never(_: Invocation) -> ToolOutput:
    raise AssertionError("a tool was called")


async def _looks(_: Invocation) -> ToolOutput:
    return ToolOutput.of("seen")
