"""Asking for a yes in a terminal, before something that cannot be taken back or that must be trusted.

Nothing but a yes that somebody typed after reading counts as one. What to ask, and what follows from the answer, is
left to whoever asks; so is `--yes`, without which nothing can be asked where there is no terminal.
"""

import os
import select
import signal
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from hilt.errors import UsageError
from hilt.frontends.terminal import MARK, visible

_DEAF = 0.3
"""Seconds after the question has appeared in which no key counts: it was meant for something else."""
_GOES_ON = "    > "
_NARROWEST = 20
_AWHILE = 0.5
_INTERRUPT = b"\x03"
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_INPUT, _LOCAL, _KEYS = 0, 3, 6  # where they stand in what tcgetattr gives


def ask(question: str, details: str = "") -> bool:
    """Show the details in full and wait for an answer: y or yes, and Enter. Everything else is a no.

    Blocks. Ctrl-C ends more than this one question: whoever would go on to the next one hears of it as
    `KeyboardInterrupt`.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"there is no terminal to ask in: {question}", hint="add --yes")
    keyboard = sys.stdin.fileno()
    with _as_it_was(keyboard) as before:
        termios.tcsetattr(keyboard, termios.TCSANOW, _silent(before))
        sys.stderr.write(_page(question, details) + " [y/N] ")
        sys.stderr.flush()
        time.sleep(_DEAF)
        termios.tcsetattr(keyboard, termios.TCSAFLUSH, _listening(before))  # and what was typed until now is dropped
        answer = _line(keyboard)
        if not answer.endswith(b"\n"):
            sys.stderr.write("\n")
        if answer.endswith(_INTERRUPT):
            raise KeyboardInterrupt
        return answer.lower() in (b"y\n", b"yes\n")


def _page(question: str, details: str) -> str:
    """The question after the details, each line of which is set off from what hilt itself says."""
    screen = os.get_terminal_size(sys.stderr.fileno())
    told = [f"  {line}" if line else "" for line in visible(details).split("\n")] if details else []
    lines = [row for line in told for row in _rows(line, screen.columns or 80)]
    if len(lines) >= (screen.lines or 24):
        # Whoever wrote them may count on it that only the end is looked at.
        lines.append(f"hilt {MARK} there are {len(lines)} lines above: scroll up to read all of them")
    return "\n".join([*lines, *(f"hilt {MARK} {line}" for line in visible(question).split("\n"))])


def _rows(line: str, columns: int) -> Iterator[str]:
    """What fits, and the rest with a mark before it: left to the terminal, it would begin where lines of ours do."""
    room, row = max(columns, _NARROWEST) - 1, ""
    for letter in line.expandtabs():
        # Nobody knows how wide a terminal draws what is not ASCII, but it is never wider than this.
        width = 1 if letter.isascii() else 2
        if width > room:
            yield row
            row, room = _GOES_ON, max(columns, _NARROWEST) - 1 - len(_GOES_ON)
        row, room = row + letter, room - width
    yield row


def _line(keyboard: int) -> bytes:
    """What was typed, with the key that ended it; nothing when the terminal is gone."""
    try:
        # A signal that comes just before a wait begins is only heard of at its end.
        while not select.select([keyboard], [], [], _AWHILE)[0]:
            pass
        return os.read(keyboard, 4096)
    except OSError:
        return b""


@contextmanager
def _as_it_was(keyboard: int) -> Iterator[list[Any]]:
    """The terminal's settings, put back however the block ends, also by a signal that asks this process to end."""
    before = termios.tcgetattr(keyboard)
    deadly = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in deadly:
        signal.signal(number, _end)
    try:
        yield before
    finally:
        try:
            termios.tcflush(keyboard, termios.TCIFLUSH)  # the rest of an arrow key is nothing for the shell
            termios.tcsetattr(keyboard, termios.TCSANOW, before)
        except termios.error:
            pass  # the terminal is gone
        for number in deadly:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _silent(before: list[Any]) -> list[Any]:
    """Nothing that is typed is shown, and no key is a signal."""
    settings = [*before[:_KEYS], [*before[_KEYS]]]
    settings[_LOCAL] &= ~(termios.ECHO | termios.ISIG)
    return settings


def _listening(before: list[Any]) -> list[Any]:
    """A line with the terminal's own editing, which Esc and Ctrl-C end too: so they need no Enter to be a no."""
    settings = _silent(before)
    settings[_INPUT] = settings[_INPUT] & ~termios.IGNCR | termios.ICRNL
    settings[_LOCAL] |= termios.ECHO | termios.ICANON | termios.IEXTEN
    settings[_KEYS][termios.VEOF] = b"\x04"
    settings[_KEYS][termios.VEOL] = b"\x1b"
    settings[_KEYS][termios.VEOL2] = _INTERRUPT
    return settings
