"""Crashes, restarts, and the end: what becomes of processes that do not live and die as they should."""

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hilt.extensions import host, supervisor
from hilt.extensions.agent import Program
from hilt.extensions.methods import dispatch
from hilt.model.events import ExtensionChanged
from hilt.model.extensions import Dialect
from hilt.model.stream import TextDelta
from hilt.transport.channels import Bounds
from hilt.transport.launch import Spec
from hilt.transport.process import started
from support.extending import FRAMES_ONLY, Extended, Made, chaos, extended, tool
from support.leftovers import nothing_left
from transport.children import our_children, runs, state

pytestmark = pytest.mark.usefixtures("dialect")
SLACK = 5.0
"""Seconds that a busy machine may take for what should take none."""


def crashing(name: str = "t", **manifest: Any) -> Made:
    """Dies when its tool is called with {"do": "crash"}."""
    deadly = {"on": "tool_call", "match": {"args": {"do": "crash"}}, "do": ["log:I cannot go on", "exit:3"]}
    return tool(name, deadly, **manifest)


async def crash(it: Extended, name: str = "t") -> str:
    text, is_error = await it.call(name, do="crash")
    assert is_error
    return text


async def restarted(it: Extended, times: int = 1, name: str = "t") -> None:
    await it.until(lambda: it.status(name).state == "ready" and it.status(name).restarts == times, "a restart")


def pid(it: Extended, name: str = "t") -> int:
    found = it.status(name).pid
    assert found
    return found


def states(it: Extended, name: str) -> list[str]:
    return [event.state for event in it.of(ExtensionChanged) if event.extension == name]


def quick_restarts(monkeypatch: pytest.MonkeyPatch, delay: float = 0.01) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", delay)


# L1


async def test_a_crash_is_told_with_its_reason_and_the_tools_are_back_after_half_a_second(tmp_path: Path) -> None:
    async with nothing_left(), extended(tmp_path, crashing(), tool("well")) as it:
        await it.ready()
        before = pid(it)
        text = await crash(it)
        ended = asyncio.get_running_loop().time()
        assert "exited with code 3" in text and "I cannot go on" in text
        down = await it.state("t", "restarting")
        assert down.reason == "exited with code 3" and not down.tools and down.pid is None
        assert await it.call("well") == ("ok", False)
        back = await it.state("t", "ready")
        assert asyncio.get_running_loop().time() - ended > supervisor._FIRST_DELAY * (1 - supervisor._JITTER)
        assert back.restarts == 1 and back.pid not in (None, before) and not back.reason
        assert await it.call("t") == ("ok", False)
        assert states(it, "t") == ["starting", "ready", "restarting", "ready"]
        assert not runs(before) and before not in our_children()


async def test_each_crash_makes_the_next_wait_twice_as_long_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_JITTER", 0.0)
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", 0.1)
    monkeypatch.setattr(supervisor, "_LONGEST_DELAY", 0.25)
    monkeypatch.setattr(supervisor, "_CRASHES", 100)
    waits = []
    async with extended(tmp_path, crashing()) as it:
        for _ in range(6):
            await it.ready("t")
            await crash(it)
            await it.state("t", "restarting")
            began = asyncio.get_running_loop().time()
            await it.state("t", "ready")
            waits.append(asyncio.get_running_loop().time() - began)
    assert waits[0] > 0.08 and waits[1] > 0.18 and waits[2] > 0.23, waits
    assert waits[5] < 0.25 + SLACK, "without a limit it would be 3.2 s"


# L2


async def test_one_that_crashes_five_times_stays_down_until_it_is_reloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: Dialect
) -> None:
    quick_restarts(monkeypatch)
    broken = {"needs": "broken", "do": "exit:7"}
    # In one dialect it has introduced itself by now, in the other not before it is ready.
    last = [broken, "ready"] if dialect == "frames" else ["ready", broken]
    looping = chaos("t", "touch:starts", "hello", "register_tool:t", *last)
    looping.files["broken"] = ""
    async with nothing_left(), extended(tmp_path, looping, tool("well")) as it:
        failed = await it.state("t", "failed")
        for part in ("exited with code 7", "5 times in 5 minutes", "/reload-ext t"):
            assert part in failed.reason
        folder = tmp_path / "extensions" / "t"
        pids = [int(line.split()[0]) for line in (folder / "starts").read_text().splitlines()]
        assert len(pids) == 5
        await it.until(lambda: not our_children() & set(pids), "the last one to be reaped")
        assert "unknown tool" in (await it.call("t"))[0]
        assert await it.call("well") == ("ok", False)

        (folder / "broken").unlink()
        reloaded = await it.host.reload("t")
        assert (reloaded.ready, reloaded.problems) == (1, ())
        assert it.status("t").state == "ready" and it.status("t").restarts == 0 and not it.status("t").reason
        assert await it.call("t") == ("ok", False)


async def test_crashes_that_lie_far_apart_never_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick_restarts(monkeypatch, 0.02)
    monkeypatch.setattr(supervisor, "_WINDOW", 0.01)
    async with extended(tmp_path, crashing()) as it:
        for _ in range(supervisor._CRASHES + 2):
            await it.ready("t")
            await crash(it)
            await it.state("t", "restarting")
        await it.ready("t")
        assert it.status("t").restarts == supervisor._CRASHES + 2


# L3


async def test_a_restart_that_fails_is_a_failure_like_others_and_is_followed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_restarts(monkeypatch)
    crashing_once = {"on": "tool_call", "match": {"args": {"do": "crash"}}, "do": ["touch:crashed", "exit:3"]}
    failing_once = {"needs": "crashed", "once": "failed", "do": ["log:no luck", "exit:9"]}
    made = chaos("t", failing_once, "hello", "register_tool:t", crashing_once, "ready")
    async with nothing_left(), extended(tmp_path, made, tool("well")) as it:
        await it.ready()
        await crash(it)
        await it.seen(ExtensionChanged, extension="t", state="restarting", reason="exited with code 3")
        again = await it.until(lambda: [e for e in it.of(ExtensionChanged) if "code 9" in e.reason], "a second reason")
        assert again[0].state == "restarting" and "no luck" in again[0].reason
        assert (await it.state("t", "ready")).restarts == 2
        assert await it.call("t") == ("ok", False)
        assert await it.call("well") == ("ok", False)


@FRAMES_ONLY
async def test_a_program_that_is_gone_when_it_should_be_restarted_may_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_restarts(monkeypatch, 0.1)
    code = "\n".join(
        (
            "#!/bin/sh",
            """echo '{"type":"hello","name":"t"}'; echo '{"type":"ready"}'""",
            "while read -r line; do :; done",
            "",
        )
    )
    made = Made("t", {"exec": "./run"}, {"run": code})
    program = tmp_path / "extensions" / "t" / "run"
    made.write(tmp_path / "extensions")
    program.chmod(0o755)
    async with extended(tmp_path, made) as it:
        await it.ready("t")
        program.rename(program.with_name("aside"))
        os.kill(pid(it), signal.SIGKILL)
        await it.until(lambda: "no such file" in it.status("t").reason, "a failed start")
        assert it.status("t").state == "restarting"
        program.with_name("aside").rename(program)
        await it.ready("t")


# L4


async def test_stopping_while_it_waits_to_restart_ends_it_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_restarts(monkeypatch, 30.0)
    began = 0.0
    async with nothing_left(), extended(tmp_path, crashing()) as it:
        await it.ready("t")
        await crash(it)
        await it.state("t", "restarting")
        began = time.monotonic()
    assert time.monotonic() - began < SLACK
    assert it.status("t").state == "stopped"


async def test_stopping_while_a_restarted_process_has_not_said_hello_kills_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_restarts(monkeypatch)
    silent = {"needs": "crashed", "do": ["ignore_sigterm", "mute", "touch:second", "hang"]}
    deadly = {"on": "tool_call", "do": ["touch:crashed", "exit:3"]}
    made = chaos("t", silent, "hello", "register_tool:t", deadly, "ready", stop_grace_ms=200)
    second = tmp_path / "extensions" / "t" / "second"
    began = 0.0
    async with nothing_left(), extended(tmp_path, made) as it:
        await it.ready("t")
        await crash(it)
        await it.until(second.exists, "a second start")
        began = time.monotonic()
    assert time.monotonic() - began < 0.2 + 1 + SLACK
    assert not runs(int(second.read_text().split()[0]))


async def test_stopping_in_the_middle_of_a_reload_leaves_neither_the_old_nor_the_new(tmp_path: Path) -> None:
    made = chaos("t", "touch:starts", {"needs": "slow", "do": "hang"}, "hello", "ready", stop_grace_ms=200)
    starts = tmp_path / "extensions" / "t" / "starts"
    began = 0.0
    async with nothing_left():
        async with asyncio.TaskGroup() as group:
            async with extended(tmp_path, made) as it:
                await it.ready("t")
                (tmp_path / "extensions" / "t" / "slow").touch()
                reloading = group.create_task(it.host.reload("t"))
                await it.until(lambda: len(starts.read_text().splitlines()) == 2, "a second process")
                began = time.monotonic()
            assert time.monotonic() - began < 0.2 + 1 + SLACK
        assert "t: it was stopped" in reloading.result().problems[0]
        assert not any(runs(int(line.split()[0])) for line in starts.read_text().splitlines())


# L5


async def test_ten_that_ignore_every_request_to_end_are_gone_within_the_grace_and_a_second(tmp_path: Path) -> None:
    stubborn = ("hello", "ignore_sigterm", "mute", {"on": "eof", "do": []}, "ready")
    made = [chaos(f"t{n}", *stubborn, stop_grace_ms=1000) for n in range(10)]
    began = 0.0
    async with nothing_left(), extended(tmp_path, *made) as it:
        await it.ready()
        began = time.monotonic()
    assert 1 < time.monotonic() - began < 1 + 1 + SLACK, "side by side"


async def test_one_that_has_something_to_finish_gets_the_grace_it_asked_for(tmp_path: Path) -> None:
    finishing = {"on": "shutdown", "do": ["sleep:0.8", "touch:tidy", "exit"]}
    tidy = chaos("t", "hello", finishing, {"on": "eof", "do": []}, "ready", stop_grace_ms=10_000)
    began = 0.0
    async with nothing_left(), extended(tmp_path, tidy) as it:
        await it.ready()
        began = time.monotonic()
    assert time.monotonic() - began < 0.8 + SLACK, "it is not waited for longer than it takes"
    assert (tmp_path / "extensions" / "t" / "tidy").exists()


async def test_an_end_that_hangs_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_STOPPING", 0.3)

    @asynccontextmanager
    async def opener(spec: Spec) -> AsyncIterator[Program]:
        async with started(spec) as program:
            try:
                yield program
            finally:
                await asyncio.Event().wait()

    began = 0.0
    async with nothing_left(), extended(tmp_path, tool("t", stop_grace_ms=100), opener=opener) as it:
        await it.ready()
        began = time.monotonic()
    assert time.monotonic() - began < 0.1 + 0.3 + SLACK


# L6


async def test_a_grandchild_that_holds_every_pipe_delays_nothing_and_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_restarts(monkeypatch)
    leaving = {"on": "tool_call", "match": {"args": {"do": "crash"}}, "do": ["grandchild:grandchildren", "exit:3"]}
    staying = {"on": "tool_call", "do": ["grandchild:grandchildren", "answer"]}
    grandchildren = tmp_path / "extensions" / "t" / "grandchildren"
    began = 0.0
    async with nothing_left(), extended(tmp_path, tool("t", leaving, staying), tool("well")) as it:
        await it.ready()
        began = time.monotonic()
        assert "exited with code 3" in await crash(it)
        assert time.monotonic() - began < SLACK, "the exit counts, not the end of the output"
        assert await it.call("well") == ("ok", False)
        await restarted(it)
        assert not runs(int(grandchildren.read_text()))
        assert await it.call("t") == ("ok", False)
        began = time.monotonic()
    assert time.monotonic() - began < SLACK
    assert not any(runs(int(line)) for line in grandchildren.read_text().split())


# L11


def limits_of(process: int) -> dict[str, str]:
    """The soft ones, by the kernel's names."""
    lines = Path(f"/proc/{process}/limits").read_text().splitlines()[1:]
    return {line[:25].strip(): line[25:].split()[0] for line in lines}


async def test_an_extension_may_use_no_more_than_its_manifest_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_restarts(monkeypatch)
    limits = {"processes": 2000, "open_files": 64, "file_size_mb": 1, "cpu_seconds": 1}
    doing = [
        {"on": "tool_call", "match": {"args": {"do": verb}}, "do": [verb, "answer:done"]}
        for verb in ("open_files:100", "fill_file:4", "busy:20")
    ]
    greedy = tool("greedy", {"on": "tool_call", "do": "malloc:500"}, limits={"memory_mb": 300}, tool_timeout_ms=300)
    before = limits_of(os.getpid())
    async with nothing_left(), extended(tmp_path, tool("t", *doing, limits=limits), greedy, tool("well")) as it:
        await it.ready()
        found = limits_of(pid(it))
        assert (found["Max processes"], found["Max open files"], found["Max cpu time"]) == ("2000", "64", "1")
        others = limits_of(pid(it, "well"))
        assert (others["Max open files"], others["Max cpu time"]) != ("64", "1"), "nobody else is so limited"
        assert limits_of(os.getpid()) == before
        await it.call("greedy")
        await it.until(lambda: "MemoryError" in (tmp_path / "logs" / "ext-greedy.log").read_text(), "no memory left")
        log = tmp_path / "logs" / "ext-t.log"
        for verb, failure in (("fill_file:4", "File too large"), ("open_files:100", "Too many open files")):
            assert await it.call("t", do=verb) == ("done", False)
            await it.until(lambda failure=failure: failure in log.read_text().splitlines()[-1], failure)  # type: ignore[misc]
        assert (tmp_path / "extensions" / "t" / "chaos.fill").stat().st_size <= 2**20
        async with asyncio.TaskGroup() as group:
            busy = group.create_task(it.call("t", do="busy:20"))
            assert await it.call("well") == ("ok", False)
        reason = "killed by SIGXCPU: it used more than 1 s of processor time (limits.cpu_seconds)"
        assert reason in busy.result()[0]
        await it.seen(ExtensionChanged, extension="t", state="restarting", reason=reason)
        assert await it.call("well") == ("ok", False)


def in_session(leader: int) -> list[int]:
    """The processes of the session of an extension, which is its own."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if entry.name.isdecimal() and int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(entry.name))
    return found


async def test_however_many_processes_one_starts_they_all_go_with_it_and_others_can_be_called(tmp_path: Path) -> None:
    bomb = tool("t", {"on": "tool_call", "do": ["fork_bomb:150", "answer"]})
    async with nothing_left(), extended(tmp_path, bomb, tool("well")) as it:
        await it.ready()
        leader = pid(it)
        assert await it.call("t") == ("ok", False)
        assert len(in_session(leader)) > 150
        assert await it.call("well") == ("ok", False)
    assert in_session(leader) == []


# L12


async def test_a_flood_on_stderr_fills_two_small_files_and_its_end_is_at_hand(tmp_path: Path) -> None:
    flood = {"on": "tool_call", "do": ["stderr:13000000", "log:the end of it", "exit:3"]}
    async with nothing_left(), extended(tmp_path, tool("t", flood), tool("well")) as it:
        await it.ready()
        async with asyncio.TaskGroup() as group:
            call = group.create_task(it.call("t"))
            answers = [await it.call("well") for _ in range(20)]
        assert set(answers) == {("ok", False)}
        assert "exited with code 3" in call.result()[0] and "the end of it" in call.result()[0]
        assert len(call.result()[0]) < 4096
        files = sorted((tmp_path / "logs").glob("ext-t.log*"))
        assert [file.name for file in files] == ["ext-t.log", "ext-t.log.1"]
        assert all(file.stat().st_size <= 5 * 2**20 and file.stat().st_mode & 0o777 == 0o600 for file in files)
        assert "the end of it" in files[0].read_text()


# L13


async def test_one_that_is_stopped_in_its_tracks_fails_its_call_in_time_and_is_replaced_when_it_holds_up_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: Dialect
) -> None:
    quick_restarts(monkeypatch)
    monkeypatch.setattr(dispatch, "_NEXT", 0.005)  # where the next event waits for the answer to the last
    impatient = partial(started, bounds=Bounds(stall=0.3))
    made = tool("t", "subscribe:tool_call,assistant_message", tool_timeout_ms=300, stop_grace_ms=200)
    async with nothing_left(), extended(tmp_path, made, tool("well"), opener=impatient) as it:
        await it.ready()
        stopped = pid(it)
        os.kill(stopped, signal.SIGSTOP)
        text, is_error = await it.call("t")
        assert is_error and "timeout waiting for t/t" in text
        for _ in range(20):
            assert await it.call("well", much="x" * 200_000) == ("ok", False)
            if dialect == "jsonrpc":  # where calls of extensions are no news
                await it.session.bus.emit(TextDelta("x" * 200_000))
        assert "it has stopped reading" in (await it.state("t", "restarting")).reason
        await it.ready("t")
        assert not runs(stopped) and await it.call("t") == ("ok", False)


async def test_one_that_is_stopped_is_woken_so_that_it_can_end_properly(tmp_path: Path) -> None:
    made = tool("t", {"on": "shutdown", "do": ["touch:tidy", "exit"]}, stop_grace_ms=10_000)
    began = 0.0
    async with nothing_left(), extended(tmp_path, made) as it:
        await it.ready()
        os.kill(pid(it), signal.SIGSTOP)
        began = time.monotonic()
    assert time.monotonic() - began < SLACK
    assert (tmp_path / "extensions" / "t" / "tidy").exists()


# L16


async def test_a_process_that_is_gone_is_never_signalled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick_restarts(monkeypatch)
    sent: list[tuple[int, int]] = []
    """Signals to numbers that nobody had any more; someone else might have got them meanwhile."""
    really = {name: getattr(os, name) for name in ("kill", "killpg")}

    def watched(name: str, number: int, signal_: int) -> None:
        if signal_ and not state(number):
            sent.append((number, signal_))
        really[name](number, signal_)

    for name in really:
        monkeypatch.setattr(os, name, partial(watched, name))
    async with extended(tmp_path, crashing()) as it:
        for _ in range(3):
            await it.ready("t")
            await crash(it)
            await it.state("t", "restarting")
        await it.ready("t")
        assert (await it.host.reload("t")).problems == ()
        os.kill(pid(it), signal.SIGKILL)
        await it.state("t", "restarting")
    assert not sent


# L18


@FRAMES_ONLY
def test_every_deadline_is_measured_by_a_clock_that_nobody_can_set() -> None:
    source = Path(sys.modules["hilt"].__file__ or "").parent
    wall_clocks = re.compile(r"time\.time\(|time_ns\(|datetime\.(utc)?now\(|import (date)?time\b")
    for folder in ("extensions", "transport"):
        for module in sorted(set((source / folder).rglob("*.py")) - {source / "extensions" / "trace.py"}):
            # A trace tells the time of day, and waits for nothing by it.
            text = module.read_text().replace("st_mtime_ns", "").replace("st_ctime_ns", "")
            assert not wall_clocks.search(text), module


# L19


async def test_without_a_place_for_its_log_an_extension_runs_all_the_same_and_the_user_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_restarts(monkeypatch)
    (tmp_path / "logs").write_text("in the way")
    async with nothing_left(), extended(tmp_path, crashing(), tool("well")) as it:
        await it.ready()
        assert await it.call("t") == ("ok", False)
        await it.warned("extension t", "stderr is not kept", "exists")
        assert "I cannot go on" in await crash(it), "its last words are in memory"
        await restarted(it)
        assert await it.call("t") == ("ok", False) == await it.call("well")
