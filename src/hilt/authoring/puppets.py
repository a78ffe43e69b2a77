"""The far end of an extension's pipes: a process that does what the player says, and its directory."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from hilt.authoring.streams import Stream
from hilt.errors import Departure
from hilt.model.extensions import Dialect
from hilt.wire.line import LINE_LIMIT

_PROGRAM = Path(__file__).with_name("puppet.py")


class Puppet:
    """One extension that is played."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.frames = Stream(f"the host, to {name}")
        self.lines: list[bytes] = []
        """As they came."""
        self.problem = ""
        """What was wrong with how the host spoke to it."""
        self._writer: asyncio.StreamWriter | None = None
        self._here = asyncio.Event()
        self._news: Callable[[], None] = lambda: None

    @asynccontextmanager
    async def playing(self, socket: Path, news: Callable[[], None]) -> AsyncIterator[None]:
        """Wait for the process to come, and leave it when the block ends."""
        self._news = news
        server = await asyncio.start_unix_server(self._meet, socket, limit=LINE_LIMIT)
        try:
            yield
        finally:
            self.leave()
            server.close()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._writer:
            self.problem = f"{self.name} was started twice"
            writer.close()
            return
        self._writer = writer
        self._here.set()
        try:
            while line := await reader.readline():
                self.lines.append(line)
                self.frames.put(_object(line))
                self._news()
        except (ValueError, msgspec.MsgspecError, ConnectionError) as error:
            self.problem = f"a line to {self.name} cannot be read: {error}"
        self.frames.end()

    async def say(self, text: bytes, patience: float) -> None:
        """Raises `Departure` when nobody has started it."""
        try:
            async with asyncio.timeout(patience):
                await self._here.wait()
                assert self._writer
                self._writer.write(text)
                await self._writer.drain()
        except TimeoutError:
            raise Departure(f"{self.name} was not started") from None
        except ConnectionError:
            raise Departure(f"{self.name} was ended by the host") from None

    async def heard_all(self, patience: float) -> None:
        """Wait until the host has closed the pipe."""
        try:
            async with asyncio.timeout(patience):
                await self.frames.over.wait()
        except TimeoutError:
            raise Departure(f"the pipe to {self.name} was not closed within {patience:g} s") from None
        if self.problem:
            raise Departure(self.problem)
        self.frames.check_rest()

    def answer(self, answer: Mapping[str, Any]) -> None:
        assert self._writer
        self._writer.write(json_line(answer))

    def leave(self) -> None:
        if self._writer:
            self._writer.close()


def write_puppet(folder: Path, name: str, socket: Path, dialect: Dialect, pipes: str) -> Path:
    """The directory of an extension of that name whose pipes lead to the socket."""
    directory = folder / name
    directory.mkdir(parents=True, exist_ok=True)
    if dialect == "frames":
        started = {"exec": sys.executable, "args": ["-I", "-S", str(_PROGRAM), str(socket)]}
        manifest = directory / "extension.json"
    else:
        # A program of this dialect has no arguments, but a name.
        entry = socket.with_suffix(".py")
        entry.symlink_to(_PROGRAM)
        started = {"runtime": sys.executable, "entry": str(entry), "pipes": pipes}
        manifest = directory / "manifest.yaml"  # what is JSON is YAML, too
    manifest.write_text(json.dumps({"name": name, "version": "1.0.0", **started}))
    os.chmod(directory, 0o700)  # noqa: PTH101 - a host may refuse what others could change
    return directory


def json_line(value: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def _object(line: bytes) -> dict[str, Any]:
    return msgspec.json.decode(line, type=dict[str, Any])
