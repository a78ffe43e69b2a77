"""`hilt rpc`: every command, its response and its data."""

import asyncio
import json
from pathlib import Path

from hilt import __version__
from support.agent import calls, says
from support.api_server import ApiServer
from support.chat_server import PROVIDER, answers
from support.hilt_process import Hilt

ZERO = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "cost_usd": 0.0}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def test_questions_about_the_state_of_things_are_answered(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(says("hello", usage={"input": 7, "output": 2}))) as rpc:
        assert rpc.ask("ping", id="p") == {
            "type": "response",
            "command": "ping",
            "success": True,
            "id": "p",
            "data": {"pong": True},
        }
        assert "id" not in rpc.ask("ping")
        assert rpc.ask("hello")["data"] == {
            "protocol_version": 1,
            "version": __version__,
            "host": "hilt",
            "provider": "script",
            "model": "script",
        }
        rpc.prompt("hi")
        rpc.rest()
        state = rpc.ask("get_state")["data"]
        session = state.pop("session")
        assert state.pop("context")["window"] > 0
        assert state == {
            "provider": "script",
            "model": "script",
            "cwd": str(hilt.project),
            "message_count": 2,
            "busy": False,
            "usage": {**ZERO, "input": 7, "output": 2},
            "permissions": "yolo",
            "step": False,
            "jail": False,
            "queue": [],
            "waiting_for": [],
            "notes": [],
            "panel": None,
            "panels": [],
            "widgets": [],
            "overlays": [],
            "statuses": [],
            "image": None,
        }
        assert session["title"] == "hi" and session["path"] == str(hilt.sessions()[0])
        models = rpc.ask("get_models")["data"]["models"]
        assert {"id", "provider", "context_window", "max_output", "reasoning", "extension"} == set(models[0])
        assert "anthropic" in {model["provider"] for model in models}
        assert rpc.close() == 0
    assert rpc.errors == ""


def test_messages_are_given_by_role_with_calls_and_results(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    (hilt.project / "a.txt").write_text("inside a\n")
    call = {"type": "tool_call", "id": "c1", "name": "read", "args": {"path": "a.txt"}}
    with hilt.rpc(*hilt.script({"content": [{"type": "text", "text": "let me see"}, call]}, says("seen"))) as rpc:
        rpc.prompt("look")
        messages = rpc.ask("get_messages")["data"]["messages"]
    assert all(message.pop("time").endswith("Z") for message in messages)
    (result,) = messages[2]["content"]
    assert "inside a" in result.pop("content")[0]["text"]
    assert messages == [
        {"role": "user", "content": [{"type": "text", "text": "look"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "let me see"}, call]},
        {"role": "tool", "content": [{"type": "tool_result", "call_id": "c1", "is_error": False}]},
        {"role": "assistant", "content": [{"type": "text", "text": "seen"}]},
    ]


async def test_images_in_a_prompt_are_shown_by_size_and_sent_whole(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)

    def drive(url: str) -> None:
        with hilt.rpc(*PROVIDER, "--base-url", url) as rpc:
            lines = rpc.prompt("what is it?", images=[{"mime_type": "image/png", "data": PNG}])
            (shown,) = [line for line in lines if line["type"] == "user_message"]
            assert shown["content"] == [
                {"type": "text", "text": "what is it?"},
                {"type": "image", "mime_type": "image/png", "bytes": 70},
            ]
            alone = rpc.prompt("", images=[{"mime_type": "image/png", "data": PNG}])
            assert {"started": True} in [line.get("data") for line in alone]
            bad = rpc.ask("prompt", message="x", images=[{"mime_type": "image/png", "data": "§"}])
            assert not bad["success"] and "images" in bad["error"]

    async with ApiServer(answers("a dot")) as server:
        await asyncio.to_thread(drive, server.url)
        sent = server.requests[0].json["messages"][-1]["content"]
    assert f"data:image/png;base64,{PNG}" in json.dumps(sent)


def test_the_model_can_be_switched_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(says("scripted"))) as rpc:
        unknown = rpc.ask("set_model", model="nosuch-9", id="m")
        assert unknown["id"] == "m" and not unknown["success"]
        assert unknown["error"].startswith('unknown model "nosuch-9" (provider="script")')
        assert "key" in rpc.ask("set_model", model="claude-sonnet-4-5")["error"]
        assert rpc.ask("get_state")["data"]["model"] == "script"
        assert rpc.ask("set_model", model="demo")["data"] == {"model": "demo", "provider": "demo"}
        assert [line["model"] for line in rpc.lines if line["type"] == "state"] == ["demo"]
        rpc.prompt("hello")
        assert rpc.ask("get_state")["data"]["provider"] == "demo"


def test_clearing_begins_an_empty_conversation_and_the_tree_keeps_the_old_one(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(says("one", usage={"input": 5, "output": 5}), says("two"))) as rpc:
        rpc.prompt("first")
        rpc.rest()
        assert rpc.ask("clear")["success"]
        state = rpc.ask("get_state")["data"]
        assert state["message_count"] == 0 and state["usage"]["input"] == 5
        rpc.prompt("second")
        tree = rpc.ask("session_tree")["data"]
        assert tree["session"] == state["session"]["id"]
        assert [(node["preview"], node["on_current_path"]) for node in tree["tree"]] == [
            ("second", True),
            ("two", True),
            ("first", False),
            ("one", False),
        ]
        assert tree["head"] == tree["tree"][1]["id"]


def test_sessions_are_listed_for_this_directory_or_for_all(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    script = hilt.script(says("yes"))
    hilt.run("-p", "elsewhere", "--cwd", str(tmp_path), *script)
    with hilt.rpc(*script) as rpc:
        rpc.prompt("here")
        here = rpc.ask("sessions")["data"]["sessions"]
        everywhere = rpc.ask("sessions", all=True)["data"]["sessions"]
    assert [session["title"] for session in here] == ["here"]
    assert {session["title"] for session in everywhere} == {"here", "elsewhere"}
    assert {"id", "title", "cwd", "updated", "path", "messages"} <= set(here[0])


def test_commands_are_listed_and_run_and_their_action_is_the_answer(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(says("read up"), says("as typed"))) as rpc:
        listed = rpc.ask("commands")["data"]["commands"]
        assert {"name", "description", "usage", "owner"} == set(listed[0])
        assert {"help", "model", "compact", "clear", "undo"} <= {command["name"] for command in listed}
        shown = rpc.ask("command", name="/COST")
        assert shown["data"]["action"] == "display" and shown["data"]["display"].startswith("input 0")
        assert any(line["type"] == "ext_display" for line in rpc.lines)
        unknown = rpc.ask("command", name="frobnicate", id="u")
        assert not unknown["success"] and unknown["id"] == "u" and "/frobnicate" in unknown["error"]
        assert rpc.ask("command", name="study")["data"]["action"] == "prompt"
        rpc.event("done")
        assert rpc.ask("input", text="/permissions ask")["data"] == {"action": "set_permissions", "mode": "ask"}
        assert not rpc.ask("input", text="/permissions maybe")["success"]
        assert rpc.ask("input", text="   ")["data"] == {"action": "noop"}
        assert rpc.ask("input", text=" ", deliver="steer")["data"] == {"action": "noop"}
        rpc.send(type="input", id="i", text="plain words")
        assert rpc.response("input", id="i")["data"] == {"started": True}
        rpc.event("text_delta")
        rpc.event("done")
        rpc.rest()
        rpc.send(type="input", id="s", text="more words", deliver="steer")
        assert rpc.response("input", id="s")["data"] == {"started": True}
        rpc.event("done")


def test_compacting_shortens_what_the_model_sees_and_says_so(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    turns = [says(f"answer {number}") for number in range(4)]
    with hilt.rpc(*hilt.script(*turns, says("the gist"), says("after"))) as rpc:
        assert rpc.ask("compact", id="early")["data"] == {"started": True}
        assert "nothing to compact" in rpc.event("error")["message"]
        for number in range(4):
            rpc.prompt(f"question {number}")
        before = len(rpc.lines)
        assert rpc.ask("compact")["data"] == {"started": True}
        assert rpc.event("compact_done")["summary"] == "the gist"
        messages = rpc.ask("get_messages")["data"]["messages"]
        assert "done" not in [line["type"] for line in rpc.lines[before:]]
        assert "the gist" in messages[0]["content"][0]["text"] and len(messages) < 8
        rpc.prompt("go on")
        assert rpc.close() == 0
    assert "question 0" in hilt.sessions()[0].read_text()


def test_a_turn_changes_nothing_that_only_rest_allows(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    wait = "until [ -e go ]; do sleep 0.02; done"
    with hilt.rpc(*hilt.script(calls(("bash", {"command": wait})), says("done"))) as rpc:
        rpc.send(type="prompt", message="wait")
        rpc.event("tool_call")
        assert rpc.ask("get_state")["data"]["busy"]
        for command, fields in (("clear", {}), ("set_model", {"model": "demo"}), ("command", {"name": "undo"})):
            refused = rpc.ask(command, **fields)
            assert not refused["success"] and "between turns" in refused["error"]
        (hilt.project / "go").touch()
        rpc.event("done", stop="end")


def test_no_line_shows_a_key_that_hilt_knows(tmp_path: Path) -> None:
    hilt, key = Hilt(tmp_path), "sk-test-0123456789abcdef"
    turns = (calls(("bash", {"command": "echo leaks: $LEAK"})), says(f"leaks: {key}"))
    env = {"OPENAI_API_KEY": key, "LEAK": key}
    with hilt.rpc(*hilt.script(*turns), env=env) as rpc:
        rpc.prompt(f"leaks: {key}")
        rpc.ask("get_messages")
        rpc.ask("command", name=key)
    said = json.dumps(rpc.lines)
    assert said.count("leaks: [key hidden]") >= 6
    assert key not in said
