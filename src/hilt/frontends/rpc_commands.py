"""What a client of `hilt rpc` can ask for, one function a command."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from hilt import __version__
from hilt.agent.compaction import estimated_tokens
from hilt.agent.jobs import Asker, Job
from hilt.agent.panels import OpenPanel
from hilt.agent.questions import Questions
from hilt.agent.session import Session
from hilt.errors import HiltError, UsageError
from hilt.frontends.encode import event_json, extension_json, message_json, usage_json
from hilt.frontends.rpc_requests import (
    CommandRequest,
    Hello,
    HostRequest,
    InputRequest,
    Nothing,
    OverlayRequest,
    PanelKeyRequest,
    PanelRequest,
    PanelResizeRequest,
    PromptRequest,
    ReloadRequest,
    SessionsRequest,
    SetModel,
    ShortcutRequest,
    UiResponse,
)
from hilt.model.actions import Action, Clear, Noop, SwitchModel
from hilt.model.content import Text
from hilt.model.conversation import UserMessage, now
from hilt.model.events import PanelShown
from hilt.model.masking import Mask
from hilt.model.models import ModelInfo
from hilt.sessions.store import SessionStore
from hilt.sessions.tree import plain, tree_of


class Services(Protocol):
    """What extensions can ask the host for, on behalf of one client."""

    async def answer(self, method: str, params: msgspec.Raw) -> Any:
        """The result, to be encoded. Raises `ServiceFault`."""

    def leave(self) -> None:
        """The client is gone, and so is what it subscribed to."""


Deliver: TypeAlias = Callable[[str, int, Any], None]
"""Tells of something that was published: topic, subscription, data."""


class RpcParts(Struct, frozen=True):
    session: Session
    questions: Questions
    models: Callable[[], list[ModelInfo]]
    store: SessionStore
    mask: Mask
    token: str = ""
    """When set, nothing but `hello` is heard before it has been given."""
    serve: Callable[[Deliver], Services] | None = None
    """The services, made when they are first asked for; None where there are none."""


class Later:
    """The response is sent when the work starts, by whoever does it."""


LATER = Later()
Reply: TypeAlias = Any
"""An object for the response's `data`, or None."""


class Call(Asker, Protocol):
    """One command being answered."""

    parts: RpcParts
    request: Any

    @property
    def session(self) -> Session: ...

    @property
    def services(self) -> Services: ...

    def authenticate(self, token: str) -> None: ...


class Order(Enum):
    """When a command is done, seen from the lines around it."""

    NOW = "at once, even while earlier ones are still being done"
    QUICK = "after all before it; takes no time"
    SLOW = "after all before it; may take long, and holds up no command that is done at once"
    BESIDE = "when there is room, whatever else is being done; may take long, and holds up nothing"


class RpcCommand(Struct, frozen=True):
    fields: type
    do: Callable[[Call], Awaitable[Reply | Later]]
    order: Order


async def _hello(call: Call) -> Reply:
    request: Hello = call.request
    call.authenticate(request.token)
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
    await call.session.prompt(_message(request), call)
    return LATER


async def _steer(call: Call) -> Reply | Later:
    request: PromptRequest = call.request
    return _begun(await call.session.steer(_message(request), call))


async def _abort(call: Call) -> Reply:
    call.session.abort()
    return None


async def _compact(call: Call) -> Later:
    await call.session.compact(call)
    return LATER


async def _take_back(call: Call) -> Reply:
    return {"messages": await call.session.take_back()}


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
        "step": session.parts.permissions.step,
        "jail": session.parts.jail.on,
        "queue": list(session.waiting),
        "waiting_for": [
            {"extension": wait.owner, "what": wait.what, "seconds": round(wait.seconds, 3)}
            for wait in session.waits.current
        ],
        "notes": [msgspec.to_builtins(note) for note in session.notes.shown],
        "panel": event_json(shown) if (shown := session.panels.shown) else None,
        "panels": [_panel_json(one, focused=one is session.panels.open) for one in session.panels.all],
        "widgets": [event_json(widget) for widget in session.screen.widgets],
        "overlays": [event_json(overlay) for overlay in session.screen.overlays],
        "statuses": [event_json(status) for status in session.screen.statuses],
        "image": event_json(image) if (image := session.screen.attached) else None,
        "session": {
            "id": session.parts.log.meta.id,
            "title": session.parts.log.title,
            "path": str(session.parts.log.path or ""),
            "trouble": session.parts.log.trouble,
        },
    }


def _panel_json(one: OpenPanel, *, focused: bool) -> dict[str, Any]:
    bereaved = {"bereaved": one.bereaved} if one.bereaved else {}
    return {**event_json(PanelShown.of(one.owner, one.panel)), "focused": focused, **bereaved}


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
                "extension": model.extension,
            }
            for model in call.parts.models()
        ]
    }


async def _ping(_: Call) -> Reply:
    return {"pong": True}


async def _input(call: Call) -> Reply | Later:
    request: InputRequest = call.request
    outcome = await call.session.input(request.text, call, steering=request.deliver == "steer")
    return taken(outcome) if isinstance(outcome, tuple) else _begun(outcome)


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


async def _command(call: Call) -> Reply | Later:
    request: CommandRequest = call.request
    outcome = await call.session.command(request.name, request.args, asker=call)
    return taken(outcome) if isinstance(outcome, tuple) else LATER


async def _shortcut(call: Call) -> Reply:
    request: ShortcutRequest = call.request
    return taken(await call.session.press(request.key))


async def _extensions(call: Call) -> Reply:
    return {"extensions": [extension_json(status) for status in call.session.extensions.statuses()]}


async def _reload_ext(call: Call) -> Reply:
    request: ReloadRequest = call.request
    reloaded = await call.session.extensions.reload(request.name)
    if request.name and reloaded.problems:
        raise HiltError("; ".join(reloaded.problems))
    return {**msgspec.to_builtins(reloaded), "message": str(reloaded)}


async def _panel_key(call: Call) -> Reply:
    request: PanelKeyRequest = call.request
    call.session.panels.key(request.panel_id, request.key, request.text, owner=request.extension)
    return None


async def _panel_focus(call: Call) -> Reply:
    request: PanelRequest = call.request
    await call.session.panels.focus(request.extension, request.panel_id)
    return None


async def _panel_close(call: Call) -> Reply:
    request: PanelRequest = call.request
    await call.session.panels.close(request.panel_id, owner=request.extension)
    return None


async def _panel_resize(call: Call) -> Reply:
    request: PanelResizeRequest = call.request
    call.session.panels.resize(request.panel_id, request.width, request.height, owner=request.extension)
    return None


async def _sessions(call: Call) -> Reply:
    request: SessionsRequest = call.request
    cwd = None if request.all else call.session.parts.cwd
    found = await asyncio.to_thread(call.parts.store.list, cwd)
    return {"sessions": [msgspec.to_builtins(summary, enc_hook=str) for summary in found]}


async def _session_tree(call: Call) -> Reply:
    log = call.session.parts.log
    tree = await asyncio.to_thread(tree_of, log)  # 40 ms for a thousand entries
    return {"session": log.meta.id, "head": log.head, "tree": plain(tree)}


async def _ui_response(call: Call) -> Reply:
    request: UiResponse = call.request
    call.parts.questions.answer(request.id, request)
    return None


async def _overlay_close(call: Call) -> Reply:
    request: OverlayRequest = call.request
    await call.session.screen.close_overlay(request.extension, request.key)
    return None


async def _host(call: Call) -> Reply:
    request: HostRequest = call.request
    return await call.services.answer(request.method, request.params)


def _begun(job: Job | None) -> Reply | Later:
    """A job answers for itself when it starts; words that steer have no job of their own."""
    return LATER if job else {"queued": True}


def _message(request: PromptRequest) -> UserMessage:
    if not request.message.strip() and not request.images:
        raise UsageError("prompt needs a message")
    text = (Text(request.message),) if request.message else ()
    return UserMessage((*text, *request.blocks()), now())


def taken(actions: tuple[Action, ...]) -> dict[str, Any]:
    """The action taken, as the response's data; a command that did several lists them all."""
    values = [msgspec.to_builtins(action) for action in actions or (Noop(),)]
    return values[0] if len(values) == 1 else {**values[0], "actions": values}


COMMANDS: dict[str, RpcCommand] = {
    "hello": RpcCommand(Hello, _hello, Order.NOW),
    "prompt": RpcCommand(PromptRequest, _prompt, Order.QUICK),
    "steer": RpcCommand(PromptRequest, _steer, Order.QUICK),
    "abort": RpcCommand(Nothing, _abort, Order.NOW),
    "compact": RpcCommand(Nothing, _compact, Order.QUICK),
    "take_back": RpcCommand(Nothing, _take_back, Order.NOW),
    "get_state": RpcCommand(Nothing, _get_state, Order.NOW),
    "get_messages": RpcCommand(Nothing, _get_messages, Order.NOW),
    "clear": RpcCommand(Nothing, _clear, Order.QUICK),
    "set_model": RpcCommand(SetModel, _set_model, Order.QUICK),
    "get_models": RpcCommand(Nothing, _get_models, Order.NOW),
    "ping": RpcCommand(Nothing, _ping, Order.NOW),
    "input": RpcCommand(InputRequest, _input, Order.SLOW),
    "commands": RpcCommand(Nothing, _commands, Order.NOW),
    "command": RpcCommand(CommandRequest, _command, Order.SLOW),
    "shortcut": RpcCommand(ShortcutRequest, _shortcut, Order.SLOW),
    "extensions": RpcCommand(Nothing, _extensions, Order.NOW),
    "reload_ext": RpcCommand(ReloadRequest, _reload_ext, Order.SLOW),
    "panel_key": RpcCommand(PanelKeyRequest, _panel_key, Order.NOW),
    "panel_focus": RpcCommand(PanelRequest, _panel_focus, Order.NOW),
    "panel_close": RpcCommand(PanelRequest, _panel_close, Order.NOW),
    "panel_resize": RpcCommand(PanelResizeRequest, _panel_resize, Order.NOW),
    "sessions": RpcCommand(SessionsRequest, _sessions, Order.SLOW),
    "session_tree": RpcCommand(Nothing, _session_tree, Order.SLOW),
    "ui_response": RpcCommand(UiResponse, _ui_response, Order.NOW),
    "overlay_close": RpcCommand(OverlayRequest, _overlay_close, Order.NOW),
    "host": RpcCommand(HostRequest, _host, Order.BESIDE),
}
