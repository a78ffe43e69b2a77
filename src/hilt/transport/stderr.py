"""What a child complains about or prints for nobody: pumped from pipes into a small private log.

A file as the child's stderr would be simpler, but it cannot be kept small while the child writes a gigabyte, and a
full disk would reach the child as an error. The pump reads at a limited rate, so a flood slows the child down
and costs the host a hundredth of its time, and two files of 5 MB are all that is ever kept.
"""

import asyncio
import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from hilt.transport.pipes import PipeSource, Source

_READ = 65536
_WINDOW = 0.1
_PER_WINDOW = 1024 * 1024
_LOG = 5 * 1024 * 1024
_TAIL = 16 * 1024
_LAST_LINES = 20
_LAST_READS = 16
"""After the exit: what the pipe still holds, and no more, for others may go on writing."""
_DOUBTFUL = re.compile(rb"^(?=[^\n\t -Z\\-~])", re.MULTILINE)
"""Lines that begin with a bracket, or with what may not be seen: remarks of ours begin with a bracket."""


class Pump(ABC):
    """Reads what a child writes, at a limited rate, for as long as it writes anything."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._window = 0.0
        self._read_in_window = 0
        self._pause: asyncio.TimerHandle | None = None
        self._source.watch(self._pump)

    @abstractmethod
    def take(self, chunk: bytes) -> None:
        """What came; none at the end."""

    def catch_up(self) -> None:
        """Read what the pipe holds, for the child has exited and its last words may be there."""
        for _ in range(_LAST_READS):
            if not self._read():
                break

    def close(self) -> None:
        if self._pause:
            self._pause.cancel()
        self._source.close()

    def _pump(self) -> None:
        self._read()
        now = self._loop.time()
        if now - self._window >= _WINDOW:
            self._window, self._read_in_window = now, 0
        elif self._read_in_window >= _PER_WINDOW:
            self._source.unwatch()
            self._pause = self._loop.call_later(self._window + _WINDOW - now, self._source.watch, self._pump)

    def _read(self) -> bool:
        try:
            chunk = self._source.read(_READ)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self._source.close()
        self._read_in_window += len(chunk)
        self.take(chunk)
        return bool(chunk)


class Stderr(Pump):
    """With the last lines at hand."""

    def __init__(self, fd: int, log: "Log | None") -> None:
        super().__init__(PipeSource(fd))
        self._log = log
        self._tail = b""

    def last_words(self) -> list[str]:
        """The last lines, oldest first. As the child wrote them: control characters and all."""
        lines = self.tail().split("\n")
        if not lines[-1]:
            lines.pop()
        return lines[-_LAST_LINES:]

    def tail(self) -> str:
        return self._tail.decode(errors="replace")

    def take(self, chunk: bytes) -> None:
        self._tail = (self._tail + chunk)[-_TAIL:]
        if self._log:
            self._log.write(chunk)


class Log:
    """Two files, `x.log` and the one before it, `x.log.1`. Several processes may write to the same one."""

    def __init__(self, path: Path, limit: int = _LOG) -> None:
        self._path = path
        self._limit = limit
        self.failure: OSError | None = None
        """Why nothing is logged any more. The child runs all the same."""
        self._within = False
        """What was written last was not the end of a line."""
        self._fd = -1
        self._try(self._open)

    def write(self, data: bytes) -> None:
        """A piece of what the child complains about, with a space before whatever could pass for a line of ours."""
        if not data:
            return
        marked = _DOUBTFUL.sub(b" ", data)
        self._put(marked[1:] if self._within and marked[:1] != data[:1] else marked)

    def remark(self, text: str) -> None:
        """A line of ours, where whoever looks for the reason will look."""
        self.line(b"[hilt] " + text.encode(errors="replace"))

    def line(self, line: bytes) -> None:
        """A line of its own, or several, whatever the child is in the middle of."""
        self._put((b"\n" if self._within else b"") + line + b"\n")

    def _put(self, data: bytes) -> None:
        self._within = not data.endswith(b"\n")
        if self._fd >= 0:
            self._try(lambda: self._append(data))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            self.failure = error
            self.close()

    def _open(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Without O_NONBLOCK a pipe somebody put there would be waited for.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self._fd = os.open(self._path, flags, 0o600)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            raise OSError(f"{self._path} is not a file")
        os.fchmod(self._fd, 0o600)

    def _append(self, data: bytes) -> None:
        if os.fstat(self._fd).st_size + len(data) > self._limit:
            self._rotate()
        os.write(self._fd, data)

    def _rotate(self) -> None:
        try:
            ours = os.path.samestat(os.fstat(self._fd), os.lstat(self._path))
        except FileNotFoundError:
            ours = False  # somebody else's turn to rotate, or it was removed
        if ours:
            self._path.replace(self._path.with_name(self._path.name + ".1"))
        self.close()
        self._open()
