"""Programs that do not read, read slowly, or die while they are written to: all they lose is their own."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hilt.extensions import extension as extension_module
from hilt.extensions import host, supervisor
from hilt.extensions.methods import dispatch
from hilt.model.content import Text, text_of
from hilt.model.events import AssistantMessageAdded, ToolCalled, TurnStarted
from hilt.model.extensions import Dialect
from hilt.model.stream import TextDelta
from hilt.transport.channels import Bounds, Channel
from hilt.transport.launch import Spec
from hilt.transport.process import Child, started
from support import extending
from support.agent import calls, says
from support.extending import FRAMES_ONLY, JSONRPC_ONLY, Extended, Made, chaos, extended, tool
from support.leftovers import nothing_left
from transport.children import state

pytestmark = pytest.mark.usefixtures("dialect")
MIB = 1024 * 1024
PIPE = MIB
"""What the system takes for a program that does not read."""
SLACK = 5.0
"""Seconds that a busy machine may take for what should take none."""


def now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def beside(folder: Path, *made: Made, **options: Any) -> AsyncIterator[Extended]:
    """These and a healthy one, which must still be well when all is over, as must be whatever was started."""
    async with nothing_left(), extended(folder, *made, tool("well"), **options) as it:
        await it.ready()
        yield it
        assert await it.call("well") == ("ok", False)


def impatient(spec: Spec) -> AbstractAsyncContextManager[Child]:
    """Takes a program for stuck after less than five seconds."""
    return started(spec, Bounds(stall=0.4))


def channel(it: Extended, name: str) -> Channel:
    """To see what waits there, which no face shows."""
    extension = it.host._supervisors[name].current
    assert extension
    return extension.program.channel


async def message(it: Extended, text: str) -> None:
    """What `subscribe:assistant_message` is told of, which in one dialect comes in pieces."""
    whole = extending.SPOKEN == "frames"
    await it.session.bus.emit(AssistantMessageAdded((Text(text),), datetime.now(UTC)) if whole else TextDelta(text))


@pytest.fixture(autouse=True)
def quick_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the next event waits for the answer to the last, it does not do so for long."""
    monkeypatch.setattr(dispatch, "_NEXT", 0.005)


async def fill(it: Extended, size: int) -> None:
    """Tell so many bytes of events, each of which begins with a number greater than all before."""
    piece = {"frames": 10_000, "jsonrpc": 100_000}[extending.SPOKEN]  # there not so many are told without an answer
    for _ in range(size // piece):
        await message(it, f"{len(it.events)} {'x' * piece}")
        await asyncio.sleep(0)


def numbers(texts: Iterable[str]) -> list[int]:
    return [int(text.split()[0]) for text in texts]


def sequences(it: Extended, path: str) -> list[int]:
    return [frame["sequence"] for frame in it.frames(path) if frame["type"] == "event"]


# W1


async def test_one_that_never_reads_fails_each_call_by_its_deadline_whether_it_was_sent_or_not(tmp_path: Path) -> None:
    deaf = tool("deaf", "stop_reading", tool_timeout_ms=700, stop_grace_ms=100)
    async with beside(tmp_path, deaf) as it:
        began = now()
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(it.call("deaf", text="x" * 900_000)) for _ in range(14)]
            assert await it.call("well") == ("ok", False)
            assert now() - began < SLACK
        texts = [task.result()[0] for task in asked]
        assert 0.65 < now() - began < 0.7 + SLACK
        assert all(task.result()[1] for task in asked)
        late = [text for text in texts if "timeout waiting for deaf/deaf" in text]
        refused = [text for text in texts if "deaf was not sent" in text]
        assert len(late) + len(refused) == 14
        # As many as may wait; and what the pipe holds, if the first of them was written before the others came.
        assert 8 * MIB // 900_000 <= len(late) <= 10 * MIB // 900_000, f"what waits is bounded: {len(late)}"
        assert "bytes of calls are waiting to be read\nthe program has stopped reading" in refused[0]


async def test_one_that_stops_reading_is_told_of_and_started_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Bounds().stall == 5.0
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", 0.05)
    deaf_now = tmp_path / "deaf now"
    first = {"once": str(tmp_path / "once"), "do": ["stop_reading", f"touch:{deaf_now}"]}
    deaf = chaos("deaf", "hello", "register_tool:deaf", "subscribe:assistant_message", "ready", first, stop_grace_ms=0)
    async with beside(tmp_path, deaf, opener=impatient) as it:
        pid = it.status("deaf").pid
        assert pid
        await it.until(deaf_now.exists)
        began = now()
        await fill(it, 2 * PIPE)
        assert (await it.state("deaf", "restarting")).reason == "was ended: it has stopped reading"
        assert 0.35 < now() - began < 0.4 + SLACK
        await it.ready("deaf")
        assert not state(pid) and it.status("deaf").pid != pid
        assert await it.call("deaf") == ("ok", False)


async def test_one_that_does_not_read_while_it_works_may_finish_and_is_ended_if_it_goes_on_like_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", 0.05)
    monkeypatch.setattr(extension_module, "_MOMENT", 0.4)
    deaf_now, done = tmp_path / "deaf now", tmp_path / "done"
    work = ["stop_reading", f"touch:{deaf_now}", f"wait_for:{done}", "answer:finished"]
    busy = {"on": "tool_call", "times": 1, "do": work}
    made = tool("busy", "subscribe:assistant_message", busy, stop_grace_ms=0)
    async with beside(tmp_path, made, opener=impatient) as it, asyncio.TaskGroup() as group:
        asked = group.create_task(it.call("busy"))
        await it.until(deaf_now.exists)
        await fill(it, 2 * PIPE)
        await it.until(lambda: channel(it, "busy").stalled, "it counts as stuck")
        assert it.status("busy").state == "ready", "its call decides"
        done.touch()
        assert await asked == ("finished", False)
        assert (await it.state("busy", "restarting")).reason == "was ended: it has stopped reading"
        await it.ready("busy")


async def test_one_that_was_stuck_and_reads_again_is_not_held_to_be_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension_module, "_MOMENT", 0.4)
    deaf_now, done, fast = (tmp_path / name for name in ("deaf now", "done", "fast"))
    work = ["stop_reading", f"touch:{deaf_now}", f"wait_for:{done}", "read_on", "answer"]
    slow, hang = ({"on": "tool_call", "match": {"args": {"do": name}}} for name in ("slow", "hang"))
    made = tool(
        "t",
        "subscribe:assistant_message",
        {"after": 0.001, "do": [f"wait_for:{fast}", "read_on"]},
        {**slow, "do": ["read_slowly:200000", "answer"]},
        {**hang, "do": []},
        {"on": "tool_call", "times": 1, "do": work},
        tool_timeout_ms=2000,
        stop_grace_ms=0,
    )
    async with beside(tmp_path, made, opener=impatient) as it, asyncio.TaskGroup() as group:
        asked = group.create_task(it.call("t"))
        await it.until(deaf_now.exists)
        await fill(it, 2 * PIPE)
        await it.until(lambda: channel(it, "t").stalled, "it counts as stuck")
        done.touch()
        assert await asked == ("ok", False)
        assert await it.call("t", do="slow") == ("ok", False)
        asked = group.create_task(it.call("t", do="hang"))
        await fill(it, 2 * PIPE)
        assert "timeout" in (await asked)[0]
        fast.touch()
        assert await it.call("t") == ("ok", False)
        assert it.status("t").restarts == 0, "it read all the time, although slowly"


# W2


@FRAMES_ONLY
async def test_one_that_floods_us_with_questions_and_never_reads_is_read_to_the_end(tmp_path: Path) -> None:
    flood = ["stop_reading", "flood:3000", f'host_request:{{"id":"{"x" * 8000}$N"}}', "answer", "read_on"]
    async with beside(tmp_path, tool("t", {"on": "tool_call", "times": 1, "do": flood}, "record:got")) as it:
        assert await it.call("t") == ("ok", False), "although 24 MB of answers could not be written"
        assert channel(it, "t").waiting <= 8 * MIB + PIPE
        assert await it.call("t") == ("ok", False)
        answers = [frame for frame in it.frames("extensions/t/got") if frame["type"] == "host_response"]
        assert len(answers) > 8 * MIB / 8200, "those that fitted were answered"
        assert all(answer["error"]["code"] == -32601 for answer in answers)


@JSONRPC_ONLY
async def test_one_that_floods_us_with_requests_and_never_reads_is_read_to_the_end(tmp_path: Path) -> None:
    question = json.dumps({"id": "$N", "method": "host/" + "x" * 123})
    flood = ["stop_reading", "flood:60000", f"host_request:{question}", "answer", "read_on"]
    async with beside(tmp_path, tool("t", {"on": "tool_call", "times": 1, "do": flood}, "record:got")) as it:
        assert await it.call("t") == ("ok", False), "although 13 MB of answers could not be written"
        assert channel(it, "t").waiting <= 8 * MIB + PIPE
        await it.until(lambda: channel(it, "t").waiting < MIB, "it reads on")
        assert await it.call("t") == ("ok", False)
        answers = [frame for frame in it.frames("extensions/t/got") if frame["type"] == "host_response"]
        assert len(answers) > 8 * MIB / 300, "those that fitted were answered"
        assert all(answer["error"]["code"] == -32601 for answer in answers)


# W3


@JSONRPC_ONLY
@pytest.mark.parametrize(("count", "size"), [(1500, 10), (200, 100_000)], ids=["too many", "too much"])
async def test_one_that_does_not_deal_with_its_events_loses_the_oldest_is_told_of_once_and_gets_every_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, size: int
) -> None:
    monkeypatch.setattr(dispatch, "_NEXT", 60.0)
    go = tmp_path / "go"
    slow = chaos(
        "slow",
        "hello",
        "record:got",
        "register_tool:slow",
        "subscribe:assistant_message",
        {"on": "event/dispatch", "do": [f"wait_for:{go}", "answer"]},
        "ready",
    )
    async with beside(tmp_path, slow) as it:
        began = now()
        for number in range(count):
            await message(it, f"{number} {'x' * size}")
        assert now() - began < SLACK, "whoever tells does not wait"
        await it.warned("extension slow", "does not deal with its events", "the oldest are lost")
        assert await it.call("slow") == ("ok", False)
        lost = it.status("slow").events_lost
        kept = min(1000, 8 * MIB // size)
        assert count - kept - 10 <= lost <= count - kept + 10
        go.touch()

        def got() -> list[int]:
            return numbers(frame["text"] for frame in it.frames("extensions/slow/got") if frame["type"] == "event")

        await it.until(lambda: got()[-1:] == [count - 1], "the newest came")
        assert got() == sorted(set(got()))
        assert count - len(got()) == it.status("slow").events_lost == lost, "none is missing but these"
        assert len(it.warnings()) == 1


@FRAMES_ONLY
async def test_a_slow_reader_loses_its_oldest_events_is_told_of_once_and_gets_every_call(tmp_path: Path) -> None:
    set_up, go = tmp_path / "set up", tmp_path / "go"
    manner = ("record:got", "read_slowly:1000", f"touch:{set_up}", f"wait_for:{go}", "read_on")
    slow = chaos("slow", "hello", "register_tool:slow", "subscribe:assistant_message", "ready", *manner)
    async with beside(tmp_path, slow) as it, asyncio.TaskGroup() as group:
        await it.until(set_up.exists)
        await fill(it, PIPE)
        asked = group.create_task(it.call("slow", after="the first"))
        await it.seen(ToolCalled, name="slow")
        began = now()
        await fill(it, 4 * PIPE)
        assert now() - began < SLACK, "whoever tells does not wait"
        await it.warned("extension slow", "does not read its events", "the oldest are lost")
        assert await it.call("well") == ("ok", False)
        lost = it.status("slow").events_lost
        assert lost > 100
        go.touch()
        assert await asked == ("ok", False)

        def got() -> list[int]:
            return numbers(frame["text"] for frame in it.frames("extensions/slow/got") if frame["type"] == "event")

        told = numbers(text_of(event.content) for event in it.of(AssistantMessageAdded))
        await it.until(lambda: got()[-1:] == told[-1:], "the newest came")
        assert got() == sorted(set(got()))
        assert len(told) - len(got()) == it.status("slow").events_lost == lost, "none is missing but these"
        assert len(it.warnings()) == 1


# W4


async def test_one_that_dies_while_it_is_written_to_fails_every_call_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", 0.05)
    dying = {"on": "tool_call", "match": {"args": {"number": 3}}, "do": ["log:that was too much", "exit:9"]}
    mute = {"on": "tool_call", "once": str(tmp_path / "once"), "do": []}
    async with beside(tmp_path, tool("t", dying, mute)) as it:
        began = now()
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(it.call("t", number=number, text="x" * 200_000)) for number in range(20)]
        assert now() - began < SLACK
        ended = [task.result() for task in asked]
        failed = [text for text, is_error in ended if is_error]
        assert len(failed) >= 17 and len(ended) - len(failed) == ended.count(("ok", False))
        # Those that could no longer be written to it are known not to have run.
        begun = [text for text in failed if "extension t is gone: t was not run" not in text]
        assert begun and all("t exited with code 9 before it answered t" in text for text in begun)
        assert all("outcome is unknown" in text and "that was too much" in text for text in begun)
        await it.ready("t")
        assert await it.call("t") == ("ok", False)


async def test_one_that_closed_its_input_is_known_not_to_have_run_the_call(tmp_path: Path) -> None:
    closed = {"on": "tool_call", "times": 1, "do": ["close_stdin", "answer"]}
    async with beside(tmp_path, tool("t", closed, stop_grace_ms=0)) as it:
        assert await it.call("t") == ("ok", False)
        began = now()
        text, is_error = await it.call("t")
        assert is_error and now() - began < SLACK
        assert "extension t is gone: t was not run" in text


# W5, W8


@FRAMES_ONLY
async def test_events_and_calls_arrive_whole_and_in_the_order_in_which_they_happened(tmp_path: Path) -> None:
    made = tool("t", "record:got", "subscribe:turn_start,tool_call")
    async with beside(tmp_path, made) as it:
        for number in range(1, 2001):
            await it.session.bus.emit(TurnStarted(number))
            if number % 500 == 0:
                assert await it.call("t", number=number) == ("ok", False)
        frames = it.frames("extensions/t/got")
        steps = [frame["step"] for frame in frames if frame.get("event") == "turn_start"]
        assert steps == list(range(1, 2001))
        got = sequences(it, "extensions/t/got")
        assert got == sorted(set(got))
        where = {frame["args"]["number"]: place for place, frame in enumerate(frames) if frame["type"] == "tool_call"}
        for number, place in where.items():
            assert frames[place - 1]["event"] == "tool_call", "the call is told before it is made"
            assert frames[place - 2]["step"] == number, "and after all that happened before it"
        assert it.status("t").events_lost == 0


@JSONRPC_ONLY
@pytest.mark.timeout(180)  # a machine with other things to do takes several times as long
async def test_events_arrive_one_after_the_other_in_the_order_in_which_they_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "_NEXT", 60.0)
    slowly = {"on": "event/dispatch", "match": {"text": "7"}, "do": ["sleep:0.2", "answer"]}
    made, record = tool("t", "record:got", "subscribe:assistant_message", slowly), tmp_path / "extensions/t/got"
    async with beside(tmp_path, made) as it:

        def got() -> list[str]:
            return [frame["text"] for frame in it.frames("extensions/t/got") if frame["type"] == "event"]

        def rows() -> int:
            """At least as many as there are events, and quickly counted."""
            return record.read_bytes().count(b"\n")

        for number in range(2000):
            await message(it, str(number))
            if number % 500 == 499:
                assert await it.call("t", number=number) == ("ok", False)
                await it.until(lambda number=number: rows() > number and len(got()) == number + 1)  # type: ignore[misc]
        assert got() == list(map(str, range(2000)))
        assert it.status("t").events_lost == 0


async def test_many_who_write_at_the_same_time_never_mix_their_lines(tmp_path: Path) -> None:
    async with beside(tmp_path, tool("t", "record:got", "subscribe:turn_start")) as it:
        sizes = [3, 70_000, 300, 200_000] * 10

        async def call(number: int, size: int) -> tuple[str, bool]:
            await it.session.bus.emit(TurnStarted(number))
            return await it.call("t", number=number, text="é" * size)

        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(call(*numbered)) for numbered in enumerate(sizes)]
        assert all(task.result() == ("ok", False) for task in asked)
        got = {
            frame["args"]["number"]: frame["args"]["text"]
            for frame in it.frames("extensions/t/got")
            if frame["type"] == "tool_call"
        }
        assert got == {number: "é" * size for number, size in enumerate(sizes)}


# W6


async def test_a_call_too_long_for_a_line_is_an_error_for_the_model_and_nothing_is_sent(
    tmp_path: Path, dialect: Dialect
) -> None:
    call = {"frames": "tool_call", "jsonrpc": "tool/execute"}[dialect]
    turns = [calls(("t", {"text": "x" * 4 * MIB})), says("x")]
    async with beside(tmp_path, tool("t", "record:got", "subscribe:tool_call"), turns=turns) as it:
        await it.say()
        assert it.result().startswith(f"extension t/t failed: extension t: t was not sent: {call} would be a line of")
        assert "extensions can read 4,194,303" in it.result() and "through a file" in it.result()
        assert (it.status("t").state, it.status("t").restarts) == ("ready", 0)
        assert await it.call("t") == ("ok", False)
        kinds = [frame["type"] for frame in it.frames("extensions/t/got") if frame["type"] != "hello_ack"]
        # In one dialect calls of extensions are no news.
        assert kinds == {"frames": ["event", "tool_call"], "jsonrpc": ["tool_call"]}[dialect], "those of the short one"
        assert it.status("t").events_lost == 1
        event = {"frames": "extension t was not told of tool_call", "jsonrpc": "it was not told of EventToolStart"}
        await it.warned(event[dialect], "4,194,303")


async def test_a_text_too_long_for_an_event_is_cut(tmp_path: Path) -> None:
    async with beside(tmp_path, tool("t", "record:got", "subscribe:assistant_message")) as it:
        await message(it, "\x01" * 5 * MIB)
        await message(it, "after")
        assert await it.call("t") == ("ok", False)

        def texts() -> list[str]:
            return [frame["text"] for frame in it.frames("extensions/t/got") if frame["type"] == "event"]

        await it.until(lambda: len(texts()) == 2)
        assert texts() == ["\x01" * 512 * 1024, "after"]
        assert it.status("t").events_lost == 0


async def test_a_question_too_long_for_a_guard_leaves_it_without_a_verdict(tmp_path: Path) -> None:
    guard = chaos("guard", "hello", "intercept:tool_call", "ready", guard={"on_failure": "block"})
    async with beside(tmp_path, guard) as it:
        began = now()
        text, is_error = await it.call("well", text="x" * 4 * MIB)
        assert is_error and now() - began < SLACK
        assert "guard guard gave no verdict" in text and "4,194,303" in text
        await it.warned("guard guard gave no verdict", "4,194,303")


@FRAMES_ONLY
async def test_an_answer_of_ours_too_long_for_a_line_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    long = "x" * (4 * MIB - 100)
    asking = [
        f'host_request:{{"id":"{long}"}}',
        f'call_tool:{{"id":"1","name":"{long}"}}',
        f'call_tool:{{"id":"{long}"}}',
    ]
    made = tool("t", {"on": "tool_call", "do": ["answer", *asking]}, "record:got")
    async with beside(tmp_path, made) as it:
        assert await it.call("t") == ("ok", False)
        await it.warned("extension t: host_response would be a line of")
        await it.warned("extension t: tool_result would be a line of")
        assert await it.call("t") == ("ok", False)
        assert it.status("t").restarts == 0


@JSONRPC_ONLY
async def test_an_answer_to_a_request_that_no_line_can_hold_is_an_error(tmp_path: Path) -> None:
    asking = ["host_request:host/conversationMessages", "await:host_response", "answer"]
    made = tool("t", {"on": "tool_call", "do": asking}, "record:got")
    async with beside(tmp_path, made, turns=[says("one"), says("two")]) as it:
        for _ in range(2):
            await it.say("x" * 3_000_000)
        assert await it.call("t") == ("ok", False)
        (answer,) = [frame for frame in it.frames("extensions/t/got") if frame["type"] == "host_response"]
        assert answer["error"]["code"] == -32603 and "would be a line of" in answer["error"]["message"]
        assert it.status("t").restarts == 0


# W7


async def test_what_could_not_be_written_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_STOPPING", 30.0)  # it must not come to this
    deaf = tool("deaf", "stop_reading", {"on": "eof", "do": []}, "ignore_sigterm", stop_grace_ms=200)
    async with nothing_left():
        async with extended(tmp_path, deaf, tool("well")) as it, asyncio.TaskGroup() as group:
            await it.ready()
            asked = [group.create_task(it.call("deaf", text="x" * MIB)) for _ in range(4)]
            await it.until(lambda: channel(it, "deaf").waiting > MIB, "much waits")
            for task in asked:
                task.cancel()
            pid, began = it.status("deaf").pid, now()
        assert 0.2 < now() - began < 0.2 + 1 + SLACK
        assert pid and not state(pid)
