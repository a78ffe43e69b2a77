"""Changing single choices of the user's in `config.toml`, and nothing else in it.

Comments, order and spacing stay as they are. A file that is written in a way in which that cannot be done is left
alone, and what to write in it is said instead.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from hilt.cli.config import load_config
from hilt.errors import ConfigError, HiltError
from hilt.packages import keeping

Value: TypeAlias = bool | str | tuple[str, ...]

_LARGEST = 1024 * 1024
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_TOKENS = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'|(?P<comment>#)""")


def choose(config: Path, extension: str, values: Mapping[str, Value]) -> None:
    """Set some of the user's choices about an extension, all at once. Raises `ConfigError`, and nothing has changed."""
    _change(config, ("extensions", extension), values)


def prefer(config: Path, values: Mapping[str, Value]) -> None:
    """The same for those that are about no extension, at the top of the file."""
    _change(config, (), values)


def amended(config: Path, extension: str, values: Mapping[str, Value]) -> bytes:
    """What the file would be with these choices about an extension. Raises `ConfigError`."""
    return _amended(config, ("extensions", extension), values)


def _change(config: Path, table: tuple[str, ...], values: Mapping[str, Value]) -> None:
    try:
        with keeping.alone(config):
            changed = _amended(config, table, values)
            keeping.replace(config.resolve(), changed)  # people keep such files elsewhere and link them
    except HiltError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(error.message, hint=f"{error.hint}, or {_by_hand(table, values)}") from error


def _amended(config: Path, table: tuple[str, ...], values: Mapping[str, Value]) -> bytes:
    load_config(config)  # what is wrong already is told as such
    text = keeping.read(config.resolve(), _LARGEST).decode()
    changed, wanted = text, _parsed(text)
    for key, value in values.items():
        changed, wanted = _set(changed, table, key, value), _with(wanted, table, key, value)
        if _parsed(changed) != wanted:
            raise ConfigError(f"{config} is written in a way that hilt cannot change", hint=_by_hand(table, values))
    return changed.encode()


def _by_hand(table: tuple[str, ...], values: Mapping[str, Value]) -> str:
    lines = ", ".join(f"{key} = {_toml(value)}" for key, value in values.items())
    where = f"{_header(table)} and below it" if table else "above all that is in brackets"
    return f"write it yourself: {where} {lines}"


def _set(text: str, table: tuple[str, ...], key: str, value: Value) -> str:
    """The text with it, if it is written as most people write it; whoever calls looks what has become of it."""
    newline = "\r\n" if "\r\n" in text else "\n"
    line = f"{key} = {_toml(value)}"
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    # What is about no extension stands before all tables.
    start = -1 if not table else next((at for at, one in enumerate(lines) if _names(one, table)), None)
    if start is None:
        gap = newline if text.strip() else ""
        last = "" if not text or text.endswith("\n") else newline
        return f"{text}{last}{gap}{_header(table)}{newline}{line}{newline}"
    end = next((at for at in range(start + 1, len(lines)) if lines[at].lstrip().startswith("[")), len(lines))
    for at in range(start + 1, end):
        if re.match(rf"""\s*(?:{key}|"{key}")\s*=""", lines[at]):
            return _replaced(lines, at, line, newline)
    if table and not lines[start].endswith("\n"):
        lines[start] += newline
    return "".join((*lines[: start + 1], line, newline, *lines[start + 1 :]))


def _replaced(lines: list[str], at: int, line: str, newline: str) -> str:
    """With another value in place of the one that begins there: with its comment, and also if it takes several lines.

    Empty when there are comments within it, whose place nobody but their author knows.
    """
    ends = (end for end in range(at + 1, len(lines) + 1) if _parsed("".join(lines[at:end])) is not None)
    end = next(ends, at + 1)
    comment = ""
    for number, old in enumerate(lines[at:end], at + 1):
        found = next((token.start() for token in _TOKENS.finditer(old) if token["comment"]), None)
        if found is not None and number < end:
            return ""
        if found is not None:
            before = old[:found].rstrip()
            comment = old[len(before) :].rstrip("\r\n")
    return "".join((*lines[:at], line, comment, newline, *lines[end:]))


def _names(line: str, table: tuple[str, ...]) -> bool:
    if not line.lstrip().startswith("["):
        return False
    inner: Any = _parsed(line)
    for word in table:
        if not isinstance(inner, dict) or list(inner) != [word]:
            return False
        inner = inner[word]
    return bool(inner == {})


def _parsed(text: str) -> dict[str, Any] | None:
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # of TOML, or of a number with too many digits
        return None


def _with(settings: dict[str, Any] | None, table: tuple[str, ...], key: str, value: Value) -> dict[str, Any]:
    changed = deepcopy(settings or {})
    inner = changed
    for word in table:
        inner = inner.setdefault(word, {})
    inner[key] = list(value) if isinstance(value, tuple) else value
    return changed


def _header(table: tuple[str, ...]) -> str:
    return f"[{'.'.join(word if _BARE.fullmatch(word) else _toml(word) for word in table)}]"


def _toml(value: Value) -> str:
    """JSON writes these as TOML does, but for DEL, which no name or permission holds."""
    return msgspec.json.encode(value).decode()
