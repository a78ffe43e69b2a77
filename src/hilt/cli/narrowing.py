"""`.hilt/config.toml` of a project: it can ask for less than the user allows, never for more.

So it may be read before the project is trusted. Where the model is, which key it gets, what an extension of the user's
own does and what is trusted are not for a project to say.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from hilt.cli.config import Config, Guards
from hilt.errors import HiltError
from hilt.model.actions import PermissionMode
from hilt.model.verdicts import STRICTNESS, OnFailure
from hilt.packages.choices import NONE, Choices
from hilt.packages.discovery import PROJECT
from hilt.packages.members import quoted, read_file, shown

_Level = TypeVar("_Level", bound=str)

_LARGEST = 64 * 1024
_MODES: tuple[PermissionMode, ...] = ("yolo", "accept-edits", "ask")
"""The strictest last."""
_FIELDS = ("permissions", "max_steps", "jail", "guards")
_NAMED = 5


class _Own(Struct, frozen=True, forbid_unknown_fields=True):
    """About an extension that comes with the project."""

    enabled: bool = True
    off: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()
    sandbox: Literal["strict"] | None = None
    """No other level: it might be milder than the one that holds where nothing is said."""


class _Guards(Struct, frozen=True, forbid_unknown_fields=True):
    on_failure: OnFailure = "allow"


class _Narrowing(Struct, frozen=True):
    permissions: PermissionMode = "yolo"
    max_steps: Annotated[int, Meta(ge=1)] | None = None
    jail: bool = False
    guards: _Guards = _Guards()


def narrowed(config: Config, path: Path, tell: Callable[[str], None]) -> Config:
    """The user's configuration with what the project's file takes away; what it may not say is told, and left out."""
    import tomllib

    try:
        wanted = tomllib.loads(read_file(path, _LARGEST, 'permissions = "ask"').decode())
    except HiltError as error:
        tell(f"{error.message}; it is not heeded")
        return config
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, or nested without end
        tell(f"{shown(path)} is not heeded: {shown(str(error))}")
        return config
    if widening := wanted.keys() - {*_FIELDS, "extensions"}:
        tell(f"{shown(path)}: {_few(widening)}: not for a project to say, so it is not heeded")
    asked = {key: wanted[key] for key in _FIELDS if key in wanted and _sound(path, key, wanted[key], tell)}
    return _applied(config, msgspec.convert(asked, _Narrowing), _about(config, path, wanted, tell))


def _sound(path: Path, key: str, value: Any, tell: Callable[[str], None]) -> bool:
    """Each by itself: what is wrong with one must not undo another, which makes something safer."""
    try:
        msgspec.convert({key: value}, _Narrowing)
    except msgspec.ValidationError as error:
        tell(f"{shown(path)}: {key} is not heeded: {shown(str(error))}; a project can only narrow what you allow")
        return False
    return True


def _about(config: Config, path: Path, wanted: Mapping[str, Any], tell: Callable[[str], None]) -> dict[str, Choices]:
    """What it takes away from the extensions that come with it."""
    extensions = wanted.get("extensions", {})
    if not isinstance(extensions, dict):
        tell(f"{shown(path)}: extensions is not heeded: it must be a table")
        return {}
    if others := {name for name in extensions if not name.startswith(PROJECT)}:
        tell(f"{shown(path)}: about {_few(others)} only you decide, in your own config.toml")
    chosen: dict[str, Choices] = {}
    for name in extensions.keys() - others:
        try:
            own = msgspec.convert(extensions[name], _Own)
            chosen[name] = _own(config.extensions.get(name, NONE), own)
        except ValueError as error:  # also of `Choices`, which minds what its words may be
            narrow = "a project can only narrow what you allow"
            tell(f'{shown(path)}: extensions."{quoted(name)}" is not heeded: {shown(str(error))}; {narrow}')
    return chosen


def _applied(config: Config, narrowing: _Narrowing, own: dict[str, Choices]) -> Config:
    return msgspec.structs.replace(
        config,
        permissions=_stricter(_MODES, config.permissions or "yolo", narrowing.permissions),
        max_steps=min(config.max_steps, narrowing.max_steps or config.max_steps),
        jail=config.jail or narrowing.jail,
        guards=_guards(config.guards, narrowing.guards.on_failure),
        extensions=config.extensions | own,
    )


def _stricter(order: tuple[_Level, ...], mine: _Level, theirs: _Level) -> _Level:
    return max(mine, theirs, key=order.index)


def _guards(mine: Guards, theirs: OnFailure) -> Guards:
    # What the user left unsaid depends on who is there to ask, and is at least as strict as allowing.
    if theirs == "allow":
        return mine
    by_name = {name: _stricter(STRICTNESS, one, theirs) for name, one in mine.by_name.items()}
    return Guards(_stricter(STRICTNESS, mine.on_failure or "allow", theirs), by_name)


def _own(mine: Choices, own: _Own) -> Choices:
    return msgspec.structs.replace(
        mine,
        enabled=False if not own.enabled else mine.enabled,
        off=tuple(dict.fromkeys((*mine.off, *own.off))),
        revoked=tuple(dict.fromkeys((*mine.revoked, *own.revoked))),
        sandbox=own.sandbox or mine.sandbox,
    )


def _few(names: set[str]) -> str:
    """A stranger chose them, and how many there are."""
    told = sorted(names)
    return ", ".join(map(quoted, told[:_NAMED])) + (f" and {len(told) - _NAMED} more" if len(told) > _NAMED else "")
