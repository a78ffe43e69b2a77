"""How `hilt ext dev` shows what it shows: the agent's answers, frames both ways, the extension's log, as they come.

Frames arrive through a pipe as lines of a trace, so they are masked and cut as in any other.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TextIO

import msgspec

from hilt.authoring.traces import Narrator, parsed
from hilt.extensions.trace_line import Secrets, Traced
from hilt.frontends.encode import event_json, json_line, public
from hilt.frontends.terminal import clean, json_for_stdout
from hilt.model.events import Event
from hilt.model.masking import Mask

_READ = 64 * 1024
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


class View:
    """Answers on stdout, all else on stderr; as JSON everything on stdout, a value a line. Nothing shows a secret."""

    def __init__(self, secrets: Secrets, *, as_json: bool, named: bool) -> None:
        """`named`: there are several extensions, so each frame is told with whose it is."""
        self._secrets = secrets
        self._as_json = as_json
        self._named = named
        self._colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")

    def answer(self, text: str) -> None:
        if text and not self._as_json:  # there it is among the events
            shown = self._secrets.hide(clean(text))
            _write(sys.stdout, shown if shown.endswith("\n") else f"{shown}\n")

    def say(self, text: str) -> None:
        _write(sys.stderr, clean(self._secrets.hide(text)) + "\n")

    def frame(self, text: str, traced: Traced) -> None:
        if self._as_json:
            self._value({"type": "frame", **msgspec.to_builtins(traced)})
        else:
            self._aside(f"{traced.extension}: {text}" if self._named else text)

    def log(self, line: str) -> None:
        if self._as_json:
            self._value({"type": "log", "line": line})
        else:
            self._aside(f"       log  {line}")

    async def event(self, event: Event) -> None:
        if public(event):
            self._value(event_json(event))

    def _aside(self, text: str) -> None:
        shown = clean(self._secrets.hide(text))
        _write(sys.stderr, f"{_DIM}{shown}{_PLAIN}\n" if self._colour else f"{shown}\n")

    def _value(self, value: object) -> None:
        line = self._secrets.hide(json_for_stdout(json_line(value)).decode())
        _write(sys.stdout, f"{line}\n")


class Hiding(Mask):
    """For those who know of masks alone: hides also what only looks like a secret."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self._all = secrets

    def text(self, text: str) -> str:
        return self._all.hide(text)


def _write(out: TextIO, text: str) -> None:
    try:
        # A terminal without the character must not cost the line.
        out.write(text.encode(out.encoding, "replace").decode(out.encoding))
        out.flush()
    except OSError:
        pass  # nobody reads any more; the extension is still to be stopped in order


class Frames:
    """A named pipe for a trace. What passes through it is shown; the trace waits while nobody has read it."""

    def __init__(self, path: Path, show: Callable[[str, Traced], None]) -> None:
        self.path = path
        self._show = show
        self._narrator = Narrator()
        self._rest = b""

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """From before the trace is begun until after its end."""
        os.mkfifo(self.path, 0o600)
        # For both directions, so that it has no end before the trace has come and after it has gone.
        fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        loop = asyncio.get_running_loop()
        loop.add_reader(fd, self._read, fd)
        try:
            yield
        finally:
            loop.remove_reader(fd)
            while self._read(fd):
                pass
            os.close(fd)

    def _read(self, fd: int) -> bool:
        try:
            data = os.read(fd, _READ)
        except BlockingIOError:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            traced = parsed(line, "the trace")
            self._show(self._narrator.tell(traced), traced)
        return True
