"""An extension: what authors register, and what they can say to the host.

    ext = Extension("weather")

    @ext.tool
    def weather(city: str, days: int = 1) -> str:
        "Get the weather for a city."
        return f"{city}: sunny"

    ext.run()

Owns the public surface. Registrations are kept in `registrations`; the wire while it lasts is a `link`.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, start_new_thread

from hilt_sdk.calls import Call
from hilt_sdk.docstring import described
from hilt_sdk.protocol import (
    INTERCEPTABLE,
    HostInfo,
    command_name,
    event_name,
    known_feature,
    other_name,
    tool_name,
)
from hilt_sdk.registrations import Command, Handler, Hook, Interceptor, Listener, Registrations, Section, Shortcut, Tool
from hilt_sdk.schema import free_signature, signature_of
from hilt_sdk.speaker import Speaker
from hilt_sdk.transport import log
from hilt_sdk.values import NotConnected, RegistrationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar, overload

    from hilt_sdk.host import HostServices, Settings
    from hilt_sdk.link import Link
    from hilt_sdk.provider import Model

    F = TypeVar("F", bound=Callable[..., Any])

_MOMENT = 1.0
"""Seconds that handlers have when the host ends the extension."""


class Extension(Speaker):
    def __init__(self, name: str, version: str = "0.1.0") -> None:
        super().__init__(other_name(name, "name for an extension"))
        self.version = version
        self.missing: list[str] = []
        """What the present host does not offer of what the extension uses, in words."""
        self.cwd = ""
        """Where the agent works."""
        self.extension_dir = ""
        """Where the extension's own files are."""
        self._data_dir = ""
        self._registered = Registrations()
        self._host: HostServices | None = None
        self._exits = False
        """The process shall end once all is done."""
        self._stopped = False

    # Tools

    if TYPE_CHECKING:

        @overload
        def tool(self, function: F) -> F: ...
        @overload
        def tool(
            self,
            *,
            name: str = "",
            description: str = "",
            schema: Mapping[str, Any] | None = None,
            deferred: bool = False,
            exposure: str = "",
            interactive: bool = False,
            namespace: str = "",
            namespace_description: str = "",
            namespace_instructions: str = "",
            output_schema: Mapping[str, Any] | None = None,
            prompt_hint: str = "",
            interruptible: bool = True,
        ) -> Callable[[F], F]: ...

    def tool(
        self, function: Any = None, *, name: str = "", description: str = "", schema: Any = None, **options: Any
    ) -> Any:
        """A tool for the model: a function whose signature and docstring say what it takes."""
        unknown = set(options) - _OPTIONS
        if unknown:
            raise RegistrationError(
                f"a tool has no option {sorted(unknown)[0]}; there are {', '.join(sorted(_OPTIONS))}"
            )

        def register(function: F) -> F:
            told, parameters = described(function.__doc__)
            if schema is None:
                signature = signature_of(function, Call, parameters)
            else:
                signature = free_signature(function, Call, dict(schema))
            tool = Tool(tool_name(name or function.__name__), description or told, signature, function, options)
            self._registered.tools[tool.name] = tool
            self._announce("tool", tool)
            return function

        return register if function is None else register(function)

    # Commands and shortcuts

    def command(self, name: str, description: str = "", *, immediate: bool = False) -> Callable[[F], F]:
        """A slash command: a function of what stands behind it.

        It returns a text that is shown, None, `Insert`, `Prompt`, `ToolPrompt` or a `Panel`. `immediate`: it runs
        beside a turn, where the host makes a difference.
        """
        plain = command_name(name)

        def register(function: F) -> F:
            told = description or described(function.__doc__)[0]
            command = Command(plain, told, function, immediate=immediate)
            self._registered.commands[plain] = command
            self._announce("command", command)
            return function

        return register

    def shortcut(self, key: str, description: str = "") -> Callable[[F], F]:
        """A key, such as `ctrl+g`: a function without parameters that returns what a command does."""
        other_name(key, "key", 64)

        def register(function: F) -> F:
            shortcut = Shortcut(key, description or described(function.__doc__)[0], function)
            self._registered.shortcuts[key] = shortcut
            self._announce("shortcut", shortcut)
            return function

        return register

    # What happens, and what may not

    def on(self, *events: str, name: str = "", priority: int = 0) -> Callable[[F], F]:
        """Be told of events, one after the other. Those that begin with `Event` are the jsonrpc dialect's own."""
        if not events:
            raise RegistrationError('name the event: @ext.on("turn_end")')
        for event in events:
            event_name(event)

        def register(function: F) -> F:
            for event in events:
                known = self._registered.events.setdefault(event, [])
                known.append(Listener(function, name, priority))
                if len(known) == 1:
                    self._announce("event", event)
            return function

        return register

    def intercept(
        self, event: str, *, priority: int | None = None, name: str = "", required: bool = False
    ) -> Callable[[F], F]:
        """Be asked before something happens; None lets it be. One that raises an exception refuses.

        `required`: without it the extension does not start. With a `priority` or a `name` of its own it is an
        interceptor of its own for the host; higher priorities come first.
        """
        if event not in INTERCEPTABLE:
            raise RegistrationError(f"{event!r} cannot be intercepted; there are {', '.join(INTERCEPTABLE)}")

        def register(function: F) -> F:
            interceptor = Interceptor(event, function, priority, name)
            self._registered.interceptors.append(interceptor)
            if required:
                self.require(f"intercept.{event}")
            self._announce("interceptor", interceptor)
            return function

        return register

    def prompt_section(self, title: str, content: str, order: int = 0, *, token_hint: int = 0) -> None:
        """A part of the system prompt. The same title again replaces it."""
        section = Section(other_name(title, "title"), content, order, token_hint)
        self._registered.sections[title] = section
        self._announce("prompt_section", section)

    def message_hook(self, priority: int = 0, *, name: str = "") -> Callable[[F], F]:
        """A function of what the user says, which returns what the model shall be told with it, or None."""
        return self._hook("message_hook", self._registered.message_hooks, name, priority)

    def input_transformer(self, priority: int = 0, *, name: str = "") -> Callable[[F], F]:
        """A function of what the user typed, which returns what shall be sent, None for the same, or `Handled()`."""
        return self._hook("input_transformer", self._registered.input_transformers, name, priority)

    def _hook(self, kind: str, known: list[Hook], name: str, number: int) -> Callable[[F], F]:
        def register(function: F) -> F:
            hook = Hook(other_name(name or self.name, "name"), function, number)
            known.append(hook)
            self._announce(kind, hook)
            return function

        return register

    def compactor(self, threshold: int = 0, *, name: str = "") -> Callable[[F], F]:
        """A function of the messages of the conversation, which returns fewer."""

        def register(function: F) -> F:
            hook = Hook(other_name(name or self.name, "name"), function, threshold)
            self._registered.compactors[hook.name] = hook
            self._announce("compactor", hook)
            return function

        return register

    def provider(self, api: str, models: Sequence[Model] = ()) -> Callable[[F], F]:
        """Answer for the models of an API: a function of a `Request` and a `Reply`."""
        from hilt_sdk.registrations import ProviderEntry

        other_name(api, "name for an API")

        def register(function: F) -> F:
            entry = ProviderEntry(api, list(models), function)
            self._registered.providers[api] = entry
            self._announce("provider", entry)
            return function

        return register

    def on_ready(self, function: F) -> F:
        """Have it called once the host is known and all is registered."""
        self._registered.on_ready.append(Handler(function))
        return function

    def on_stop(self, function: F) -> F:
        """Have it called when the extension ends; it has a second."""
        self._registered.on_stop.append(Handler(function))
        return function

    def _announce(self, kind: str, entry: Any) -> None:
        """Tell the host of it, if there is one already."""
        link = self._link
        if link is not None and link.host is not None:
            link.need("late_registration")
            link.register(kind, entry)

    # The host

    @property
    def host_info(self) -> HostInfo:
        """Raises `NotConnected` before the host has said who it is."""
        if self._link is None or self._link.host is None:
            raise NotConnected("there is no host yet: wait for on_ready")
        return self._link.host

    @property
    def host(self) -> HostServices:
        """What the host can be asked for: `ext.host.chat(…)`, sessions, the bus, the user."""
        if self._host is None:
            from hilt_sdk.host import HostServices

            self._host = HostServices(self)
        return self._host

    @property
    def data_dir(self) -> str:
        """Where the extension may keep data; it exists."""
        if self._data_dir:
            os.makedirs(self._data_dir, exist_ok=True)
        return self._data_dir

    @property
    def settings(self) -> Settings:
        """The extension's own settings, as they are now: `ext.settings.get("units", "metric")`."""
        from hilt_sdk.host import Settings

        return Settings(self.host)

    def uses(self, *features: str) -> None:
        """Say what is used beyond what is registered, such as `progress`, so that it is told when it is missing."""
        self._registered.used.extend(known_feature(feature) for feature in features)

    def require(self, *features: str) -> None:
        """Without these the extension does not start, and says why."""
        self._registered.required.extend(known_feature(feature) for feature in features)

    def offers(self, feature: str) -> bool:
        """Whether the present host offers it; False while there is none."""
        known_feature(feature)
        return self._link is not None and self._link.offers(feature)

    def _learn(self, told: Mapping[str, Any]) -> None:
        """What the host says at the start about the surroundings, in the words of the frames dialect."""
        self.cwd = told.get("cwd") or ""
        self.extension_dir = told.get("extension_dir") or ""
        self._data_dir = told.get("data_dir") or ""

    # Running

    def run(self, dialect: str = "") -> None:
        """Talk to the host until it ends the extension, or its end of the pipe is closed."""
        from hilt_sdk.transport import chosen_dialect, take_descriptors, take_stdio

        spoken, by_descriptors = chosen_dialect(os.environ, dialect)
        if not by_descriptors and os.isatty(0):
            log(_BY_HAND.format(name=self.name, version=self.version, file=sys.argv[0] or "FILE"))
            sys.exit(2)
        pipes = take_descriptors() if by_descriptors else take_stdio()
        link = self._connect(spoken, pipes)
        self._catch_signals()
        over = allocate_lock()
        over.acquire()
        link.on_end = lambda: start_new_thread(self._stop, (link, over))
        link.run()
        over.acquire()
        if link.exit_code:
            sys.exit(link.exit_code)

    def _connect(self, dialect: str, pipes: Any) -> Link:
        link: Link
        if dialect == "frames":
            from hilt_sdk.frames import Frames

            link = Frames(self, pipes)
        else:
            from hilt_sdk.jsonrpc import JsonRpc

            link = JsonRpc(self, pipes)
        self._link = link
        return link

    def _catch_signals(self) -> None:
        """`signal` itself would import `enum`. The host's Ctrl-C must not end its extensions."""
        import _signal  # type: ignore[import-not-found]  # it has no stub, as `signal` wraps it

        try:
            _signal.signal(_signal.SIGTERM, self._terminated)
            _signal.signal(_signal.SIGINT, lambda *_: None)
        except ValueError:
            pass  # not the main thread: whoever has that sees to it

    def _terminated(self, *_: object) -> None:
        """In the main thread, which may be about to read for ever, or to wait for threads of the author's."""
        if self._stopped:
            os._exit(0)
        self._exits = True
        start_new_thread(self._wire().close, ())

    def _stop(self, link: Link, over: LockType) -> None:
        """Let everything come to its end within a moment; what does not is left behind with the process.

        In a thread of its own: the main one may be the one that hangs.
        """
        ended = link.finish(_MOMENT)
        if not ended:
            log(f"{self.name}: something was still at work after {_MOMENT:g} s")
        if self._exits or not ended:
            _flush()
            os._exit(link.exit_code)
        self._stopped = True
        over.release()


_OPTIONS = frozenset(
    (
        "deferred",
        "exposure",
        "interactive",
        "interruptible",
        "namespace",
        "namespace_description",
        "namespace_instructions",
        "output_schema",
        "prompt_hint",
    )
)
_BY_HAND = """\
{name} {version} is an extension: a program that a coding agent starts and talks to. To try it:
  hilt --ext {file}             start the agent with it
  hilt ext call {file} TOOL '{{}}'   call one of its tools"""


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # nobody reads it
