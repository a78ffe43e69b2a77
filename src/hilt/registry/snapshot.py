"""An immutable view of the registry, taken once per model call. Precedence lives here."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from hilt.model.contributions import Command, Contribution, Tool


class Owner(Struct, frozen=True):
    """Who published something. Built-ins come before extensions, then first come first served."""

    name: str
    builtin: bool = False


class Conflict(Struct, frozen=True):
    """A name two owners claim; `owner` kept it."""

    kind: Literal["tool", "command"]
    name: str
    owner: str
    refused: str


class OwnedCommand(Struct, frozen=True):
    owner: str
    command: Command


class OwnedTool(Struct, frozen=True):
    owner: str
    tool: Tool


class Snapshot(Struct, frozen=True):
    tools: Mapping[str, OwnedTool]
    """By exact name, in order of precedence."""
    commands: Mapping[str, OwnedCommand]
    """By lower-case name."""
    conflicts: tuple[Conflict, ...] = ()

    def tool(self, name: str) -> Tool | None:
        owned = self.tools.get(name)
        return owned.tool if owned else None

    def command(self, name: str) -> OwnedCommand | None:
        return self.commands.get(name.lower())


def freeze(published: Iterable[tuple[Owner, tuple[Contribution, ...]]]) -> Snapshot:
    """Decide who keeps each name. Publications are given in the order they were made."""
    tools: dict[str, OwnedTool] = {}
    commands: dict[str, OwnedCommand] = {}
    conflicts: list[Conflict] = []
    for owner, contributions in sorted(published, key=lambda pair: not pair[0].builtin):
        for contribution in contributions:
            match contribution:
                case Tool(name=name):
                    holder = tools.setdefault(name, OwnedTool(owner.name, contribution)).owner
                    kind: Literal["tool", "command"] = "tool"
                case Command(name=name):
                    holder = commands.setdefault(name.lower(), OwnedCommand(owner.name, contribution)).owner
                    kind = "command"
            if holder != owner.name:
                conflicts.append(Conflict(kind, name, holder, owner.name))
    return Snapshot(MappingProxyType(tools), MappingProxyType(commands), tuple(conflicts))
