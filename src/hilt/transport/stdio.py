"""This process's own standard input and output, as lines, without touching their mode.

Inherited descriptors are shared with the shell that started us: making them non-blocking would
break it, and a blocking write would keep Ctrl-C from being seen. So each direction has one
daemon thread, which works alike for a terminal, a pipe and a file.
"""

import asyncio
import errno
import os
import select
import threading
from collections.abc import AsyncIterator, Callable

from hilt.transport.lines import LineSplitter, TooLong

_PIECE = 65536
_BACKLOG = 4 * 1024 * 1024
"""Bytes that may wait for a slow reader before senders wait too."""


async def read_lines(fd: int, limit: int) -> AsyncIterator[bytes | TooLong]:
    """Yield lines until end of file."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[list[bytes | TooLong] | None] = asyncio.Queue()
    room = threading.Semaphore(16)  # chunks read ahead of whoever consumes them

    def pump() -> None:
        splitter = LineSplitter(limit)
        try:
            while chunk := os.read(fd, _PIECE):
                room.acquire()
                loop.call_soon_threadsafe(arrived.put_nowait, splitter.feed(chunk))
            loop.call_soon_threadsafe(arrived.put_nowait, splitter.finish())
            loop.call_soon_threadsafe(arrived.put_nowait, None)
        except OSError:  # the terminal went away: the same as end of file
            loop.call_soon_threadsafe(arrived.put_nowait, None)
        except RuntimeError:
            pass  # the loop is closed: nobody is left to read for

    threading.Thread(target=pump, name="stdin", daemon=True).start()
    while (lines := await arrived.get()) is not None:
        room.release()
        for line in lines:
            yield line


class LineWriter:
    """Sends lines in order. Senders wait while too much is pending; nothing is dropped while the reader lives."""

    def __init__(self, fd: int) -> None:
        self.when_broken: Callable[[], object] = lambda: None
        """Called in the loop when the reader goes, which is noticed also while nothing is being sent."""
        self.trouble = ""
        """Why writing failed, when it was not the reader that went."""
        self._fd = fd
        self._pending: list[bytes] = []
        self._size = 0
        self._broken = False
        self._hurried = False
        self._lock = threading.Lock()
        self._bell, self._rope = os.pipe()  # a pipe, because the thread waits for the reader's end as well
        self._loop = asyncio.get_running_loop()
        self._drained = asyncio.Event()
        self._drained.set()
        threading.Thread(target=self._pump, name="stdout", daemon=True).start()

    @property
    def broken(self) -> bool:
        """The reader is gone; lines are discarded from now on."""
        return self._broken

    async def send(self, line: bytes) -> None:
        """Queue one line (its newline is added here), then wait while the backlog is too long.

        In this order, because a sender that is cancelled while it waits must not lose its line, nor be overtaken.
        """
        if self._broken:
            return
        with self._lock:
            asleep = not self._pending
            self._pending.append(line + b"\n")
            self._size += len(line) + 1
        if asleep:
            os.write(self._rope, b"!")
        while self._is_behind():
            self._drained.clear()
            await self._drained.wait()

    def _is_behind(self) -> bool:
        return self._size > _BACKLOG and not self._broken and not self._hurried

    def hurry(self) -> None:
        """Wait for the reader no longer: whoever waits in `send` goes on, and what is pending may be lost."""
        self._hurried = True
        self._drained.set()

    async def flush(self, patience: float | None) -> bool:
        """Wait until everything is written or nobody is left to read; False when nothing was taken for so long."""
        while self._size and not self._broken:
            before = self._size
            self._drained.clear()
            try:
                async with asyncio.timeout(patience):
                    await self._drained.wait()
            except TimeoutError:
                if self._size == before:
                    return False
        return True

    def _pump(self) -> None:
        watch = select.poll()
        watch.register(self._bell, select.POLLIN)
        watch.register(self._fd, 0)  # reports nothing but that the other end is gone
        try:
            while self._reader_lives(watch):
                os.read(self._bell, 64)
                with self._lock:
                    batch = b"".join(self._pending)
                    self._pending.clear()
                self._write(batch)
        except OSError as error:
            self.trouble = "" if error.errno == errno.EPIPE else error.strerror or str(error)
        except RuntimeError:
            return  # the loop is closed
        self._broken = True
        try:
            self._loop.call_soon_threadsafe(self._drained.set)
            self._loop.call_soon_threadsafe(self._tell)
        except RuntimeError:
            pass

    def _tell(self) -> None:
        self.when_broken()

    def _reader_lives(self, watch: select.poll) -> bool:
        return all(fd == self._bell for fd, _ in watch.poll())

    def _write(self, batch: bytes) -> None:
        view = memoryview(batch)
        while view:
            written = os.write(self._fd, view[:_PIECE])  # in pieces, so that a slow reader is seen to move
            view = view[written:]
            with self._lock:
                self._size -= written
            self._loop.call_soon_threadsafe(self._drained.set)
