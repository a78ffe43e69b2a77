"""A hundred times the same: no descriptor, process, thread or task adds up.

The programs are of the shell, which starts in a millisecond. `HILT_LEAK_ROUNDS` sets how often twenty of them start
anew; `make soak` does it more often.
"""

import asyncio
import gc
import os
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hilt.extensions import supervisor
from hilt.extensions.extension import Extension
from hilt.model.extensions import Dialect
from support.extending import Extended, Made, extended
from support.leftovers import written_down
from transport.children import open_descriptors, our_children, until

AT_ONCE = 20
ROUNDS = int(os.environ.get("HILT_LEAK_ROUNDS", "5"))
HELLO = """echo '{"type":"hello","name":"x"}'; echo '{"type":"register_tool","name":"NAME"}'; echo '{"type":"ready"}'"""
LISTEN = """while read -r line; do case "$line" in *:'"shutdown"'*) exit 0;; *:'"tool_call"'*) exit 3;; esac; done"""
"""Ends when told to, and dies when its tool is called."""


INITIALIZE = """read -r line <&3; echo '{"method":"register/tool","params":{"name":"NAME"}}' >&4
echo '{"id":1,"result":{"name":"NAME"}}' >&4"""
SERVE = """while read -r line <&3; do case "$line" in *:'"tool/execute"'*) exit 3;; esac; done; exit 0"""
"""The same, where the end is told by the end of the input."""
PROGRAMS = {
    "frames": {
        "living": f"{HELLO}; {LISTEN}",
        "mute": "echo no hello from me; exit 4",
        "silent": f"{HELLO}; while read -r line; do :; done",
    },
    "jsonrpc": {
        "living": f"{INITIALIZE}; {SERVE}",
        "mute": "echo no answer from me; exit 4",
        "silent": f"{INITIALIZE}; while read -r line <&3; do :; done",
    },
}


def shell(dialect: Dialect, program: str) -> list[Made]:
    names, script = [f"t{number}" for number in range(AT_ONCE)], PROGRAMS[dialect][program]
    if dialect == "frames":
        return [Made(name, {"exec": "sh", "args": ["-c", script.replace("NAME", name)]}) for name in names]
    manifest = {"runtime": "/bin/sh", "entry": "run.sh", "pipes": "fd"}
    return [Made(name, manifest, {"run.sh": script.replace("NAME", name)}, dialect) for name in names]


@asynccontextmanager
async def as_before() -> AsyncIterator[None]:
    """Fails if anything is left at the end that was not there at the beginning. Do it all once before."""
    children, descriptors, tasks = our_children(), open_descriptors(), len(asyncio.all_tasks())
    loop = asyncio.get_running_loop()
    await asyncio.wait([loop.run_in_executor(None, time.sleep, 0.01) for _ in range(64)])  # the pool has its size now
    threads = threading.active_count()
    yield
    await until(lambda: our_children() == children)
    await written_down()
    assert open_descriptors().keys() == descriptors.keys()
    assert len(asyncio.all_tasks()) == tasks
    assert threading.active_count() == threads


async def test_starting_and_stopping_again_and_again_leaves_nothing(tmp_path: Path, dialect: Dialect) -> None:
    async with as_before():
        for round_ in range(ROUNDS):
            async with extended(tmp_path, *shell(dialect, "living")) as it:
                await it.ready()
                assert len(our_children()) == AT_ONCE, round_


async def test_crashing_again_and_again_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: Dialect
) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", 0.01)
    monkeypatch.setattr(supervisor, "_LONGEST_DELAY", 0.01)
    monkeypatch.setattr(supervisor, "_CRASHES", ROUNDS + 1)
    async with as_before(), extended(tmp_path, *shell(dialect, "living")) as it:
        await it.ready()
        await at_rest()
        idle = open_descriptors().keys()
        async with asyncio.TaskGroup() as group:
            for status in it.host.statuses():
                group.create_task(crash(it, status.name))
        assert len(our_children()) == AT_ONCE, "and no zombie"
        await until(lambda: remembered() == AT_ONCE)
        await until(lambda: len(open_descriptors()) == len(idle))


async def at_rest() -> None:
    """What is done once after a start is over: comparing what the model is told, and looking for consent."""
    passing = ("_compare", "_seek_consent")
    await until(lambda: not any(name in repr(task) for task in asyncio.all_tasks() for name in passing))
    await written_down()


def remembered() -> int:
    """Processes of extensions, past and present, that something in here still holds on to."""
    gc.collect()
    return sum(isinstance(thing, Extension) for thing in gc.get_objects())


async def crash(it: Extended, name: str) -> None:
    for round_ in range(1, ROUNDS + 1):
        text, is_error = await it.call(name)
        assert is_error and "exited with code 3" in text
        await it.until(lambda round_=round_: it.status(name).restarts == round_, "a restart")  # type: ignore[misc]
        await it.ready(name)


async def test_failing_to_say_hello_again_and_again_leaves_nothing(tmp_path: Path, dialect: Dialect) -> None:
    async with as_before(), extended(tmp_path, *shell(dialect, "mute")) as it:
        await it.until(lambda: all(one.state == "failed" for one in it.host.statuses()), "all have failed")
        for _ in range(ROUNDS - 1):
            reloaded = await it.host.reload()
            assert len(reloaded.problems) == AT_ONCE and "exited with code 4" in reloaded.problems[0]
        await until(lambda: not our_children())


async def test_reloading_again_and_again_leaves_nothing(tmp_path: Path, dialect: Dialect) -> None:
    # L14
    async with as_before(), extended(tmp_path, *shell(dialect, "living")) as it:
        await it.ready()
        await at_rest()
        tasks = len(asyncio.all_tasks())
        for _ in range(ROUNDS):
            assert (await it.host.reload()).ready == AT_ONCE
        await until(lambda: len(our_children()) == AT_ONCE)
        await until(lambda: len(asyncio.all_tasks()) == tasks)
        await until(lambda: remembered() == AT_ONCE)


async def test_calls_that_are_given_up_leave_nothing(tmp_path: Path, dialect: Dialect) -> None:
    async with as_before(), extended(tmp_path, shell(dialect, "silent")[0]) as it:
        await it.ready()
        await at_rest()
        tasks = len(asyncio.all_tasks())
        for _ in range(300):
            try:
                async with asyncio.timeout(0.001):
                    await it.call("t0")
            except TimeoutError:
                pass
        assert len(asyncio.all_tasks()) == tasks
