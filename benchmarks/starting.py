"""How long fifty extensions take to be ready, over starting them in a plain loop and waiting for each to say so."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial

import hilt_host
import prototype
from hosts import Opening
from programs import Program, compiled, in_python, several_in_c
from report import Measured
from rounds import ratios

ROUNDS = 7
COUNT = 50


def run(ours: Opening = hilt_host.opened, rounds: int = ROUNDS, count: int = COUNT) -> list[Measured]:
    with compiled("frames_echo") as folder:
        if folder is None:
            return []
        in_c = several_in_c(folder, count)
        python = [in_python(f"echo{number}") for number in range(count)]
        return [
            # Goals: 1.25 and 1.1 of the host in Go, for the prototype's 0.84 and 0.98.
            # Those in C are up so quickly that a single round says little.
            Measured(f"start: {count} in C / Popen loop", asyncio.run(_compare(ours, in_c, 3 * rounds)), 1.5),
            Measured(f"start: {count} in Python / Popen loop", asyncio.run(_compare(ours, python, rounds)), 1.1),
        ]


async def _compare(ours: Opening, programs: Sequence[Program], rounds: int) -> list[float]:
    return await ratios(rounds, partial(_ready, prototype.opened, programs), partial(_ready, ours, programs))


async def _ready(opening: Opening, programs: Sequence[Program]) -> float:
    host = opening(programs)
    begun = time.perf_counter()
    async with host:
        return time.perf_counter() - begun


if __name__ == "__main__":
    for measured in run():
        print(measured.line())
