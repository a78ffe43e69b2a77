"""What is published on the topics a client of `hilt rpc` has subscribed to, on its way there.

Whoever publishes waits for nobody, so what a slow client does not take in time is dropped, and counted.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

_WAITING = 1000
_BYTES = 4 * 1024 * 1024


class Feed:
    def __init__(self, encode: Callable[[dict[str, Any]], bytes]) -> None:
        self._encode = encode
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._lost = 0
        self._some = asyncio.Event()

    def deliver(self, topic: str, subscription: int, data: Any) -> None:
        event = {"type": "bus_event", "topic": topic, "subscription": subscription, "data": data}
        line = self._encode({**event, "lost": self._lost} if self._lost else event)
        if self._waiting and (len(self._waiting) >= _WAITING or self._size + len(line) > _BYTES):
            self._lost += 1
            return
        self._lost = 0
        self._waiting.append(line)
        self._size += len(line)
        self._some.set()

    async def run(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        while True:
            await self._some.wait()
            while self._waiting:
                await send(self._waiting[0])  # still counted while the client does not take it
                self._size -= len(self._waiting.popleft())
            self._some.clear()
