"""What the channel costs over the least a Python host can do: one reader callback, one write, one future.

Both talk to the same program, compiled on the spot, on one core, in turns.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import TypeAlias

from report import Measured

from hilt.transport.channels import Channel
from hilt.transport.launch import Spec
from hilt.transport.lines import TooLong
from hilt.transport.process import started

ROUNDS = 9
CALLS = 3000
LINE = b'{"type":"tool_call","id":"12345678","name":"echo","args":{"text":"' + b"x" * 60 + b'"}}'

Call: TypeAlias = Callable[[bytes], Awaitable[bytes]]


class Raw:
    """The baseline: no caps, no deadlines, no long lines, nobody else to be fair to."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._loop = asyncio.get_running_loop()
        self._waiting: list[asyncio.Future[bytes]] = []
        self._rest = b""
        os.set_blocking(read, False)
        self._loop.add_reader(read, self._on_readable)

    def call(self, line: bytes) -> Awaitable[bytes]:
        future: asyncio.Future[bytes] = self._loop.create_future()
        self._waiting.append(future)
        os.write(self._write, line + b"\n")
        return future

    def close(self) -> None:
        self._loop.remove_reader(self._read)

    def _on_readable(self) -> None:
        *lines, self._rest = (self._rest + os.read(self._read, 65536)).split(b"\n")
        for line in lines:
            self._waiting.pop(0).set_result(line)


class Ours:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._waiting: list[asyncio.Future[bytes]] = []
        channel.listen(self)

    def call(self, line: bytes) -> Awaitable[bytes]:
        future: asyncio.Future[bytes] = self._loop.create_future()
        self._waiting.append(future)
        self._channel.send(line)
        return future

    def line(self, line: bytes) -> None:
        self._waiting.pop(0).set_result(line)

    def overlong(self, line: TooLong) -> None: ...

    def ended(self) -> None: ...

    def broken(self) -> None: ...

    def stalled(self) -> None: ...


def run(rounds: int = ROUNDS, calls: int = CALLS) -> list[Measured]:
    if shutil.which("cc") is None:
        print("channel: no C compiler, so nothing to measure against", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory() as folder, _one_core():
        echo = Path(folder, "echo")
        subprocess.run(["cc", "-O2", "-o", echo, Path(__file__).with_name("echo.c")], check=True)
        return asyncio.run(_measure(echo, rounds, calls))


class _one_core:  # noqa: N801  # reads as what it does
    """Across cores, waking the other process costs more than everything measured here."""

    def __enter__(self) -> None:
        self._cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(self._cores)})

    def __exit__(self, *_: object) -> None:
        os.sched_setaffinity(0, self._cores)


async def _measure(echo: Path, rounds: int, calls: int) -> list[Measured]:
    alone: list[float] = []
    eight: list[float] = []
    with subprocess.Popen([echo], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: ASYNC220
        assert process.stdin and process.stdout
        raw = Raw(process.stdout.fileno(), process.stdin.fileno())
        async with started(Spec((str(echo),), echo.parent, {})) as child:
            ours = Ours(child.channel)
            for _ in range(rounds):
                base, measured = await _sequential(raw.call, calls), await _sequential(ours.call, calls)
                alone.append(measured / base)
                base, measured = await _concurrent(raw.call, calls), await _concurrent(ours.call, calls)
                eight.append(measured / base)
        raw.close()
        process.stdin.close()
    return [
        Measured("channel: round trip / raw asyncio", alone, 1.3),
        Measured("channel: time of 8 callers at once / raw asyncio", eight, 1.0),
    ]


async def _sequential(call: Call, calls: int) -> float:
    """Seconds of the median call."""
    taken = []
    for _ in range(calls):
        begun = time.perf_counter()
        assert await call(LINE) == LINE
        taken.append(time.perf_counter() - begun)
    return median(taken)


async def _concurrent(call: Call, calls: int) -> float:
    """Seconds for all."""

    async def caller() -> None:
        for _ in range(calls // 8):
            await call(LINE)

    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(caller())
    return time.perf_counter() - begun


if __name__ == "__main__":
    for measured in run():
        print(measured.line())
