"""Programs that cannot be started, do not introduce themselves, or register what nobody may have."""

import asyncio
import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hilt.extensions import supervisor
from hilt.model.events import Noticed
from hilt.model.extensions import Dialect
from hilt.packages.manifest import Manifest
from hilt.transport.launch import Spec
from hilt.transport.process import Child, started
from support.agent import calls, says
from support.extending import FRAMES_ONLY, JSONRPC_ONLY, Extended, Made, chaos, extended, tool
from support.hilt_process import Hilt, until
from support.leftovers import nothing_left
from transport.children import runs, state

pytestmark = pytest.mark.usefixtures("dialect")
SLACK = 5.0
"""Seconds that a busy machine may take for what should take none."""


def now() -> float:
    return asyncio.get_running_loop().time()


def pids(file: Path) -> list[int]:
    """Those that `touch` or `grandchild` wrote down."""
    return [int(line.split()[0]) for line in file.read_text().splitlines()] if file.exists() else []


def offered(it: Extended) -> dict[str, str]:
    """What the model was last told of tools, by name."""
    return {tool.name: tool.description for tool in it.provider.requests[-1].tools}


def log_of(it: Extended, name: str) -> str:
    return (it.folder / "logs" / f"ext-{name}.log").read_text()


# S1


GREETING = {"frames": "say hello", "jsonrpc": "answer initialize"}
"""How a manifest's dialect calls it."""


async def test_one_that_never_says_hello_is_ended_with_its_children_and_holds_nobody_up(
    tmp_path: Path, dialect: Dialect
) -> None:
    seen, born = tmp_path / "pid", tmp_path / "child"
    silent = chaos(
        "silent",
        f"touch:{seen}",
        f"grandchild:{born}",
        "log:where are my keys",
        "hang",
        start_timeout_ms=1500,
        stop_grace_ms=100,
    )
    began = now()
    async with nothing_left(), extended(tmp_path, silent, tool("well"), turns=[says("hi")], settling=0.1) as it:
        await it.ready("well")
        assert (await it.say()).text == "hi"
        assert await it.call("well") == ("ok", False)
        await it.until(lambda: pids(born), "it has a child")
        assert it.status("silent").state == "starting"
        failed = await it.state("silent", "failed")
        assert 1.4 < now() - began < 1.5 + SLACK
        last = "its last words: where are my keys"
        assert failed.reason.startswith(f"did not {GREETING[dialect]} within 1.5 s; {last}")
        assert "start_timeout_ms" in failed.reason
        await it.until(lambda: not any(map(runs, pids(seen) + pids(born))), "both are ended")
        assert not any(map(state, pids(seen))), "reaped"
        assert await it.call("well") == ("ok", False)


@FRAMES_ONLY
def test_a_hello_may_take_ten_seconds_unless_the_manifest_says_otherwise() -> None:
    assert Manifest("x").start_timeout_ms == 10_000


# S2


async def test_the_time_for_a_hello_does_not_begin_anew_with_each_byte(tmp_path: Path, dialect: Dialect) -> None:
    slow = chaos("slow", "hello_slowly:0.03", "ready", start_timeout_ms=600, stop_grace_ms=0)
    began = now()
    async with nothing_left(), extended(tmp_path, slow, tool("well")) as it:
        failed = await it.state("slow", "failed")
        assert 0.5 < now() - began < 0.6 + SLACK, "the whole hello would take longer than three seconds"
        assert f"did not {GREETING[dialect]} within 0.6 s" in failed.reason
        assert await it.call("well") == ("ok", False)


# S3


@FRAMES_ONLY
async def test_chatter_before_the_hello_is_forgiven_logged_and_told(tmp_path: Path) -> None:
    chatty = chaos("chatty", "stray:64", "hello", "register_tool:chatty", "ready")
    async with nothing_left(), extended(tmp_path, chatty) as it:
        await it.ready()
        assert await it.call("chatty") == ("ok", False)
        told = await it.warned("extension chatty", "64 lines before its hello")
        assert "starting up, step 1" in told
        assert it.warnings() == [told]
        assert all(f"starting up, step {number}" in log_of(it, "chatty") for number in (1, 30, 64))


def speaking_on(pipes: str, made: Made) -> None:
    """`either`: its manifest does not say where."""
    made.manifest["pipes"] = None if pipes == "either" else pipes


@JSONRPC_ONLY
@pytest.mark.parametrize("pipes", ["fd", "stdio", "either"])
async def test_chatter_beside_the_protocol_is_logged_and_costs_nothing(tmp_path: Path, pipes: str) -> None:
    said = [f"print:starting up, step {number}" for number in range(100)]
    chatty = chaos("chatty", *said, "hello", "register_tool:chatty", "ready", "print:so on and on")
    speaking_on(pipes, chatty)
    async with nothing_left(), extended(tmp_path, chatty) as it:
        await it.ready()
        assert await it.call("chatty") == ("ok", False)
        if pipes == "stdio":  # which is where it speaks, so all of it was taken for something it said
            await it.until(lambda: it.status("chatty").mistakes == 101)
            assert len(it.warnings()) == 1
        else:
            await it.until(lambda: "so on and on" in log_of(it, "chatty"))
            assert all(f"starting up, step {number}" in log_of(it, "chatty") for number in (0, 50, 99))
            assert not it.warnings() and it.status("chatty").mistakes == 0


@JSONRPC_ONLY
@pytest.mark.parametrize("pipes", ["fd", "either"])
async def test_a_flood_on_stdout_where_nobody_speaks_holds_nothing_up(tmp_path: Path, pipes: str) -> None:
    flooding = chaos("t", "stdout:3000000", "hello", "register_tool:t", "stdout:3000000", "ready", "stdout:13000000")
    speaking_on(pipes, flooding)
    async with nothing_left(), extended(tmp_path, flooding) as it:
        await it.ready()
        assert await it.call("t") == ("ok", False)
        assert sum(file.stat().st_size for file in (tmp_path / "logs").glob("ext-t.log*")) <= 10 * 2**20


@FRAMES_ONLY
@pytest.mark.parametrize(
    ("chatter", "told"),
    [(["stray:65"], "65 lines"), (["raw:" + "x" * 40_000, "raw:" + "y" * 40_000], "2 lines")],
    ids=["too many lines", "too many bytes"],
)
async def test_too_much_chatter_before_the_hello_ends_it(tmp_path: Path, chatter: list[str], told: str) -> None:
    seen = tmp_path / "pid"
    chatty = chaos("chatty", f"touch:{seen}", "ignore_sigterm", *chatter, "hello", "ready", "hang", stop_grace_ms=0)
    async with nothing_left(), extended(tmp_path, chatty, tool("well")) as it:
        failed = await it.state("chatty", "failed")
        assert f"it wrote {told} that are no hello" in failed.reason
        assert ("starting up, step 1" if "65" in told else "xxxxx") in failed.reason
        assert "standard error" in failed.reason, "where such lines belong"
        assert len(failed.reason) < 1000
        await it.until(lambda: not any(map(state, pids(seen))), "it is ended and reaped")
        assert await it.call("well") == ("ok", False)


@FRAMES_ONLY
async def test_a_first_line_without_end_is_no_hello(tmp_path: Path) -> None:
    late = '{"type":"hello","name":"endless"}'  # in one piece with the end of that line
    endless = chaos("endless", "endless:5000000", f"raw:\n{late}", stop_grace_ms=0)
    async with nothing_left(), extended(tmp_path, endless) as it:
        failed = await it.state("endless", "failed")
        assert "5,000,000 bytes" in failed.reason and "no hello" in failed.reason
        assert failed.restarts == 0, "it would do the same again"


@JSONRPC_ONLY
async def test_a_line_too_long_before_all_is_registered_costs_no_more_than_itself(tmp_path: Path) -> None:
    lengthy = chaos("t", "hello", "big_line:5000000", "register_tool:lost", "register_tool:t", "ready")
    async with nothing_left(), extended(tmp_path, lengthy) as it:
        await it.ready()
        assert it.status("t").tools == ("t",)
        await it.warned("extension t: register/tool could not be used", "a line of 4,999,999 bytes is too long")
        assert await it.call("t") == ("ok", False)


@JSONRPC_ONLY
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (["big_line:5000000", "ready"], "a line of 4,999,999 bytes is too long"),
        (["nul", "ready"], "malformed"),
        (['raw:{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no config"}}'], "with an error: no config"),
    ],
    ids=["too long", "NUL", "an error"],
)
async def test_an_answer_to_initialize_that_cannot_be_used_ends_it_at_once(
    tmp_path: Path, answer: list[str], told: str
) -> None:
    async with nothing_left(), extended(tmp_path, chaos("t", "hello", *answer, "hang", stop_grace_ms=0)) as it:
        began = now()
        failed = await it.state("t", "failed")
        assert now() - began < SLACK, "and not after ten seconds"
        assert "initialize" in failed.reason and told in failed.reason


@JSONRPC_ONLY
async def test_an_answer_to_initialize_of_the_wrong_shape_counts_all_the_same(tmp_path: Path) -> None:
    odd = 'raw:{"jsonrpc":"2.0","id":1,"result":{"name":7,"version":[]}}'
    nothing = 'raw:{"jsonrpc":"2.0","id":1}'
    made = [chaos(name, "hello", f"register_tool:{name}", answer) for name, answer in (("a", odd), ("b", nothing))]
    async with nothing_left(), extended(tmp_path, *made) as it:
        await it.ready()
        assert await it.call("a") == await it.call("b") == ("ok", False)
        await it.warned("extension a: its answer to initialize is unusable, but it is there")


# S4


async def test_one_that_exits_before_its_hello_is_reported_with_how_and_its_last_words(
    tmp_path: Path, dialect: Dialect
) -> None:
    before = {"frames": "before its hello", "jsonrpc": "before its answer to initialize"}[dialect]
    seen = tmp_path / "pid"
    complaints = [f"log:complaint {number:02}" for number in range(1, 26)]
    made = [
        chaos("three", f"touch:{seen}", *complaints, "exit:3"),
        chaos("segv", f"touch:{seen}", "signal:SEGV"),
        chaos("zero", f"touch:{seen}", "exit:0"),
    ]
    async with nothing_left(), extended(tmp_path, *made, tool("well")) as it:
        three = (await it.state("three", "failed")).reason
        assert three.startswith(f"exited with code 3 {before}; its last words: complaint 06 | complaint 07")
        assert "complaint 25" in three and "complaint 05" not in three
        assert f"killed by SIGSEGV {before}" in (await it.state("segv", "failed")).reason
        assert f"exited with code 0 {before}" in (await it.state("zero", "failed")).reason
        await it.until(lambda: len(pids(seen)) == 3 and not any(map(state, pids(seen))), "all are reaped")
        assert await it.call("well") == ("ok", False)


# S5


def missing(folder: Path) -> Made:
    return Made("missing", {"exec": "./nothing"})


def not_executable(folder: Path) -> Made:
    return Made("not_executable", {"exec": "./run"}, {"run": "#!/bin/sh\n"})


def windows_lines(folder: Path) -> Made:
    made = Made("windows_lines", {"exec": "./run"}, {"run": "#!/bin/sh\r\necho hello\r\n"})
    (made.write(folder) / "run").chmod(0o755)
    return made


def no_interpreter(folder: Path) -> Made:
    made = Made("no_interpreter", {"exec": "./run"}, {"run": "#!/opt/nowhere/python9\n"})
    (made.write(folder) / "run").chmod(0o755)
    return made


def other_processor(folder: Path) -> Made:
    made = Made("other_processor", {"exec": "./run"})
    head = bytearray(Path(sys.executable).read_bytes()[:4096])
    head[18:20] = b"\x2b\x00"  # SPARC
    program = made.write(folder) / "run"
    program.write_bytes(head)
    program.chmod(0o755)
    return made


async def test_what_cannot_run_says_why_and_what_to_do_in_one_line_and_the_others_start(
    tmp_path: Path, dialect: Dialect
) -> None:
    make = (missing, not_executable, windows_lines, no_interpreter, other_processor)
    unknown = Made("unknown", {"exec": "no-such-program-anywhere"})
    made = [one(tmp_path / "extensions") for one in make]
    if dialect == "jsonrpc":
        for one in made:
            (tmp_path / "extensions" / one.name / "extension.json").unlink(missing_ok=True)
            one.manifest["runtime"], one.dialect = one.manifest.pop("exec"), dialect
    async with nothing_left(), extended(tmp_path, *made, unknown, tool("well")) as it:
        for name, cause, fix in (
            ("missing", "there is no such file", "correct the path"),
            ("not_executable", "it is not executable", "chmod +x"),
            ("windows_lines", "lines end as on Windows", "sed"),
            ("no_interpreter", "/opt/nowhere/python9 does not exist", "install it"),
            ("other_processor", "another kind of processor", "build or install it"),
        ):
            reason = (await it.state(name, "failed")).reason
            assert cause in reason and fix in reason and "\n" not in reason
        assert "not on PATH" in await it.warned("unknown", "no-such-program-anywhere", "install")
        assert await it.call("well") == ("ok", False)


# S6


@FRAMES_ONLY
async def test_the_name_in_the_manifest_counts_and_another_in_the_hello_is_told(tmp_path: Path) -> None:
    other = chaos("mine", 'hello:{"name":"yours","version":"9.9"}', "register_tool:t", "ready", version="1.0")
    nameless = chaos("nameless", 'hello:{"name":""}', "hang", stop_grace_ms=0)
    async with nothing_left(), extended(tmp_path, other, nameless) as it:
        await it.ready("mine")
        await it.warned("extension mine", "'yours'", "manifest's name counts")
        assert it.status("mine").version == "1.0"
        assert await it.call("t") == ("ok", False)
        assert 'its hello has no "name"' in (await it.state("nameless", "failed")).reason


@JSONRPC_ONLY
async def test_the_name_in_the_manifest_counts_and_another_is_logged_and_no_more(tmp_path: Path) -> None:
    """Here it is what the answer says that nobody looks at."""
    other = chaos("mine", 'hello:{"name":"yours","version":"9.9"}', "register_tool:t", "ready", version="1.0")
    nameless = chaos("nameless", 'hello:{"name":""}', "register_tool:u", "ready")
    async with nothing_left(), extended(tmp_path, other, nameless) as it:
        await it.ready()
        assert "it calls itself 'yours'; the manifest's name counts" in log_of(it, "mine")
        assert it.status("mine").version == "1.0"
        assert await it.call("t") == await it.call("u") == ("ok", False)
        assert not it.warnings()


# S7


@JSONRPC_ONLY
async def test_further_answers_to_initialize_are_ignored_and_counted(tmp_path: Path) -> None:
    twice = chaos("twice", "hello", "register_tool:twice", "ready", "flood:50", "hello:other")
    async with nothing_left(), extended(tmp_path, twice) as it:
        await it.ready()
        assert await it.call("twice") == ("ok", False)
        await it.until(lambda: it.status("twice").mistakes == 50)
        assert not it.warnings()


@FRAMES_ONLY
async def test_further_hellos_are_ignored_counted_and_told_once(tmp_path: Path) -> None:
    twice = chaos("twice", "hello", "register_tool:twice", "flood:50", "hello:other", "ready")
    async with nothing_left(), extended(tmp_path, twice) as it:
        await it.ready()
        assert await it.call("twice") == ("ok", False)
        told = await it.warned("extension twice", "a second hello is ignored")
        assert it.warnings() == [told]
        assert it.status("twice").mistakes == 50


# S8


async def test_a_tool_that_comes_late_is_announced_and_joins_the_next_turn(tmp_path: Path, dialect: Dialect) -> None:
    go = tmp_path / "go"
    ready = ["ready"] * (dialect == "jsonrpc")  # which cannot be left out there
    slow = chaos("slow", "hello", "register_tool:early", *ready, f"wait_for:{go}", "register_tool:late")
    turns = [says("one"), calls(("late", {})), says("two")]
    async with nothing_left(), extended(tmp_path, slow, turns=turns) as it:
        await it.ready()  # where it does not say so, by being silent
        await it.say()
        assert offered(it).keys() == {"early"}
        go.touch()
        told = await it.seen(Noticed, message="extension slow now also offers late")
        assert told.level == "info"
        await it.say()
        assert offered(it).keys() == {"early", "late"}
        assert it.result() == "ok"


# S9


async def test_of_three_with_one_name_only_the_first_is_ever_started_and_the_others_are_named(tmp_path: Path) -> None:
    seen = tmp_path / "pids"
    one = tool("t", f"touch:{seen}")
    manifest = {**one.manifest, "name": "t"}
    made = [Made(folder, manifest, one.files, one.dialect) for folder in ("first", "second", "third")]
    async with nothing_left(), extended(tmp_path, *made, tool("well")) as it:
        await it.ready()
        assert [status.name for status in it.host.statuses()] == ["t", "well"]
        assert it.status("t").directory.endswith("first")
        for loser in ("second", "third"):
            assert "extensions/first" in await it.warned("conflict", '"t"', f"extensions/{loser} is not loaded")
        assert await it.call("t") == ("ok", False)
        assert pids(seen) == [it.status("t").pid]


# S10


async def test_registrations_beyond_the_limits_are_refused_by_name_and_the_rest_stays(
    tmp_path: Path, dialect: Dialect
) -> None:
    greedy = chaos(
        "greedy",
        "hello",
        "big_description:1000000",
        "big_schema:100000",
        f'register:{{"title":"{"x" * 100_000}"}}',
        "register_many:5000",
        *["ready"] * (dialect == "jsonrpc"),
        {"on": "tool_call", "do": "answer"},
    )
    async with nothing_left(), extended(tmp_path, greedy, tool("well")) as it:
        await it.ready("well")
        assert await it.call("well") == ("ok", False)
        await it.until(lambda: len(it.status("greedy").tools) == 256, "as many as it may have")
        await it.ready("greedy")
        await it.warned("extension greedy: tool t: description has 1,000,000 bytes; 8,192 is the limit")
        await it.warned("extension greedy: tool t: schema has 100,000 bytes; 65,536 is the limit")
        await it.warned("extension greedy: tool t257: an extension can have 256 tools")
        await it.warned("extension greedy: prompt section 'xxx", "32,768 bytes is the limit")
        assert it.status("greedy").tools == tuple(f"t{number}" for number in range(1, 257))
        # What it tells the model otherwise than before has a number of its own, which mistakes cannot use up.
        changes = [warning for warning in it.warnings() if "changed what it tells the model" in warning]
        assert len(it.warnings()) - len(changes) <= 20 and len(changes) <= 20
        assert all(len(warning) < 300 for warning in it.warnings())
        assert await it.call("t256") == ("ok", False)


# S11


async def test_a_tool_with_an_impossible_name_is_refused_alone(tmp_path: Path) -> None:
    odd = chaos("odd", "hello", "register_tool:before", "bad_names", "register_tool:after", "ready")
    async with nothing_left(), extended(tmp_path, odd, tool("well")) as it:
        await it.ready()
        assert it.status("odd").tools == ("before", "after")
        for name in ("''", "'a/b'", r"'a\nb'", "xxx…", "naïve"):
            await it.warned("extension odd: tool name", name, "must be 1 to 64 of the characters A-Z a-z 0-9 _ -")
        assert len(it.warnings()) == 9
        assert all(len(warning) < 300 and "\n" not in warning for warning in it.warnings())
        assert await it.call("before") == await it.call("after") == await it.call("well") == ("ok", False)


# S12


async def test_registering_again_replaces_ones_own_and_never_anothers(tmp_path: Path) -> None:
    def owner(name: str) -> Made:
        first, again = ({"name": "same", "description": text} for text in ("at first", f"of {name}"))
        frames = (f"register_tool:{json.dumps(first)}", f"register_tool:{json.dumps(again)}")
        return chaos(name, "hello", *frames, "ready", {"on": "tool_call", "do": f"answer:by {name}"})

    turns = [calls(("same", {})), says("x")]
    async with nothing_left(), extended(tmp_path, owner("one"), owner("two"), turns=turns) as it:
        await it.ready()
        await it.say()
        assert offered(it) == {"same": "of one"}
        assert it.result() == "by one"
        told = await it.warned("conflict", "tool same")
        assert told == "conflict: one and two both offer tool same; one keeps it"
        assert it.warnings() == [told]


# S13


@FRAMES_ONLY  # whatever it is that they speak
async def test_two_hundred_at_once_all_start_and_a_prompt_does_not_wait_for_them(tmp_path: Path) -> None:
    def small(number: int) -> Made:
        says_hello = f'echo \'{{"type":"hello","name":"x{number}"}}\'; echo \'{{"type":"ready"}}\''
        return Made(f"x{number}", {"exec": "/bin/sh", "args": ["-c", f"{says_hello}; exec cat >/dev/null"]})

    async with nothing_left():
        began = now()
        async with extended(tmp_path, *map(small, range(200)), turns=[says("hi")]) as it:
            assert (await it.say()).text == "hi"
            assert any(status.state == "starting" for status in it.host.statuses()), "it answered before all were up"
            await it.ready()
            assert now() - began < 15
            assert not it.warnings()
            began = now()
        assert now() - began < 2 + SLACK, "they are stopped side by side"


# S14


async def test_a_directory_that_is_gone_is_named_and_the_others_start(tmp_path: Path) -> None:
    @asynccontextmanager
    async def too_late(spec: Spec) -> AsyncIterator[Child]:
        if spec.cwd.name == "lost":
            shutil.rmtree(spec.cwd)
        async with started(spec) as child:
            yield child

    async with nothing_left(), extended(tmp_path, tool("lost"), tool("well"), opener=too_late) as it:
        failed = await it.state("lost", "failed")
        assert f"its directory {tmp_path / 'extensions' / 'lost'} does not exist" in failed.reason
        assert "create it" in failed.reason
        assert await it.call("well") == ("ok", False)


async def test_one_whose_directory_vanishes_while_it_runs_is_tried_again_until_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", 0.1)
    nomad = tool("nomad", {"on": "tool_call", "match": {"args": {"die": True}}, "do": "exit:1"})
    async with nothing_left(), extended(tmp_path, nomad) as it:
        await it.ready()
        home, away = tmp_path / "extensions" / "nomad", tmp_path / "away"
        home.rename(away)
        await it.call("nomad", die=True)
        await it.until(lambda: "does not exist" in it.status("nomad").reason, "the reason is told")
        assert it.status("nomad").state == "restarting"
        away.rename(home)
        await it.ready()
        assert await it.call("nomad") == ("ok", False)


# S15


@pytest.mark.parametrize(
    ("number", "cause", "fix"),
    [
        (errno.EMFILE, "out of file handles", "ulimit -n"),
        (errno.ENOMEM, "not enough memory", "close some programs"),
        (errno.EAGAIN, "too many processes", "ulimit -u"),
    ],
    ids=["EMFILE", "ENOMEM", "EAGAIN"],
)
async def test_a_system_that_refuses_another_process_is_asked_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, cause: str, fix: str
) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", 0.1)
    start, refused = subprocess.Popen, 0

    def refuse(*arguments: Any, **options: Any) -> "subprocess.Popen[bytes]":
        nonlocal refused
        refused += 1
        if refused <= 2:
            raise OSError(number, os.strerror(number))
        return start(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", refuse)
    async with nothing_left(), extended(tmp_path, tool("t")) as it:
        told = (await it.state("t", "restarting")).reason
        assert "cannot be started" in told and cause in told and fix in told
        await it.ready()
        assert it.status("t").restarts == 2
        assert await it.call("t") == ("ok", False)


async def test_a_system_that_refuses_another_thread_is_asked_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: Dialect
) -> None:
    """Threads count as processes: what is short of one is short of the other, and a start needs a thread first."""
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", 0.1)
    start, refused = threading.Thread.start, 0

    def refuse(thread: threading.Thread) -> None:
        nonlocal refused
        refused += 1
        if refused <= 2:
            raise RuntimeError("can't start new thread")
        start(thread)

    async with nothing_left():
        monkeypatch.setattr(threading.Thread, "start", refuse)
        async with extended(tmp_path, tool("t")) as it:
            assert "too many processes" in (await it.state("t", "restarting")).reason
            await it.ready()
            # There one is asked for before the start already, and may be refused.
            assert it.status("t").restarts == {"frames": 2, "jsonrpc": 1}[dialect]
            assert await it.call("t") == ("ok", False)


def test_a_hilt_without_descriptors_says_so_goes_on_and_leaks_none(tmp_path: Path) -> None:
    """The real program, for it has more to do with descriptors than its extensions."""
    hilt = Hilt(tmp_path)
    made = [tool(name).write(tmp_path / "extensions") for name in ("one", "two")]
    flags = [word for directory in made for word in ("--ext", str(directory))]
    turns = (says("hi"), calls(("two", {})), says("still here"))

    def extension(name: str) -> dict[str, Any]:
        return next(one for one in rpc.ask("extensions")["data"]["extensions"] if one["name"] == name)

    def descriptors() -> int:
        return len(os.listdir(f"/proc/{rpc.process.pid}/fd"))

    with hilt.rpc(*hilt.script(*turns), *flags) as rpc:
        until(lambda: extension("one")["state"] == extension("two")["state"] == "ready", "both are ready")
        rpc.prompt("hi")  # whatever is opened at the first prompt is open now
        before = descriptors()
        soft, hard = resource.prlimit(rpc.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(rpc.process.pid, resource.RLIMIT_NOFILE, (3, hard))  # not one more
        os.kill(extension("one")["pid"], signal.SIGKILL)
        for _ in range(2):  # so long that all else it does with descriptors has met the limit, too
            told = rpc.wait(lambda line: "out of file handles" in line.get("reason", ""), "the reason")
        assert (told["type"], told["extension"], told["state"]) == ("ext_status", "one", "restarting")
        assert "ulimit -n" in told["reason"]
        assert "still here" in json.dumps(rpc.prompt("two"))
        assert descriptors() <= before
        resource.prlimit(rpc.process.pid, resource.RLIMIT_NOFILE, (soft, hard))
        assert rpc.ask("reload_ext", name="one")["data"]["ready"] == 1
        until(lambda: descriptors() <= before, "as many as there were")
        assert rpc.close() == 0
    assert "Traceback" not in rpc.errors
