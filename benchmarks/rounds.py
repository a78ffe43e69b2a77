"""How things are timed: in rounds, the baseline and what is measured in turns, so that noise falls on both."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import TypeAlias

Work: TypeAlias = Callable[[], Awaitable[object]]
Timing: TypeAlias = Callable[[], Awaitable[float]]


class one_core:  # noqa: N801  # reads as what it does
    """Across cores, waking the other process costs more than everything measured here. Children stay there too."""

    def __enter__(self) -> None:
        self._cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(self._cores)})

    def __exit__(self, *_: object) -> None:
        os.sched_setaffinity(0, self._cores)


class apart:  # noqa: N801  # reads as what it does
    """The host on one core and its programs on another: what usually happens, but every time.

    Left to itself the scheduler does this in one run and not in the next, and the figures follow it.
    """

    def __enter__(self) -> "apart":
        """From here on, what is started stays on the other core."""
        self._cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(self._cores)})
        return self

    def part(self) -> None:
        """All are started: go to the core of our own."""
        os.sched_setaffinity(0, {min(self._cores)})

    def __exit__(self, *_: object) -> None:
        os.sched_setaffinity(0, self._cores)


async def ratios(rounds: int, baseline: Timing, measured: Timing) -> list[float]:
    """What was measured over the baseline, once for each round; one more before them is for warming up."""
    found = []
    for number in range(rounds + 1):  # each comes first every other time
        if number % 2:
            ours = await measured()
            base = await baseline()
        else:
            base = await baseline()
            ours = await measured()
        found.append(ours / base)
    return found[1:]


async def sequential(work: Work, times: int) -> float:
    """Seconds of the median one, each after the other."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - begun)
    return median(taken)


async def concurrent(work: Work, times: int, callers: int) -> float:
    """Seconds for all, so many callers at once."""

    async def caller() -> None:
        for _ in range(times // callers):
            await work()

    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(caller())
    return time.perf_counter() - begun
