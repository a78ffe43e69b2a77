"""What hilt and its extensions say to each other, as it is said, in a file for whoever wants to know.

Owns the file. The loop only puts lines aside; a thread makes of them what may be written, and waits for the disk. So
a slow disk slows nobody down: what does not fit into the buffer is left out, and the trace says how much that was.
What a line looks like is the business of `trace_line`.
"""

import asyncio
import errno
import fcntl
import os
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import structs

from hilt.errors import UsageError
from hilt.extensions.trace_line import Direction, Secrets, Who, written, written_event, written_raw
from hilt.packages.discovery import Found
from hilt.transport.lines import TooLong
from hilt.transport.process import Exit

_BUFFER = 8 * 1024 * 1024
"""Bytes that may wait for the disk, beside those that are being written."""
_OVERHEAD = 256
"""Bytes that a line costs beside its own, roughly."""
_PIECE = 64 * 1024
"""Bytes that are written at once."""
_GATHERING = 0.01
"""Seconds for which lines are gathered before they are written: what is lost when hilt is killed."""
_BEGINNING = 4096
"""Bytes of a file by which it is known for a trace."""
_PATIENCE = 2.0
"""Seconds at the end for what still waits."""

_Render = Callable[[], bytes]


class Trace:
    """Everything happens within `writing`."""

    def __init__(self, fd: int, path: Path, secrets: Secrets, tell: Callable[[str], object]) -> None:
        """`open` makes one. `tell` is given what the user should know, in the loop."""
        self._fd = fd
        self._path = path
        self._secrets = secrets
        self._tell = tell
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._more = threading.Condition(self._lock)
        self._waiting: list[_Render] = []
        self._size = 0
        self._lost = 0
        self._closing = False
        self._failed = False

    @classmethod
    def open(cls, path: Path, secrets: Secrets, tell: Callable[[str], object]) -> "Trace":
        """Begin it, or go on with what is there. Raises `UsageError`."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        try:
            fd = os.open(path, flags, 0o600)
        except OSError as error:
            # What was waited for here is somebody to read from a named pipe.
            why = "nobody reads from it" if error.errno == errno.ENXIO else error.strerror or str(error)
            raise UsageError(f"--trace {path}: {why}", hint="name a file that you may write to") from error
        if stat.S_ISREG(os.fstat(fd).st_mode):
            if not _goes_on(path):
                os.close(fd)
                hint = "name a new file, or one that a trace was written to before"
                raise UsageError(f"--trace {path}: it holds something else than a trace", hint=hint)
            os.fchmod(fd, 0o600)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK)
        return cls(fd, path, secrets, tell)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator["Trace"]:
        """Until the end of the block, and a moment longer for what still waits."""
        over = asyncio.Event()
        self._start(asyncio.get_running_loop(), over)
        try:
            yield self
        finally:
            with self._more:
                self._closing = True
                self._more.notify()
            try:
                async with asyncio.timeout(_PATIENCE):
                    await over.wait()
            except TimeoutError:
                pass  # the disk is stuck, and may stay so

    def _start(self, loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
        thread = threading.Thread(target=self._write_all, args=(loop, over), name="trace", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._failed = True
            self._tell(f"there is no trace: {error}")
            os.close(self._fd)
            over.set()

    def tap(self, found: Found) -> "TracedProcess":
        """For one process of this extension."""
        return TracedProcess(self, found)

    # In the loop

    def add(self, size: int, render: Callable[[float, float, Secrets], bytes]) -> None:
        """Have this rendered and written: with the time in seconds since 1970, and in milliseconds since the start."""
        when, at = time.time(), (time.monotonic() - self._began) * 1000
        with self._more:
            if self._failed:
                return
            if self._size and self._size + size + _OVERHEAD > _BUFFER:
                self._lost += 1
                return
            self._size += size + _OVERHEAD
            self._waiting.append(lambda: render(when, at, self._secrets))
            if len(self._waiting) == 1:
                self._more.notify()

    # In the thread

    def _write_all(self, loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
        try:
            while batch := self._next():
                self._write(batch)
        except OSError as error:
            self._give_up(error, loop)
        finally:
            os.close(self._fd)
            _in_loop(loop, over.set)

    def _next(self) -> list[_Render]:
        """What waits; nothing once there will be no more."""
        with self._more:
            while not self._waiting and not self._lost and not self._closing:
                self._more.wait()
            self._more.wait_for(
                lambda: self._closing, _GATHERING
            )  # more will follow, and fewer turns cost the loop less
            batch, self._waiting, self._size = self._waiting, [], 0
            if self._lost:
                batch.append(self._losses(self._lost))
                self._lost = 0
            return batch

    def _losses(self, count: int) -> _Render:
        when, at = time.time(), (time.monotonic() - self._began) * 1000
        return lambda: written_event(Who("", ""), "lost", when, at, self._secrets, lines=count)

    def _write(self, batch: list[_Render]) -> None:
        piece = bytearray()
        for render in batch:
            piece += render()
            if len(piece) >= _PIECE:
                self._put(piece)
                piece = bytearray()
        self._put(piece)

    def _put(self, piece: bytearray) -> None:
        view = memoryview(piece)
        while view:
            view = view[os.write(self._fd, view) :]

    def _give_up(self, error: OSError, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            self._failed = True
            self._waiting = []
        told = f"the trace {self._path} ends here: {error.strerror or error}"
        _in_loop(loop, lambda: self._tell(told))


def _in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        pass  # the loop is closed: nobody is left to be told


class TracedProcess:
    """A tap on one process."""

    def __init__(self, trace: Trace, found: Found) -> None:
        self._trace = trace
        self._found = found
        self._who = Who(found.name, found.manifest.dialect)

    def started(self, pid: int) -> None:
        self._who = structs.replace(self._who, pid=pid)
        self._happened("started", version=self._found.manifest.version, where=str(self._found.where))

    def sent(self, line: bytes) -> None:
        self._passed("to_extension", line)

    def received(self, line: bytes) -> None:
        self._passed("from_extension", line)

    def skipped(self, line: TooLong) -> None:
        who, head, size = self._who, line.head, line.size
        self._trace.add(
            len(head), lambda when, at, secrets: written_raw(who, "from_extension", head, size, when, at, secrets)
        )

    def exited(self, exit_: Exit, lost: int) -> None:
        self._happened("exit", how=str(exit_), code=exit_.code, signal=exit_.signal, events_lost=lost)

    def _passed(self, direction: Direction, line: bytes) -> None:
        who = self._who
        self._trace.add(len(line), lambda when, at, secrets: written(who, direction, line, when, at, secrets))

    def _happened(self, what: str, **facts: str | int | None) -> None:
        who = self._who
        self._trace.add(0, lambda when, at, secrets: written_event(who, what, when, at, secrets, **facts))


def _goes_on(path: Path) -> bool:
    """Whether a regular file is empty or begins like a trace: a mistyped name must not cost anybody a file."""
    try:
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING)
    except OSError:
        return True  # it can be written and not read, which is the user's affair
    return not beginning or (beginning.startswith(b"{") and b'"direction":' in beginning)
