"""Fixtures played by the scripted host to real extensions of both dialects."""

import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from authoring.actors import fixture, frames, jsonrpc
from docs.fences import ROOT, fences_of
from hilt.authoring import fixtures, suites
from hilt.authoring.fixtures import read_fixture
from hilt.authoring.streams import Stream
from hilt.authoring.suites import Suite, run_suite
from hilt.authoring.trying import Outcome, try_fixture
from hilt.errors import FixtureError
from support.hilt_process import running_with

BOTH = pytest.mark.parametrize("make", [frames, jsonrpc])


async def play(folder: Path, make: Callable[..., Path], *lines: dict[str, Any], **manifest: Any) -> Outcome:
    return await try_fixture(make(folder, **manifest), read_fixture(fixture(folder, *lines)), folder)


async def passes(folder: Path, make: Callable[..., Path], *lines: dict[str, Any], **manifest: Any) -> None:
    outcome = await play(folder, make, *lines, **manifest)
    assert outcome.state == "passed", outcome.message


@BOTH
async def test_the_same_steps_play_to_both_dialects(tmp_path: Path, make: Callable[..., Path]) -> None:
    await passes(
        tmp_path,
        make,
        {"about": "everything an author writes"},
        {"host": "host/chat", "params": {"prompt": "cats"}, "reply": {"text": "they purr"}},
        {"registers": {"kind": "tool", "name": "add", "schema": {"required": {"$has": "b"}}}},
        {"call": "add", "args": {"a": 1, "b": 2}, "result": "3"},
        {"call": "add", "args": {"a": 1, "b": 2}, "result": {"content": [{"type": "text", "text": {"$regex": "^3$"}}]}},
        {"call": "add", "args": {"a": 1, "b": 2}, "result": [{"type": "text", "text": "3"}]},
        {"call": "add", "args": {}, "error": {"$contains": "needed"}},
        {"call": "think", "args": {"about": "cats"}, "result": "they purr", "asks": "host/chat"},
        {"run": "/hi Ada", "shows": "hello, Ada"},
        {"run": "/board", "opens": {"id": "board", "lines": ["first"]}},
        {"key": "x", "renders": {"$contains": "pressed x"}},
        {"intercept": "bash", "args": {"command": "rm -rf /"}, "verdict": "block", "reason": "not that"},
        {"intercept": "bash", "args": {"command": "ls"}, "verdict": "rewrite", "to": {"command": "ls -1"}},
        {"intercept": "bash", "args": {"command": "pwd"}, "verdict": "allow"},
        {"intercept": "assistant_message", "text": "a secret", "verdict": "replace", "to": "a ***"},
        {"event": "turn_end", "data": {"stop": "end"}, "notes": {"level": "success", "message": "turn_end: end"}},
    )


async def test_methods_of_the_other_dialect_have_steps_of_their_own(tmp_path: Path) -> None:
    await passes(
        tmp_path,
        jsonrpc,
        {
            "ask": "messageHook/onMessage",
            "params": {"message": "$m"},
            "result": {"injection": {"$contains": "heard m"}},
        },
        {"ask": "messageHook/onMessage", "params": {"message": "x"}, "result": "$whole"},
        {"after": "bash", "text": "my secret", "result": "my ***"},
        {"stream": "hello", "says": "hello!"},
        {"send": {"jsonrpc": "2.0", "id": "$#mine", "method": "nothing", "params": {}}},
        {"expect": {"id": "$#mine", "error": {"code": -32601}}},
    )


@BOTH
async def test_a_deadline_passes_when_a_step_says_so_and_takes_no_time(
    tmp_path: Path, make: Callable[..., Path]
) -> None:
    await passes(
        tmp_path,
        make,
        {"call": "slow", "args": {"a": 1, "b": 2}, "wait": False, "as": "first", "progress": "begun"},
        {"advance_ms": 900},
        {"call": "slow", "args": {"a": 1, "b": 2}, "wait": False, "as": "second", "progress": "begun"},
        {"advance_ms": 99},
        {"about": "progress gives both their time anew"},
        {"run": "/hi you", "progress": "still"},
        {"progress": "still"},
        {"advance_ms": 999},
        {"call": "add", "args": {"a": 1, "b": 1}, "result": "2"},
        {"log": ""},
        {"advance_ms": 1},
        {"log": "cancelled slow\ncancelled slow\n"},
        tool_timeout_ms=1000,
    )


@BOTH
async def test_several_answers_of_the_host_are_given_in_turn_and_the_last_for_ever(
    tmp_path: Path, make: Callable[..., Path]
) -> None:
    await passes(
        tmp_path,
        make,
        {"host": "host/chat", "reply": {"text": "one"}},
        {"host": "host/chat", "reply": {"text": "two"}},
        {"host": "host/chat", "params": {"prompt": "x"}, "error": {"code": -32603, "message": "no x"}},
        {"call": "think", "args": {}, "result": "one"},
        {"call": "think", "args": {}, "result": "two"},
        {"call": "think", "args": {}, "result": "two"},
        {"call": "think", "args": {"about": "x"}, "result": "two"},
        {"call": "think", "args": {"about": "x"}, "result": "no x"},
    )


async def test_a_call_that_is_not_due_is_not_cancelled(tmp_path: Path) -> None:
    outcome = await play(
        tmp_path,
        frames,
        {"call": "slow", "args": {"a": 1, "b": 2}, "wait": False, "progress": "begun"},
        {"advance_ms": 59_999},
        {"log": {"$contains": "cancelled"}, "within_ms": 100},
    )
    assert (outcome.state, outcome.where.rpartition(":")[2]) == ("failed", "3")


async def test_a_poorer_host_announces_less_and_is_told_apart(tmp_path: Path) -> None:
    outcome = await play(tmp_path, frames, {"host": "zot"}, {"run": "/hi you", "shows": "hello, you"}, bad="poor-host")
    assert outcome.state == "failed" and "code 4" in outcome.message
    (tmp_path / "two").mkdir()
    await passes(
        tmp_path / "two",
        frames,
        {"host": "zot", "files": {"a/b.txt": "x"}},
        {"call": "slow", "args": {"a": 1, "b": 2}, "wait": False, "progress": "begun"},
        {"cancel": "slow"},
        {"call": "add", "args": {"a": 1, "b": 1}, "result": "2"},
        {"log": ""},
        {"shutdown": True},
        {"expect": {"type": "shutdown_ack"}},
        {"expect_exit": 0},
    )


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        (
            [{"call": "add", "args": {"a": 1, "b": 2}, "result": "4"}],
            ['{"call": "add"', 'result: expected "4", got "3"'],
        ),
        ([{"call": "sub", "args": {}}], ["it has no tool 'sub'; it offers add, slow, think"]),
        ([{"call": "add", "args": {}}], ["it failed: a and b are needed"]),
        ([{"call": "add", "args": {"a": 1, "b": 2}, "error": True}], ['expected an error, got "3"']),
        ([{"run": "/nobody"}], ["it has no command 'nobody'"]),
        (
            [{"intercept": "bash", "args": {"command": "rm"}, "verdict": "allow"}],
            ["expected allow, got block: not that"],
        ),
        ([{"intercept": "turn_start"}], ["it does not intercept turn_start"]),
        ([{"event": "session_start"}], ["it has not subscribed to session_start, but to turn_end"]),
        ([{"notes": "hm", "within_ms": 50}], ['notes {"text":"hm"} never came', "nothing came"]),
        (
            [{"expect": {"type": "register_tool", "name": "slow", "description": "Fast."}, "within_ms": 50}],
            ["never came", 'description: expected "Fast.", got "Takes its time."', "and 5 more"],
        ),
        (
            [
                {"expect": {"type": "ready"}},
                {"expect_not": {"type": "tool_result"}},
                {"call": "add", "args": {}, "error": True},
            ],
            ["expect_not", "but it came"],
        ),
        ([{"call": "think", "args": {}, "result": "x"}], ["it asked for host/chat", "no reply was scripted"]),
        (
            [{"call": "slow", "args": {"a": 1, "b": 1}, "within_ms": 60}],
            ["the call of slow was not answered within 0.06 s"],
        ),
        (
            [{"send_raw": "hm"}, {"log": {"$contains": "oh"}, "within_ms": 60}],
            ["its log: expected", "that was no JSON"],
        ),
        ([{"shutdown": True}, {"expect_exit": 3}], ["expected code 3, but it exited with code 0"]),
        ([{"key": "up"}], ["it has opened no panel"]),
        (
            [{"shutdown": True}, {"expect_exit": 0}, {"send_raw": "x"}],
            ["it could not be sent b'x': it exited with code 0"],
        ),
        ([{"answer": "add"}], ["there was no call 'add'"]),
    ],
)
async def test_what_is_otherwise_is_told_with_what_came_instead(
    tmp_path: Path, steps: list[dict[str, Any]], told: list[str]
) -> None:
    outcome = await play(tmp_path, frames, *steps)

    last = f"{tmp_path / 'f.jsonl'}:{len(steps)}"
    assert outcome.state == "failed"
    assert outcome.where == last or "expect_not" in told
    assert all(text in outcome.message for text in told), outcome.message


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("json-lines", "a line that is no JSON object: 'loading…'"),
        ("shutdown", "at the end: it exited with code 6"),
        ("handshake", "it closed its output and exited with code 3"),
    ],
)
async def test_one_that_breaks_the_protocol_fails_whatever_is_asked(tmp_path: Path, bad: str, told: str) -> None:
    outcome = await play(tmp_path, frames, {"run": "/hi you"}, bad=bad)
    assert outcome.state == "failed" and told in outcome.message, outcome.message


async def test_a_fixture_of_the_other_dialect_is_skipped_and_secrets_of_the_log_are_hidden(tmp_path: Path) -> None:
    outcome = await play(tmp_path, frames, {"dialect": "jsonrpc"}, {"run": "/hi"})
    assert outcome.state == "skipped" and "speaks frames" in outcome.message
    token = "ghp_" + "a1" * 18
    path = fixture(tmp_path, {"call": "add", "args": {}, "error": {"$contains": token}})
    outcome = await try_fixture(tmp_path / "actor", read_fixture(path), tmp_path)
    assert outcome.state == "failed" and token not in outcome.message


# Reading


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"call":"x"}\n{"cal":"x"}', "f.jsonl:2: there is no step 'cal'"),
        ("[]", "f.jsonl:1: a step is a JSON object"),
        ("{", "f.jsonl:1: this is no JSON"),
        ("", "there is no step in it"),
        ('{"about":"nothing"}', "there is no step in it"),
        ('{"about":1}', "about is no string"),
        ('{"host":"word"}\n{"run":"/x"}', "host has either a reply or an error"),
        ('{"dialect":"smoke"}\n{"run":"/x"}', "no dialect 'smoke'"),
        ('{"files":{"../x":""}}\n{"run":"/x"}', "files: '../x'"),
        ('{"call":"x","arguments":{}}', "unknown arguments"),
        ('{"call":"x","args":[]}', "args is no object"),
        ('{"call":"x","result":{"$regex":"("}}', "is no regular expression"),
        ('{"expect_not":{"id":"$x"}}', "expect_not has no variables"),
        ('{"run":"hi"}', "run has a slash command"),
        ('{"intercept":"x","verdict":"maybe"}', "no verdict 'maybe'"),
        ('{"intercept":"turn_start","args":{}}', "args has no meaning for turn_start"),
        ('{"resize":[80]}', "resize has a width and a height"),
        ('{"advance_ms":-1}', "time does not go back"),
        ('{"expect":{},"within_ms":0}', "within_ms is from 1 to 600000"),
        ('{"shutdown":false}', "shutdown is true or not there"),
    ],
)
def test_what_the_format_does_not_know_is_an_error_that_says_where(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(text)
    with pytest.raises(FixtureError, match=re.escape(told)):
        read_fixture(path)


def test_what_is_read_and_kept_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream("it")
    for _ in range(100_010):
        stream.put({})
    assert len(stream.came) == 100_000
    monkeypatch.setattr(fixtures, "_LARGEST", 10)
    with pytest.raises(FixtureError, match="more than 10 bytes"):
        read_fixture(fixture(tmp_path, {"run": "/hello"}))


async def test_tests_of_a_language_that_never_end_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "_PATIENCE", 0.2)
    program = (sys.executable, "-I", "-S", "-c", f"import time; {str(tmp_path)!r}; time.sleep(600)")
    async with asyncio.timeout(10.0):
        outcome = await run_suite(Suite("endless", ("x",), tmp_path, program))

    assert outcome.state == "failed" and "did not end within 0.2 s" in outcome.message
    assert not running_with(str(tmp_path))


def test_a_file_that_is_no_text_or_not_there_is_an_error_too(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(FixtureError, match="not UTF-8"):
        read_fixture(path)
    with pytest.raises(FixtureError, match="No such file"):
        read_fixture(tmp_path / "none.jsonl")


@pytest.mark.parametrize("page", ["guides/testing-extensions.md", "reference/fixtures.md"])
def test_every_fixture_of_the_documents_can_be_read(page: str, tmp_path: Path) -> None:
    blocks = [fence for fence in fences_of(ROOT / "docs" / page) if fence.language == "jsonl"]
    assert blocks
    for fence in blocks:
        path = tmp_path / "f.jsonl"
        path.write_text(fence.text)
        assert read_fixture(path).steps, fence.where
