"""What a large answer costs, over what it costs with asyncio's streams and the standard library's JSON."""

import asyncio
from functools import partial
from pathlib import Path

import hilt_host
import naive
from hosts import Args, Caller, Opening
from programs import compiled, in_c
from report import Measured
from rounds import one_core, ratios, sequential

ROUNDS = 7
CALLS = 20
MEGABYTE = 1_000_000
LONGEST = 4 * 1024 * 1024 - 1024
"""Bytes that still fit an answer, when its line is shorter than 4 MiB."""


def run(ours: Opening = hilt_host.opened, rounds: int = ROUNDS, calls: int = CALLS) -> list[Measured]:
    with compiled("frames_echo") as folder:
        if folder is None:
            return []
        with one_core():
            return asyncio.run(_measure(ours, folder, rounds, calls))


def large(size: int) -> Args:
    """Answered with so many bytes of structured content: a text as long as that would not reach the model as it is."""
    return {"text": "large", "structured": size}


async def _measure(ours: Opening, folder: Path, rounds: int, calls: int) -> list[Measured]:
    program = in_c(folder)
    async with naive.opened(program) as base, ours([program]) as host:
        usual = await ratios(rounds, partial(_time, base, MEGABYTE, calls), partial(_time, host, MEGABYTE, calls))
        longest = await ratios(rounds, partial(_time, base, LONGEST, calls), partial(_time, host, LONGEST, calls))
        paces = [1000 * MEGABYTE / LONGEST * await _time(host, LONGEST, calls) for _ in range(rounds)]
    return [
        # As quick as the naive one for a single long string, which costs its decoder nothing; noise apart.
        Measured("large: answer of 1 MB / streams and json", usual, 1.25),
        Measured("large: answer near 4 MiB / streams and json", longest, 1.25),
        Measured("large: each MB of an answer near 4 MiB", paces, 3.33, "ms"),
    ]


async def _time(host: Caller, size: int, calls: int) -> float:
    async def call() -> None:
        assert await host.call("echo", large(size)) == "large"

    return await sequential(call, calls)


if __name__ == "__main__":
    for measured in run():
        print(measured.line())
