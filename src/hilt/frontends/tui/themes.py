"""Themes: dark, light, the terminal's own colours, and the user's, each a file of a few colours.

A file is `themes/NAME.toml` in hilt's home: `base` names the theme it begins with, everything else is a colour of it.
What is wrong with a file is said, and never keeps the interface from opening.
"""

import os
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from hilt.errors import ConfigError
from hilt.frontends.tui.look import DARK, LIGHT, SYSTEM, Palette

BUILTIN = {"dark": DARK, "light": LIGHT, "system": SYSTEM}
"""In the order in which they are offered."""

_COLOURS = tuple(field.name for field in fields(Palette) if field.name != "dark")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_HUES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_ANSI = frozenset(("default", *_HUES, *(f"bright_{hue}" for hue in _HUES)))
_LARGEST = 64 * 1024
_LIGHT_BACKGROUNDS = ("7", "15")


def names(folder: Path) -> tuple[str, ...]:
    """All that can be chosen: the built-in ones, then the user's."""
    try:
        own = sorted(path.stem for path in folder.glob("*.toml") if _NAME.fullmatch(path.stem))
    except OSError:
        own = []
    return (*BUILTIN, *(name for name in own if name not in BUILTIN))


def find(name: str, folder: Path) -> Palette:
    """Raises `ConfigError`."""
    if palette := BUILTIN.get(name):
        return palette
    path = folder / f"{name}.toml"
    if not _NAME.fullmatch(name) or not path.is_file():
        known = ", ".join(names(folder))
        raise ConfigError(f'there is no theme "{name[:80]}"', hint=f"one of {known}; your own are files in {folder}")
    return _read(path)


def wanted(environment: "os._Environ[str] | dict[str, str]", home: Path) -> str:
    """The name of the theme to begin with: by HILT_THEME, by the configuration, or by what the terminal says of itself.

    On the way to the first frame, so the configuration is only looked into; that it is sound is for others to say.
    """
    if name := environment.get("HILT_THEME"):
        return name
    if name := _configured(home / "config.toml"):
        return name
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if background in _LIGHT_BACKGROUNDS else "dark"


def _configured(config: Path) -> str:
    if not config.is_file():
        return ""
    try:
        name = _parsed(config).get("theme", "")
    except (OSError, ValueError, RecursionError):
        return ""
    return name if isinstance(name, str) else ""


def _parsed(path: Path) -> dict[str, Any]:
    import tomllib  # 4 ms, and most people have no such file

    with path.open("rb") as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise ValueError(f"it is larger than {_LARGEST:,} bytes")
    return tomllib.loads(text.decode())


def _read(path: Path) -> Palette:
    try:
        told = _parsed(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {error}", hint="write it as TOML") from error
    base = told.pop("base", "dark")
    if not isinstance(base, str) or base not in BUILTIN:
        raise ConfigError(f"{path}: base: {base!r} is no built-in theme", hint=f"one of {', '.join(BUILTIN)}")
    for key, colour in told.items():
        if key not in _COLOURS:
            raise ConfigError(f"{path}: there is no colour {key!r}", hint=f"they are {', '.join(_COLOURS)}")
        if not (isinstance(colour, str) and (_HEX.fullmatch(colour) or colour in _ANSI)):
            raise ConfigError(
                f"{path}: {key}: {colour!r} is no colour",
                hint="write #rrggbb, or a colour of the terminal's such as bright_blue, or default",
            )
    return replace(BUILTIN[base], **told)
