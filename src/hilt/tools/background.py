"""Blocking work off the loop, that learns when nobody waits for it any more."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from hilt.errors import ToolError

T = TypeVar("T")


class Wanted:
    """Asked by the work between its steps. Once the caller is gone, the next step does not begin."""

    def __init__(self) -> None:
        self._gone = threading.Event()

    def check(self) -> None:
        if self._gone.is_set():
            raise ToolError("cancelled")

    def withdraw(self) -> None:
        self._gone.set()


async def in_thread(work: Callable[[Wanted], T]) -> T:
    """Run the work in a thread. Cancelling returns at once; the work stops at its next check."""
    wanted = Wanted()
    try:
        return await asyncio.to_thread(work, wanted)
    finally:
        wanted.withdraw()
