"""The two ends of a pipe as the event loop sees them: they never block, and say when they are ready.

`Source` and `Sink` are all a channel knows of what is below it: descriptors here, plain memory in `memory`.
"""

import asyncio
import fcntl
import os
from collections.abc import Callable
from functools import partial
from typing import Protocol

from hilt.transport.outbox import Bytes

_CAPACITY = 1024 * 1024


class Source(Protocol):
    def read(self, most: int) -> bytes:
        """Empty at the end of the stream; BlockingIOError when nothing is there yet."""

    def watch(self, ready: Callable[[], object]) -> None:
        """Call back in the loop as long as there is something to read. Once more is no error, and changes nothing."""

    def unwatch(self) -> None: ...

    def close(self) -> None:
        """At once, and any number of times."""


class Sink(Protocol):
    def write(self, data: Bytes) -> int:
        """How many bytes were taken; BlockingIOError when none can be, another OSError when nobody reads."""

    def watch(self, ready: Callable[[], object]) -> None:
        """Call back in the loop as long as there is room to write."""

    def unwatch(self) -> None: ...

    def close(self) -> None: ...


class _PipeEnd:
    """Owns one descriptor of a pipe.

    A pipe is enlarged when it first proves too small. Doing so from the start would use up what one user may
    have in all pipes together (64 MiB), after which every new pipe of that user is a tiny one.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._stop_watching: Callable[[], object] | None = None
        """Given while the loop watches it."""
        self._may_grow = True
        os.set_blocking(fd, False)

    def unwatch(self) -> None:
        if self._stop_watching:
            self._stop_watching()
            self._stop_watching = None

    def close(self) -> None:
        self.unwatch()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _grow(self) -> bool:
        """Whether it has become larger."""
        if not self._may_grow:
            return False
        self._may_grow = False
        try:
            fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, _CAPACITY)
        except (AttributeError, OSError):
            return False  # not Linux, or the user has had their share: slower, but it works
        return True


class PipeSource(_PipeEnd):
    """The read end."""

    def read(self, most: int) -> bytes:
        data = os.read(self._fd, most)
        if self._may_grow and len(data) == most:
            self._grow()
        return data

    def watch(self, ready: Callable[[], object]) -> None:
        if self._stop_watching is None and self._fd >= 0:
            loop = asyncio.get_running_loop()
            loop.add_reader(self._fd, ready)
            self._stop_watching = partial(loop.remove_reader, self._fd)


class PipeSink(_PipeEnd):
    """The write end. Python ignores SIGPIPE, so a lost reader is an OSError."""

    def write(self, data: Bytes) -> int:
        try:
            written = os.write(self._fd, data)
        except BlockingIOError:
            if self._grow():
                return os.write(self._fd, data)
            raise
        if self._may_grow and written < len(data):
            self._grow()  # the rest fits next time
        return written

    def watch(self, ready: Callable[[], object]) -> None:
        if self._stop_watching is None and self._fd >= 0:
            loop = asyncio.get_running_loop()
            loop.add_writer(self._fd, ready)
            self._stop_watching = partial(loop.remove_writer, self._fd)
