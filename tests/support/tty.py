"""A pseudo-terminal of the test's own, to compare how a program found it with how it left it.

Plays a modern terminal: it answers what programs ask it. It draws nothing; `support.screen` is for looking.
"""

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path
from types import TracebackType
from typing import Any, Self

DEADLINE = 45.0

_SHELL = """
import os, signal, sys
child = os.fork()
if not child:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv("/bin/sh", ["sh", "-c", '"$@"; exit $?', "sh", *sys.argv[1:]])
while True:
    status = os.waitpid(child, os.WUNTRACED)[1]
    if not os.WIFSTOPPED(status):
        sys.exit(os.waitstatus_to_exitcode(status) % 256)
    os.kill(os.getpid(), signal.SIGSTOP)
    os.killpg(child, signal.SIGCONT)
"""
"""Runs a program as a job, by way of another program, as `uv run` does. It stops when all of the job has, and goes on
with it."""

_MODE = re.compile(rb"\x1b\[\?([0-9;]+)([hl])")
_KEYBOARD = re.compile(rb"\x1b\[([<>])[0-9]*u")
_ASKED = re.compile(rb"\x1b\[\?([0-9]+)\$p")
_LONGEST_QUESTION = 16
_ON_FROM_THE_START = frozenset({7, 25})
"""Lines wrap, and the cursor is seen."""


class Tty:
    def __init__(
        self, command: Sequence[str | bytes], environment: Mapping[str, str], folder: Path, *, shell: bool = False
    ) -> None:
        """`shell`: there is one to go back to, so it can be suspended."""
        self._command: Sequence[str | bytes] = [sys.executable, "-c", _SHELL, *command] if shell else command
        self._environment, self._folder = dict(environment), folder
        self.output = b""
        self._begun = b""

    def __enter__(self) -> Self:
        self._master, self._slave = pty.openpty()
        ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self._slave)
        self.process = subprocess.Popen(
            self._command,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env={**self._environment, "TERM": "xterm-256color", "LANG": "C.UTF-8"},
            cwd=self._folder,
            start_new_session=True,
            preexec_fn=self._take_terminal,
        )
        return self

    def _take_terminal(self) -> None:
        ioctl(0, termios.TIOCSCTTY, 0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for descriptor in (self._master, self._slave):
            try:
                os.close(descriptor)
            except OSError:
                pass  # the test closed it

    def send(self, raw: bytes) -> None:
        os.write(self._master, raw)

    def hang_up(self) -> None:
        """As if the window was closed."""
        os.close(self._slave)
        os.close(self._master)

    def wait_for(self, text: bytes) -> None:
        deadline = time.monotonic() + DEADLINE
        while text not in self.output:
            assert self._read(deadline), f"waited in vain for {text!r}: {self.output[-2000:]!r}"

    def wait(self) -> int:
        """Until the program has ended; everything it wrote has been read then."""
        deadline = time.monotonic() + DEADLINE
        while self.process.poll() is None:
            self._read(min(deadline, time.monotonic() + 0.05))
            assert time.monotonic() < deadline, f"it goes on: {self.output[-2000:]!r}"
        while self._read(time.monotonic()):
            pass
        return self.process.returncode

    def wait_until_stopped(self) -> None:
        """Until it has suspended itself."""
        deadline = time.monotonic() + DEADLINE
        while os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is None:
            self._read(min(deadline, time.monotonic() + 0.05))
            assert time.monotonic() < deadline, "it was not suspended"
        while self._read(time.monotonic()):
            pass

    def kill_job(self) -> None:
        """What the shell runs, whole."""
        os.killpg(os.tcgetpgrp(self._master), signal.SIGKILL)
        self.signal(signal.SIGCONT)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    # What became of the terminal

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self._slave)

    def changed_modes(self) -> dict[int, bool]:
        """The terminal's modes that are not as they were in the beginning."""
        modes: dict[int, bool] = {}
        for numbers, switch in _MODE.findall(self.output):
            modes.update(dict.fromkeys(map(int, numbers.split(b";")), switch == b"h"))
        return {mode: on for mode, on in modes.items() if on != (mode in _ON_FROM_THE_START)}

    def keyboard_depth(self) -> int:
        """How many keyboard modes were put on top and not taken away again."""
        return sum(1 if way == b">" else -1 for way in _KEYBOARD.findall(self.output))

    def assert_as_found(self) -> None:
        assert self.settings() == self.before
        assert self.changed_modes() == {}
        assert self.keyboard_depth() == 0

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            return False
        try:
            piece = os.read(self._master, 65536)
        except OSError:
            return False
        self.output += piece
        self._answer(self._begun + piece)
        return bool(piece)

    def _answer(self, said: bytes) -> None:
        """A question may come in two pieces."""
        end = 0
        for asked in _ASKED.finditer(said):
            self.send(b"\x1b[?" + asked[1] + b";2$y")  # known, and off
            end = asked.end()
        self._begun = said[end:][-_LONGEST_QUESTION:]
