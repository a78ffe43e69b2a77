"""`hilt rpc`: turns that wait, are steered, aborted, taken back, and the end of the input."""

import json
import random
import time
from pathlib import Path

from support.agent import calls, says
from support.hilt_process import DEADLINE, Hilt, running_with, until, wait_gone

WAIT = ("bash", {"command": "until [ -e go ]; do sleep 0.02; done"})


def test_an_abort_frees_a_sleeping_command_at_once_and_kills_it(tmp_path: Path) -> None:
    hilt, mark = Hilt(tmp_path), f"60.{random.randrange(10**8, 10**9)}"
    command = f"sleep {mark} & sleep {mark}"
    with hilt.rpc(*hilt.script(calls(("bash", {"command": command})), says("next"))) as rpc:
        rpc.send(type="prompt", message="sleep")
        until(lambda: len(running_with(f"sleep\0{mark}")) == 2, "the command's start")
        start = time.monotonic()
        assert rpc.ask("abort")["success"]
        assert rpc.event("done")["stop"] == "aborted"
        assert time.monotonic() - start < 10
        wait_gone(mark)
        assert "error" not in rpc.types()
        (result,) = [line for line in rpc.lines if line["type"] == "tool_result"]
        assert result["is_error"] and "outcome is unknown" in result["content"][0]["text"]
        assert rpc.prompt("and now?")[-1]["stop"] == "end"
        assert rpc.ask("abort", id="idle") == {"type": "response", "command": "abort", "success": True, "id": "idle"}


def test_an_abort_while_the_model_thinks_keeps_what_it_said_and_is_no_error(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(says("never", delay_ms=60_000), says("fine"))) as rpc:
        rpc.send(type="prompt", message="think")
        rpc.event("turn_start")
        rpc.ask("abort")
        ended = rpc.event("turn_end")
        assert (ended["stop"], ended["error"]) == ("aborted", "cancelled")
        rpc.event("done", stop="aborted")
        rpc.rest()
        assert "error" not in rpc.types()


def test_a_second_prompt_starts_only_when_the_first_is_done(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(calls(WAIT), says("first"), says("second"))) as rpc:
        rpc.send(type="prompt", id="1", message="one")
        rpc.event("tool_call")
        rpc.send(type="prompt", id="2", message="two")
        assert rpc.event("queue")["waiting"] == ["two"]
        assert rpc.ask("get_state")["data"]["queue"] == ["two"]
        assert not [line for line in rpc.lines if line.get("id") == "2"]
        (hilt.project / "go").touch()
        rpc.event("done")
        assert rpc.response("prompt", id="2")["data"] == {"started": True}
        rpc.event("done")
        kinds = rpc.types()
        second = max(index for index, line in enumerate(rpc.lines) if line.get("id") == "2")
        assert kinds.index("done") < second < len(kinds) - 1 - kinds[::-1].index("user_message")


def test_an_abort_stops_what_runs_and_what_waits_goes_on(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(calls(WAIT), says("second"))) as rpc:
        rpc.send(type="prompt", message="one")
        rpc.event("tool_call")
        rpc.send(type="prompt", message="two")
        rpc.ask("abort")
        rpc.event("done", stop="aborted")
        rpc.event("done", stop="end")


def test_steering_reaches_the_model_at_the_next_boundary(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    steered = says("left it is", expect={"role": "user", "contains": "no, left"})
    with hilt.rpc(*hilt.script(calls(WAIT), steered, says("on its own"))) as rpc:
        rpc.send(type="prompt", message="go right")
        rpc.event("tool_call")
        assert rpc.ask("steer", message="no, left")["data"] == {"queued": True}
        assert rpc.ask("input", text="and slowly", deliver="steer")["data"] == {"queued": True}
        assert rpc.ask("take_back")["data"] == {"messages": ["no, left", "and slowly"]}
        rpc.ask("steer", message="no, left")
        (hilt.project / "go").touch()
        rpc.event("done", stop="end")
        rpc.rest()
        assert rpc.ask("steer", id="idle", message="now")["data"] == {"started": True}
        rpc.event("done")


def test_prompts_that_are_taken_back_are_answered_so(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(calls(WAIT), says("first"))) as rpc:
        rpc.send(type="prompt", id="1", message="one")
        rpc.event("tool_call")
        rpc.send(type="prompt", id="2", message="two")
        rpc.send(type="input", id="3", text="three")
        rpc.event("queue", waiting=["two", "three"])
        rpc.send(type="take_back", id="t")
        for number, command in (("2", "prompt"), ("3", "input")):
            taken = rpc.response(command, id=number)
            assert not taken["success"] and taken["error"] == "taken back before it started"
        assert rpc.response("take_back", id="t")["data"] == {"messages": ["two", "three"]}
        (hilt.project / "go").touch()
        assert rpc.close() == 0
    assert rpc.types().count("done") == 1
    assert len([line for line in rpc.lines if line.get("id") == "1"]) == 1


def test_the_end_of_the_input_waits_for_everything_that_was_sent(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(calls(WAIT), says("first"), says("second"))) as rpc:
        rpc.send(type="prompt", message="one")
        rpc.send(type="prompt", message="two")
        rpc.event("tool_call")
        assert rpc.process.stdin
        rpc.process.stdin.close()
        (hilt.project / "go").touch()
        assert rpc.process.wait(DEADLINE) == 0
    assert rpc.types().count("done") == 2
    assert rpc.errors == ""


def test_an_error_is_told_once_and_the_next_prompt_works(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script({"error": "no"}, says("yes"))) as rpc:
        kinds = [line["type"] for line in rpc.prompt("one")]
        assert kinds == ["response", "user_message", "turn_start", "turn_end", "error", "done"]
        assert rpc.prompt("two")[-1]["stop"] == "end"


def test_more_prompts_than_may_wait_are_refused_and_none_is_lost(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(calls(WAIT), says("x"))) as rpc:
        rpc.send(type="prompt", message="wait")
        rpc.event("tool_call")
        for number in range(102):
            rpc.send(type="prompt", id=str(number), message=str(number))
        for late in ("100", "101"):
            refused = rpc.response("prompt", id=late)
            assert not refused["success"] and "already wait" in refused["error"]
        assert len(rpc.ask("take_back")["data"]["messages"]) == 100
        rpc.ask("abort")
        rpc.event("done", stop="aborted")


def test_commands_are_done_in_the_order_of_their_lines(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    turns = [says(str(number)) for number in range(4)]
    lines = [
        {"type": "input", "text": "first"},
        {"type": "prompt", "message": "second"},
        {"type": "sessions"},
        {"type": "prompt", "message": "third"},
    ]
    with hilt.rpc(*hilt.script(*turns)) as rpc:
        rpc.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        assert rpc.close() == 0
    said = [line["content"][0]["text"] for line in rpc.lines if line["type"] == "user_message"]
    assert said == ["first", "second", "third"]


def test_a_command_before_a_prompt_is_done_before_it(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(says("one"), says("two"))) as rpc:
        rpc.prompt("one")
        rpc.write(b'{"type":"command","name":"clear"}\n{"type":"prompt","message":"two"}\n')
        assert rpc.response("command")["success"]
        rpc.event("done")
        assert rpc.ask("get_state")["data"]["message_count"] == 2


def test_a_command_that_takes_long_holds_up_no_look_and_no_abort(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(calls(("bash", {"command": "sleep 30"})), says("never"))) as rpc:
        rpc.send(type="prompt", message="go")
        rpc.event("tool_call")
        rpc.write(b'{"type":"sessions","all":true}\n' * 20 + b'{"type":"abort"}\n{"type":"ping"}\n')
        assert rpc.event("done")["stop"] == "aborted"


def test_the_token_reaches_neither_the_commands_that_run_nor_the_output(tmp_path: Path) -> None:
    token = "open-sesame-0123456789"
    hilt = Hilt(tmp_path)
    turns = (calls(("bash", {"command": "env"}), ("bash", {"command": f"echo {token}"})), says("done"))
    with hilt.rpc(*hilt.script(*turns), env={"HILT_RPC_TOKEN": token}) as rpc:
        rpc.send(type="hello", token=token)
        rpc.prompt("go")
        environment, _ = [line for line in rpc.lines if line["type"] == "tool_result"]
        assert "HILT=1" in environment["content"][0]["text"]
        assert "HILT_RPC_TOKEN" not in environment["content"][0]["text"]
    assert token not in json.dumps(rpc.lines)
