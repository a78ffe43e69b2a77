"""`hilt rpc`: commands in, responses and events out, one JSON object a line.

Every line gets a response, also one that makes no sense; nothing a client sends ends the
process but the end of its input or a wrong token. Commands are done in the order of their lines,
but for those that only look or that steer what runs.
"""

import asyncio
import logging
from typing import Any

import msgspec

from hilt.agent.session import Session
from hilt.errors import HiltError, ServiceFault, UsageError
from hilt.frontends.asides import Asides
from hilt.frontends.encode import event_json, json_line, public
from hilt.frontends.masked import Masked
from hilt.frontends.rpc_commands import COMMANDS, Later, Order, Reply, RpcCommand, RpcParts, Services, taken
from hilt.frontends.rpc_feed import Feed
from hilt.frontends.rpc_requests import Envelope
from hilt.frontends.terminal import json_for_stdout
from hilt.model.actions import Action
from hilt.model.events import Event
from hilt.transport.lines import TooLong
from hilt.transport.stdio import LineWriter, read_lines

log = logging.getLogger(__name__)

LINE_LIMIT = 16 * 1024 * 1024
_QUEUED = 64
_BESIDE, _BESIDE_QUEUED = 32, 224
"""Commands that run beside the others at once, and that wait until they can."""
_PATIENCE = 60.0
"""Seconds without a byte taken, after the end of its input, until a client counts as gone."""


class RpcServer:
    def __init__(self, parts: RpcParts, writer: LineWriter) -> None:
        self.parts = parts
        self._writer = writer
        self._masked = Masked(parts.mask)
        self._trusted = not parts.token
        self._refused = False
        self._hung_up = False
        self._queue: asyncio.Queue[RpcCall] = asyncio.Queue(_QUEUED)
        self._at_work = False
        self._feed = Feed(self._line)
        self._services: Services | None = None
        self._beside: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_BESIDE)

    async def serve(self) -> str:
        """Answer until the input ends and the work is done. What went wrong, if anything did."""
        session = self.parts.session
        self._writer.when_broken = self._nobody_reads
        async with session.bus.faced(self._show, Asides(self.parts.mask, notes=False)):
            async with asyncio.TaskGroup() as group:
                workers = [group.create_task(self._work(), name="rpc commands")]
                workers.append(group.create_task(self._feed.run(self._writer.send), name="rpc topics"))
                async with asyncio.TaskGroup() as beside:
                    async for line in read_lines(0, LINE_LIMIT):
                        await self._take(line, beside)
                        if self._refused or self._writer.broken:
                            break
                    self.parts.questions.close()
                    if self._writer.broken:
                        self._nobody_reads()  # also what was begun since
                    await self._queue.join()
                if self._services:
                    self._services.leave()
                for worker in workers:
                    worker.cancel()
            await session.at_rest()
        read = await self._writer.flush(_PATIENCE)
        if self._refused:
            return "bad auth token"
        return "" if read else f"the client did not read the last lines for {_PATIENCE:.0f} s; they are lost"

    @property
    def services(self) -> Services:
        if self.parts.serve is None:
            raise UsageError("the services of the host are not to be had here")
        self._services = self._services or self.parts.serve(self._feed.deliver)
        return self._services

    async def respond(
        self, command: str, id_: str | None, data: Reply = None, error: str = "", code: int | None = None
    ) -> None:
        response: dict[str, Any] = {"type": "response", "command": command, "success": not error}
        if id_ is not None:
            response["id"] = id_
        if data is not None:
            response["data"] = data
        if error:
            response["error"] = error
        if code is not None:
            response["code"] = code
        await self._send(response)

    def authenticate(self, token: str) -> None:
        import hmac  # 3 ms, and only for clients that authenticate

        expected = self.parts.token.encode("utf-8", "surrogateescape")
        if not self._trusted and not hmac.compare_digest(token.encode(), expected):
            self._refused = True
            raise UsageError("invalid token")
        self._trusted = True

    async def _show(self, event: Event) -> None:
        if public(event):
            await self._send(*map(event_json, self._masked.show(event)))
        if self._writer.broken and not self._hung_up:
            self._hung_up = True  # nobody reads any more: stop spending
            await self.parts.session.take_back()
            self.parts.session.abort()

    async def _send(self, *values: dict[str, Any]) -> None:
        # At one go: an event must not be lost when its sender is cancelled behind the text released for it.
        if lines := [self._line(value) for value in values]:
            await self._writer.send(b"\n".join(lines))

    def _line(self, value: dict[str, Any]) -> bytes:
        return json_for_stdout(self.parts.mask.line(json_line(value)))

    def _nobody_reads(self) -> None:
        self.parts.questions.close()  # who cannot see what is asked cannot answer
        self.parts.session.abort()
        for task in self._beside:
            task.cancel()

    async def _take(self, line: bytes | TooLong, beside: asyncio.TaskGroup) -> None:
        if isinstance(line, TooLong):
            await self.respond("", None, error=f"line too long: {line.size} bytes, at most {LINE_LIMIT} are read")
            return
        if not line.strip():
            return
        try:
            envelope = msgspec.json.decode(line, type=Envelope)
        except (ValueError, RecursionError) as error:
            await self.respond("", None, error=f"malformed json: {error}")
            return
        call = self._understood(envelope, line)
        if isinstance(call, str):
            await self.respond(envelope.type, envelope.id, error=call)
        elif call.command.order is Order.NOW or (call.command.order is Order.QUICK and self._caught_up):
            await self._answer(call)
        elif call.command.order is Order.BESIDE:
            await self._begin(call, beside)
        elif self._queue.full():
            await self.respond(envelope.type, envelope.id, error=f"{_QUEUED} commands are already waiting")
        else:
            self._queue.put_nowait(call)

    async def _begin(self, call: "RpcCall", beside: asyncio.TaskGroup) -> None:
        if len(self._beside) >= _BESIDE + _BESIDE_QUEUED:
            await call.fail(f"{len(self._beside)} commands of this kind are already being done")
            return
        task = beside.create_task(self._answer_beside(call), name=f"rpc {call.envelope.type}")
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _answer_beside(self, call: "RpcCall") -> None:
        async with self._room:
            await self._answer(call)

    @property
    def _caught_up(self) -> bool:
        return self._queue.empty() and not self._at_work

    def _understood(self, envelope: Envelope, line: bytes) -> "RpcCall | str":
        """The command that a line stands for, or what is wrong with it."""
        if not self._trusted and envelope.type != "hello":
            return "auth required: send hello with token first"
        command = COMMANDS.get(envelope.type)
        if command is None:
            return "unknown command"
        try:
            return RpcCall(self, envelope, command, msgspec.json.decode(line, type=command.fields))
        except (ValueError, RecursionError) as error:
            return f"malformed {envelope.type}: {error}"

    async def _work(self) -> None:
        while True:
            call = await self._queue.get()
            self._at_work = True
            try:
                await self._answer(call)
            finally:
                self._at_work = False
                self._queue.task_done()

    async def _answer(self, call: "RpcCall") -> None:
        try:
            reply = await call.command.do(call)
        except HiltError as error:
            await call.failed(error)
        except Exception as error:
            # One command that fails in a way nobody foresaw must not end the client's session.
            log.exception("rpc command %s failed", call.envelope.type)
            await call.fail(f"internal error: {type(error).__name__}: {error}")
        else:
            if not isinstance(reply, Later):
                await self.respond(call.envelope.type, call.envelope.id, reply)


class RpcCall:
    """One line being answered, and whoever waits for the job it asks for."""

    def __init__(self, server: RpcServer, envelope: Envelope, command: RpcCommand, request: Any) -> None:
        self.parts = server.parts
        self.envelope = envelope
        self.command = command
        self.request = request
        self._server = server

    @property
    def session(self) -> Session:
        return self.parts.session

    @property
    def services(self) -> Services:
        return self._server.services

    def authenticate(self, token: str) -> None:
        self._server.authenticate(token)

    async def started(self) -> None:
        """The response to a prompt, sent when its turn comes and before its first event."""
        await self._server.respond(self.envelope.type, self.envelope.id, {"started": True})

    async def ran(self, actions: tuple[Action, ...]) -> None:
        """The response to a command that had to wait."""
        await self._server.respond(self.envelope.type, self.envelope.id, taken(actions))

    async def withdrawn(self) -> None:
        await self.fail("taken back before it started")

    async def failed(self, error: HiltError) -> None:
        code = error.code if isinstance(error, ServiceFault) else None
        await self.fail(f"{error.message} ({error.hint})" if error.hint else error.message, code)

    async def fail(self, error: str, code: int | None = None) -> None:
        await self._server.respond(self.envelope.type, self.envelope.id, error=error, code=code)
