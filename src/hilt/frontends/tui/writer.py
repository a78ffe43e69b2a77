"""What is drawn, on its way to the terminal, in a thread: nothing else ever waits for a terminal that does not read.

While too much is on its way, what comes is left out. Once all of it has arrived, whoever draws is told to draw
everything anew.
"""

import os
import select
from collections import deque
from collections.abc import Callable
from threading import Condition
from typing import IO

from textual.drivers._writer_thread import WriterThread

_FRAMES = 256 * 1024
"""Bytes on their way, beyond which nothing is drawn."""
_PICTURES = 16 * 1024 * 1024
"""The same for pictures, which come in many pieces and are not sent again."""
_PICTURE = "\x1b_G"
_LOOK = 0.1
"""Seconds after which a terminal that does not read is given up, if that was asked for."""


class Writer(WriterThread):
    def __init__(self, file: IO[str]) -> None:
        super().__init__(file)
        self.caught_up: Callable[[], object] = lambda: None
        """Called, in the thread, when all has arrived after something was left out."""
        self._terminal = _opened(file.fileno())
        self._waiting: deque[bytes] = deque()
        self._size = 0
        """Bytes that have not arrived."""
        self._behind = False
        self._ending = False
        self._given_up = False
        self._changed = Condition()

    def write(self, text: str) -> None:
        with self._changed:
            self._behind = self._behind or self._size > (_PICTURES if text.startswith(_PICTURE) else _FRAMES)
            if not (self._behind or self._ending):
                # Whatever the locale says, it is a terminal of today.
                self._waiting.append(text.encode("utf-8", "replace"))
                self._size += len(self._waiting[-1])
                self._changed.notify()

    def run(self) -> None:
        try:
            while (data := self._next()) is not None:
                self._send(data)
        except OSError:
            pass  # the terminal is gone, which whoever reads from it finds out as well
        finally:
            os.close(self._terminal)

    def stop(self) -> None:
        self.finished(10 * _LOOK)

    def finished(self, seconds: float) -> bool:
        """End it, once all has arrived or after so long; whether nothing was left out."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        self.join(seconds)
        self._given_up = True
        self.join(2 * _LOOK)
        return not (self._behind or self._size)

    def _next(self) -> bytes | None:
        with self._changed:
            while not self._waiting:
                if self._ending:
                    return None
                if self._behind:
                    self._behind = False
                    self.caught_up()
                self._changed.wait()
            return self._waiting.popleft()

    def _send(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            if self._given_up:
                raise BrokenPipeError
            try:
                sent = os.write(self._terminal, rest)
            except BlockingIOError:
                select.select((), (self._terminal,), (), _LOOK)
                continue
            rest = rest[sent:]
            with self._changed:
                self._size -= sent


def _opened(terminal: int) -> int:
    """The same terminal, such that writing to it does not wait, without changing that for others that have it open."""
    try:
        return os.open(os.ttyname(terminal), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # it has no name here, as in some containers
        return os.dup(terminal)
