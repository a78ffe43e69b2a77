"""Extensions and fixtures that mean harm: no tool of an author's hangs, breaks, or takes all memory."""

import asyncio
import json
import signal
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from authoring.actors import fixture, frames
from hilt.authoring import bench, dialogue, greeting, replay, searching, stage
from hilt.authoring.comparing import changes
from hilt.authoring.fixtures import read_fixture
from hilt.authoring.matching import matched
from hilt.authoring.stage import started
from hilt.authoring.traces import process_of, read_trace
from hilt.authoring.trying import Outcome, try_fixture
from hilt.errors import Departure, ExtensionTimeout, FixtureError
from hilt.extensions.trace_line import Secrets
from hilt.model.masking import Mask

SECRET = "hunter2-hunter2"
HOSTILE = f"""
    import json, os, signal, sys

    def say(**frame):
        print(json.dumps(frame), flush=True)

    def without_end(**frame):
        while True:
            say(**frame)

    mode = sys.argv[1]
    if mode == "opens-with-a-flood":
        without_end(type="note", text="x" * 10_000)
    say(type="hello", name="hostile")
    say(type="register_tool", name="t", description="d", schema={{"type": "object"}})
    say(type="ready")
    for line in sys.stdin:
        frame = json.loads(line)
        if frame["type"] == "shutdown":
            break
        if frame["type"] != "tool_call":
            continue
        if mode == "floods":
            without_end(type="notify", message="x" * 10_000)
        elif mode == "answers-what-nobody-asked":
            without_end(type="tool_result", id="nobody", content=[])
        elif mode == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        elif mode == "nests":
            print('{{"type":"tool_result","id":"%s","content":%s%s}}' % (frame["id"], "[" * 700, "]" * 700), flush=True)
        elif mode == "tells":
            content = [{{"type": "text", "text": "it is {SECRET}"}}]
            say(type="tool_result", id=frame["id"], content=content, structured_content={{"token": "abcdef"}})
"""


def hostile(folder: Path, mode: str) -> Path:
    (folder / "x.py").write_text(textwrap.dedent(HOSTILE))
    manifest = {"name": "hostile", "exec": sys.executable, "args": ["-I", "-S", str(folder / "x.py"), mode]}
    (folder / "extension.json").write_text(json.dumps({**manifest, "stop_grace_ms": 0}))
    return folder


async def tried(folder: Path, mode: str, *lines: dict[str, Any]) -> Outcome:
    steps = lines or ({"call": "t", "args": {}, "result": "fine", "within_ms": 5000},)
    return await try_fixture(hostile(folder, mode), read_fixture(fixture(folder, *steps)), folder)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (dialogue, greeting, replay):
        monkeypatch.setattr(module, "_MOST", 500_000)


@pytest.mark.usefixtures("small")
async def test_one_that_talks_without_end_is_not_listened_to_without_end(tmp_path: Path) -> None:
    later = await tried(tmp_path, "floods")
    at_once = await tried(tmp_path, "opens-with-a-flood")
    assert "the call of t was not answered before it wrote more than" in later.message, later.message
    assert "before it was ready" in at_once.message, at_once.message


async def test_long_lines_wait_within_a_cap_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_ROOM", 100_000)
    async with started(hostile(tmp_path, "opens-with-a-flood")) as actor:
        for round_ in range(3):
            async with asyncio.timeout(10.0):
                while actor.waiting < 10:
                    await asyncio.sleep(0.005)
            for _ in range(20):
                await asyncio.sleep(0.001)  # were more to be read, it would be by now
            assert actor.waiting == 10, f"of 10,000 characters each, {round_}"
            assert [await actor.receive(5.0) for _ in range(5)]


async def test_why_an_answer_did_not_count_and_how_it_ended_are_told(tmp_path: Path) -> None:
    nested = await tried(tmp_path, "nests", {"call": "t", "args": {}, "within_ms": 500})
    dead = await tried(tmp_path, "dies")
    told = await tried(tmp_path, "tells")
    assert "was not answered within 0.5 s" in nested.message and "nested more than 100 deep" in nested.message
    assert "before it was killed by SIGKILL" in dead.message
    assert told.state == "failed" and "it is hunter2-hunter2" in told.message, "nobody has said that it is secret"


async def test_what_the_environment_keeps_secret_is_in_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    told = await tried(tmp_path, "tells")
    assert "it is [key hidden]" in told.message and SECRET not in told.message


async def test_a_bench_waits_for_its_own_answers_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "_PATIENCE", 0.3)
    with pytest.raises(ExtensionTimeout, match=r"did not answer a call of t within 0\.3 s"):
        await bench.bench(hostile(tmp_path, "answers-what-nobody-asked"), tmp_path, "t", {}, 1, {})


def written(folder: Path, result: dict[str, Any]) -> Path:
    """A trace of one call."""
    said = [
        ("from_extension", {"type": "hello", "name": "hostile"}),
        ("to_extension", {"type": "hello_ack", "protocol_version": 1}),
        ("from_extension", {"type": "ready"}),
        ("to_extension", {"type": "tool_call", "id": "1", "name": "t", "args": {}}),
        ("from_extension", {"type": "tool_result", "id": "1", **result}),
    ]
    head = {"time": "", "at": 0.5, "extension": "hostile", "pid": 9, "dialect": "frames"}
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps({**head, "direction": way, "frame": frame}) + "\n" for way, frame in said))
    return path


async def replayed(folder: Path, mode: str, trace: Path, patience: float = 0.5) -> replay.Replayed:
    lines = process_of(read_trace(trace), "hostile")
    async with started(hostile(folder, mode), folder) as actor:
        return await replay.replay(lines, actor, patience, Secrets((Mask((SECRET,)),)), ["description", "schema"])


@pytest.mark.usefixtures("small")
async def test_a_replay_ends_also_with_one_that_does_not(tmp_path: Path) -> None:
    flooded = await replayed(tmp_path, "floods", written(tmp_path, {"content": []}))
    nested = await replayed(tmp_path, "nests", written(tmp_path, {"content": json.loads("[" * 700 + "]" * 700)}))
    assert "it wrote more than" in " ".join(one.what for one in flooded.findings if one.kind == "stopped")
    assert len(flooded.findings) < 150
    assert [one.what for one in nested.findings] == ["register_tool t"]
    assert nested.notes == ["line 5 (a line that is no JSON) is not whole in the trace, and was not compared"]


async def test_a_secret_that_the_trace_hides_is_no_difference_and_is_not_shown(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "it is [key hidden]"}]
    hidden = {"content": content, "structured_content": {"token": "[key hidden]"}}
    same = await replayed(tmp_path, "tells", written(tmp_path, hidden), 5.0)
    other = await replayed(tmp_path, "tells", written(tmp_path, {"content": []}), 5.0)
    assert [one.what for one in same.findings] == ["register_tool t"], same
    assert "tool_result to tool_call t" in [one.what for one in other.findings]
    assert "it is [key hidden]" in repr(other) and SECRET not in repr(other) and "abcdef" not in repr(other)


def test_a_text_with_many_secrets_hidden_is_compared_at_once() -> None:
    many, began = {"said": "[key hidden], " * 40 + "end"}, time.monotonic()
    assert changes(many, {"said": "a, " * 3000 + "and"})
    assert not changes(many, {"said": "a, " * 3000 + "end"})
    assert changes({"said": "a[key hidden]a"}, {"said": "a"}), "one letter is not two"
    assert time.monotonic() - began < 5.0


def test_a_regular_expression_that_finds_no_end_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "_PATIENCE", 0.05)
    before, began = signal.getsignal(signal.SIGALRM), time.monotonic()
    with pytest.raises(Departure, match=r"was not through with 'a+") as broken:
        matched("a" * 60 + "!", {"$regex": "^(a+)+$"}, {})
    assert "repetition" in broken.value.hint and time.monotonic() - began < 5.0
    assert signal.getsignal(signal.SIGALRM) is before
    assert matched("sunny", {"$regex": "s.n"}, {}) == {}


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ('{"call":"t","args":{"a":' + "[" * 900 + "]" * 900 + "}}", "nested more than 100 deep"),
        ('{"call":"t","args":{"a":"\\ud800"}}', "surrogates not allowed"),
        ('{"call":"t","args":{"a":NaN}}', "NaN is no number"),
        ('{"call":"t","args":{"a":1e999}}', "[Oo]ut of range"),
        ('{"about":"x","files":{"a\\u0000b":"x"}}\n{"call":"t"}', "files: "),
    ],
)
def test_what_could_not_be_sent_or_written_is_refused_before_anything_starts(
    tmp_path: Path, step: str, told: str
) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(step)
    with pytest.raises(FixtureError, match=rf"f\.jsonl:1: .*{told}"):
        read_fixture(path)


async def test_files_that_cannot_be_are_told_with_the_fixture(tmp_path: Path) -> None:
    path = fixture(tmp_path, {"about": "x", "files": {"a": "x", "a/b": "y"}}, {"call": "t"})
    with pytest.raises(FixtureError, match=r"f\.jsonl:1: files: 'a/b' cannot be written: "):
        await try_fixture(frames(tmp_path), read_fixture(path), tmp_path)
