"""The baseline: the least a host in Python can do, one reader callback and one future for each answer.

No deadlines, no caps, no checks, no recovery. Programs are started one after the other, interceptors are asked
one after the other, an event is written to one subscriber after the other.
"""

import asyncio
import itertools
import os
import subprocess
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any, TypeAlias

import msgspec
from hosts import Args
from msgspec import Struct
from programs import Program

_DEADLINE = 30.0
_ACKNOWLEDGEMENT = b'{"type":"hello_ack","protocol_version":1,"zot_version":"0","provider":"","model":"","cwd":"/"}\n'


class Hello(Struct, tag_field="type", tag="hello"): ...


class RegisterTool(Struct, tag_field="type", tag="register_tool"): ...


class Ready(Struct, tag_field="type", tag="ready"): ...


class Subscribe(Struct, tag_field="type", tag="subscribe"):
    events: list[str] = []
    intercept: list[str] = []


class Text(Struct):
    text: str


class ToolCall(Struct, tag_field="type", tag="tool_call"):
    id: str
    name: str
    args: Args


class ToolResult(Struct, tag_field="type", tag="tool_result"):
    id: str
    content: list[Text]
    structured_content: Any = None


class Intercept(Struct, tag_field="type", tag="event_intercept"):
    id: str
    event: str
    tool_name: str
    tool_args: Args


class Verdict(Struct, tag_field="type", tag="event_intercept_response"):
    id: str
    modified_args: Args | None = None


class Event(Struct, tag_field="type", tag="event"):
    event: str
    step: int


_encode = msgspec.json.Encoder().encode
_Frame: TypeAlias = Hello | RegisterTool | Ready | Subscribe | ToolResult | Verdict
_decode = msgspec.json.Decoder(_Frame).decode


class Extension:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin and process.stdout
        self._write, self._read = process.stdin.fileno(), process.stdout.fileno()
        self._loop = asyncio.get_running_loop()
        self._ids = itertools.count(1)
        self._pending: dict[str, asyncio.Future[Any]] = {}
        self._pieces: list[bytes] = []
        self._backlog: deque[bytes] = deque()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self.observes = self.intercepts = False
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._loop.add_reader(self._read, self._on_readable)
        self.send(_ACKNOWLEDGEMENT)

    async def call(self, tool: str, args: Args) -> str:
        id = str(next(self._ids))  # noqa: A001  # what it is
        result: ToolResult = await self._request(id, ToolCall(id, tool, args))
        return result.content[0].text

    async def ask(self, args: Args) -> Args | None:
        id = str(next(self._ids))  # noqa: A001  # what it is
        verdict: Verdict = await self._request(id, Intercept(id, "tool_call", "echo", args))
        return verdict.modified_args

    def send(self, line: bytes) -> None:
        if self._backlog:
            self._backlog.append(line)
            return
        try:
            written = os.write(self._write, line)
        except BlockingIOError:
            written = 0
        if written < len(line):
            self._backlog.append(line[written:])
            self._loop.add_writer(self._write, self._on_writable)

    def close(self) -> None:
        self._loop.remove_reader(self._read)
        self._loop.remove_writer(self._write)

    def _request(self, id: str, frame: ToolCall | Intercept) -> "asyncio.Future[Any]":  # noqa: A002
        future = self._pending[id] = self._loop.create_future()
        self.send(_encode(frame) + b"\n")
        return future

    def _on_readable(self) -> None:
        data = os.read(self._read, 65536)
        if not data:
            self._lose()
            return
        *ends, rest = data.split(b"\n")
        for end in ends:
            line = b"".join((*self._pieces, end)) if self._pieces else end
            self._pieces.clear()
            self._take(_decode(line))
        if rest:
            self._pieces.append(rest)

    def _take(self, frame: _Frame) -> None:
        match frame:
            case ToolResult() | Verdict():
                self._pending.pop(frame.id).set_result(frame)
            case Subscribe():
                self.observes |= bool(frame.events)
                self.intercepts |= bool(frame.intercept)
            case Ready():
                self.ready.set_result(None)
            case Hello() | RegisterTool():
                pass

    def _lose(self) -> None:
        self._loop.remove_reader(self._read)
        for future in (self.ready, *self._pending.values()):
            if not future.done():
                future.set_exception(EOFError("the extension is gone"))

    def _on_writable(self) -> None:
        while self._backlog:
            try:
                written = os.write(self._write, self._backlog[0])
            except BlockingIOError:
                return
            line = self._backlog.popleft()
            if written < len(line):
                self._backlog.appendleft(line[written:])
        self._loop.remove_writer(self._write)


class Prototype:
    def __init__(self, extensions: dict[str, Extension]) -> None:
        self._extensions = extensions
        self._observers = [extension for extension in extensions.values() if extension.observes]
        self._interceptors = [extension for extension in extensions.values() if extension.intercepts]

    async def call(self, tool: str, args: Args) -> str:
        return await self._extensions[tool].call(tool, args)

    async def intercept(self, args: Args) -> Args:
        for interceptor in self._interceptors:
            args = await interceptor.ask(args) or args
        return args

    async def emit(self, step: int) -> None:
        line = _encode(Event("turn_start", step)) + b"\n"
        for observer in self._observers:
            observer.send(line)

    def lost(self) -> int:
        return 0  # whatever cannot be written waits, without a limit


@asynccontextmanager
async def opened(programs: Sequence[Program]) -> AsyncIterator[Prototype]:
    with ExitStack() as stack:
        extensions = {}
        for program in programs:
            process = subprocess.Popen(program.argv, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: ASYNC220
            stack.enter_context(process)
            stack.callback(_end, process)
            extensions[program.name] = extension = Extension(process)
            stack.callback(extension.close)
        async with asyncio.timeout(_DEADLINE):
            for extension in extensions.values():
                await extension.ready
        yield Prototype(extensions)


def _end(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin
    process.stdin.close()  # it leaves when it hears that, unless it does not listen
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        process.kill()
