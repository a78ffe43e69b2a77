"""The conversation in other hands: read, replaced at any moment, shortened, waited for."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.agent.bookkeeping import Bookkeeping
from hilt.agent.conversing import Conversing
from hilt.agent.transcript import Transcript
from hilt.errors import HiltError
from hilt.extensions.services.ports import Conversation
from hilt.model.content import Text, ToolCall, text_of
from hilt.model.contributions import Contribution, Invocation, PromptSection, ToolOutput
from hilt.model.conversation import (
    AssistantMessage,
    Message,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
    now,
    pair_calls,
    tool_calls,
    user_text,
)
from hilt.model.events import CompactionFailed, CompactionStarted, Event, StateChanged, ToolResultAdded
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.records import EntryRecord, new_meta
from support.agent import DEADLINE, Harness, calls, echo, running, says, script, tool
from support.properties import patient


def spoken(messages: Sequence[Message]) -> list[str]:
    return [
        "|".join(text_of(result.content) for result in message.results)
        if isinstance(message, ToolMessage)
        else text_of(message.content)
        for message in messages
    ]


def on_disk(folder: Path) -> SessionLog:
    return SessionLog.create(folder / "session.jsonl", new_meta("/project", "script", "script"))


def kept(folder: Path) -> list[str]:
    with SessionLog.open(folder / "session.jsonl", writable=False) as log:
        return spoken(pair_calls(log.messages()))


def acting(act: Any) -> Contribution:
    async def run(_: Invocation) -> ToolOutput:
        await act()
        return ToolOutput.of("done")

    return tool("act", run)


# Replacing


async def test_a_replaced_conversation_is_sent_kept_and_told(tmp_path: Path) -> None:
    with on_disk(tmp_path) as log:
        async with running(script(tmp_path, says("one"), says("two")), log=log) as harness:
            conversation: Conversation = Conversing(harness.session)
            await harness.say("long")
            await conversation.replace([user_text("short")], "tidy")
            assert spoken(conversation.messages()) == ["short"]
            assert harness.of(StateChanged)
            await harness.say("next")
            assert spoken(harness.provider.requests[-1].messages) == ["short", "next"]
    assert kept(tmp_path) == ["short", "next", "two"]


async def test_nothing_in_place_of_all_is_an_empty_conversation(tmp_path: Path) -> None:
    with on_disk(tmp_path) as log:
        async with running(script(tmp_path, says("one"), says("two")), log=log) as harness:
            await harness.say("long")
            await Conversing(harness.session).replace([], "tidy")
            assert harness.session.transcript.messages == ()
            assert (await harness.say("anew")).text == "two"
    assert kept(tmp_path) == ["anew", "two"]


async def test_what_cannot_be_paired_is_repaired_and_what_is_empty_left_out(tmp_path: Path) -> None:
    asked = AssistantMessage((ToolCall("1", "echo", {}), ToolCall("2", "echo", {})), now())
    stray = ToolMessage((ToolResult("9", "echo", (Text("stray"),)),), now())
    some = ToolMessage((ToolResult("2", "echo", (Text("two"),)),), now())
    async with running(script(tmp_path, says("ok"))) as harness:
        conversation = Conversing(harness.session)
        empty = (UserMessage((), now()), AssistantMessage((), now()), ToolMessage((), now()))
        await conversation.replace([stray, user_text("go"), *empty, asked, some], "tidy")
        first, second, third = conversation.messages()
        assert spoken([first]) == ["go"]
        assert isinstance(second, AssistantMessage) and (second.provider, second.model) == ("script", "script")
        assert isinstance(third, ToolMessage)
        assert [(result.call_id, result.is_error) for result in third.results] == [("1", True), ("2", False)]
        assert (await harness.say("go on")).text == "ok"


async def test_a_conversation_replaced_between_tool_results_goes_on_with_all_of_them(tmp_path: Path) -> None:
    """As extensions do that shorten it at every turn."""

    async def shorten() -> None:
        conversation = Conversing(harness.session)
        await conversation.replace([user_text("in short"), *conversation.messages()[2:]], "tidy")

    turns = [says("one"), calls(("act", {}), ("echo", {"n": 1}), ("act", {})), says("end")]
    with on_disk(tmp_path) as log:
        async with running(script(tmp_path, *turns), acting(shorten), tool("echo", echo), log=log) as harness:
            await harness.say("long")
            assert (await harness.say("go")).text == "end"
            wanted = ["in short", "", 'done|{"n": 1}|done']
            assert spoken(harness.provider.requests[-1].messages) == wanted
    assert kept(tmp_path) == [*wanted, "end"]


@pytest.mark.parametrize("given_", [[], [user_text("in short")]])
async def test_what_is_under_way_stays_also_when_whoever_replaces_it_does_not_know_of_it(
    tmp_path: Path, given_: list[Message]
) -> None:
    async def replace() -> None:
        await Conversing(harness.session).replace(given_, "tidy")

    with on_disk(tmp_path) as log:
        async with running(
            script(tmp_path, calls(("act", {}), ("echo", {})), says("end")),
            acting(replace),
            tool("echo", echo),
            log=log,
        ) as harness:
            assert (await harness.say("go")).text == "end"
            wanted = [*spoken(given_), "", "done|{}"]
            assert spoken(harness.provider.requests[-1].messages) == wanted
    assert kept(tmp_path) == [*wanted, "end"]


async def test_a_result_whose_call_was_taken_out_is_not_sent_and_the_others_are(tmp_path: Path) -> None:
    async def take_out() -> None:
        conversation = Conversing(harness.session)
        said, asked = conversation.messages()
        assert isinstance(asked, AssistantMessage)
        first = AssistantMessage(asked.content[:1], asked.time)
        await conversation.replace([said, first], "tidy")

    with on_disk(tmp_path) as log:
        async with running(
            script(tmp_path, calls(("act", {}), ("echo", {})), says("end")),
            acting(take_out),
            tool("echo", echo),
            log=log,
        ) as harness:
            assert (await harness.say("go")).text == "end"
            assert spoken(harness.provider.requests[-1].messages) == ["go", "", "done"]
            assert len(harness.of(ToolResultAdded)) == 2
    assert kept(tmp_path) == ["go", "", "done", "end"]


async def test_a_made_up_result_does_not_stand_in_for_one_that_is_still_to_come(tmp_path: Path) -> None:
    async def make_up() -> None:
        conversation = Conversing(harness.session)
        said, asked = conversation.messages()
        made_up = [ToolResult(call.id, call.name, (Text("made up"),)) for call in tool_calls(asked)]
        await conversation.replace([said, asked, ToolMessage(tuple(made_up), now())], "tidy")

    async with running(script(tmp_path, calls(("act", {})), says("end")), acting(make_up)) as harness:
        assert (await harness.say("go")).text == "end"
        assert spoken(harness.provider.requests[-1].messages) == ["go", "", "done"]


async def test_what_replaced_messages_used_does_not_count_again(tmp_path: Path) -> None:
    full = {"input": 8000, "output": 600}  # of a window of 10,000
    async with running(script(tmp_path, says("1"), says("2"), says("3", usage=full), says("two"))) as harness:
        conversation = Conversing(harness.session)
        for number in range(3):
            await harness.say(str(number))
        before = harness.session.transcript.usage
        await conversation.replace(conversation.messages(), "tidy")
        assert harness.session.transcript.usage == before
        assert (await harness.say("next")).text == "two"  # and no compaction, which the script has no answer for
        assert not harness.of(CompactionStarted)


async def test_a_compaction_of_what_was_replaced_keeps_the_last_of_it(tmp_path: Path) -> None:
    with on_disk(tmp_path) as log:
        async with running(script(tmp_path, says("the sum"), says("end")), log=log) as harness:
            conversation = Conversing(harness.session)
            for number in range(8):
                harness.session.transcript.add(user_text(f"old {number}"))
            await conversation.replace([user_text(str(number)) for number in range(8)], "tidy")
            compacted = await conversation.compact()
            assert (compacted.before, compacted.after) == (8, 5)
            assert spoken(conversation.messages())[1:] == ["4", "5", "6", "7"]
            await harness.say("more")
    assert kept(tmp_path)[1:] == ["4", "5", "6", "7", "more", "end"]
    assert "the sum" in kept(tmp_path)[0]


async def test_a_conversation_replaced_while_it_is_summarised_is_left_as_it_was_replaced(tmp_path: Path) -> None:
    async def replace(event: Event) -> None:
        if isinstance(event, CompactionStarted):
            await conversation.replace([user_text(f"new {number}") for number in range(8)], "tidy")

    async with running(script(tmp_path, says("the sum"))) as harness:
        conversation = Conversing(harness.session)
        await conversation.replace([user_text(str(number)) for number in range(8)], "tidy")
        with harness.session.bus.subscribed(replace), pytest.raises(HiltError, match="was replaced while"):
            await conversation.compact()
        assert len(harness.of(CompactionFailed)) == 1
        assert spoken(conversation.messages()) == [f"new {number}" for number in range(8)]


# Looking and waiting


async def test_a_snapshot_is_what_the_model_would_be_sent(tmp_path: Path) -> None:
    section = PromptSection("Manners", "Say please.")
    async with running(script(tmp_path, says("ok")), tool("echo", echo), section) as harness:
        await harness.say("go")
        snapshot = Conversing(harness.session).snapshot()
        request = harness.provider.requests[-1]
        assert (snapshot.system, snapshot.tools) == (request.system, request.tools)
        assert "Say please." in snapshot.system
        assert spoken(snapshot.messages) == ["go", "ok"]


async def test_before_the_first_prompt_nothing_is_waited_for(tmp_path: Path) -> None:  # weakness 22
    async with running(script(tmp_path, says("ok"))) as harness:
        async with asyncio.timeout(DEADLINE):
            await Conversing(harness.session).idle()


async def test_idle_is_when_nothing_runs_and_nothing_waits(tmp_path: Path) -> None:
    async with running(script(tmp_path, says("one"), says("two"))) as harness:
        await harness.session.prompt(user_text("a"))
        await harness.session.prompt(user_text("b"))
        async with asyncio.timeout(DEADLINE):
            await Conversing(harness.session).idle()
        assert spoken(harness.session.transcript.messages) == ["a", "one", "b", "two"]


# Shortening


async def test_a_compaction_answers_how_long_the_conversation_was_and_is(tmp_path: Path) -> None:
    answers = [says("1"), says("2"), says("3"), says("the sum")]
    async with running(script(tmp_path, *answers)) as harness:
        conversation = Conversing(harness.session)
        assert not conversation.has_compactor()
        for number in range(3):
            await harness.say(str(number))
        compacted = await conversation.compact()
        assert (compacted.before, compacted.after) == (6, 5)


async def test_a_compaction_that_fails_says_why(tmp_path: Path) -> None:
    async with running(script(tmp_path, says("ok"))) as harness:
        with pytest.raises(HiltError, match="nothing to compact"):
            await Conversing(harness.session).compact()


async def test_a_tool_that_wants_a_compaction_does_not_wait_for_its_own_end(tmp_path: Path) -> None:
    told: list[str] = []

    async def compact() -> None:
        try:
            await Conversing(harness.session, patience=0.01).compact()
        except HiltError as error:
            told.append(error.message)

    answers = [says("1"), says("2"), calls(("act", {})), says("end"), says("the sum")]
    async with running(script(tmp_path, *answers), acting(compact)) as harness:
        for number in range(3):
            await harness.say(str(number))
        async with asyncio.timeout(DEADLINE):
            await harness.session.idle()
        assert told == ["the conversation is compacted when the turn that runs has ended"]
        assert "the sum" in spoken(harness.session.transcript.messages)[0]


async def test_a_compaction_that_is_taken_back_is_told(tmp_path: Path) -> None:
    async def act() -> None:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(_refused(Conversing(harness.session)))
            while not harness.session.waiting:
                await asyncio.sleep(0)
            await harness.session.take_back()
        told.append(waiting.result())

    told: list[str] = []
    async with running(script(tmp_path, calls(("act", {})), says("end")), acting(act)) as harness:
        await harness.say("go")
    assert told == ["never started"]


async def _refused(conversation: Conversing) -> str:
    with pytest.raises(HiltError) as raised:
        await conversation.compact()
    return raised.value.message


# In memory as on disk


class Play:
    """Does to a transcript what may be done to one, in any order that a turn allows."""

    def __init__(self) -> None:
        self.log = SessionLog.in_memory(new_meta("/project", "script", "script"))
        self.transcript = Transcript(Journal(self.log))
        self.open: list[ToolCall] = []
        self.number = 0

    def do(self, what: str, amount: int) -> None:
        self.number += 1
        transcript, text = self.transcript, str(self.number)
        match what:
            case "say":
                transcript.add(user_text(text))
            case "answer" if not self.open:
                transcript.add(AssistantMessage((Text(text),), now(), usage=Usage(1, 1)))
            case "call" if not self.open:
                self.open = [ToolCall(f"{text}-{one}", "echo", {}) for one in range(amount % 3 + 1)]
                transcript.add(AssistantMessage((Text(text), *self.open), now()))
            case "result" if self.open:
                call = self.open.pop(amount % len(self.open))
                transcript.add_result(ToolResult(call.id, call.name, (Text(text),)))
            case "replace":
                messages = transcript.messages
                first = [user_text(f"{text}.{number}") for number in range(amount)]
                transcript.replace((*first, *messages[len(messages) - amount :]), "tidy")
            case "entry":
                self.log.append(EntryRecord("k", self.number, "e"))
            case "compact" if not self.open and (cut := self._cut(amount)):
                assert transcript.compact(text, transcript.messages[cut:], Usage(1, 1))
            case "clear" if not self.open:
                transcript.clear()

    def _cut(self, amount: int) -> int:
        messages = self.transcript.messages
        cut = max(len(messages) - amount, 0)
        while cut > 0 and isinstance(messages[cut:] and messages[cut], ToolMessage):
            cut -= 1
        return cut if cut < len(messages) else 0

    def finish(self) -> None:
        while self.open:
            self.do("result", 0)


_STEPS = ["say", "answer", "call", "result", "result", "replace", "entry", "compact", "clear"]


@settings(patient, max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(_STEPS), st.integers(0, 6)), max_size=30))
def test_what_is_read_back_is_what_was_in_memory_and_always_fit_to_send(steps: list[tuple[str, int]]) -> None:
    play = Play()
    for what, amount in steps:
        play.do(what, amount)
    play.finish()
    live = list(play.transcript.messages)
    read = pair_calls(play.log.messages())
    assert spoken(live) == spoken(read)
    assert [type(message) for message in live] == [type(message) for message in read]
    assert pair_calls(live) == live
    counted = play.transcript.usage
    assert counted == play.log.usage


def test_a_result_that_comes_twice_is_sent_once() -> None:
    play = Play()
    play.do("call", 0)
    result = ToolResult(play.open[0].id, "echo", (Text("one"),))
    play.transcript.add_result(result)
    play.transcript.add_result(result)
    assert spoken(play.transcript.messages) == ["1", "one"]
    assert spoken(pair_calls(play.log.messages())) == ["1", "one"]


async def test_messages_and_replacements_by_two_extensions_at_once_are_all_kept(tmp_path: Path) -> None:
    with on_disk(tmp_path) as log:
        async with running(script(tmp_path, says("ok")), log=log) as harness:
            await _at_once(harness)
            wanted = spoken(harness.session.transcript.messages)
    assert kept(tmp_path) == wanted
    assert set(wanted) == {"short", *(str(number) for number in range(10))}


async def _at_once(harness: Harness) -> None:
    sessions, conversation = Bookkeeping(harness.session), Conversing(harness.session)
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
        group.create_task(conversation.replace([user_text("short")], "tidy"))
        for number in range(10):
            group.create_task(sessions.append_message("user", str(number), "guide"))
