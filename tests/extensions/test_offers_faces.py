"""Commands, shortcuts, panels, progress and verdicts of extensions that are asked by method: the real hilt over rpc."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hilt.agent.questions import Reply
from hilt.extensions.frames import extension as speaking
from hilt.model.events import Failed, Notified, QuestionAsked, ToolProgressed
from support.agent import calls, says
from support.clocks import pass_time
from support.extending import extended
from support.hilt_process import Hilt, Rpc, until
from support.offerer import Ask, Refused
from support.offering import heard, offering

TOOL = ("tool", {"name": "t", "description": "t", "parameters": {"type": "object"}})


@contextmanager
def talking(folder: Path, *offers: Any, turns: tuple[dict[str, Any], ...] = (), **more: Any) -> Iterator[Rpc]:
    hilt = Hilt(folder)
    extension = offering("x", *offers, **more).write(folder)
    with hilt.rpc(*hilt.script(*turns), "--ext", str(extension)) as rpc:
        rpc.event("ext_status", extension="x", state="ready")
        yield rpc


# Commands


def busy(ask: Ask) -> Any:
    ask.touch("working")
    ask.wait_for("enough")
    return {"content": [{"type": "text", "text": "ok"}]}


def command(ask: Ask) -> Any:
    match ask.params["name"]:
        case "ask":
            chosen = ask.host("askUser", prompt="Which?", choices=["red", "blue"])
            ask.tell("notify", message=f"{chosen['selected']} {chosen['cancelled']}")
        case "fail":
            raise Refused("out of order")
        case name:
            ask.tell("notify", message=f"{name} {ask.params['args']}".strip())


def test_a_command_that_is_immediate_runs_beside_a_turn_and_another_waits_for_its_own(tmp_path: Path) -> None:
    now, later = ("command", {"name": "now", "immediate": True}), ("command", {"name": "later"})
    answers = {"command/execute": command, "tool/execute": busy}
    turns = calls(("t", {})), says("done")
    with talking(tmp_path, now, later, TOOL, turns=turns, answers=answers, dialect="jsonrpc") as rpc:
        rpc.send(type="prompt", message="go")
        until((tmp_path / "x/working").exists, "the tool")
        rpc.send(type="input", text="/later   a   b")
        rpc.event("queue")
        rpc.send(type="input", text="/now")
        assert rpc.event("ext_notify")["message"] == "now"
        assert [one["params"]["name"] for one in heard(tmp_path / "x", "command/execute")] == ["now"]
        (tmp_path / "x/enough").touch()
        rpc.event("done")
        assert rpc.event("ext_notify")["message"] == "later a b"


@pytest.mark.usefixtures("dialect")
def test_a_command_asks_the_user_while_it_runs(tmp_path: Path) -> None:
    offers = ("command", {"name": "ask"}), ("command", {"name": "fail"})
    with talking(tmp_path, *offers, answers={"command/execute": command}, turns=(says("hi"),)) as rpc:
        for reply, said in ({"selected": "blue"}, "blue False"), ({"cancelled": True}, "True"):
            rpc.send(type="input", text="/ask")
            asked = rpc.event("ui_request", kind="ask")
            assert (asked["extension"], asked["prompt"], asked["choices"]) == ("x", "Which?", ["red", "blue"])
            rpc.send(type="ui_response", id=asked["id"], **reply)
            assert rpc.event("ext_notify")["message"].strip() == said
        rpc.send(type="input", id="f", text="/fail")
        refused = rpc.response("input", id="f")
        assert not refused["success"] and "/fail" in refused["error"] and "out of order" in refused["error"]
        assert rpc.prompt("hello")[-1]["stop"] == "end"


def consult(ask: Ask) -> Any:
    chosen = ask.host("askUser", prompt="Which?", choices=["red", "blue"])["selected"]
    ask.tell("notify", message=chosen)
    return {"content": [{"type": "text", "text": chosen}]}


@pytest.mark.usefixtures("dialect")
async def test_a_user_who_thinks_longer_than_a_command_or_a_tool_may_take_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speaking, "COMMAND_PATIENCE", 10.0)
    answers = {"command/execute": consult, "tool/execute": consult}
    made = offering("x", TOOL, ("command", {"name": "ask"}), answers=answers, tool_timeout_ms=10_000)
    async with extended(tmp_path, made, turns=[calls(("t", {})), says("ok")]) as it, asyncio.TaskGroup() as group:
        await it.ready()

        async def think(number: int) -> None:
            await it.until(lambda: len(it.of(QuestionAsked)) > number, "the question")
            await pass_time(15)
            it.questions.answer(it.of(QuestionAsked)[number].id, Reply(selected="blue"))

        thinking = group.create_task(think(0))
        await it.session.command("ask")
        await thinking
        await it.seen(Notified, message="blue")
        group.create_task(think(1))
        assert (await it.say()).text == "ok"
        assert it.result() == "blue"


# Shortcuts and panels


def press(ask: Ask) -> Any:
    if ask.params["key"] == "ctrl+p":
        ask.tell("panel/open", panel_id="p1", title="Panel", lines=["one"], footer="f")
        return {}
    return ask.given


@pytest.mark.parametrize(
    ("dialect", "answer"),
    [
        ("jsonrpc", {"action": {"type": "showMessage", "payload": {"text": "pressed"}}}),
        ("frames", {"action": "display", "display": "pressed"}),
    ],
    indirect=["dialect"],
)
def test_a_shortcut_is_handled_and_a_panel_is_a_conversation(tmp_path: Path, dialect: str, answer: Any) -> None:
    keys = [("shortcut", {"key": key, "description": "d"}) for key in ("ctrl+g", "ctrl+p")]
    with talking(tmp_path, *keys, answers={"shortcut/handle": press}, given=answer) as rpc:
        rpc.send(type="shortcut", key="ctrl+g")
        rpc.wait(lambda line: "pressed" in (line.get("text"), line.get("message")), "what the shortcut is for")
        assert rpc.response("shortcut")["success"]
        rpc.send(type="shortcut", key="ctrl+p")
        panel = rpc.event("ext_panel")
        assert (panel["extension"], panel["title"], panel["lines"], panel["footer"]) == ("x", "Panel", ["one"], "f")
        panel_id = panel["panel_id"]
        assert rpc.ask("panel_key", panel_id=panel_id, key="down")["success"]
        assert rpc.ask("panel_resize", panel_id=panel_id, width=40, height=9)["success"]
        assert rpc.ask("panel_close", panel_id=panel_id)["success"]
        names = ["panel_key", "panel_resize", "panel_close"]
        if dialect == "jsonrpc":
            names = ["panel/key", "panel/resize", "panel/closed"]
        until(lambda: heard(tmp_path / "x", names[-1]), "the end of the panel")
        key, resize, closed = (heard(tmp_path / "x", name)[0]["params"] for name in names)
        assert key["key"] == "down" and (resize["width"], resize["height"]) == (40, 9)
        assert "p1" in closed.values()


# Progress


def report(ask: Ask) -> Any:
    for step in "abc":
        ask.tell("tool/progress", callId=ask.params["callId"], text=f"{step}\n")
    ask.tell("tool/progress", callId="nobody's", text="lost")
    return {"content": [{"type": "text", "text": "done"}]}


@pytest.mark.usefixtures("dialect")
async def test_progress_of_a_tool_is_shown_before_its_result(tmp_path: Path) -> None:
    made = offering("x", TOOL, answers={"tool/execute": report})
    async with extended(tmp_path, made, turns=[calls(("t", {})), says("ok")]) as it:
        await it.ready()
        await it.say()
        kinds = [event["type"] for event in it.told()]
        assert kinds.index("tool_progress") < kinds.index("tool_result")
        assert "".join(event.text for event in it.of(ToolProgressed)) == "a\nb\nc\n"
        assert it.result() == "done"


# Verdicts about what is no tool call


def judge(ask: Ask) -> Any:
    match ask.params["event"]:
        case "before_agent_start":
            return {"systemPrompt": ask.params["systemPrompt"] + "; be kind"}
        case "assistant_message" if "secret" in ask.params["text"]:
            return {"text": "[hidden]"}
        case "assistant_message" if "worse" in ask.params["text"]:
            return {"allow": False, "reason": "not for your eyes"}
        case "turn_start" if ask.given in (tmp := ask.host("lastAssistantText")["text"]):
            return {"allow": False, "reason": f"enough after {tmp}"}
    return {"allow": True}


@pytest.mark.usefixtures("dialect")
async def test_an_interceptor_judges_turns_words_and_the_system_prompt(tmp_path: Path) -> None:
    events = ["turn_start", "assistant_message", "before_agent_start"]
    made = offering(
        "x",
        ("interceptor", {"name": "j", "priority": 1, "events": events}),
        answers={"interceptor/event": judge},
        given="stop",
    )
    turns = [says("a secret"), says("much worse"), says("plain stop"), says("never said")]
    async with extended(tmp_path, made, turns=turns) as it:
        await it.ready()
        assert (await it.say("one")).text == "[hidden]"
        assert it.provider.requests[0].system == "be brief; be kind"
        assert (await it.say("two")).text == ""
        assert (await it.say("three")).text == "plain stop"
        outcome = await it.say("four")
        assert outcome.stop == "error" and "enough after plain stop" in outcome.error
        assert [event.code for event in it.of(Failed)] == ["turn_blocked"]
        asked = heard(tmp_path / "extensions/x", "interceptor/event")
        assert {one["params"]["name"] for one in asked} == {"j"} and len(it.provider.requests) == 3
        assert [one["params"]["event"] for one in asked[:3]] == [
            "before_agent_start",
            "turn_start",
            "assistant_message",
        ]
        assert heard(tmp_path / "extensions/x", "interceptor/before") == []
