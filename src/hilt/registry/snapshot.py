"""An immutable view of the registry, taken once per model call. Precedence and the order of interceptors live here."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Generic, Literal, TypeAlias, TypeVar, assert_never

from msgspec import Struct

from hilt.model.contributions import (
    Command,
    Compactor,
    Contribution,
    InputTransformer,
    Interceptor,
    MessageHook,
    ModelSource,
    PromptSection,
    ResultInterceptor,
    Shortcut,
    Tool,
)
from hilt.model.verdicts import Interceptable


class Owner(Struct, frozen=True):
    """Who published something. Built-ins come before extensions, those by `order`, equals as they came."""

    name: str
    builtin: bool = False
    order: int = 0
    """The place in which it was found, not when it was ready: a slow start must not decide who owns a name."""


Kind: TypeAlias = Literal["tool", "command", "shortcut", "compactor", "models of"]
"""Of what there is one for each name."""


class Conflict(Struct, frozen=True):
    """A name two owners claim; `owner` kept it."""

    kind: Kind
    name: str
    owner: str
    refused: str


class OwnedCommand(Struct, frozen=True):
    owner: str
    command: Command


class OwnedTool(Struct, frozen=True):
    owner: str
    tool: Tool


class OwnedShortcut(Struct, frozen=True):
    owner: str
    shortcut: Shortcut


class OwnedInterceptor(Struct, frozen=True):
    owner: str
    interceptor: Interceptor


_Offer = TypeVar("_Offer")


class Owned(Struct, Generic[_Offer], frozen=True):
    owner: str
    offer: _Offer


class Snapshot(Struct, frozen=True):
    tools: Mapping[str, OwnedTool]
    """By exact name, in order of precedence."""
    commands: Mapping[str, OwnedCommand]
    """By lower-case name."""
    shortcuts: Mapping[str, OwnedShortcut]
    """By lower-case key."""
    interceptors: Mapping[Interceptable, tuple[OwnedInterceptor, ...]]
    """In the order in which their answers count: by priority, then by owner."""
    sections: tuple[PromptSection, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    results: tuple[Owned[ResultInterceptor], ...] = ()
    """By priority, as the interceptors."""
    hooks: tuple[Owned[MessageHook], ...] = ()
    """Those of low priority first, as the transformers."""
    transformers: tuple[Owned[InputTransformer], ...] = ()
    compactor: Owned[Compactor] | None = None
    sources: Mapping[str, Owned[ModelSource]] = MappingProxyType({})
    """By API."""

    def tool(self, name: str) -> Tool | None:
        owned = self.tools.get(name)
        return owned.tool if owned else None

    def command(self, name: str) -> OwnedCommand | None:
        return self.commands.get(name.lower())

    def guards(self, event: Interceptable) -> tuple[OwnedInterceptor, ...]:
        return self.interceptors.get(event, ())


def freeze(published: Iterable[tuple[Owner, tuple[Contribution, ...]]]) -> Snapshot:
    """Decide who keeps each name. Publications are given in the order they were made."""
    view = _View()
    for owner, contributions in sorted(published, key=lambda pair: (not pair[0].builtin, pair[0].order)):
        for contribution in contributions:
            view.add(owner.name, contribution)
        if owner.builtin:
            view.reserve()
    return view.frozen()


_Owned = TypeVar("_Owned", OwnedTool, OwnedCommand, OwnedShortcut, Owned[Compactor], Owned[ModelSource])


class _View:
    """A snapshot being put together."""

    def __init__(self) -> None:
        self._tools: dict[str, OwnedTool] = {}
        self._commands: dict[str, OwnedCommand] = {}
        self._shortcuts: dict[str, OwnedShortcut] = {}
        self._interceptors: dict[Interceptable, list[OwnedInterceptor]] = {}
        self._sections: list[PromptSection] = []
        self._results: list[Owned[ResultInterceptor]] = []
        self._hooks: list[Owned[MessageHook]] = []
        self._transformers: list[Owned[InputTransformer]] = []
        self._compactors: dict[str, Owned[Compactor]] = {}
        self._sources: dict[str, Owned[ModelSource]] = {}
        self._conflicts: list[Conflict] = []
        self._reserved: dict[str, str] = {}
        """Of the built-in tools, by how others might spell them."""

    def reserve(self) -> None:
        """Keep the names of these tools in every spelling: a model that means `bash` may well call `Bash`."""
        self._reserved = {_spelt(name): name for name in self._tools}

    def add(self, owner: str, contribution: Contribution) -> None:
        match contribution:
            case Tool(name=name):
                key = self._reserved.get(_spelt(name), name)
                self._claim("tool", name, self._tools, key, OwnedTool(owner, contribution))
            case Command(name=name):
                self._claim("command", name, self._commands, name.lower(), OwnedCommand(owner, contribution))
            case Shortcut(key=key):
                self._claim("shortcut", key, self._shortcuts, key.lower(), OwnedShortcut(owner, contribution))
            case Interceptor(event=event):
                self._interceptors.setdefault(event, []).append(OwnedInterceptor(owner, contribution))
            case PromptSection():
                self._sections.append(contribution)
            case ResultInterceptor():
                self._results.append(Owned(owner, contribution))
            case MessageHook():
                self._hooks.append(Owned(owner, contribution))
            case InputTransformer():
                self._transformers.append(Owned(owner, contribution))
            case Compactor():
                self._claim("compactor", "a compactor", self._compactors, "", Owned(owner, contribution))
            case ModelSource(api=api):
                self._claim("models of", api, self._sources, api, Owned(owner, contribution))
            case never:
                assert_never(never)

    def _claim(
        self,
        kind: Kind,
        name: str,
        taken: dict[str, _Owned],
        key: str,
        owned: _Owned,
    ) -> None:
        holder = taken.setdefault(key, owned).owner
        if holder != owned.owner:
            self._conflicts.append(Conflict(kind, name, holder, owned.owner))

    def frozen(self) -> Snapshot:
        ordered = {
            event: tuple(sorted(asked, key=lambda owned: -owned.interceptor.priority))
            for event, asked in self._interceptors.items()
        }
        return Snapshot(
            MappingProxyType(self._tools),
            MappingProxyType(self._commands),
            MappingProxyType(self._shortcuts),
            MappingProxyType(ordered),
            tuple(sorted(self._sections, key=lambda section: section.order)),
            tuple(self._conflicts),
            tuple(sorted(self._results, key=lambda owned: -owned.offer.priority)),
            tuple(sorted(self._hooks, key=lambda owned: owned.offer.priority)),
            tuple(sorted(self._transformers, key=lambda owned: owned.offer.priority)),
            self._compactors.get(""),
            MappingProxyType(self._sources),
        )


def _spelt(name: str) -> str:
    return name.lower().replace("-", "_")
