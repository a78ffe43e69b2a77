"""Clocks that do not wait: what takes minutes by the product's own clock is over at once, on every machine."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STEP = 0.25
_TURNS = 5
"""Of the loop for each step: a timer rings in the first, and what it wakes may take a few more."""


class Leap:
    """Stands for the module `time`: so many seconds pass at once when a file comes to be."""

    def __init__(self, sign: Path, seconds: float) -> None:
        self._sign, self._seconds = sign, seconds

    def monotonic(self) -> float:
        return time.monotonic() + (self._seconds if self._sign.exists() else 0.0)


async def pass_time(seconds: float) -> None:
    """Let so many seconds pass for everything in this loop, and whatever is due by then be done in its order."""
    loop = asyncio.get_running_loop()
    before, passed = loop.time, 0.0
    loop.time = lambda: before() + passed  # type: ignore[method-assign]  # the loop goes by its own method
    while True:
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        if passed >= seconds:
            return
        passed = min(seconds, passed + _STEP)


@contextmanager
def no_time_passes() -> Iterator[None]:
    """In this loop: what waits for a clock waits for ever, and what is done all the same is done at once."""
    loop = asyncio.get_running_loop()
    before, moment = loop.time, loop.time()
    loop.time = lambda: moment  # type: ignore[method-assign]  # the loop goes by its own method
    try:
        yield
    finally:
        loop.time = before  # type: ignore[method-assign]
