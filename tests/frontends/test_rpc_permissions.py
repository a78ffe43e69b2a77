"""Asking before tools run, over `hilt rpc`: a `ui_request` out, a `ui_response` in."""

from pathlib import Path
from typing import Any

from support.agent import calls, says
from support.hilt_process import Hilt, Rpc

ASK = ("--permissions", "ask")


def bash(command: str, **more: Any) -> dict[str, Any]:
    return calls(("bash", {"command": command}), **more)


def asked(rpc: Rpc, text: str) -> dict[str, Any]:
    """The next question, which must be about this."""
    request = rpc.event("ui_request")
    assert request["preview"]["text"] == text
    return request


def answer(rpc: Rpc, request: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return rpc.ask("ui_response", id=request["id"], **fields)


def test_the_question_shows_the_whole_command_and_the_answer_decides(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    long = "true " + "x" * 10_000 + "; touch ran"
    turns = (
        bash(long),
        bash("touch ran", expect={"role": "tool", "contains": "not in my house"}),
        bash("touch ran-too", expect={"role": "tool", "contains": "the user dismissed it"}),
        bash("touch last", expect={"role": "tool", "contains": "[exit 0]"}),
        says("done", expect={"role": "tool", "contains": "the user declined"}),
    )
    with hilt.rpc(*ASK, *hilt.script(*turns)) as rpc:
        rpc.send(type="prompt", message="go")
        request = asked(rpc, long)
        assert request["kind"] == "confirm" and request["tool"] == "bash" and request["effect"] == "execute"
        assert request["args"] == {"command": long}
        assert request["scopes"] == ["once", "tool", "prefix", "session"]
        assert answer(rpc, request, approved=False, reason="not in my house")["success"]
        decided = rpc.event("permission_decision")
        assert (decided["approved"], decided["source"], decided["reason"]) == (False, "user", "not in my house")
        answer(rpc, asked(rpc, "touch ran"), cancelled=True, approved=True)
        request = asked(rpc, "touch ran-too")
        answer(rpc, request, approved=True)
        late = answer(rpc, request, approved=False)
        assert not late["success"] and "no open request" in late["error"]
        answer(rpc, asked(rpc, "touch last"), approved=False)
        assert rpc.event("done")["stop"] == "end"
    assert {path.name for path in hilt.project.iterdir()} == {"ran-too"}


def test_the_question_about_a_file_shows_the_whole_change(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    content = "".join(f"line {number}\n" for number in range(500))
    with hilt.rpc(*ASK, *hilt.script(calls(("write", {"path": "a.txt", "content": content})), says("done"))) as rpc:
        rpc.send(type="prompt", message="go")
        request = rpc.event("ui_request")
        assert request["effect"] == "write" and request["preview"]["kind"] == "diff"
        assert all(f"+line {number}\n" in request["preview"]["text"] + "\n" for number in range(500))
        assert not (hilt.project / "a.txt").exists()
        answer(rpc, request, approved=True)
        rpc.event("done")
    assert (hilt.project / "a.txt").read_text() == content


def test_a_yes_for_a_prefix_covers_it_and_no_command_that_hides_behind_it(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    commands = ["git status", "git status --short", "git log", "git status; touch ran"]
    with hilt.rpc(*ASK, *hilt.script(*map(bash, commands), says("done"))) as rpc:
        rpc.send(type="prompt", message="go")
        request = asked(rpc, "git status")
        assert request["prefix"] == "git status"
        answer(rpc, request, approved=True, scope="prefix")
        assert rpc.event("permission_decision", source="remembered")["approved"]
        answer(rpc, asked(rpc, "git log"), approved=False)
        answer(rpc, asked(rpc, "git status; touch ran"), approved=False)
        rpc.event("done")
    assert not (hilt.project / "ran").exists()


def test_a_yes_for_a_tool_covers_that_tool_and_one_for_the_session_covers_all(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    turns = [
        bash("echo one"),
        bash("touch two"),
        calls(("write", {"path": "a", "content": "x"})),
        calls(("edit", {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]})),
        says("done"),
    ]
    with hilt.rpc(*ASK, *hilt.script(*turns)) as rpc:
        rpc.send(type="prompt", message="go")
        answer(rpc, asked(rpc, "echo one"), approved=True, scope="tool")
        request = rpc.event("ui_request")
        assert request["tool"] == "write"
        answer(rpc, request, approved=True, scope="session")
        rpc.event("done")
    assert rpc.types().count("ui_request") == 2
    assert (hilt.project / "two").exists()


def test_the_mode_can_be_changed_while_it_runs(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*ASK, *hilt.script(bash("touch a"), says("done"))) as rpc:
        assert rpc.ask("command", name="yolo")["data"] == {"action": "set_permissions", "mode": "yolo"}
        assert [line["permissions"] for line in rpc.lines if line["type"] == "state"] == ["yolo"]
        rpc.prompt("go")
        assert "ui_request" not in rpc.types()
    assert (hilt.project / "a").exists()


def test_an_abort_withdraws_the_question(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*ASK, *hilt.script(bash("touch ran"), says("done"))) as rpc:
        rpc.send(type="prompt", message="go")
        request = asked(rpc, "touch ran")
        rpc.ask("abort")
        rpc.event("done", stop="aborted")
        assert not answer(rpc, request, approved=True)["success"]
        (result,) = [line for line in rpc.lines if line["type"] == "tool_result"]
        assert "was not run" in result["content"][0]["text"]
    assert not (hilt.project / "ran").exists()


def test_a_client_that_hangs_up_while_it_is_asked_has_said_no(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    turns = (
        bash("touch ran"),
        bash("touch ran", expect={"role": "tool", "contains": "permission denied"}),
        says("I see", expect={"role": "tool", "contains": "permission denied"}),
    )
    with hilt.rpc(*ASK, *hilt.script(*turns)) as rpc:
        rpc.send(type="prompt", message="go")
        asked(rpc, "touch ran")
        assert rpc.close() == 0
    assert rpc.lines[-1] == {"type": "done", "stop": "end"}
    assert rpc.types().count("ui_request") == 1
    assert not (hilt.project / "ran").exists()
