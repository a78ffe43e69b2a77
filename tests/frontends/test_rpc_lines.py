"""Lines that make no sense to `hilt rpc` get one response each, and the process lives on."""

from pathlib import Path

from support.agent import says
from support.hilt_process import Hilt

BAD = {
    b"not json": "malformed json",
    b"[1,2]": "malformed json",
    b'"words"': "malformed json",
    b"null": "malformed json",
    b"5": "malformed json",
    b"{": "malformed json",
    b'{"type":"ping"': "malformed json",
    b"{'type':'ping'}": "malformed json",
    b'{"type":"ping","id":5}': "malformed json",
    b'{"type":"ping","id":["a"]}': "malformed json",
    b'{"id":"x"}': "type",
    b'{"type":5}': "type",
    b'{"type":"ping","n":NaN}': "malformed json",
    b'{"type":"ping\xff"}': "malformed json",
    b'{"type":"ping\x00"}': "malformed json",
    b"\x00\x00\x00": "malformed json",
    "{}".encode("utf-16"): "malformed json",
    b'{"type":"ping","deep":' + b"[" * 100_000 + b"]" * 100_000 + b"}": "malformed json",
    b"[" * 200_000: "malformed json",
    b'{"type":"prompt","message":"' + b"x" * 20_000_000 + b'"}': "line too long: 20000030 bytes",
    b'{"type":"frobnicate"}': "unknown command",
    b'{"type":""}': "unknown command",
    b'{"type":"prompt"}': "message",
    b'{"type":"prompt","message":5}': "message",
    b'{"type":"prompt","message":" "}': "prompt needs a message",
    b'{"type":"prompt","message":"x","images":"none"}': "images",
    b'{"type":"prompt","message":"x","images":[{}]}': "images",
    b'{"type":"steer","message":[]}': "message",
    b'{"type":"set_model"}': "model",
    b'{"type":"input","text":"x","deliver":"pigeon"}': "deliver",
    b'{"type":"command","name":null}': "name",
    b'{"type":"sessions","all":"yes"}': "all",
    b'{"type":"ui_response"}': "id",
    b'{"type":"ui_response","id":"ui-1","approved":"yes"}': "approved",
    b'{"type":"ui_response","id":"ui-1","approved":true}': "no open request ui-1",
}


def test_every_bad_line_is_refused_once_and_the_next_one_is_heard(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(says("still here"))) as rpc:
        for number, (line, reason) in enumerate(BAD.items()):
            before = len(rpc.lines)
            rpc.write(line + b"\n")
            rpc.send(type="ping", id=f"after-{number}")
            rpc.response("ping", id=f"after-{number}")
            refused, _ = rpc.lines[before:]
            assert refused["type"] == "response" and refused["success"] is False, line[:80]
            assert reason in refused["error"], (line[:80], refused)
        assert rpc.prompt("are you there?")[-1]["stop"] == "end"
        assert rpc.close() == 0
    assert rpc.errors == ""


def test_a_refusal_names_the_command_and_the_id_when_they_can_be_read(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(says("x"))) as rpc:
        rpc.write(b'{"type":"frobnicate","id":"a"}\n{"type":"prompt","id":"b"}\n')
        assert rpc.response("frobnicate", id="a")["error"] == "unknown command"
        assert rpc.response("prompt", id="b")["error"].startswith("malformed prompt: ")


def test_blank_lines_carriage_returns_and_a_missing_last_newline_do_not_matter(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(says("x"))) as rpc:
        rpc.write(b'\n\r\n   \n{"type":"ping","id":"1"}\r\n  {"type":"ping","id":"2"}  \n\n{"type":"ping","id":"3"}')
        assert rpc.close() == 0
    assert [line["id"] for line in rpc.lines] == ["1", "2", "3"]


def test_separators_that_are_not_newlines_stay_inside_their_line(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    text = "one\u2028two\u2029three\u0085four"
    with hilt.rpc(*hilt.script(says(text, expect={"contains": text}))) as rpc:
        rpc.write(f'{{"type":"prompt","message":"{text}"}}\n'.encode())
        assert rpc.event("done")["stop"] == "end"
        assert "".join(line["delta"] for line in rpc.lines if line["type"] == "text_delta") == text


def test_nothing_but_hello_is_heard_before_the_token(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    for variable in ("HILT_RPC_TOKEN", "ZOTCORE_RPC_TOKEN"):
        with hilt.rpc(*hilt.script(says("x")), env={variable: "sésame"}) as rpc:
            for command in ("ping", "prompt", "frobnicate"):
                refused = rpc.ask(command, id="early", message="x")
                assert refused["id"] == "early"
                assert refused["error"] == "auth required: send hello with token first"
            assert rpc.ask("hello", token="sésame")["success"]
            assert rpc.ask("ping")["success"]
            assert rpc.ask("hello", token="whatever")["success"]
            assert rpc.close() == 0


def test_a_wrong_or_missing_token_ends_it_with_1(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    for fields in ({"token": "guess"}, {}):
        with hilt.rpc(*hilt.script(says("x")), env={"HILT_RPC_TOKEN": "right"}) as rpc:
            assert rpc.ask("hello", **fields)["error"] == "invalid token"
            assert rpc.process.wait(30) == 1
        assert "bad auth token" in rpc.errors


def test_more_commands_at_once_than_can_run_are_refused_and_the_rest_is_answered(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    with hilt.rpc(*hilt.script(says("x"))) as rpc:
        rpc.write(b'{"type":"sessions"}\n' * 80)  # small enough to arrive in one piece
        assert rpc.close() == 0
    outcomes = [line["success"] for line in rpc.lines]
    assert len(outcomes) == 80 and outcomes.count(True) == 64
    assert all("already waiting" in line["error"] for line in rpc.lines if not line["success"])
