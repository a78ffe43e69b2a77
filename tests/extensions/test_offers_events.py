"""All seventeen events of the jsonrpc dialect, told to real processes of either dialect when they happen."""

from pathlib import Path
from typing import Any

import pytest

from hilt.wire.jsonrpc_events import EVENTS
from support.agent import calls, says
from support.extending import Made, extended
from support.hilt_process import Hilt, until
from support.offerer import SILENT, Ask, Refused
from support.offering import heard, offering

TOOL = ("tool", {"name": "t", "description": "t", "parameters": {"type": "object"}})


def follow(ask: Ask) -> Any:
    match ask.params["type"]:
        case "EventToolStart":
            ask.touch("started")
        case "EventAgentEnd":
            return {"action": {"type": "setStatus", "payload": {"key": "k", "text": f"over {ask.number}"}}}
    return {"action": None}


def work(ask: Ask) -> Any:
    ask.wait_for("started")  # word of its beginning comes before its end, or it has none
    ask.tell("tool/progress", callId=ask.params["callId"], text="half way\n")
    return {"content": [{"type": "text", "text": "whole"}]}


def told(extension: Path) -> list[tuple[str, Any]]:
    return [(one["params"]["type"], one["params"]["data"]) for one in heard(extension, "event/dispatch")]


def kinds(extension: Path) -> list[str]:
    """One after the other; the pieces of an answer count as one."""
    listed = [kind for kind, _ in told(extension)]
    return [kind for place, kind in enumerate(listed) if kind != "EventStreamDelta" or listed[place - 1] != kind]


@pytest.mark.usefixtures("dialect")
def test_every_event_reaches_an_extension_once_in_order_and_in_time(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    hilt.home.mkdir()
    (hilt.home / "config.toml").write_text("[retry]\nattempts = 2\nbase_delay = 0.01\n")
    everything, again = (
        ("eventHandler", {"name": "all"}),
        ("eventHandler", {"name": "ends", "events": ["EventTurnEnd"]}),
    )
    answers = {"event/dispatch": follow, "tool/execute": work}
    extension = offering("e", everything, again, TOOL, answers=answers).write(tmp_path)
    thinking = {"type": "thinking", "text": "hm"}
    call = calls(("t", {"a": 1}))
    first = {**call, "content": [thinking, *says("so")["content"], *call["content"]]}
    turns = {"error": {"status": 503, "message": "busy"}}, first, says("done"), call, call, call, says("summary")
    with hilt.rpc(*hilt.script(*turns), "--ext", str(extension), "--max-steps", "3") as rpc:
        rpc.event("ext_status", extension="e", state="ready")
        rpc.settled()
        rpc.prompt("go")
        assert rpc.event("ext_status_text")["text"].startswith("over")  # at once, without another run
        rpc.rest()
        until(lambda: kinds(extension)[-1:] == ["EventAgentEnd"], "the end")
        begin = ["EventAgentStart", "EventAgentInit", "EventPromptBuild", "EventMessagePre"]
        answer = ["EventStreamDelta", "EventStreamDone"]
        tool = ["EventToolStart", "EventToolUpdate", "EventToolEnd"]
        assert kinds(extension) == [
            *begin,
            "EventTurnStart",
            "EventRetry",
            *answer,
            *tool,
            "EventTurnEnd",
            "EventTurnStart",
            *answer,
            "EventTurnEnd",
            "EventAgentEnd",
        ]
        check_data(dict(told(extension)[:-6]), told(extension)[-1][1])

        assert rpc.ask("input", text="/step")["success"]
        rpc.send(type="prompt", message="and again")
        for number in range(3):
            waiting = rpc.event("ui_request")["id"]
            until(lambda: kinds(extension).count("EventStepWait") == number + 1, "word that a call waits")  # noqa: B023
            rpc.send(type="ui_response", id=waiting, approved=True)
        rpc.event("done")
        rpc.rest()
        assert rpc.ask("compact")["success"]
        rpc.event("compact_done")
        rpc.rest()
        until(lambda: kinds(extension)[-1:] == ["EventCompact"], "the last one")
    assert set(kinds(extension)) == set(EVENTS)
    second = told(extension)[len(EVENTS) - 1 :]
    assert ("EventSessionLoad", {"MessageCount": 4}) in second
    assert ("EventMaxTurns", {"Count": 3, "Max": 3}) in second
    compact = told(extension)[-1][1]
    assert compact["Before"] > compact["After"] > 0 and compact["TokensAtCompact"] > 0


def check_data(first: dict[str, Any], end: dict[str, Any]) -> None:
    assert first["EventAgentStart"] == {} and first["EventAgentInit"]["ToolCount"] > 1
    assert first["EventPromptBuild"]["System"] and first["EventMessagePre"] == {"Content": "go"}
    assert first["EventRetry"]["Error"] and (first["EventRetry"]["Attempt"], first["EventRetry"]["Max"]) == (1, 2)
    assert first["EventStreamDelta"]["Kind"] == "toolcall" and first["EventStreamDelta"]["Index"] == 2
    assert [block["type"] for block in first["EventStreamDone"]["Message"]["content"]][:2] == ["thinking", "text"]
    started = first["EventToolStart"]
    assert (started["ToolName"], started["Args"]) == ("t", {"a": 1})
    assert first["EventToolUpdate"]["Partial"] == "half way\n"
    assert first["EventToolEnd"]["ToolCallID"] == first["EventToolUpdate"]["ToolCallID"] == started["ToolCallID"]
    assert first["EventToolEnd"]["IsError"] is False
    assert [one["role"] for one in end["Messages"]] == ["user", "assistant", "tool_result", "assistant"]


def handler(name: str, answer: Any = follow, **fields: Any) -> Made:
    return offering(name, ("eventHandler", {"name": "h", **fields}), answers={"event/dispatch": answer})


@pytest.mark.usefixtures("dialect")
async def test_an_extension_hears_of_nothing_but_what_it_asked_for(tmp_path: Path) -> None:
    wanted = ["EventTurnStart", "EventAgentEnd"]
    some = tmp_path / "extensions/some"
    async with extended(tmp_path, handler("some", events=[*wanted, "EventNoSuch"]), turns=[says("ok")]) as it:
        await it.ready()
        await it.warned("there is no event EventNoSuch")
        await it.say()
        await it.until(lambda: kinds(some)[-1:] == wanted[-1:], "the end")
        assert kinds(some) == wanted


def refuse(ask: Ask) -> Any:
    raise Refused("no")


def babble(ask: Ask) -> Any:
    return {"action": [1, 2]} if ask.number % 2 else {"action": {"type": "unheardOf", "payload": 7}}


def ignore(ask: Ask) -> Any:
    return SILENT


@pytest.mark.usefixtures("dialect")
async def test_handlers_that_fail_or_never_answer_hold_nobody_up(tmp_path: Path) -> None:
    bad = {"refusing": refuse, "babbling": babble, "silent": ignore}
    made = [handler(name, answer) for name, answer in bad.items()]
    async with extended(tmp_path, *made, handler("good"), turns=[says("ok")]) as it:
        await it.ready()
        assert (await it.say()).text == "ok"
        heedful = [tmp_path / "extensions" / name for name in ("refusing", "babbling", "good")]
        await it.until(lambda: all("EventAgentEnd" in kinds(one) for one in heedful), "the end, for all")
        assert (await it.call("t"))[1]  # there is no such tool, and the session is alive
