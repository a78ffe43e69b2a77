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
        self._lock: asyncio.Lock | None = None
        """Made when the first piece comes: most calls show none."""

    @property
    def some(self) -> bool:
        return self._lock is not None

    def push(self, text: str) -> None:
        if self._lock is None:
            self._lock = asyncio.Lock()
        if len(self._texts) < _WAITING:
            if not self._texts:
                self._later(self.flush)
            self._texts.append(text)

    async def flush(self) -> None:
        assert self._lock
        async with self._lock:
            while self._texts:
                await self._show(self._texts.popleft())
