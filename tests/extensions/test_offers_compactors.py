"""Extensions of either dialect that shorten the conversation: whatever they answer, it is never lost."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hilt.agent.deadlines import Deadlines
from hilt.model.content import text_of
from hilt.model.conversation import Message, UserMessage
from hilt.model.events import CompactionDone, CompactionFailed
from support.agent import calls, says
from support.extending import Extended, Made, extended
from support.hilt_process import Hilt, Rpc
from support.offerer import Ask, Refused
from support.offering import heard, offering

USED = {"usage": {"input": 600, "output": 1}}


def shorten(ask: Ask) -> Any:
    messages = ask.params["messages"]
    summary = {"type": "user", "data": {"content": f"summary of {len(messages)}"}}
    return {"messages": [summary, messages[-1]]}


def compactor(answer: Any = shorten, threshold: int = 0, **more: Any) -> Made:
    offer = ("compactor", {"name": "c", "threshold": threshold})
    return offering("c", offer, answers={"compact/execute": answer}, **more)


def words(messages: tuple[Message, ...]) -> list[str]:
    return [text_of(one.content) for one in messages if isinstance(one, UserMessage)]


def asked(it: Extended) -> list[dict[str, Any]]:
    return heard(it.folder / "extensions/c", "compact/execute")


@pytest.mark.usefixtures("dialect")
async def test_a_compactor_is_asked_by_itself_from_its_threshold_on(tmp_path: Path) -> None:
    turns = [says(f"a{number}", **USED) for number in range(6)]
    async with extended(tmp_path, compactor(threshold=500), turns=turns) as it:
        await it.ready()
        for number in range(5):
            assert asked(it) == []  # it is too short yet, however many tokens it has
            await it.say(f"q{number}")
        [question] = asked(it)
        wrapped = question["params"]["messages"]
        assert [one["type"] for one in wrapped] == ["user", "assistant"] * 4 + ["user"]
        assert wrapped[-1]["data"]["content"] == "q4" and wrapped[1]["data"]["content"][0]["text"] == "a0"
        assert [done.messages for done in it.of(CompactionDone)] == [2]
        assert words(it.provider.requests[-1].messages) == ["summary of 9", "q4"]
        assert it.provider.requests[-1].messages[-1:] == it.session.transcript.messages[1:2]
        await it.say("q5")
        assert len(asked(it)) == 1


def misshape(ask: Ask) -> Any:
    """What is wrong with its answer is what was said last."""
    messages = ask.params["messages"]
    brief = {"type": "user", "data": {"content": "brief"}}
    match next(one["data"]["content"] for one in reversed(messages) if one["type"] == "user"):
        case "empty":
            return {"messages": []}
        case "null":
            return {"messages": None}
        case "blank":
            return {"messages": [{"type": "user", "data": {"content": "  "}}]}
        case "garbage":
            return {"messages": [1, "two", {"type": "user", "data": []}]}
        case "no list":
            return {"messages": {"a": 1}}
        case "longer":
            return {"messages": [*messages, brief]}
        case "refusal":
            raise Refused("not now")
        case "orphans":
            orphan = {"toolCallId": "nobody", "toolName": "read", "content": [{"text": "?"}], "isError": False}
            lone = {"content": [{"id": "c9", "name": "read", "arguments": {}}], "model": "m", "provider": "p"}
            rest = [{"type": "tool_result", "data": orphan}, {"type": "assistant", "data": lone}]
            return {"messages": [brief, *rest]}
    return {"messages": [brief]}


@pytest.mark.usefixtures("dialect")
async def test_a_bad_answer_leaves_the_conversation_as_it_is(tmp_path: Path) -> None:
    faults = {
        "empty": "nothing in the conversation it returned",
        "null": "nothing in the conversation it returned",
        "blank": "nothing in the conversation it returned",
        "garbage": "unusable answer",
        "no list": "unusable answer",
        "longer": "no shorter",
        "refusal": "not now",
    }
    turns = [says("a rather long answer to begin with")] * (len(faults) + 1)
    async with extended(tmp_path, compactor(misshape), turns=turns) as it:
        await it.ready()
        for fault, why in faults.items():
            await it.say(fault)
            before = it.session.transcript.messages
            outcome = await (await it.session.compact()).result()
            assert outcome.stop == "error" and "compactor of c: " in outcome.error and why in outcome.error, fault
            assert it.session.transcript.messages == before
            assert "left as it is" in outcome.hint
        assert len(it.of(CompactionFailed)) == len(faults) and it.of(CompactionDone) == []
        assert (await it.say("go on")).text == "a rather long answer to begin with"


@pytest.mark.usefixtures("dialect")
async def test_what_does_not_fit_together_is_mended_and_the_users_last_words_stay(tmp_path: Path) -> None:
    turns = [says("long " * 50), says("more " * 50), says("and on")]
    async with extended(tmp_path, compactor(misshape), turns=turns) as it:
        await it.ready()
        await it.say("drop what I said")
        assert (await (await it.session.compact()).result()).stop == "end"
        assert words(it.session.transcript.messages) == ["brief", "drop what I said"]
        await it.say("orphans")
        assert (await (await it.session.compact()).result()).stop == "end"
        assert (await it.say("go on")).text == "and on"  # the model would refuse calls without results


def dawdle(ask: Ask) -> Any:
    ask.wait_for_cancel()
    return {"messages": []}


def die(ask: Ask) -> Any:
    ask.die()


@pytest.mark.usefixtures("dialect")
@pytest.mark.parametrize(("answer", "why"), [(dawdle, "no answer within"), (die, "SIGKILL")])
async def test_a_compactor_that_hangs_or_dies_costs_no_word(tmp_path: Path, answer: Any, why: str) -> None:
    async with extended(tmp_path, compactor(answer), turns=[says("a"), says("b")]) as it:
        it.session.bench = structs.replace(it.session.bench, deadlines=Deadlines(compactor=0.3))
        await it.ready()
        await it.say("q")
        outcome = await (await it.session.compact()).result()
        assert outcome.stop == "error" and "compactor of c" in outcome.error and why in outcome.error
        assert len(it.session.transcript.messages) == 2
        if answer is dawdle:
            await it.until((tmp_path / "extensions/c/cancelled").exists, "word that nobody waits any more")
        assert (await it.say("go on")).text == "b"


def refuse(ask: Ask) -> Any:
    raise Refused("not now")


async def test_a_compactor_that_fails_three_times_is_left_alone_for_a_while(tmp_path: Path) -> None:
    turns = [says(f"a{number}", **USED) for number in range(9)]
    async with extended(tmp_path, compactor(refuse, threshold=500, dialect="jsonrpc"), turns=turns) as it:
        await it.ready()
        for number in range(9):
            assert (await it.say(f"q{number}")).text == f"a{number}"
        assert len(asked(it)) == 3
        warning = await it.warned("compactor of c", "not now", "not asked again for 5 minutes")
        assert it.warnings().count(warning) == 1
        # Somebody who wants it now is not kept from it.
        assert (await (await it.session.compact()).result()).stop == "error"
        assert len(asked(it)) == 4


def trigger(ask: Ask) -> Any:
    told = ask.host("triggerCompact")
    return {"content": [{"type": "text", "text": f"{told['before']} {told['after']}"}]}


@contextmanager
def talking(hilt: Hilt, *flags: str) -> Iterator[Rpc]:
    with hilt.rpc(*flags) as rpc:
        rpc.event("ext_status", extension="c", state="ready")
        yield rpc


@pytest.mark.usefixtures("dialect")
def test_what_was_made_short_stays_so_when_the_session_is_taken_up_again(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    tool = ("tool", {"name": "trigger", "description": "t", "parameters": {"type": "object"}})
    offers = ("compactor", {"name": "c"}), tool
    answers = {"compact/execute": shorten, "tool/execute": trigger}
    extension = offering("c", *offers, answers=answers).write(tmp_path)
    (hilt.project / "a.txt").write_text("hello\n")
    turns = says("first " * 30), calls(("read", {"path": "a.txt"})), says("second " * 30), says("third " * 30)
    flags = (*hilt.script(*turns), "--ext", str(extension))

    def shown(rpc: Rpc) -> list[dict[str, Any]]:
        rpc.rest()
        messages: list[dict[str, Any]] = rpc.ask("get_messages")["data"]["messages"]
        return messages

    with talking(hilt, *flags) as rpc:
        rpc.prompt("one")
        rpc.rest()
        rpc.prompt("two")
        rpc.rest()
        assert rpc.ask("host", method="host/hasCompactor")["data"] == {"present": True}
        assert rpc.ask("input", text="/compact")["success"]
        assert rpc.event("compact_done")["messages"] == 3
        short = shown(rpc)
        assert [one["role"] for one in short] == ["user", "user", "assistant"]
        assert short[0]["content"][0]["text"] == "summary of 6" and short[1]["content"][0]["text"] == "two"
        # By way of the host, and from inside a tool.
        rpc.prompt("three")
        rpc.rest()
        told = rpc.ask("host", method="host/executeTool", params={"name": "trigger", "args": {}})
        assert told["data"]["content"][0]["text"] == "5 3"
        short = shown(rpc)
    with talking(hilt, "-c", *flags) as rpc:
        assert shown(rpc) == short
