"""Lines that wait to be written: calls, which are never dropped, and events, of which the oldest give way.

Strictly first in, first out across both kinds, with a cap in bytes for each. Writes nothing itself.
"""

from collections import deque
from typing import TypeAlias

from hilt.errors import ChannelFull

Bytes: TypeAlias = bytes | memoryview

_OVERHEAD = 128
"""What a waiting line costs besides its bytes, so that the caps hold for many small ones too."""


class Outbox:
    def __init__(self, call_cap: int, event_cap: int) -> None:
        self.dropped = 0
        """Events that gave way to newer ones."""
        self._call_cap = call_cap
        self._event_cap = event_cap
        self._calls: deque[tuple[int, bytes]] = deque()
        self._events: deque[tuple[int, bytes]] = deque()
        self._call_cost = 0
        self._event_cost = 0
        self._count = 0
        self._head: Bytes = b""

    def __bool__(self) -> bool:
        return bool(self._head or self._calls or self._events)

    @property
    def cost(self) -> int:
        """Bytes of memory in use, roughly."""
        return len(self._head) + self._call_cost + self._event_cost

    def call(self, line: bytes) -> None:
        """Refused when too much waits; a single line may be larger than the cap."""
        cost = len(line) + _OVERHEAD
        if self._call_cost and self._call_cost + cost > self._call_cap:
            raise ChannelFull(
                f"{self._call_cost} bytes of calls are waiting to be read", hint="the program has stopped reading"
            )
        self._call_cost += cost
        self._count += 1
        self._calls.append((self._count, line))

    def takes_event(self, line: bytes) -> bool:
        """Whether the event fits without another giving way."""
        return self._event_cost + len(line) + _OVERHEAD <= self._event_cap

    def event(self, line: bytes) -> None:
        self._event_cost += len(line) + _OVERHEAD
        self._count += 1
        self._events.append((self._count, line))
        while self._event_cost > self._event_cap and len(self._events) > 1:  # one may be larger than the cap
            self._event_cost -= len(self._events.popleft()[1]) + _OVERHEAD
            self.dropped += 1

    def take(self, most: int) -> Bytes:
        """The next bytes to write, about so many: whole lines, or what was put back."""
        if self._head:
            head, self._head = self._head, b""
            return head
        lines: list[bytes] = []
        size = 0
        while size < most and (line := self._next()) is not None:
            lines.append(line)
            size += len(line) + 1
        lines.append(b"")
        return b"\n".join(lines)

    def put_back(self, rest: Bytes) -> None:
        """What could not be written yet; it goes before everything else."""
        self._head = rest

    def clear(self) -> None:
        self._calls.clear()
        self._events.clear()
        self._call_cost = self._event_cost = 0
        self._head = b""

    def _next(self) -> bytes | None:
        calls, events = self._calls, self._events
        if calls and (not events or calls[0][0] < events[0][0]):
            line = calls.popleft()[1]
            self._call_cost -= len(line) + _OVERHEAD
        elif events:
            line = events.popleft()[1]
            self._event_cost -= len(line) + _OVERHEAD
        else:
            return None
        return line
