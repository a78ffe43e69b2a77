"""A program on a terminal of its own, of which every byte is read at once."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

COLUMNS, ROWS = 100, 30
_DEADLINE = 300.0
_KEPT = 4096


class OnTerminal:
    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        # Users have bytecode; a development machine that forbids writing it would measure the compiler.
        environment = {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
        pid, self._fd = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.chdir(folder)
            os.execve(argv[0], list(argv), {**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"})
        self._pid = pid
        self.seen = b""
        """The end of what it wrote."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._fd)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def shows(self, text: str, patience: float = _DEADLINE) -> bool:
        """Read until this is written; False if it is not, or the program ends before."""
        wanted, deadline = text.encode(), time.monotonic() + patience
        self.seen = self.seen[-_KEPT:]
        while wanted not in self.seen:
            if not self._read(deadline - time.monotonic()):
                return False
        return True

    def reads(self, seconds: float) -> None:
        """For so long."""
        deadline = time.monotonic() + seconds
        while self._read(deadline - time.monotonic()):
            self.seen = self.seen[-_KEPT:]

    def ends(self) -> None:
        """Read until it does."""
        self.reads(_DEADLINE)

    def _read(self, patience: float) -> bool:
        if not select.select([self._fd], [], [], max(patience, 0))[0]:
            return False
        try:
            data = os.read(self._fd, 65_536)
        except OSError:  # what Linux says when nobody holds the other side any more
            return False
        self.seen += data
        return bool(data)
