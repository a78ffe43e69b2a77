"""Real extensions that ask the user, show something and talk to each other, seen from a client and from `hilt -p`."""

import json
import subprocess
from typing import Any

import pytest

from support.agent import calls, says
from support.extending import Made, chaos
from support.hilt_process import Hilt, Rpc, until

PICK = {"title": "Which?", "items": [{"id": "a", "label": "A"}, {"id": "b", "label": "B", "desc": "the other"}]}
ASK = {"prompt": "Sure?", "choices": ["Yes", "No"]}


def request(method: str, params: Any) -> str:
    return "host_request:" + json.dumps({"id": "q", "method": f"host/{method}", "params": params})


def notice(method: str, **params: Any) -> str:
    return "frame:" + json.dumps({"type": "host_notify", "method": method, "params": params})


def extension(*items: Any, name: str = "ext") -> Made:
    return chaos(name, "hello", "register_tool:t", "register_command:c", *items, "ready")


def flags(hilt: Hilt, *made: Made) -> list[str]:
    """Named on the command line, so that they have the user's consent."""
    return [word for one in made for word in ("--ext", str(one.write(hilt.folder / "flagged")))]


def ready(rpc: Rpc, name: str = "ext") -> None:
    def state() -> str:
        listed = rpc.ask("extensions")["data"]["extensions"]
        return next(str(one["state"]) for one in listed if one["name"] == name)

    until(lambda: state() == "ready", f"{name} is ready")


def results(lines: list[dict[str, Any]]) -> list[str]:
    return [line["content"][0]["text"] for line in lines if line["type"] == "tool_result"]


# Asking from inside a callback, where the one who asks is being waited for itself


def test_a_command_asks_the_user_and_is_answered_while_it_runs(hilt: Hilt) -> None:
    made = extension({"on": "command_invoked", "do": [request("showPicker", PICK), "await:host_response", "answer:ok"]})
    with hilt.rpc(*hilt.script(), *flags(hilt, made)) as rpc:
        ready(rpc)
        rpc.send(type="command", name="c")
        asked = rpc.event("ui_request")
        assert asked == {
            "type": "ui_request",
            "id": asked["id"],
            "kind": "picker",
            "extension": "ext",
            "title": "Which?",
            "items": [{"id": "a", "label": "A"}, {"id": "b", "label": "B", "description": "the other"}],
        }
        assert rpc.ask("ping")["success"]
        rpc.send(type="ui_response", id=asked["id"], selected="b")
        assert rpc.response("command")["data"] == {"action": "display", "display": "ok"}


def test_a_tool_asks_in_the_middle_of_a_turn_and_abort_withdraws_the_question(hilt: Hilt) -> None:
    made = extension({"on": "tool_call", "do": [request("askUser", ASK), "await:host_response", "answer:asked"]})
    turns = (calls(("t", {})), says("done"), calls(("t", {})))
    with hilt.rpc(*hilt.script(*turns), *flags(hilt, made)) as rpc:
        ready(rpc)
        rpc.send(type="prompt", message="go")
        asked = rpc.event("ui_request", kind="ask")
        assert (asked["extension"], asked["prompt"], asked["choices"]) == ("ext", "Sure?", ["Yes", "No"])
        rpc.send(type="ui_response", id=asked["id"], cancelled=True)
        rpc.event("done", stop="end")
        assert results(rpc.lines) == ["asked"]
        rpc.rest()


def test_a_dialog_goes_with_the_process_that_asked(hilt: Hilt) -> None:
    made = extension({"on": "tool_call", "do": [request("askUser", ASK), "wait_for:die", "signal:KILL"]})
    with hilt.rpc(*hilt.script(calls(("t", {})), says("done")), *flags(hilt, made)) as rpc:
        ready(rpc)
        rpc.send(type="prompt", message="go")
        asked = rpc.event("ui_request")
        (hilt.folder / "flagged" / "ext" / "die").touch()
        assert rpc.event("ui_withdrawn") == {"type": "ui_withdrawn", "id": asked["id"]}
        rpc.event("done")
        assert not rpc.ask("ui_response", id=asked["id"], selected="Yes")["success"]


def test_a_client_that_stopped_reading_has_dismissed_what_it_cannot_see(hilt: Hilt) -> None:
    done = hilt.folder / "done"
    made = extension({"do": [request("askUser", ASK), "await:host_response", f"touch:{done}"]})
    with hilt.started("rpc", *hilt.script(), *flags(hilt, made), stdin=subprocess.PIPE) as process:
        said = process.stdout
        assert said and process.stdin
        until(lambda: b"ui_request" in said.readline(), "the question")
        said.close()
        until(done.exists, "the answer")
        process.stdin.close()
        process.wait(30)


@pytest.mark.parametrize("face", ["-p", "--json"])
def test_where_nobody_can_be_asked_a_dialog_is_dismissed_and_quitting_has_to_wait(hilt: Hilt, face: str) -> None:
    record = hilt.folder / "heard"
    asking = [request("askUser", ASK), "await:host_response", request("requestQuit", {}), "answer:dismissed"]
    made = extension(f"record:{record}", {"on": "tool_call", "do": asking})
    ended = hilt.run(face, "go", *hilt.script(calls(("t", {})), says("all done")), *flags(hilt, made))
    assert ended.code == 0 and "all done" in ended.out and "dismissed" in ended.out + ended.err
    assert "ext wants hilt to end" in ended.err
    heard = [json.loads(line) for line in record.read_text().splitlines()]
    answers = [json.loads(row["line"]) for row in heard if "host_response" in row.get("line", "")]
    assert answers[0]["result"] == {"selected": "", "cancelled": True}


# Showing


def test_what_an_extension_shows_goes_with_its_process(hilt: Hilt) -> None:
    shown = [
        notice("setWidget", key="w", placement="above-input", content="x"),
        notice("showOverlay", key="o", title="T", content="x"),
    ]
    made = extension({"on": "tool_call", "do": [*shown, "wait_for:die", "signal:KILL"]})
    with hilt.rpc(*hilt.script(calls(("t", {})), says("done")), *flags(hilt, made)) as rpc:
        ready(rpc)
        rpc.send(type="prompt", message="go")
        rpc.event("ext_widget", content="x")
        rpc.event("ext_overlay", key="o")
        (hilt.folder / "flagged" / "ext" / "die").touch()
        assert rpc.event("ext_overlay_close") == {"type": "ext_overlay_close", "extension": "ext", "key": "o"}
        assert rpc.event("ext_widget")["content"] == ""
        state = rpc.ask("get_state")["data"]
        assert (state["widgets"], state["overlays"]) == ([], [])


def test_a_flood_of_it_reaches_a_client_as_a_few_changes_and_the_last_one(hilt: Hilt) -> None:
    flood = ["flood:20000", notice("setWidget", key="w", placement="above-input", content="$N")]
    last = notice("setWidget", key="w", placement="above-input", content="last")
    made = extension({"on": "tool_call", "do": [*flood, last, "answer"]})
    with hilt.rpc(*hilt.script(calls(("t", {})), says("done")), *flags(hilt, made)) as rpc:
        ready(rpc)
        rpc.send(type="prompt", message="go")
        rpc.event("ext_widget", content="last")
        assert sum(line["type"] == "ext_widget" for line in rpc.lines) < 2000


def test_only_the_answer_and_notes_are_shown_where_there_is_no_screen(hilt: Hilt) -> None:
    shown = [
        notice("setWidget", key="w", placement="above-input", content="a widget"),
        notice("showOverlay", key="o", title="T", content="an overlay"),
        "notify:a note",
    ]
    made = extension({"on": "tool_call", "do": [*shown, "answer:fine"]})
    ended = hilt.run("-p", "go", *hilt.script(calls(("t", {})), says("all done")), *flags(hilt, made))
    assert (ended.code, ended.out) == (0, "all done\n")
    assert "a note" in ended.err and "a widget" not in ended.err and "an overlay" not in ended.err


def test_what_others_say_while_a_command_runs_is_signed_and_no_part_of_its_answer(hilt: Hilt) -> None:
    asked = extension(
        {"on": "command_invoked", "do": ["touch:../asked", "wait_for:../said", "answer:mine"]}, name="one"
    )
    saying = ["wait_for:../asked", notice("showMessage", text="not mine"), "touch:../said"]
    other = chaos("two", "hello", "ready", {"do": saying})
    ended = hilt.run("-p", "/c", *hilt.script(), *flags(hilt, asked, other))
    assert (ended.code, ended.out) == (0, "mine\n") and "[two] not mine" in ended.err


# Topics


def test_a_client_and_extensions_hear_each_other(hilt: Hilt) -> None:
    heard = hilt.folder / "heard"
    listening = request("subscribe", {"topic": "news"})
    saying = [request("publish", {"topic": "news", "data": {"by": "ext"}}), "answer"]
    made = extension(f"record:{heard}", {"on": "tool_call", "do": [listening, "await:host_response", *saying]})
    with hilt.rpc(*hilt.script(calls(("t", {})), says("done")), *flags(hilt, made)) as rpc:
        ready(rpc)
        subscribed = rpc.ask("host", method="host/subscribe", params={"topic": "news"})["data"]["subscriptionId"]
        rpc.send(type="prompt", message="go")
        said = rpc.event("bus_event")
        assert said == {"type": "bus_event", "topic": "news", "subscription": subscribed, "data": {"by": "ext"}}
        rpc.event("done")
        assert rpc.ask("host", method="host/publish", params={"topic": "news", "data": {"by": "rpc"}})["success"]
        assert rpc.event("bus_event")["data"] == {"by": "rpc"}
        until(lambda: all(f'\\"by\\":\\"{who}\\"' in heard.read_text() for who in ("ext", "rpc")), "both are heard")
        ended = rpc.ask("host", method="host/unsubscribe", params={"subscriptionId": subscribed})
        assert ended["success"]
        again = rpc.ask("host", method="host/unsubscribe", params={"subscriptionId": subscribed})
        assert (again["success"], again["code"]) == (False, -32604)


def test_unknown_methods_and_unusable_params_are_refused_with_a_code(hilt: Hilt) -> None:
    with hilt.rpc(*hilt.script()) as rpc:
        unknown = rpc.ask("host", method="host/nothing")
        assert (unknown["success"], unknown["code"]) == (False, -32601)
        unusable = rpc.ask("host", method="host/askUser", params={"prompt": "?", "choices": []})
        assert (unusable["success"], unusable["code"]) == (False, -32602)
        assert rpc.ask("host", method="host/lastAssistantText")["success"]
