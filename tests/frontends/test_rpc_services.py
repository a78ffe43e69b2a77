"""`hilt rpc`: what extensions can ask the host for, asked by a client; dialogs, topics, and what is on the screen."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import rpc_services
from support.agent import calls, says
from support.hilt_process import Hilt, Rpc, until
from support.rpc_services import OWNER

BIG = "x" * 1000


class ServedHilt(Hilt):
    """With services that do what a test wants."""

    def command(self, *arguments: str | bytes) -> list[str | bytes]:
        return [sys.executable, rpc_services.__file__, *arguments]


@pytest.fixture
def hilt(tmp_path: Path) -> ServedHilt:
    return ServedHilt(tmp_path)


def host(rpc: Rpc, method: str, params: Any = None, **more: Any) -> None:
    rpc.send(type="host", method=method, params={} if params is None else params, **more)


def served(rpc: Rpc, method: str, params: Any = None) -> Any:
    host(rpc, method, params)
    response = rpc.response("host")
    assert response["success"], response
    return response["data"]


def busy(rpc: Rpc) -> int:
    return int(rpc.ask("command", name="busy")["data"]["display"])


def of(rpc: Rpc, type_: str) -> list[dict[str, Any]]:
    return [line for line in rpc.lines if line["type"] == type_]


# Services


def test_a_service_answers_with_its_result_or_with_a_code(hilt: ServedHilt) -> None:
    with hilt.rpc(*hilt.script()) as rpc:
        assert served(rpc, "echo", {"a": [1, None]}) == {"given": {"a": [1, None]}}
        rpc.send(type="host", id="7", method="echo")
        response = rpc.response("host", id="7")
        assert response["data"] == {"given": {}} and "code" not in response
        host(rpc, "fail", id="8")
        response = rpc.response("host", id="8")
        assert (response["success"], response["code"]) == (False, -32604)
        assert response["error"] == "no such thing (look elsewhere)"
        assert "malformed host" in rpc.ask("host", params={})["error"]


def test_one_that_takes_long_holds_up_neither_commands_nor_turns_nor_other_services(hilt: ServedHilt) -> None:
    with hilt.rpc(*hilt.script(says("hello"))) as rpc:
        host(rpc, "wait", id="slow")
        assert rpc.ask("ping")["data"] == {"pong": True}
        assert rpc.ask("sessions")["success"]
        assert rpc.prompt("hi")[-1]["stop"] == "end"
        assert served(rpc, "echo", 1) == {"given": 1}
        rpc.send(type="command", name="go")
        assert rpc.response("host", id="slow")["success"]


def test_so_many_run_at_once_the_next_ones_wait_and_too_many_are_refused(hilt: ServedHilt) -> None:
    with hilt.rpc(*hilt.script()) as rpc:
        for number in range(300):
            host(rpc, "wait", id=str(number))
        refused = [rpc.response("host") for _ in range(44)]
        assert {one["id"] for one in refused} == {str(number) for number in range(256, 300)}
        assert "256" in refused[0]["error"]
        assert busy(rpc) == 32
        rpc.ask("command", name="go")
        answered = [rpc.response("host") for _ in range(256)]
        assert all(one["success"] for one in answered) and len({one["id"] for one in answered}) == 256


def test_what_still_runs_is_cancelled_when_nobody_reads_the_answer_any_more(hilt: ServedHilt) -> None:
    with hilt.started("rpc", *hilt.script(), stdin=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        process.stdin.write(b'{"type":"host","method":"wait"}\n{"type":"host","method":"echo"}\n')
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        until((hilt.project / "cancelled").exists, "the service is cancelled")
        process.stdin.write(b'{"type":"host","method":"wait"}\n')  # begun when it is too late
        process.stdin.close()
        assert process.wait(30) is not None
    assert (hilt.project / "left").exists()


def test_at_the_end_of_the_input_what_runs_is_seen_through_and_dialogs_are_dismissed(hilt: ServedHilt) -> None:
    with hilt.rpc(*hilt.script()) as rpc:
        host(rpc, "pick", {"items": ["a"]}, id="open")
        rpc.event("ui_request")
        host(rpc, "echo", 1, id="last")
        assert rpc.close() == 0
        responses = {line.get("id"): line["data"] for line in of(rpc, "response")}
        assert responses == {"open": {"selected": None}, "last": {"given": 1}}
    assert (hilt.project / "left").exists()
    assert of(rpc, "ui_withdrawn") == []


# Dialogs


def test_a_dialog_is_asked_and_answered_and_a_wrong_answer_leaves_it_open(hilt: ServedHilt) -> None:
    with hilt.rpc(*hilt.script()) as rpc:
        host(rpc, "pick", {"items": ["a", "b"]}, id="1")
        request = rpc.event("ui_request")
        assert request == {
            "type": "ui_request",
            "id": request["id"],
            "kind": "picker",
            "extension": OWNER,
            "title": "Which?",
            "items": [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}],
        }
        for wrong in ({"selected": "c"}, {"approved": True}, {}):
            refused = rpc.ask("ui_response", id=request["id"], **wrong)
            assert not refused["success"] and "selected" in refused["error"]
        assert not rpc.ask("ui_response", id="ui-1", selected="a")["success"]
        assert rpc.ask("ui_response", id=request["id"], selected="b")["success"]
        assert rpc.response("host", id="1")["data"] == {"selected": "b"}
        assert not rpc.ask("ui_response", id=request["id"], selected="b")["success"]


def test_several_dialogs_are_open_beside_a_permission_and_each_gets_its_own_answer(hilt: ServedHilt) -> None:
    turns = (calls(("bash", {"command": "touch ran"})), says("done"))
    with hilt.rpc("--permissions", "ask", *hilt.script(*turns)) as rpc:
        host(rpc, "pick", {"items": ["a"]}, id="1")
        first = rpc.event("ui_request")
        rpc.send(type="prompt", message="go")
        permission = rpc.event("ui_request", kind="confirm")
        host(rpc, "pick", {"items": ["b"]}, id="2")
        second = rpc.event("ui_request", kind="picker")
        assert not rpc.ask("ui_response", id=permission["id"], selected="a")["success"]
        assert not (hilt.project / "ran").exists()
        rpc.send(type="ui_response", id=second["id"], selected="b")
        assert rpc.response("host", id="2")["data"] == {"selected": "b"}
        rpc.send(type="ui_response", id=permission["id"], approved=True)
        rpc.event("done")
        rpc.send(type="ui_response", id=first["id"], approved=False)
        assert rpc.response("host", id="1")["data"] == {"selected": None}
    assert (hilt.project / "ran").exists() and of(rpc, "ui_withdrawn") == []


def test_a_dialog_whose_asker_gives_up_is_withdrawn_and_so_is_a_permission_when_the_turn_is_stopped(
    hilt: ServedHilt,
) -> None:
    turns = (calls(("bash", {"command": "touch ran"})), says("done"))
    with hilt.rpc("--permissions", "ask", *hilt.script(*turns)) as rpc:
        host(rpc, "pick_until_go")
        dialog = rpc.event("ui_request")
        rpc.send(type="prompt", message="go")
        permission = rpc.event("ui_request", kind="confirm")
        rpc.send(type="abort")
        assert rpc.event("ui_withdrawn")["id"] == permission["id"]
        rpc.event("done", stop="aborted")
        rpc.send(type="command", name="go")
        assert rpc.event("ui_withdrawn")["id"] == dialog["id"]
        assert rpc.response("host")["data"] == {"cancelled": True}
        for request in (dialog, permission):
            assert "no open request" in rpc.ask("ui_response", id=request["id"], approved=True)["error"]


# Topics


def test_what_is_published_reaches_a_client_that_subscribed(hilt: ServedHilt) -> None:
    with hilt.rpc(*hilt.script()) as rpc:
        assert served(rpc, "subscribe", "a") == {"subscription": 1}
        assert served(rpc, "subscribe", "b") == {"subscription": 2}
        host(rpc, "publish", {"topic": "b", "times": 2})
        events = [rpc.event("bus_event") for _ in range(2)]
        assert events == [{"type": "bus_event", "topic": "b", "subscription": 2, "data": number} for number in (0, 1)]


def test_a_flood_of_messages_is_cut_off_and_the_client_told_how_many_it_missed(hilt: ServedHilt) -> None:
    with hilt.rpc(*hilt.script()) as rpc:
        served(rpc, "subscribe", "a")
        host(rpc, "publish", {"topic": "a", "times": 5000})
        numbers = [rpc.event("bus_event")["data"] for _ in range(1000)]
        assert numbers == list(range(1000))
        host(rpc, "publish", {"topic": "a", "times": 1})
        last = rpc.event("bus_event")
        assert (last["data"], last["lost"]) == (0, 4000)
        assert len(of(rpc, "bus_event")) == 1001


def test_the_lines_of_a_running_command_are_on_a_topic(hilt: ServedHilt) -> None:
    with hilt.rpc(*hilt.script(calls(("bash", {"command": "echo one; echo two"})), says("done"))) as rpc:
        served(rpc, "subscribe", "bash.tail")
        (call,) = [line for line in rpc.prompt("go") if line["type"] == "tool_call"]
        until(lambda: len(of(rpc, "bus_event")) == 2, "both lines come")
        told = [line["data"] for line in of(rpc, "bus_event")]
        assert [line.pop("Partial") for line in told] == ["one", "two"]
        assert told == [{"ToolCallID": call["id"], "ToolName": "bash"}] * 2


# The screen


def test_what_is_on_the_screen_is_told_and_part_of_the_state(hilt: ServedHilt) -> None:
    shown = [
        {"action": "set_widget", "key": "w", "placement": "below-status", "content": "two\nlines"},
        {"action": "show_overlay", "overlay": {"key": "o", "title": "T", "content": "x", "anchor": "top"}},
        {"action": "set_status", "key": "s", "text": "busy"},
        {"action": "attach_image", "data": "AAAA", "mime_type": "image/png"},
        {"action": "set_input", "text": "this instead"},
        {"action": "quit"},
    ]
    with hilt.rpc(*hilt.script(says("still here"))) as rpc:
        before = rpc.ask("get_state")["data"]
        assert (before["widgets"], before["overlays"], before["statuses"]) == ([], [], [])
        assert (before["image"], before["step"]) == (None, False)
        served(rpc, "do", {"actions": shown})
        mine = {"extension": OWNER}
        widget = {"type": "ext_widget", **mine, "key": "w", "placement": "below-status", "content": "two\nlines"}
        overlay = {"type": "ext_overlay", **mine, "key": "o", "title": "T", "content": "x", "anchor": "top"}
        status = {"type": "ext_status_text", **mine, "key": "s", "text": "busy"}
        image = {"type": "ext_image", **mine, "mime_type": "image/png", "bytes": 3}
        state = rpc.ask("get_state")["data"]
        assert (state["widgets"], state["overlays"], state["statuses"]) == ([widget], [overlay], [status])
        assert state["image"] == image
        told = [line for line in rpc.lines if line["type"].startswith("ext_")]
        text = {"type": "ext_insert", **mine, "text": "this instead", "replace": True}
        assert told == [widget, overlay, status, image, text, {"type": "ext_quit", **mine}]
        assert rpc.ask("overlay_close", extension=OWNER, key="o")["success"]
        closed = {"type": "ext_overlay_close", **mine, "key": "o"}  # told before or after that
        until(lambda: [line for line in rpc.lines if line["type"] == "ext_overlay_close"] == [closed], "its end")
        refused = rpc.ask("overlay_close", extension=OWNER, key="o")
        assert not refused["success"] and "no overlay" in refused["error"]
        assert rpc.prompt("hi")[-1]["stop"] == "end"
        assert rpc.close() == 0
    assert OWNER not in rpc.errors


def test_a_flood_on_the_screen_is_told_as_its_beginning_and_its_end(hilt: ServedHilt) -> None:
    count = 20_000
    flood: list[dict[str, Any]] = [
        {"action": "set_widget", "key": "w", "placement": "above-input", "content": BIG},
        {"action": "set_status", "key": "s", "text": "busy"},
        {"action": "show_overlay", "overlay": {"key": "o", "title": "", "content": BIG}},
    ]
    last = [{**flood[0], "content": "last"}, {**flood[1], "text": "last"}]
    with hilt.rpc(*hilt.script()) as rpc:
        served(rpc, "do", {"actions": flood, "times": count})
        served(rpc, "do", {"actions": last})
        rpc.event("ext_widget", content="last")
        rpc.event("ext_status_text", text="last")
        assert len(of(rpc, "ext_widget")) < count / 20


def test_keys_that_hilt_knows_are_hidden_in_everything_extensions_show_and_publish(hilt: ServedHilt) -> None:
    key = "sk-0123456789abcdef"
    shown = [
        {"action": "set_widget", "key": "w", "placement": "above-input", "content": key},
        {"action": "show_overlay", "overlay": {"key": key, "title": key, "content": key}},
        {"action": "set_status", "key": "s", "text": key},
    ]
    with hilt.rpc("--api-key", key, *hilt.script()) as rpc:
        served(rpc, "do", {"actions": shown})
        host(rpc, "pick", {"items": [key]})
        rpc.event("ui_request")
        served(rpc, "subscribe", key)
        host(rpc, "publish", {"topic": key, "times": 1})
        rpc.event("bus_event")
        assert key not in json.dumps(rpc.lines) and rpc.ask("get_state")["success"]
        assert "[key hidden]" in json.dumps(of(rpc, "ext_overlay"))
