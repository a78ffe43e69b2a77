"""A real HTTP/1.1 server on loopback that answers from a script, byte by byte if asked.

    async with ApiServer(Reply.sse('data: {"a":1}\\n\\n', Pause(0.1), 'data: [DONE]\\n\\n')) as server:
        ...  # talk to server.url
    assert server.requests[0].json["model"] == "m"

Replies are used in order, the last one again and again. Every request is recorded.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

WAIT_SECONDS = 30.0
"""No wait of the server, or of a test for it, is longer."""


@dataclass(frozen=True)
class Pause:
    """Send nothing for a while."""

    seconds: float


@dataclass(frozen=True)
class Hold:
    """Send nothing more until the client leaves."""


@dataclass(frozen=True)
class Abort:
    """Reset the connection without finishing."""


Step: TypeAlias = bytes | str | Pause | Hold | Abort


@dataclass(frozen=True)
class Reply:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()

    @classmethod
    def silence(cls) -> "Reply":
        """Not even a status."""
        return cls(0, {}, (Hold(),))

    @classmethod
    def sse(cls, *steps: Step, headers: Mapping[str, str] | None = None) -> "Reply":
        return cls(200, {"content-type": "text/event-stream", **(headers or {})}, steps)

    @classmethod
    def json(cls, status: int, body: Any, headers: Mapping[str, str] | None = None) -> "Reply":
        return cls(status, {"content-type": "application/json", **(headers or {})}, (json.dumps(body),))

    def one_byte_at_a_time(self) -> "Reply":
        data = (step.encode() if isinstance(step, str) else step for step in self.steps)
        whole = b"".join(step for step in data if isinstance(step, bytes))
        return Reply(self.status, self.headers, tuple(bytes((byte,)) for byte in whole))


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def events(*bodies: Any) -> str:
    """Data-only events, one per JSON value."""
    return "".join(f"data: {json.dumps(body)}\n\n" for body in bodies)


def typed_events(*bodies: dict[str, Any]) -> str:
    """Events that carry their type twice, as some vendors send them."""
    return "".join(f"event: {body['type']}\ndata: {json.dumps(body)}\n\n" for body in bodies)


class ApiServer:
    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.requests: list[Seen] = []
        self.url = ""
        self.connections = 0
        self.started = asyncio.Event()
        """The first byte of a body has been sent, or a Hold has been reached."""
        self.client_left = asyncio.Event()
        """A client closed its side while a reply was still being sent."""
        self._server: asyncio.Server | None = None
        self._handlers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def __aenter__(self) -> "ApiServer":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task, writer in self._handlers.items():
            writer.transport.abort()
            task.cancel()
        if self._handlers:
            await asyncio.wait(self._handlers, timeout=WAIT_SECONDS)

    async def wait(self, event: asyncio.Event) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            await event.wait()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._handlers[task] = writer

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            async with asyncio.timeout(WAIT_SECONDS * 3):
                while (seen := await _request(reader, number)) is not None:
                    self.requests.append(seen)
                    await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass
        finally:
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if reply.status:
            await self._head(reply, writer)
        async with _watching(reader, self.client_left) as left:
            for step in reply.steps:
                await self._step(step, writer, left)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _head(self, reply: Reply, writer: asyncio.StreamWriter) -> None:
        head = {"transfer-encoding": "chunked", **reply.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        writer.write(f"HTTP/1.1 {reply.status} Scripted\r\n{lines}\r\n".encode())
        await writer.drain()

    async def _step(self, step: Step, writer: asyncio.StreamWriter, left: asyncio.Event) -> None:
        match step:
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Hold():
                self.started.set()
                await self.wait(left)
                raise ConnectionResetError
            case Abort():
                writer.transport.abort()
                raise ConnectionResetError
            case _:
                data = step.encode() if isinstance(step, str) else step
                if data:
                    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                    await writer.drain()
                    self.started.set()


@asynccontextmanager
async def _watching(reader: asyncio.StreamReader, left: asyncio.Event) -> AsyncIterator[asyncio.Event]:
    """Notice the client's leaving while something is being sent. Clients do not pipeline here."""

    async def watch() -> None:
        if await reader.read(1) == b"":
            left.set()

    task = asyncio.create_task(watch())
    try:
        yield left
    finally:
        task.cancel()
        try:
            await task
        except (asyncio.CancelledError, ConnectionError):
            if not task.cancelled():
                left.set()


async def _request(reader: asyncio.StreamReader, connection: int) -> Seen | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(method, target, headers, body, connection)
