"""What the user decided about one extension, in `config.toml`: the last word on everything its manifest asks for."""

from typing import Annotated, Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta, Struct

from hilt.packages.manifest import Limits, Manifest, SandboxLevel
from hilt.packages.permissions import Permissions, effective, problem

Part: TypeAlias = Literal[
    "tool", "command", "shortcut", "section", "guard", "hook", "transformer", "compactor", "provider"
]
"""Of an extension: what can be switched off by itself."""
_PARTS: tuple[Part, ...] = get_args(Part)
STRICTNESS: tuple[SandboxLevel, ...] = ("off", "standard", "strict")
"""The strictest last."""


class Choices(Struct, frozen=True, forbid_unknown_fields=True):
    enabled: bool | None = None
    """None leaves it to the manifest."""
    off: tuple[str, ...] = ()
    """Parts of it that are switched off: `tool:NAME`, `command:NAME`, `guard:EVENT`, or `guard` for all of them."""
    grants: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()
    sandbox: SandboxLevel | None = None
    limits: Limits = Limits()
    nice: Annotated[int, Meta(ge=0, le=19)] | None = None
    """How far its processes stand back for others."""
    tokens: Annotated[int, Meta(ge=0)] | None = None
    """How many it may have models use beside the conversation, in a session; None leaves it to what holds for all."""
    settings: dict[str, Any] = {}
    """Whatever it reads of the user's wishes: its own words, which hilt passes on."""

    def __post_init__(self) -> None:
        for part in self.off:
            kind, colon, name = part.partition(":")
            if kind not in _PARTS or bool(colon) != bool(name):
                raise ValueError(f'off: "{part}" is not one of {", ".join(f"{one}:NAME" for one in _PARTS)}')
        for permission in (*self.grants, *self.revoked):
            if wrong := problem(permission):
                raise ValueError(f'"{permission}" {wrong}')


NONE = Choices()


def choices_in(extensions: dict[str, Any]) -> dict[str, Choices]:
    """What the table of this name in the user's file says, by extension. Raises `msgspec.ValidationError`."""
    # In an object of the same name, so that a complaint names the whole way to what is wrong.
    named: dict[str, dict[str, Choices]] = msgspec.convert(
        {"extensions": extensions}, dict[Literal["extensions"], dict[str, Choices]]
    )
    return named["extensions"]


def permissions_of(manifest: Manifest, choices: Choices, *, consented: bool = False) -> Permissions:
    return effective(manifest.permissions, choices.grants, choices.revoked, consented=consented)


def sandbox_of(manifest: Manifest, choices: Choices, *, stranger: bool) -> SandboxLevel:
    """How strictly it is confined. `stranger`: it came with a project, not by the user's own choice."""
    if choices.sandbox == "off":
        return "off"
    usual: SandboxLevel = "off"
    if permissions_of(manifest, choices).confined:
        usual = "strict" if stranger else "standard"
    return max((choices.sandbox or usual, manifest.sandbox or "off"), key=STRICTNESS.index)
