"""A real terminal, in which the real `hilt` runs: a private tmux server. Every wait has a deadline.

with Terminal(hilt.command(), hilt.environment, hilt.project) as terminal:
    terminal.wait_for("Ask anything")
    terminal.type("hello")
    terminal.press("Enter")
    terminal.wait_for("hi there")
"""

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

DEADLINE = 45.0
_LOOK = 0.03
"""Seconds between two looks at the screen: tmux cannot say that it has changed."""
_LOOKS = 5

_TRIES, _PATIENCE = 30, 0.5

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """A shell runs in it, which runs the program and then tells its exit code, so that what it left can be seen."""

    def __init__(
        self,
        command: Sequence[str | bytes],
        environment: Mapping[str, str],
        folder: Path,
        *,
        columns: int = 80,
        rows: int = 24,
        shell: str = "",
    ) -> None:
        """`shell` is run in place of the program, when given; the program is `$PROGRAM` in it."""
        self._socket = str(folder.parent / f"tmux-{os.urandom(4).hex()}")
        program = shlex.join([part if isinstance(part, str) else os.fsdecode(part) for part in command])
        self._script = shell or f'{program}; echo "left with $?"; exec cat'
        self._environment = {
            **environment,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "PROGRAM": program,
            "PS1": "$ ",
            "LANG": "C.UTF-8",
        }
        self._folder = folder
        self._size = (columns, rows)

    def __enter__(self) -> Self:
        columns, rows = self._size
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), self._script)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, AssertionError):
            error.add_note("the screen:\n" + "\n".join(self.screen()))
        self._tmux("kill-server", check=False)

    # What a person does

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """By tmux's names: `Enter`, `Escape`, `C-c`, `BTab`, `Up`, `M-b`."""
        self._tmux("send-keys", *keys)

    def press_until(self, key: str, text: str) -> str:
        """A key again and again, with pauses: there is no sign of when it begins to count."""
        for _ in range(_TRIES):
            self.press(key)
            try:
                return self.wait_for(text, _PATIENCE)
            except AssertionError:
                continue
        raise AssertionError(f"pressed {key} {_TRIES} times for {text!r}")

    def send(self, raw: bytes) -> None:
        """Bytes as a terminal would send them."""
        self._tmux("send-keys", "-H", *(f"{byte:02x}" for byte in raw))

    def paste(self, text: str) -> None:
        """In brackets, if the program wants that."""
        self._tmux("load-buffer", "-", given=text)
        self._tmux("paste-buffer", "-p", "-r")

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    # What a person sees

    def screen(self, *, colours: bool = False) -> list[str]:
        shown = self._tmux("capture-pane", "-p", *(["-e"] if colours else []), check=False)
        return [line.rstrip() for line in shown.split("\n")]

    @property
    def text(self) -> str:
        return "\n".join(self.screen())

    def wait_for(self, text: str, timeout: float = DEADLINE) -> str:
        """Until this stands on the screen."""
        return self.wait_until(lambda screen: text in screen, repr(text), timeout)

    def wait_until_gone(self, text: str, timeout: float = DEADLINE) -> str:
        return self.wait_until(lambda screen: text not in screen, f"{text!r} to be gone", timeout)

    def wait_until(self, holds: Callable[[str], bool], what: str, timeout: float = DEADLINE) -> str:
        deadline = time.monotonic() + timeout
        while not holds(screen := self.text):
            assert time.monotonic() < deadline, f"waited {timeout:g} s for {what}"
            time.sleep(_LOOK)
        return self._settled(screen, holds)

    def _settled(self, screen: str, holds: Callable[[str], bool]) -> str:
        """The same once all of it has been drawn: half of a frame may have been seen. What moves is not waited for."""
        for _ in range(_LOOKS):
            time.sleep(_LOOK)
            if (later := self.text) == screen or not holds(later):
                break
            screen = later
        return screen

    # What the terminal is like

    def asked(self, *formats: str) -> list[str]:
        """What tmux knows of the pane, such as `#{alternate_on}`, `#{cursor_flag}`, `#{pane_pid}`."""
        told = self._tmux("display-message", "-p", "\n".join(formats))
        return told.rstrip("\n").split("\n")

    def _tmux(self, *arguments: str, check: bool = True, given: str | None = None) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, *arguments],
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DEADLINE,
            env=self._environment,
            cwd=self._folder,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout
