"""What the author has registered, kept until a host wants to know and for as long as the process lives."""

from __future__ import annotations

from hilt_sdk.protocol import event_feature
from hilt_sdk.runner import Pace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from hilt_sdk.provider import Model
    from hilt_sdk.schema import Signature


class Handler(Pace):
    """A function of the author's."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function


class Tool(Handler):
    __slots__ = ("call_parameter", "description", "name", "options", "signature")

    def __init__(
        self,
        name: str,
        description: str,
        signature: Signature,
        function: Callable[..., Any],
        options: dict[str, Any],
    ) -> None:
        super().__init__(function)
        self.name = name
        self.description = description
        self.signature = signature
        self.call_parameter = signature.call_parameter
        self.options = options
        """Those that were given: `deferred`, `exposure`, `interactive`…"""


class Command(Handler):
    __slots__ = ("description", "immediate", "name")

    def __init__(self, name: str, description: str, function: Callable[..., Any], *, immediate: bool) -> None:
        super().__init__(function)
        self.name = name
        self.description = description
        self.immediate = immediate


class Shortcut(Handler):
    __slots__ = ("description", "key")

    def __init__(self, key: str, description: str, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.key = key
        self.description = description


class Listener(Handler):
    __slots__ = ("name", "priority")

    def __init__(self, function: Callable[..., Any], name: str, priority: int) -> None:
        super().__init__(function)
        self.name = name
        """What the jsonrpc dialect calls it; empty is the extension's own."""
        self.priority = priority


class Interceptor(Handler):
    __slots__ = ("event", "name", "priority")

    def __init__(self, event: str, function: Callable[..., Any], priority: int | None, name: str) -> None:
        super().__init__(function)
        self.event = event
        self.priority = priority
        self.name = name
        """Those of one name are one interceptor for the host; empty is the extension's own."""

    @property
    def plain(self) -> bool:
        """One that a subscription of the frames dialect is enough for."""
        return self.priority is None and not self.name and self.event != "tool_result"


class Section:
    __slots__ = ("content", "order", "title", "token_hint")

    def __init__(self, title: str, content: str, order: int, token_hint: int) -> None:
        self.title = title
        self.content = content
        self.order = order
        self.token_hint = token_hint


class Hook(Handler):
    """A message hook, an input transformer or a compactor."""

    __slots__ = ("name", "number")

    def __init__(self, name: str, function: Callable[..., Any], number: int) -> None:
        super().__init__(function)
        self.name = name
        self.number = number
        """Its priority; of a compactor the threshold."""


class ProviderEntry(Handler):
    __slots__ = ("api", "models")

    def __init__(self, api: str, models: list[Model], function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.api = api
        self.models = models


class Registrations:
    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.commands: dict[str, Command] = {}
        self.shortcuts: dict[str, Shortcut] = {}
        self.events: dict[str, list[Listener]] = {}
        self.interceptors: list[Interceptor] = []
        self.sections: dict[str, Section] = {}
        self.message_hooks: list[Hook] = []
        self.input_transformers: list[Hook] = []
        self.compactors: dict[str, Hook] = {}
        self.providers: dict[str, ProviderEntry] = {}
        self.on_ready: list[Handler] = []
        self.on_stop: list[Handler] = []
        self.used: list[str] = []
        self.required: list[str] = []

    def intercepts(self, event: str, name: str | None = None) -> list[Interceptor]:
        """Those to be asked, the highest priority first; with a name only those that the host knows by it."""
        found = [one for one in self.interceptors if one.event == event and (name is None or one.name == name)]
        return sorted(found, key=lambda one: -(one.priority or 0))

    def wanted(self) -> Iterator[tuple[str, str]]:
        """Every feature that is used, with what it is used for."""
        for tool in self.tools.values():
            if tool.options.get("deferred") or tool.options.get("exposure"):
                yield "deferred_tools", tool.name
        for event in self.events:
            yield event_feature(event), event
        for interceptor in self.interceptors:
            yield f"intercept.{interceptor.event}", ""
            if interceptor.priority is not None:
                yield "priorities", ""
        for key in self.shortcuts:
            yield "shortcuts", key
        for title in self.sections:
            yield "prompt_sections", title
        for hook in self.message_hooks:
            yield "message_hooks", hook.name
        for hook in self.input_transformers:
            yield "input_transformers", hook.name
        for name in self.compactors:
            yield "compactors", name
        for api, provider in self.providers.items():
            yield "providers", api
            if provider.models:
                yield "provider_models", ""
        for feature in (*self.used, *self.required):
            yield feature, ""
