"""`hilt rpc`: commands in, responses and events out, one JSON object a line.

Every line gets a response, also one that makes no sense; nothing a client sends ends the
process but the end of its input or a wrong token.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from hilt import __version__
from hilt.agent.compaction import estimated_tokens
from hilt.agent.session import Job, Session
from hilt.errors import HiltError, UsageError
from hilt.frontends.encode import event_json, json_line, message_json, usage_json
from hilt.frontends.rpc_approver import RpcApprover
from hilt.frontends.rpc_requests import (
    CommandRequest,
    Envelope,
    Hello,
    InputRequest,
    Nothing,
    PromptRequest,
    SessionsRequest,
    SetModel,
    UiResponse,
)
from hilt.model.actions import Action, Clear, Noop, SwitchModel
from hilt.model.content import Text
from hilt.model.conversation import UserMessage, now, user_text
from hilt.model.events import Event
from hilt.model.masking import Mask
from hilt.model.models import ModelInfo
from hilt.sessions.store import SessionStore
from hilt.sessions.tree import plain, tree_of
from hilt.transport.lines import TooLong
from hilt.transport.stdio import LineWriter, read_lines

log = logging.getLogger(__name__)

LINE_LIMIT = 16 * 1024 * 1024
_IN_FLIGHT = 64
_FLUSH = 10.0

Reply: TypeAlias = dict[str, Any] | None
Handler: TypeAlias = Callable[["Call"], Awaitable["Reply | Later"]]


class Later:
    """The response is sent when the work starts, by whoever does it."""


LATER = Later()


class RpcParts(Struct, frozen=True):
    session: Session
    approver: RpcApprover
    models: Callable[[], list[ModelInfo]]
    store: SessionStore
    mask: Mask
    token: str = ""
    """When set, nothing but `hello` is heard before it has been given."""


class RpcServer:
    def __init__(self, parts: RpcParts, writer: LineWriter) -> None:
        self.parts = parts
        self.session = parts.session
        self._writer = writer
        self._trusted = not parts.token
        self._refused = False
        self._hung_up = False
        self._tasks = 0
        self._waiting: list[tuple[Call, Job]] = []
        """Prompts and compactions whose response is still due."""

    async def serve(self) -> bool:
        """Answer until the input ends and the work is done. False when the token was wrong."""
        self._writer.when_broken = self.session.abort
        with self.session.bus.subscribed(self._show):
            async with asyncio.TaskGroup() as group:
                async for line in read_lines(0, LINE_LIMIT):
                    await self._take(line, group)
                    if self._refused or self._writer.broken:
                        break
                self.parts.approver.close()
            await self.session.idle()
        await self._writer.flush(_FLUSH)
        return not self._refused

    async def _show(self, event: Event) -> None:
        await self._send(event_json(event))
        if self._writer.broken and not self._hung_up:
            self._hung_up = True  # nobody reads any more: stop spending
            await self.session.take_back()
            self.session.abort()

    async def _send(self, value: dict[str, Any]) -> None:
        await self._writer.send(self.parts.mask.line(json_line(value)))

    async def respond(self, command: str, id_: str | None, data: Reply = None, error: str = "") -> None:
        response: dict[str, Any] = {"type": "response", "command": command, "success": not error}
        if id_ is not None:
            response["id"] = id_
        if data is not None:
            response["data"] = data
        if error:
            response["error"] = error
        await self._send(response)

    async def _take(self, line: bytes | TooLong, group: asyncio.TaskGroup) -> None:
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
        if not self._trusted and envelope.type != "hello":
            await self.respond(envelope.type, envelope.id, error="auth required: send hello with token first")
            return
        if envelope.type not in _COMMANDS:
            await self.respond(envelope.type, envelope.id, error="unknown command")
            return
        shape, handler, slow = _COMMANDS[envelope.type]
        try:
            request: Any = msgspec.json.decode(line, type=shape)
        except (ValueError, RecursionError) as error:
            await self.respond(envelope.type, envelope.id, error=f"malformed {envelope.type}: {error}")
            return
        if not slow:
            await self._answer(envelope, handler, request)
        elif self._tasks >= _IN_FLIGHT:
            await self.respond(envelope.type, envelope.id, error=f"{_IN_FLIGHT} commands are already running")
        else:
            self._tasks += 1
            group.create_task(self._answer(envelope, handler, request, slow=True))

    async def _answer(self, envelope: Envelope, handler: Handler, request: Any, *, slow: bool = False) -> None:
        try:
            reply = await handler(Call(self, envelope, request))
        except HiltError as error:
            message = f"{error.message} ({error.hint})" if error.hint else error.message
            await self.respond(envelope.type, envelope.id, error=message)
        except Exception as error:
            # One command that fails in a way nobody foresaw must not end the client's session.
            log.exception("rpc command %s failed", envelope.type)
            await self.respond(envelope.type, envelope.id, error=f"internal error: {type(error).__name__}: {error}")
        else:
            if not isinstance(reply, Later):
                await self.respond(envelope.type, envelope.id, reply)
        finally:
            self._tasks -= slow

    def due(self, call: "Call", job: Job) -> None:
        """Remember that this call is answered when its job starts, or when it is taken back before."""
        self._waiting = [pair for pair in (*self._waiting, (call, job)) if not pair[0].answered]

    async def answer_taken_back(self) -> None:
        for call, job in self._waiting:
            if job.finished.is_set() and not call.answered:
                call.answered = True
                await self.respond(call.envelope.type, call.envelope.id, error="taken back before it started")

    def check_token(self, token: str) -> None:
        import hmac  # 3 ms, and only for clients that authenticate

        expected = self.parts.token.encode("utf-8", "surrogateescape")
        if not self._trusted and not hmac.compare_digest(token.encode(), expected):
            self._refused = True
            raise UsageError("invalid token")
        self._trusted = True


class Call(Struct):
    """One command being answered."""

    server: RpcServer
    envelope: Envelope
    request: Any
    answered: bool = False

    @property
    def session(self) -> Session:
        return self.server.session

    async def started(self) -> None:
        """The response to a prompt, sent when its turn comes and before its first event."""
        self.answered = True
        await self.server.respond(self.envelope.type, self.envelope.id, {"started": True})


# The commands


async def _hello(call: Call) -> Reply:
    request: Hello = call.request
    call.server.check_token(request.token)
    info = call.session.active.info
    return {
        "protocol_version": 1,
        "version": __version__,
        "host": "hilt",
        "provider": info.provider,
        "model": info.id,
    }


async def _prompt(call: Call) -> Later:
    request: PromptRequest = call.request
    return _later(call, await call.session.prompt(_message(request), call.started))


async def _steer(call: Call) -> Reply | Later:
    request: PromptRequest = call.request
    job = await call.session.steer(_message(request), call.started)
    return _later(call, job) if job else {"queued": True}


async def _abort(call: Call) -> Reply:
    call.session.abort()
    return None


async def _compact(call: Call) -> Later:
    return _later(call, await call.session.compact(call.started))


async def _take_back(call: Call) -> Reply:
    messages = await call.session.take_back()
    await call.server.answer_taken_back()
    return {"messages": messages}


async def _get_state(call: Call) -> Reply:
    session = call.session
    messages = session.transcript.messages
    return {
        "provider": session.active.info.provider,
        "model": session.active.info.id,
        "cwd": session.parts.cwd,
        "message_count": len(messages),
        "busy": session.busy,
        "usage": usage_json(session.transcript.usage),
        "context": {"tokens": estimated_tokens(messages), "window": session.active.info.context_window},
        "permissions": session.parts.permissions.mode,
        "jail": session.parts.jail.on,
        "queue": list(session.waiting),
        "session": {
            "id": session.parts.log.meta.id,
            "title": session.parts.log.title,
            "path": str(session.parts.log.path or ""),
            "trouble": session.parts.log.trouble,
        },
    }


async def _get_messages(call: Call) -> Reply:
    return {"messages": [message_json(message) for message in call.session.transcript.messages]}


async def _clear(call: Call) -> Reply:
    await call.session.apply((Clear(),), "rpc")
    return None


async def _set_model(call: Call) -> Reply:
    request: SetModel = call.request
    await call.session.apply((SwitchModel(request.model),), "rpc")
    return {"model": call.session.active.info.id, "provider": call.session.active.info.provider}


async def _get_models(call: Call) -> Reply:
    return {
        "models": [
            {
                "id": model.id,
                "provider": model.provider,
                "context_window": model.context_window,
                "max_output": model.max_output,
                "reasoning": model.reasoning,
            }
            for model in call.server.parts.models()
        ]
    }


async def _ping(_: Call) -> Reply:
    return {"pong": True}


async def _input(call: Call) -> Reply | Later:
    request: InputRequest = call.request
    text = request.text.strip()
    if request.deliver == "steer" and text and not text.startswith("/"):
        job = await call.session.steer(user_text(request.text), call.started)
        return _later(call, job) if job else {"queued": True}
    outcome = await call.session.input(request.text, call.started)
    return _later(call, outcome) if isinstance(outcome, Job) else _taken(outcome)


async def _commands(call: Call) -> Reply:
    commands = call.session.parts.registry.snapshot().commands.values()
    return {
        "commands": [
            {
                "name": owned.command.name,
                "description": owned.command.description,
                "usage": owned.command.usage,
                "owner": owned.owner,
            }
            for owned in commands
        ]
    }


async def _command(call: Call) -> Reply:
    request: CommandRequest = call.request
    return _taken(await call.session.command(request.name, request.args))


async def _sessions(call: Call) -> Reply:
    request: SessionsRequest = call.request
    cwd = None if request.all else call.session.parts.cwd
    found = await asyncio.to_thread(call.server.parts.store.list, cwd)
    return {"sessions": [msgspec.to_builtins(summary, enc_hook=str) for summary in found]}


async def _session_tree(call: Call) -> Reply:
    log = call.session.parts.log
    return {"session": log.meta.id, "head": log.head, "tree": plain(tree_of(log))}


async def _ui_response(call: Call) -> Reply:
    request: UiResponse = call.request
    call.server.parts.approver.answer(request)
    return None


def _later(call: Call, job: Job) -> Later:
    call.server.due(call, job)
    return LATER


def _message(request: PromptRequest) -> UserMessage:
    if not request.message.strip() and not request.images:
        raise UsageError("prompt needs a message")
    text = (Text(request.message),) if request.message else ()
    return UserMessage((*text, *request.blocks()), now())


def _taken(actions: tuple[Action, ...]) -> dict[str, Any]:
    """The action taken, as the response's data; a command that did several lists them all."""
    values = [msgspec.to_builtins(action) for action in actions or (Noop(),)]
    return values[0] if len(values) == 1 else {**values[0], "actions": values}


_COMMANDS: dict[str, tuple[type, Handler, bool]] = {
    # name: (fields, handler, whether it may take long and so must not hold up the next line)
    "hello": (Hello, _hello, False),
    "prompt": (PromptRequest, _prompt, False),
    "steer": (PromptRequest, _steer, False),
    "abort": (Nothing, _abort, False),
    "compact": (Nothing, _compact, False),
    "take_back": (Nothing, _take_back, False),
    "get_state": (Nothing, _get_state, False),
    "get_messages": (Nothing, _get_messages, False),
    "clear": (Nothing, _clear, False),
    "set_model": (SetModel, _set_model, False),
    "get_models": (Nothing, _get_models, False),
    "ping": (Nothing, _ping, False),
    "input": (InputRequest, _input, True),
    "commands": (Nothing, _commands, False),
    "command": (CommandRequest, _command, True),
    "sessions": (SessionsRequest, _sessions, True),
    "session_tree": (Nothing, _session_tree, False),
    "ui_response": (UiResponse, _ui_response, False),
}
