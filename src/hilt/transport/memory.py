"""Channels without processes or descriptors, and a clock that jumps: for tests of what is built on channels.

The channel is the real one; only the pipes below it are plain memory. With `VirtualLoop` a minute of waiting
takes no time, and a program in which everything waits for ever is an error instead of a hang.
"""

import asyncio
import selectors
from collections.abc import Callable

from hilt.transport.channels import Bounds, Channel
from hilt.transport.outbox import Bytes

_CAPACITY = 65536


def pair(bounds: Bounds | None = None, capacity: int = _CAPACITY) -> tuple[Channel, Channel]:
    """Two channels, each the other's far end. `capacity` is what each direction holds before a writer must wait."""
    there, back = MemoryPipe(capacity), MemoryPipe(capacity)
    return Channel(back.source, there.sink, bounds), Channel(there.source, back.sink, bounds)


class MemoryPipe:
    """Bytes on their way. Behaves like a pipe of the system, down to partial writes."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._held = bytearray()
        self.source = MemorySource(self)
        self.sink = MemorySink(self)

    def put(self, data: Bytes) -> int:
        if self.source.closed:
            raise BrokenPipeError
        room = self._capacity - len(self._held)
        if room <= 0:
            raise BlockingIOError
        self._held += data[:room]
        self.poke()
        return min(room, len(data))

    def get(self, most: int) -> bytes:
        if not self._held and not self.sink.closed:
            raise BlockingIOError
        data = bytes(self._held[:most])
        del self._held[:most]
        self.poke()
        return data

    def poke(self) -> None:
        """Something has changed: call whoever waited for it."""
        self.source.call_if(ready=bool(self._held) or self.sink.closed)
        self.sink.call_if(ready=len(self._held) < self._capacity or self.source.closed)


class _MemoryEnd:
    def __init__(self, pipe: MemoryPipe) -> None:
        self._pipe = pipe
        self._ready: Callable[[], object] | None = None
        self._called: asyncio.Handle | None = None
        self.closed = False

    def watch(self, ready: Callable[[], object]) -> None:
        if not self.closed:
            self._ready = self._ready or ready
            self._pipe.poke()

    def unwatch(self) -> None:
        self._ready = None
        if self._called:
            self._called.cancel()
            self._called = None

    def close(self) -> None:
        self.unwatch()
        self.closed = True
        self._pipe.poke()

    def grow(self) -> bool:
        return False

    def call_if(self, *, ready: bool) -> None:
        if ready and self._ready and self._called is None:
            self._called = asyncio.get_running_loop().call_soon(self._call)

    def _call(self) -> None:
        self._called = None
        if self._ready:
            self._ready()
            self._pipe.poke()  # as long as it is ready, like a selector


class MemorySource(_MemoryEnd):
    def read(self, most: int) -> bytes:
        return self._pipe.get(most)


class MemorySink(_MemoryEnd):
    def write(self, data: Bytes) -> int:
        return self._pipe.put(data)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose clock stands still while something can run, and jumps when nothing can. Threads are not waited for.

    Use: `asyncio.Runner(loop_factory=VirtualLoop)`.
    """

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        self._now += seconds


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise RuntimeError("everything waits for ever")
        self._loop.jump(timeout)
        return []
