"""What the channel costs over the least a Python host can do: one reader callback, one write, one future.

Both talk to the same program, compiled on the spot, on one core, in turns.
"""

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from programs import compiled
from report import Measured
from rounds import concurrent, one_core, ratios, sequential

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
    with compiled("echo") as folder:
        if folder is None:
            return []
        with one_core():
            return asyncio.run(_measure(folder / "echo", rounds, calls))


async def _measure(echo: Path, rounds: int, calls: int) -> list[Measured]:
    with subprocess.Popen([echo], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: ASYNC220
        assert process.stdin and process.stdout
        raw = Raw(process.stdout.fileno(), process.stdin.fileno())
        async with started(Spec((str(echo),), echo.parent, {})) as child:
            base, work = partial(_call, raw.call), partial(_call, Ours(child.channel).call)
            alone = await ratios(rounds, partial(sequential, base, calls), partial(sequential, work, calls))
            eight = await ratios(rounds, partial(concurrent, base, calls, 8), partial(concurrent, work, calls, 8))
        raw.close()
        process.stdin.close()
    return [
        Measured("channel: round trip / raw asyncio", alone, 1.3),
        Measured("channel: time of 8 callers at once / raw asyncio", eight, 1.0),
    ]


async def _call(call: Call) -> None:
    assert await call(LINE) == LINE


if __name__ == "__main__":
    for measured in run():
        print(measured.line())
