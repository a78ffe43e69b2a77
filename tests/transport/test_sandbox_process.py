"""A confined program is a program: its pipes work, its limits hold, and nothing of it is left when it is to end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hilt.transport.launch import Spec
from hilt.transport.process import Exit, started
from hilt.transport.sandbox import confine
from hilt.transport.trampoline import Limits, Pipes
from support.leftovers import nothing_left
from transport.children import DEADLINE, PATH, Heard, runs, speaks, until
from transport.confinement import World, without_bubblewrap, world

ECHO = "import os\nwhile data := os.read({source}, 4096): os.write({target}, data)"
STUBBORN = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    os.fork()
print("up", flush=True)
time.sleep(60)
"""


@pytest.fixture(params=["bubblewrap", "landlock"])
def means(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    if request.param == "landlock":
        without_bubblewrap(monkeypatch, tmp_path)
    return str(request.param)


def spec(made: World, code: str, pipes: Pipes = "stdio", limits: Limits | None = None) -> Spec:
    argv = confine((sys.executable, "-I", "-S", "-c", code), made.policy(), PATH["PATH"]).argv
    return Spec(argv, made.code, PATH, pipes, limits=limits or Limits(), grace=0.2, speaks=speaks)


def with_environment(marker: bytes) -> list[int]:
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if marker in Path(f"/proc/{name}/environ").read_bytes() and runs(int(name)):
                found.append(int(name))
        except OSError:
            continue
    return found


@pytest.mark.usefixtures("means")
@pytest.mark.parametrize(
    ("pipes", "source", "target"), [("stdio", 0, 1), ("fd34", 3, 4), ("either", 0, 1), ("either", 3, 4)]
)
async def test_lines_go_in_and_out(pipes: Pipes, source: int, target: int) -> None:
    with world() as made:
        async with nothing_left(), started(spec(made, ECHO.format(source=source, target=target), pipes)) as child:
            heard = Heard()
            child.channel.listen(heard)
            child.channel.send(b"{hello}\n")
            await until(lambda: heard.lines)
            assert heard.lines == [b"{hello}"]
            assert child.arrangement == ("stdio" if source == 0 else "fd34")


@pytest.mark.usefixtures("means")
async def test_its_exit_code_and_complaints_are_its_own() -> None:
    with world() as made:
        async with started(spec(made, "import sys; sys.stderr.write('why\\n'); sys.exit(7)")) as child:
            assert await child.exited() == Exit(7)
            await until(child.last_words)
            assert child.last_words() == ["why"]


@pytest.mark.usefixtures("means")
async def test_one_that_ignores_everything_is_ended_with_all_that_it_started() -> None:
    with world() as made:
        token = made.root.name.encode()
        plan = Spec(spec(made, STUBBORN).argv, made.code, {**PATH, "TOKEN": made.root.name}, grace=0.1)
        async with nothing_left(), started(plan) as child:
            heard = Heard()
            child.channel.listen(heard)
            await until(lambda: heard.lines)
            await until(lambda: len(with_environment(token)) >= 3)
        await until(lambda: not with_environment(token), 5)


@pytest.mark.usefixtures("means")
async def test_limits_hold_inside() -> None:
    with world() as made:
        code = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[1], flush=True)"
        async with started(spec(made, code, limits=Limits(files=77))) as child:
            heard = Heard()
            child.channel.listen(heard)
            await until(lambda: heard.lines)
            assert heard.lines == [b"77"]


HOST = """
import asyncio, sys
from pathlib import Path
from hilt.transport.launch import Spec
from hilt.transport.process import started

async def main():
    async with started(Spec(tuple(sys.argv[3:]), Path(sys.argv[1]), {"TOKEN": sys.argv[2]})):
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.usefixtures("means")
async def test_a_killed_host_takes_the_whole_sandbox_with_it() -> None:
    with world() as made:
        up, token = made.data / "up", made.root.name
        code = f"import time; open({str(up)!r}, 'w').close(); time.sleep(60)"
        argv = confine((sys.executable, "-I", "-S", "-c", code), made.policy()).argv
        host = subprocess.Popen([sys.executable, "-c", HOST, str(made.code), token, *argv])
        try:
            await until(up.exists)
            assert with_environment(token.encode())
        finally:
            host.kill()
            host.wait(DEADLINE)
        await until(lambda: not with_environment(token.encode()), 10)
