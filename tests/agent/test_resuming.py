"""Going on with a session: which conversation, what it has cost, which model, and who else has it open."""

import fcntl
import json
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hilt.model.content import Text, ToolCall, text_of
from hilt.model.conversation import AssistantMessage, ToolMessage, UserMessage, now, user_text
from hilt.sessions.log import SessionLog
from hilt.sessions.records import MessageRecord, ModelRecord, new_meta
from support.agent import running, says, script
from support.killing import Ended, Place, accepted

PRICED = {"id": "priced", "contextWindow": 1000, "priceInput": 1.0, "priceOutput": 2.0}


def test_continue_takes_the_newest_session_of_this_directory(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    say(place, "first", "one")
    say(place, "second", "two", "-c")
    assert spoken(place) == ["first", "one", "second", "two"]
    elsewhere = replace(place, cwd=tmp_path / "elsewhere")
    elsewhere.cwd.mkdir()
    ended = play(elsewhere, [says("three")], "-c", "-p", "third")
    assert "there is no session of this directory yet" in ended.err
    assert sorted(titles(place)) == ["first", "third"]


# The head


def test_a_cleared_conversation_stays_cleared_and_the_old_one_stays_in_the_file(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    say(place, "first", "one")
    lines = [{"type": "clear"}]
    assert place.run("rpc", "-c", *model(place, says("unused")), lines=lines).code == 0
    assert spoken(place) == []
    say(place, "second", "two", "-c")
    assert spoken(place) == ["second", "two"]
    tree = json.loads(place.run("sessions", "tree", str(place.session()), "--json").out)
    assert [(node["preview"], node["on_current_path"], node["parent"] == "") for node in tree["tree"]] == [
        ("second", True, True),
        ("two", True, False),
        ("first", False, True),
        ("one", False, False),
    ]


async def test_a_head_moved_back_is_where_the_next_message_goes_and_both_branches_remain(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    say(place, "first", "one")
    say(place, "second", "two", "-c")
    path = place.session()
    assert path
    with SessionLog.open(path) as log:
        before = log.head
        log.move(log.branch()[1].id)
    say(place, "other second", "three", "-c")
    assert spoken(place) == ["first", "one", "other second", "three"]
    with SessionLog.open(path) as log:
        assert len(log.branch(before)) == 4
        log.move(before)
    with SessionLog.open(path) as log:
        async with running(script(tmp_path, says("four")), log=log) as harness:
            await harness.say("third")
            sent = harness.provider.requests[-1].messages
    assert [text_of(message.content) for message in sent if not isinstance(message, ToolMessage)] == [
        "first", "one", "second", "two", "third"
    ]  # fmt: skip


def test_a_call_without_a_result_is_shown_and_sent_with_one_that_says_it_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    with SessionLog.create(path, new_meta(str(tmp_path), "script", "script")) as log:
        log.append(MessageRecord(user_text("look")))
        log.append(MessageRecord(AssistantMessage((Text("well"), ToolCall("c1", "bash", {"command": "ls"})), now())))
    place = Place.make(tmp_path / "place")
    lines = [{"type": "get_messages"}, {"type": "prompt", "message": "and?"}]
    ended = place.run("rpc", "--session", str(path), *model(place, says("ok")), lines=lines)
    shown = next(event for event in ended.events if event.get("command") == "get_messages")["data"]["messages"]
    assert [message["role"] for message in shown] == ["user", "assistant", "tool"]
    (result,) = shown[2]["content"]
    assert result["call_id"] == "c1" and result["is_error"] and "outcome is unknown" in result["content"][0]["text"]
    with SessionLog.open(path) as log:
        paired = accepted(log.messages())
    assert [type(message) for message in paired] == [
        UserMessage, AssistantMessage, ToolMessage, UserMessage, AssistantMessage
    ]  # fmt: skip


# What it has cost, which model, what it is called


def test_usage_goes_on_counting_over_runs_and_branches(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    place.home.mkdir()
    (place.home / "models.json").write_text(json.dumps({"providers": {"script": {"models": [PRICED]}}}))
    spent = {"input": 100, "output": 50}
    for prompt in ("first", "second"):
        play(place, [says("ok", usage=spent)], "-c", "-p", "--model", "priced", prompt)
    place.run("rpc", "-c", *model(place), lines=[{"type": "clear"}])
    ended = play(place, [says("ok", usage=spent)], "-c", "--json", "--model", "priced", "third")
    (usage,) = [event for event in ended.events if event["type"] == "usage"]
    assert usage["cost_usd"] == pytest.approx(0.0002)
    assert usage["cumulative"] == {
        "input": 300, "output": 150, "cache_read": 0, "cache_write": 0, "cost_usd": pytest.approx(0.0006)
    }  # fmt: skip


def test_the_model_of_each_run_is_recorded(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    play(place, [says("ok")], "-p", "--model", "some-model", "first")
    path = place.session()
    assert path
    with SessionLog.open(path) as log:
        assert log.model == ("script", "some-model")
    for _ in range(2):
        play(place, [says("ok")], "-c", "-p", "--model", "another", "go on")
    with SessionLog.open(path) as log:
        assert log.model == ("script", "another")
        assert log.meta.model == "some-model"
        changes = [record for entry in log.entries() if isinstance(record := log.read(entry), ModelRecord)]
        assert changes == [ModelRecord("script", "another")]  # once, not with every run
        models = [message.model for message in log.messages() if isinstance(message, AssistantMessage)]
        assert models == ["some-model", "another", "another"]


def test_a_resumed_session_goes_on_with_the_model_it_had(tmp_path: Path) -> None:
    place = replace(
        Place.make(tmp_path), environment={"OPENAI_API_KEY": "sk-test-0123456789", "ANTHROPIC_API_KEY": "x" * 20}
    )
    path = tmp_path / "session.jsonl"
    with SessionLog.create(path, new_meta(str(place.cwd), "anthropic", "claude-x")) as log:
        log.append(MessageRecord(user_text("hello")))
        log.append(ModelRecord("openai", "gpt-of-my-own"))
    ended = place.run("rpc", "--session", str(path), lines=[{"type": "hello"}])
    hello = ended.events[0]["data"]
    assert (hello["provider"], hello["model"]) == ("openai", "gpt-of-my-own"), ended.err


def test_the_title_is_the_first_prompt_until_one_is_given_and_then_stays(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    say(place, "look at this\nwith care", "one")
    assert titles(place) == ["look at this"]
    renaming = [{"type": "command", "name": "rename", "args": "The  long look"}]
    place.run("rpc", "-c", *model(place), lines=renaming)
    say(place, "and again", "two", "-c")
    assert titles(place) == ["The  long look"]
    state = place.run("rpc", "-c", *model(place), lines=[{"type": "get_state"}]).events[0]["data"]
    assert state["session"]["title"] == "The  long look" and state["message_count"] == 4


# Damage, and company


@pytest.mark.parametrize("torn", [b'{"type":"message","id":"0000', b"\0" * 300])
def test_a_torn_tail_is_set_aside_and_said_and_the_session_goes_on(tmp_path: Path, torn: bytes) -> None:
    place = Place.make(tmp_path)
    say(place, "first", "one")
    path = place.session()
    assert path
    with path.open("ab") as file:
        file.write(torn)
    ended = play(place, [says("two")], "-c", "-p", "second")
    assert (ended.code, ended.out) == (0, b"two\n")
    beside = path.with_name(path.name + ".torn")
    assert f"unfinished record ({len(torn)} bytes)" in ended.err and str(beside) in ended.err
    assert beside.read_bytes() == torn + b"\n"
    assert spoken(place) == ["first", "one", "second", "two"]
    assert "unfinished" not in play(place, [says("three")], "-c", "-p", "third").err


@pytest.mark.parametrize("flag", ["-c", "--session"])
def test_a_second_hilt_on_one_session_is_told_who_has_it_and_what_to_do(tmp_path: Path, flag: str) -> None:
    place = Place.make(tmp_path)
    say(place, "first", "one")
    path = str(place.session())
    first_model = model(place, says("two"))
    with place.conversing("rpc", "-c", *first_model) as (process, send):
        assert process.stdout
        send({"type": "ping"})
        assert json.loads(process.stdout.readline())["success"]  # it has the session
        which = (flag, path) if flag == "--session" else (flag,)
        ended = play(place, [says("never")], *which, "-p", "second")
        assert ended.code == 1 and ended.out == b""
        assert f"is open in another hilt (pid {process.pid})" in ended.err and path in ended.err
        assert "hint: close it there, continue in a fork, or use --no-session" in ended.err
        assert play(place, [says("alone")], "--no-session", "-p", "second").out == b"alone\n"
        send({"type": "prompt", "message": "third"})
        while json.loads(process.stdout.readline())["type"] != "done":
            pass
    assert spoken(place) == ["first", "one", "third", "two"]


def test_a_lock_that_is_let_go_of_within_a_moment_is_waited_for(tmp_path: Path) -> None:
    """After SIGKILL, a child between fork and exec keeps the dead hilt's lock for a few milliseconds."""
    place = Place.make(tmp_path)
    say(place, "first", "one")
    path = place.session()
    assert path
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[file.fileno()])
    with child:
        assert child.stdin
        release = threading.Timer(0.1, child.stdin.close)
        release.start()
        try:
            SessionLog.open(path).close()
        finally:
            release.join()


def model(place: Place, *turns: dict[str, Any]) -> tuple[str, ...]:
    return ("--provider", "script", "--script", place.script("model", *turns))


def play(place: Place, turns: list[dict[str, Any]], *args: str) -> Ended:
    return place.run(*model(place, *turns), *args)


def say(place: Place, prompt: str, answer: str, *flags: str) -> None:
    """One prompt and its answer, by a run of its own."""
    ended = play(place, [says(answer)], *flags, "-p", prompt)
    assert (ended.code, ended.out.decode()) == (0, answer + "\n"), ended.err


def spoken(place: Place) -> list[str]:
    """What the conversation of the one session says."""
    return [text_of(message.content) for message in place.messages() if not isinstance(message, ToolMessage)]


def titles(place: Place) -> list[str]:
    return [summary["title"] for summary in json.loads(place.run("sessions", "list", "--json").out)]
