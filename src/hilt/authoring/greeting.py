"""The opening as the host plays it: from a process that was just started to one that is ready, and what it offers.

One function for both dialects, and the shape in which registrations of both are the same. A poorer host than hilt can
be played, one that announces fewer capabilities, or none: then the extension is to do without.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from hilt import __version__
from hilt.authoring.stage import Actor, Line
from hilt.authoring.values import Value, as_object
from hilt.errors import ExtensionStartError
from hilt.extensions.agent import Surroundings
from hilt.extensions.frames.handshake import hello_ack
from hilt.model.extensions import Dialect
from hilt.wire import frames_types, jsonrpc_types

_IDLE = 0.25
"""Seconds of silence after which one counts as ready that has said hello: not all say so."""
_READY = 3.0
_ENDING = 2.0
_LINES = 10_000
"""That many, and no greeting among them, is no opening."""
_MOST = 64 * 1024 * 1024
"""Nor are that many characters, whatever they say."""

HostName: TypeAlias = Literal["hilt", "zot", "piglet"]
Aside: TypeAlias = Callable[[Line], None]
"""Is given each line that is not part of the opening, such as a question to the host."""


class Played(Struct, frozen=True):
    """Which host is played."""

    name: HostName = "hilt"
    capabilities: tuple[str, ...] | None = None
    """What it announces beyond the first version; None is all that hilt has, or, for the others, nothing."""
    provider: str = "demo"
    model: str = "demo"

    def announced(self, dialect: Dialect) -> tuple[str, ...]:
        if self.capabilities is not None:
            return self.capabilities
        if self.name != "hilt":
            return ()
        return frames_types.HOST_CAPABILITIES if dialect == "frames" else jsonrpc_types.HOST_CAPABILITIES


class Registered(Struct, frozen=True):
    """One thing that it offers, whatever the dialect."""

    kind: str
    """`tool`, `command`, or what `register` calls it: `interceptor`, `event_handler`, `shortcut`…"""
    name: str
    """Of a shortcut its key, of a prompt section its title, of a provider its API."""
    fields: Value
    """All of them, as they came."""
    line: Line

    @property
    def description(self) -> str:
        told = self.fields.get("description", "")
        return told if isinstance(told, str) else ""

    @property
    def schema(self) -> Any:
        """Of a tool's arguments; None when it has none."""
        return self.fields.get("schema", self.fields.get("parameters"))


class Offered(Struct, frozen=True):
    """Who it is and what it offers, as of the end of the opening."""

    name: str
    version: str
    capabilities: tuple[str, ...]
    """What it said it can do: frames only."""
    registered: tuple[Registered, ...]
    events: tuple[str, ...]
    """What it is to be told of: frames only, the others have handlers."""
    intercepts: tuple[str, ...]
    """What it is to be asked about: frames only, the others have interceptors."""
    lines: tuple[Line, ...]
    """All that it wrote until then."""
    ready: bool = True
    """It said so itself."""

    def of_kind(self, kind: str) -> dict[str, Registered]:
        """By name; of two with the same one the last counts."""
        return {one.name: one for one in self.registered if one.kind == kind}


NOTHING = Offered("", "", (), (), (), (), ())
"""Of one that has not opened the conversation."""


async def greet(actor: Actor, host: Played | None = None, aside: Aside = lambda _: None) -> Offered:
    """Play the opening. Raises `ExtensionStartError` with the end of its log when it does not come to an end."""
    opening = _Opening(actor, host or Played(), aside)
    patience = actor.found.manifest.start_timeout_ms / 1000
    try:
        async with asyncio.timeout(patience):
            await opening.introduction()
    except TimeoutError:
        raise _failed(actor, f"{opening.missing} within {patience:g} s") from None
    if actor.dialect == "frames":
        await opening.readiness()
    return opening.offered()


class _Opening:
    def __init__(self, actor: Actor, host: Played, aside: Aside) -> None:
        self._actor = actor
        self._host = host
        self._aside = aside
        self._frames = actor.dialect == "frames"
        self._lines: list[Line] = []
        self._registered: list[Registered] = []
        self._introduced: Value | None = None
        self._ready = False
        self._events: list[str] = []
        self._intercepts: list[str] = []
        self.missing = "it did not say hello" if self._frames else "it did not answer initialize"

    async def introduction(self) -> None:
        if not self._frames:
            self._actor.send(initialize(self._actor, self._host))
        while self._introduced is None:
            line = await self._actor.receive(_READY * 60)
            if line is None:
                await self._end()
            if line is None or len(self._lines) > _LINES:
                raise _failed(self._actor, "it closed its output" if line is None else self.missing)
            self._take(line)
        if self._frames:
            self._actor.send(acknowledgement(self._actor, self._host))

    async def _end(self) -> None:
        """The end of its output is often seen before its exit, which says more."""
        try:
            await self._actor.exited(_ENDING)
        except TimeoutError:
            pass

    async def readiness(self) -> None:
        """Until it says so, or has nothing to say for a while."""
        try:
            async with asyncio.timeout(_READY):
                while not self._ready and (line := await self._actor.receive(_IDLE)):
                    self._take(line)
        except TimeoutError:
            pass

    def _take(self, line: Line) -> None:
        if self._actor.heard > _MOST:
            raise _failed(self._actor, f"it wrote more than {_MOST // 1024**2} MiB before it was ready")
        self._lines.append(line)
        value = line.value or {}
        if one := registered(line):
            self._registered.append(one)
        elif self._frames and value.get("type") == "hello" and self._introduced is None:
            self._introduced = value
        elif self._frames and value.get("type") == "ready":
            self._ready = True
        elif self._frames and value.get("type") == "subscribe":
            self._events += words(value.get("events"))
            self._intercepts += words(value.get("intercept"))
        elif not self._frames and value.get("id") == 1 and "method" not in value:
            if "error" in value:
                raise _failed(self._actor, f"it answered initialize with an error: {line.text[:200]}")
            self._introduced = as_object(value.get("result"))
            self._ready = True
        else:
            self._aside(line)

    def offered(self) -> Offered:
        said = self._introduced or {}
        return Offered(
            str(said.get("name", "")),
            str(said.get("version", "")),
            tuple(words(said.get("capabilities"))),
            tuple(self._registered),
            tuple(self._events),
            tuple(self._intercepts),
            tuple(self._lines),
            self._ready,
        )


def acknowledgement(actor: Actor, host: Played) -> Value:
    """What a hello is answered with."""
    where = Surroundings(host.provider, host.model, str(actor.cwd))
    ack = hello_ack(where, str(actor.found.directory), str(actor.data))
    ack = msgspec.structs.replace(ack, capabilities=host.announced("frames"))
    if host.name != "hilt":
        ack = msgspec.structs.replace(ack, host="", host_version="")
    told: Value = msgspec.to_builtins(ack)
    return told


def initialize(actor: Actor, host: Played) -> Value:
    """The first line of a host that speaks the jsonrpc dialect; its id is 1."""
    params = jsonrpc_types.Initialize(
        jsonrpc_types.PROTOCOL_VERSION,
        str(actor.cwd),
        str(actor.data),
        capabilities=host.announced("jsonrpc"),
        host="hilt" if host.name == "hilt" else "",
        host_version=__version__ if host.name == "hilt" else "",
    )
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": msgspec.to_builtins(params)}


_NAMED_BY = {"shortcut": "key", "prompt_section": "title", "provider": "api"}
_KINDS = {
    "promptSection": "prompt_section",
    "eventHandler": "event_handler",
    "messageHook": "message_hook",
    "inputTransformer": "input_transformer",
}


def registered(line: Line) -> Registered | None:
    """What a line registers, if it registers something."""
    value = line.value or {}
    match value:
        case {"type": "register_tool" | "register_command" as type_}:
            kind, fields = type_.removeprefix("register_"), value
        case {"type": "register", "kind": str(kind)}:
            fields = value
        case {"method": str(method)} if method.startswith("register/"):
            word = method.removeprefix("register/")
            kind, fields = _KINDS.get(word, word), as_object(value.get("params"))
        case _:
            return None
    return Registered(kind, str(fields.get(_NAMED_BY.get(kind, "name"), "")), fields, line)


def words(value: Any) -> list[str]:
    """The strings of a list, if it is one."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _failed(actor: Actor, what: str) -> ExtensionStartError:
    ended = f" and {actor.ending}" if actor.ending else ""
    log = actor.log()
    said = "; the end of its log:\n" + "\n".join(f"  {line}" for line in log) if log else ""
    opening = "it must write its hello to standard output and flush it"
    if actor.dialect == "jsonrpc":
        opening = "it is sent initialize on descriptor 3, or on standard input; it registers, answers and flushes"
    return ExtensionStartError(actor.name, f"{actor.name}: {what}{ended}{said}", hint=opening)
