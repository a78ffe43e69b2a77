"""What the jsonrpc dialect costs beside the frames one, and a model's answer that an extension streams.

On one core. The same host runs both; the programs at the other end are of the same kind.
"""

import asyncio
import subprocess
import time
from functools import partial
from pathlib import Path

import hilt_host
import msgspec
from programs import Program, compiled, in_c
from report import Measured
from rounds import concurrent, one_core, ratios, sequential

ROUNDS = 9
CALLS = 3000
CALLERS = 64
DELTAS = 10_000
ARGS = {"text": "x" * 60}
_INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
_STREAM = b'{"jsonrpc":"2.0","id":%d,"method":"provider/stream","params":{"requestId":%d}}\n'


def run(rounds: int = ROUNDS, calls: int = CALLS, deltas: int = DELTAS) -> list[Measured]:
    with compiled("frames_echo", "jsonrpc_echo") as folder:
        if folder is None:
            return []
        with one_core():
            return asyncio.run(_measure(folder, rounds, calls, deltas))


async def _measure(folder: Path, rounds: int, calls: int, deltas: int) -> list[Measured]:
    options = ("-t", "other", "-p", "words", "-n", str(deltas))
    other = Program("other", (str(folder / "jsonrpc_echo"), *options), "jsonrpc")
    async with hilt_host.opened([in_c(folder), other]) as host:
        frames, jsonrpc = partial(host.call, "echo", ARGS), partial(host.call, "other", ARGS)
        alone = await ratios(rounds, partial(sequential, frames, calls), partial(sequential, jsonrpc, calls))
        at_once = await ratios(
            rounds, partial(concurrent, frames, calls, CALLERS), partial(concurrent, jsonrpc, calls, CALLERS)
        )
        with _Raw(other.argv) as raw:
            streamed = await ratios(rounds, raw.stream, partial(_stream, host))
    return [
        Measured("dialects: round trip of jsonrpc / frames", alone, 1.15),
        Measured(f"dialects: time of {CALLERS} at once, jsonrpc / frames", at_once, 1.15),
        Measured(f"provider: {deltas:,} deltas / reading and decoding the same lines", streamed, 6),
    ]


async def _stream(host: hilt_host.Hilt) -> float:
    begun = time.perf_counter()
    assert await host.stream("words") == "all of it"
    return time.perf_counter() - begun


class _Raw:
    """The least that could be done about a stream: read its lines and decode them, in a loop that does nothing else."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        shim = ("/bin/sh", "-c", 'exec "$@" 3<&0 4>&1', "sh", *argv)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(shim, stdin=pipe, stdout=pipe, env={"PIGLET_FD": "1"})
        self._count = 1

    def __enter__(self) -> "_Raw":
        self._until(_INITIALIZE, 1)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    async def stream(self) -> float:
        self._count += 1
        begun = time.perf_counter()
        self._until(_STREAM % (self._count, self._count), self._count)
        return time.perf_counter() - begun

    def _until(self, line: bytes, id_: int) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(line)
        self._process.stdin.flush()
        for said in self._process.stdout:
            if msgspec.json.decode(said).get("id") == id_:
                return


if __name__ == "__main__":
    for measured in run():
        print(measured.line())
