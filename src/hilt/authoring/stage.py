"""One extension on a stage: started as hilt starts it, and talked to line by line by whoever plays the host.

    async with started(Path("weather"), cwd=Path.cwd()) as actor:
        offered = await greet(actor)
        actor.send({"type": "tool_call", "id": "1", "name": "weather", "args": {"city": "Rome"}})
        line = await actor.receive(5.0)

Owns the process and its lines, of either dialect. What the lines mean is for others: the opening is `greeting`'s
business. What it keeps (data, log) lies in a directory of its own that goes with it, so that no trial leaves a trace.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from hilt.authoring.values import DEEPEST, Value, is_deeper
from hilt.extensions.agent import Places
from hilt.extensions.launching import Launch
from hilt.model.extensions import Dialect
from hilt.packages.arrangement import pipes_of
from hilt.packages.choices import Choices
from hilt.packages.discovery import Found, find_at
from hilt.providers.vendors import KEYS
from hilt.transport.lines import TooLong
from hilt.transport.process import Child, Exit
from hilt.transport.process import started as running

_WAITING = 4096
_ROOM = 8 * 1024 * 1024
"""Lines that may wait to be received, and characters in them; beyond either nothing is read, which the extension
notices by a full pipe."""
_LAST = 0.5
"""Seconds in which what was written before an exit is read."""
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Line(Struct, frozen=True):
    """What the extension wrote between two line ends."""

    text: str
    """As it stands; of one that is too long, its beginning."""
    at: float
    """Seconds since it was started."""
    value: Value | None = None
    """What it says, when it is a JSON object."""
    problem: str = ""
    """Why it has no value."""


class Actor:
    """A running extension, as seen by the host."""

    def __init__(self, found: Found, child: Child, cwd: Path, data: Path) -> None:
        self.found = found
        self.cwd = cwd
        """Where the agent would work."""
        self.data = data
        """Where it may keep things."""
        self._child = child
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._waiting: deque[Line] = deque()
        self._size = 0
        """Characters that wait."""
        self._full = False
        self.heard = 0
        """Characters of all that was received: whoever keeps it must not do so without end."""
        self._news = asyncio.Event()
        self._ended = False
        child.channel.listen(self)

    @property
    def name(self) -> str:
        return self.found.name

    @property
    def dialect(self) -> Dialect:
        return self.found.manifest.dialect

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def exit(self) -> Exit | None:
        """How it ended, once it has."""
        return self._child.exit

    @property
    def ending(self) -> str:
        """The same in words, as in: it `exited with code 1`."""
        exit_ = self._child.exit
        return f"was {exit_}" if exit_ and exit_.signal else str(exit_ or "")

    @property
    def now(self) -> float:
        """Seconds since it was started."""
        return self._loop.time() - self._began

    @property
    def waiting(self) -> int:
        """Lines that came and were not received yet."""
        return len(self._waiting)

    # Talking to it

    def send(self, value: Mapping[str, Any]) -> None:
        """Write one frame or message. Raises `ChannelClosed`, `ChannelFull`, `LineTooLong`."""
        self._child.channel.send(msgspec.json.encode(value))

    def send_raw(self, line: bytes) -> None:
        """Write a line as it stands; its end is added. Raises as `send` does."""
        self._child.channel.send(line)

    async def close_input(self) -> None:
        """It hears nothing more from here on."""
        await self._child.channel.finish()

    async def receive(self, timeout: float) -> Line | None:
        """The next line it wrote; None once it has closed its output and all was received. Raises `TimeoutError`."""
        async with asyncio.timeout(timeout):
            while not self._waiting:
                if self._ended:
                    return None
                self._news.clear()
                await self._news.wait()
        line = self._waiting.popleft()
        self._size -= len(line.text)
        self.heard += len(line.text)
        if self._full and not self._is_full():
            self._full = False
            if not self._ended:
                self._child.channel.resume()
        return line

    async def exited(self, timeout: float) -> Exit:
        """Wait for its end, and read what it said before. Raises `TimeoutError`."""
        async with asyncio.timeout(timeout):
            exit_ = await self._child.exited()
        await self._child.channel.drain(_LAST)
        self.ended()
        return exit_

    def log(self) -> list[str]:
        """The last lines it wrote to stderr, oldest first, as it wrote them."""
        return self._child.last_words()

    def complaints(self) -> str:
        """The end of what it wrote to stderr, as much as is kept: 16 KiB."""
        return self._child.complaints()

    # What the channel tells

    def line(self, line: bytes) -> None:
        self._put(_read(line, self.now))

    def overlong(self, line: TooLong) -> None:
        self._put(Line(line.head.decode(errors="replace"), self.now, None, f"a line of {line.size:,} bytes"))

    def ended(self) -> None:
        self._ended = True
        self._news.set()

    def broken(self) -> None:
        """Whoever sends the next line is told."""

    def stalled(self) -> None:
        """Whoever waits for an answer has a deadline."""

    def _put(self, line: Line) -> None:
        self._waiting.append(line)
        self._size += len(line.text)
        self._news.set()
        if not self._full and self._is_full():
            self._full = True
            self._child.channel.pause()

    def _is_full(self) -> bool:
        return len(self._waiting) >= _WAITING or self._size >= _ROOM


@asynccontextmanager
async def started(
    path: Path,
    cwd: Path | None = None,
    *,
    choices: Mapping[str, Choices] = MappingProxyType({}),
    more: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Actor]:
    """Run the extension at a path, a directory or a file as `--ext` takes it, for as long as the block.

    `cwd` is where the agent works; without one it is an empty directory. `more` is added to its environment. Raises
    `ManifestError`, `StartError`.
    """
    with TemporaryDirectory(prefix="hilt-stage-", ignore_cleanup_errors=True) as scratch:
        root = Path(scratch)
        workplace = cwd or root / "project"
        workplace.mkdir(exist_ok=True)
        found = find(path, cwd or Path.cwd(), choices)
        data = root / "data" / found.name
        data.mkdir(parents=True, mode=0o700)
        places = Places(root, root / "logs", root / "data", root / "outputs")
        launch = Launch.of(found, places, workplace, KEYS)
        async with running(launch.spec(pipes_of(found.manifest, found.directory), "stage", more=more)) as child:
            yield Actor(found, child, workplace, data)


def find(path: Path, cwd: Path, choices: Mapping[str, Choices] = MappingProxyType({})) -> Found:
    """What is at the path. Raises `ManifestError`."""
    return find_at(cwd / path, os.environ.get("PATH", os.defpath), choices)


def _read(line: bytes, at: float) -> Line:
    text = line.decode(errors="replace")
    try:
        value = msgspec.json.decode(line)
    except _UNREADABLE as error:
        return Line(text, at, None, "nested too deeply" if isinstance(error, RecursionError) else str(error))
    if not isinstance(value, dict):
        return Line(text, at, None, "JSON, but no object")
    if line.count(b"[") + line.count(b"{") > DEEPEST and is_deeper(value, DEEPEST):
        return Line(text, at, None, f"nested more than {DEEPEST} deep")
    return Line(text, at, value)
