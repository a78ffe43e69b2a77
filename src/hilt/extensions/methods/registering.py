"""`register/…`: what an extension offers by method, made contributions of."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from hilt.errors import FrameError
from hilt.extensions.extension import Extension
from hilt.extensions.methods.callbacks import Callbacks
from hilt.extensions.methods.streaming import Streams
from hilt.extensions.offered import OfferedCommand, OfferedSection, OfferedShortcut, OfferedTool
from hilt.extensions.registrations import INTERCEPTABLE, Watch
from hilt.model.contributions import (
    Compactor,
    InputTransformer,
    MessageHook,
    ModelSource,
    ResultInterceptor,
)
from hilt.wire import jsonrpc_types as wire
from hilt.wire.freeform import pack
from hilt.wire.jsonrpc_events import EVENTS
from hilt.wire.jsonrpc_provider import model_info
from hilt.wire.jsonrpc_reading import read

_NAME = 128
"""Characters."""
_PROVIDER_MODELS = 1000
_DEMO = "demo"
"""What answers when nobody was chosen, and must not be anybody else."""
_NAMES = 64
"""Of each kind that is asked all at once."""
_NEVER = frozenset({"EventTurnUsage"})
"""Asked for by extensions in use, though no host has it: nobody needs to hear of that at every start."""


class Registering:
    """Each answers what is wrong with a registration, or None. One that comes again replaces the first."""

    def __init__(self, extension: Extension, callbacks: Callbacks, streams: Streams) -> None:
        self._extension = extension
        self._registrations = extension.registrations
        self._callbacks = callbacks
        self._streams = streams
        self._hooks: dict[str, int] = {}
        self._transformers: dict[str, int] = {}
        self._handlers: dict[str, None] = {}
        self._told: set[str] = set()
        """Events that any of the handlers is for."""

    @property
    def handlers(self) -> tuple[str, ...]:
        """The names of its event handlers."""
        return tuple(self._handlers)

    @property
    def hooks(self) -> tuple[str, ...]:
        return tuple(self._hooks)

    @staticmethod
    def knows(method: str) -> bool:
        return method in _TAKEN

    def take(self, method: str, raw: Raw | UnsetType) -> str | None:
        shape, register = _TAKEN[method]
        try:
            params: Any = read(raw, shape)
        except FrameError as error:
            return f"{method}: {error.message}"
        return register(self, params)

    def tool(self, params: wire.RegisterTool) -> str | None:
        behavior = params.interrupt_behavior.casefold()
        if behavior not in ("", "cancel", "block"):
            self._extension.report(f"tool {params.name[:64]}: interruptBehavior must be cancel or block; cancel it is")
        offered = OfferedTool(
            params.name,
            params.description,
            UNSET if params.parameters is None else pack(params.parameters),
            deferred=params.deferred,
            detached=behavior == "block",
            hint=params.prompt_hint,
        )
        return self._registrations.tool(offered)

    def command(self, params: wire.RegisterCommand) -> str | None:
        return self._registrations.command(OfferedCommand(params.name, params.description, params.immediate))

    def section(self, params: wire.RegisterPromptSection) -> str | None:
        return self._registrations.section(
            OfferedSection(params.title, params.content, params.order, params.token_hint)
        )

    def shortcut(self, params: wire.RegisterShortcut) -> str | None:
        return self._registrations.shortcut(OfferedShortcut(params.key, params.description))

    def interceptor(self, params: wire.RegisterInterceptor) -> str | None:
        if problem := _name_problem("register/interceptor", params.name):
            return problem
        asked = ("tool_call",) if params.events is UNSET else params.events
        if unknown := set(asked) - set(INTERCEPTABLE):
            return f"interceptor {params.name}: cannot intercept {', '.join(sorted(unknown))[:200]}"
        watches = [Watch(event, params.name, params.priority) for event in INTERCEPTABLE if event in asked]
        if problem := self._registrations.watch(watches):
            return problem
        if "tool_call" in asked and not self._extension.switches.off("guard", "tool_result"):
            after = partial(self._callbacks.after, params.name)
            return self._registrations.offer("result", params.name, ResultInterceptor(after, params.priority))
        return None

    def event_handler(self, params: wire.RegisterEventHandler) -> str | None:
        unknown = sorted(set(params.events) - set(EVENTS) - _NEVER)
        name = params.name[:_NAME]
        if problem := _number_problem("register/eventHandler", name, self._handlers):
            return problem
        # Several may go by one name, or by none, and nobody can take one back: each adds to what is told.
        self._handlers[name] = None
        self._told.update(set(params.events or EVENTS) & set(EVENTS))
        problem = self._registrations.listen(self._told)
        if unknown:
            listed = ", ".join(unknown)[:200]
            return f"event handler {params.name[:64]!r}: there is no event {listed}" + (
                f"; {problem}" if problem else ""
            )
        return problem

    # One question an extension for each of these, however many it has: it asks them all itself.

    def message_hook(self, params: wire.RegisterMessageHook) -> str | None:
        method = "register/messageHook"
        if problem := _name_problem(method, params.name) or _number_problem(method, params.name, self._hooks):
            return problem
        self._hooks[params.name] = params.priority
        hook = MessageHook(self._callbacks.on_message, min(self._hooks.values()))
        return self._registrations.offer("hook", "", hook)

    def input_transformer(self, params: wire.RegisterInputTransformer) -> str | None:
        method = "register/inputTransformer"
        if problem := _name_problem(method, params.name) or _number_problem(method, params.name, self._transformers):
            return problem
        self._transformers[params.name] = params.priority
        transformer = InputTransformer(self._callbacks.transform, min(self._transformers.values()))
        return self._registrations.offer("transformer", "", transformer)

    def compactor(self, params: wire.RegisterCompactor) -> str | None:
        if problem := _name_problem("register/compactor", params.name):
            return problem
        if params.threshold < 0:
            return f"compactor {params.name}: threshold must not be negative"
        compactor = Compactor(params.name, self._callbacks.compact, params.threshold)
        return self._registrations.offer("compactor", "", compactor)

    def provider(self, params: wire.RegisterProvider) -> str | None:
        if problem := _name_problem("register/provider", params.api, "api"):
            return problem
        if params.api.lower() == _DEMO:
            return f"provider {params.api}: that is part of hilt; choose another name"
        if len(params.models) > _PROVIDER_MODELS:
            return f"provider {params.api}: {_PROVIDER_MODELS:,} models are the limit"
        models = tuple(model_info(model, params.api) for model in params.models if model.id)
        source = ModelSource(params.api, partial(self._streams.stream, params.api), models)
        return self._registrations.offer("provider", params.api, source)


def _name_problem(method: str, name: str, member: str = "name") -> str | None:
    if not name.strip():
        return f"{method}: {member} is missing"
    if len(name) > _NAME:
        return f"{method}: {member} has {len(name):,} characters; {_NAME} is the limit"
    return None


def _number_problem(method: str, name: str, others: Collection[str]) -> str | None:
    if name in others or len(others) < _NAMES:
        return None
    return f"{method} {name[:64]!r}: an extension can have {_NAMES}"


_TAKEN: Mapping[str, tuple[type, Callable[[Registering, Any], str | None]]] = MappingProxyType(
    {
        "register/tool": (wire.RegisterTool, Registering.tool),
        "register/command": (wire.RegisterCommand, Registering.command),
        "register/promptSection": (wire.RegisterPromptSection, Registering.section),
        "register/shortcut": (wire.RegisterShortcut, Registering.shortcut),
        "register/interceptor": (wire.RegisterInterceptor, Registering.interceptor),
        "register/eventHandler": (wire.RegisterEventHandler, Registering.event_handler),
        "register/messageHook": (wire.RegisterMessageHook, Registering.message_hook),
        "register/inputTransformer": (wire.RegisterInputTransformer, Registering.input_transformer),
        "register/compactor": (wire.RegisterCompactor, Registering.compactor),
        "register/provider": (wire.RegisterProvider, Registering.provider),
    }
)
