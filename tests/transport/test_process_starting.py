"""Programs that cannot be started: one line with the cause, one with the fix, and nothing left open."""

import asyncio
import errno
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hilt.errors import StartError
from hilt.transport.diagnosis import explain
from hilt.transport.launch import Spec
from hilt.transport.process import started
from hilt.transport.trampoline import Pipes
from transport.children import PATH, open_descriptors, our_children, shell, speaks, until


def program(path: Path, content: bytes, mode: int = 0o755) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def missing(folder: Path) -> str:
    return str(folder / "nothing")


def unknown(folder: Path) -> str:
    return "no-such-program-anywhere"


def not_executable(folder: Path) -> str:
    return program(folder / "x", b"#!/bin/sh\n", 0o644)


def windows_lines(folder: Path) -> str:
    return program(folder / "x", b"#!/bin/sh\r\necho hello\r\n")


def windows_lines_after_env(folder: Path) -> str:
    return program(folder / "x", b"#!/usr/bin/env sh\r\necho hello\r\n")


def no_interpreter(folder: Path) -> str:
    return program(folder / "x", b"#!/opt/nowhere/python9\n")


def no_interpreter_on_path(folder: Path) -> str:
    return program(folder / "x", b"#!/usr/bin/env no-such-interpreter\n")


def no_first_line(folder: Path) -> str:
    return program(folder / "x", b"print('hello')\n")


def other_processor(folder: Path) -> str:
    head = bytearray(Path(sys.executable).read_bytes()[:4096])
    head[18:20] = b"\x2b\x00"  # SPARC
    return program(folder / "x", bytes(head))


def directory(folder: Path) -> str:
    (folder / "x").mkdir()
    return str(folder / "x")


@pytest.mark.parametrize("pipes", ["stdio", "fd34", "either"])
@pytest.mark.parametrize(
    ("make", "cause", "fix"),
    [
        (missing, "no such file", "correct the path"),
        (unknown, "no such program on PATH", "install"),
        (not_executable, "not executable", "chmod +x"),
        (windows_lines, "lines end as on Windows", "sed"),
        (windows_lines_after_env, "lines end as on Windows", "sed"),
        (no_interpreter, "interpreter /opt/nowhere/python9 does not exist", "install it"),
        (no_interpreter_on_path, "interpreter no-such-interpreter is not on PATH", "install"),
        (no_first_line, "neither a program nor begins with #!", "add a first line"),
        (other_processor, "another kind of processor", "build or install"),
        (directory, "is a directory", "name the program"),
    ],
)
async def test_a_program_that_cannot_run_says_why_and_what_to_do(
    tmp_path: Path, make: object, cause: str, fix: str, pipes: Pipes
) -> None:
    assert callable(make)
    name = make(tmp_path)
    with pytest.raises(StartError) as caught:
        async with started(Spec((name,), tmp_path, PATH, pipes, speaks=speaks)):
            pass
    assert cause in caught.value.message and name in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint.startswith(fix)
    assert not caught.value.transient


async def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"its directory .*gone does not exist"):
        async with started(shell("true", tmp_path / "gone")):
            pass


async def test_no_program_and_impossible_arguments_are_said_so(tmp_path: Path) -> None:
    for argv in ((), ("",), ("sh", "nul\0")):
        with pytest.raises(StartError):
            async with started(Spec(argv, tmp_path, PATH)):
                pass


async def test_a_name_is_looked_for_in_the_programs_own_path_and_directory(tmp_path: Path) -> None:
    program(tmp_path / "mine", b"#!/bin/sh\nexit 5\n")
    for argv, path in ((("mine",), str(tmp_path)), (("./mine",), "/usr/bin")):
        async with started(Spec(argv, tmp_path, {"PATH": path})) as child:
            assert (await child.exited()).code == 5


async def test_running_out_of_descriptors_is_said_so_and_leaks_none(tmp_path: Path) -> None:
    async with started(shell("true", tmp_path)):
        pass  # so that what is made once is there
    before = open_descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    for spare in range(9):
        used = max(int(fd) for fd in open_descriptors()) + 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare, hard))
        try:
            while len(taken) < 4096:
                taken.append(os.dup(0))
        except OSError:
            pass  # full
        for fd in taken[len(taken) - spare :]:
            os.close(fd)
        del taken[len(taken) - spare :]
        try:
            with pytest.raises(StartError) as caught:
                async with started(shell("true", tmp_path)):
                    pass
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            while taken:
                os.close(taken.pop())
        assert "out of file handles" in caught.value.message
        assert caught.value.transient and "ulimit -n" in caught.value.hint
        assert open_descriptors().keys() == before.keys()


async def test_failing_after_the_process_exists_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    before, descriptors = our_children(), open_descriptors()
    monkeypatch.setattr(os, "pidfd_open", refuse)
    with pytest.raises(StartError, match="out of file handles"):
        async with started(shell("sleep 300", tmp_path)):
            pass
    assert our_children() == before
    assert open_descriptors().keys() == descriptors.keys()


@pytest.mark.parametrize(
    ("number", "words", "transient"),
    [
        (errno.ENOMEM, "not enough memory", True),
        (errno.EAGAIN, "too many processes", True),
        (errno.ETXTBSY, "being written", True),
        (errno.ENOENT, "loader", False),
        (errno.EIO, "Input/output error", False),
    ],
)
def test_what_the_system_refuses_is_put_in_words(number: int, words: str, transient: bool) -> None:
    error = explain(OSError(number, os.strerror(number)), "prog")
    assert words in error.message and error.hint
    assert error.transient is transient


async def test_a_program_being_written_may_be_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "true"
    path.write_bytes(Path("/bin/true").read_bytes())
    path.chmod(0o755)
    with path.open("r+b"), pytest.raises(StartError) as caught:
        async with started(Spec((str(path),), tmp_path, PATH)):
            pass
    assert caught.value.transient


async def test_starting_does_not_hold_the_loop(tmp_path: Path) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    async with asyncio.TaskGroup() as group:
        ticking = group.create_task(tick())
        for _ in range(20):
            async with started(shell("true", tmp_path)) as child:
                await child.exited()
        ticking.cancel()
    assert ticks > 20


async def test_at_most_sixteen_start_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted where the operating system is asked; more workers than that are at hand."""
    from concurrent.futures import ThreadPoolExecutor

    running, most, lock, full = 0, 0, threading.Lock(), threading.Event()
    real = subprocess.Popen

    def counting(*args: object, **kwargs: object) -> object:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == 16:
                full.set()
        full.wait(5)
        time.sleep(0.02)
        with lock:
            running -= 1
        return real(*args, **kwargs)  # type: ignore[call-overload]  # passed on as they came

    monkeypatch.setattr(subprocess, "Popen", counting)

    async def live() -> None:
        async with started(shell("true", tmp_path)):
            pass

    with ThreadPoolExecutor(40) as workers:
        asyncio.get_running_loop().set_default_executor(workers)
        before = our_children()
        async with asyncio.TaskGroup() as group:
            for _ in range(40):
                group.create_task(live())
        await until(lambda: our_children() == before)
    assert most == 16
