"""The two ends of a pipe as the event loop sees them: they never block, and say when they are ready.

`Source` and `Sink` are all a channel knows of what is below it: descriptors here, plain memory in `memory`.
"""

import asyncio
import errno
import fcntl
import os
from collections.abc import Callable
from functools import partial
from typing import NoReturn, Protocol

from hilt.transport.outbox import Bytes

_CAPACITY = 1024 * 1024


class Source(Protocol):
    @property
    def read(self) -> Callable[[int], bytes]:
        """About so many bytes; none at the end of the stream, BlockingIOError when nothing is there yet."""

    def grow(self) -> bool:
        """It has proved too small. Whether it is larger now."""

    def watch(self, ready: Callable[[], object]) -> None:
        """Call back in the loop as long as there is something to read. Once more is no error, and changes nothing."""

    def unwatch(self) -> None: ...

    def close(self) -> None:
        """At once, and any number of times."""


class Sink(Protocol):
    @property
    def write(self) -> Callable[[Bytes], int]:
        """How many bytes were taken; BlockingIOError when none can be, another OSError when nobody reads."""

    def grow(self) -> bool: ...

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

    def grow(self) -> bool:
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

    read: Callable[[int], bytes]

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self.read = partial(os.read, fd)  # without a step of ours between, for it is on the way of every answer

    def close(self) -> None:
        super().close()
        self.read = _closed

    def watch(self, ready: Callable[[], object]) -> None:
        if self._stop_watching is None and self._fd >= 0:
            loop = asyncio.get_running_loop()
            loop.add_reader(self._fd, ready)
            self._stop_watching = partial(loop.remove_reader, self._fd)


class PipeSink(_PipeEnd):
    """The write end. Python ignores SIGPIPE, so a lost reader is an OSError."""

    write: Callable[[Bytes], int]

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self.write = partial(os.write, fd)

    def close(self) -> None:
        super().close()
        self.write = _closed

    def watch(self, ready: Callable[[], object]) -> None:
        if self._stop_watching is None and self._fd >= 0:
            loop = asyncio.get_running_loop()
            loop.add_writer(self._fd, ready)
            self._stop_watching = partial(loop.remove_writer, self._fd)


def _closed(_: object) -> NoReturn:
    raise OSError(errno.EBADF, os.strerror(errno.EBADF))
