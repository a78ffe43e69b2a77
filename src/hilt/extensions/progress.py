"""Output of a tool that still runs: shown in order, all of it before its result, and within bounds."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from hilt.extensions.chores import Work

_WAITING = 1024


class Progress:
    def __init__(self, show: Callable[[str], Awaitable[None]], later: Callable[[Work], None]) -> None:
        self._show = show
        self._later = later
        self._texts: deque[str] = deque()
        self._lock = asyncio.Lock()

    def push(self, text: str) -> None:
        if len(self._texts) < _WAITING:
            if not self._texts:
                self._later(self.flush)
            self._texts.append(text)

    async def flush(self) -> None:
        async with self._lock:
            while self._texts:
                await self._show(self._texts.popleft())
