"""A file of settings by a stranger, and its members, asked for one by one.

Owns how such a file is read (never blocking, never more than it may hold) and how a wrong member is told. Which
members there are is up to whoever asks.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from hilt.errors import ManifestError

_LONGEST_SHOWN = 80
_BOM = b"\xef\xbb\xbf"
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""All that decoding can raise."""

_Value = TypeVar("_Value")


class Members:
    """What is wrong with them is collected, not raised."""

    def __init__(self, members: Mapping[str, object], within: str = "", *, loose: bool = False) -> None:
        """Values may still be JSON, so that nobody minds what is wrong in one that nobody asks for. `loose` takes a
        number for a text, since in some formats `1` is how one writes either."""
        # The exact spelling comes last, so it wins.
        self._members = {key.casefold(): value for key, value in members.items()} | dict(members)
        self._within = within
        self._loose = loose
        self.wrong: dict[str, tuple[str, str]] = {}
        """By member, a message and a hint."""

    def complain(self, key: str, message: str, hint: str) -> None:
        """The first complaint about a member stands: others would only follow from it."""
        label = f"{self._within}.{key}" if self._within else f'"{key}"'
        self.wrong.setdefault(label, (f"{label} {message}", hint))

    def has(self, key: str) -> bool:
        return self._value(key) is not None

    def text(self, key: str) -> str:
        value = self._value(key)
        if value is None:
            return ""
        if self._loose and type(value) is int:
            return str(value)
        if isinstance(value, str) and "\0" not in value:
            return value
        return self._refuse(key, "a string", kind(value), "", f'write "{key}": "…"')

    def texts(self, key: str) -> tuple[str, ...]:
        hint = f'write "{key}": ["…", "…"]'
        match self._value(key):
            case None:
                return ()
            case list() as items:
                odd = [at for at, item in enumerate(items) if not isinstance(item, str) or "\0" in item]
                if not odd:
                    return tuple(items)
                found = f"{kind(items[odd[0]])} in place {odd[0] + 1}"
                return self._refuse(key, "a list of strings", found, (), hint)
            case value:
                return self._refuse(key, "a list of strings", kind(value), (), hint)

    def records(self, key: str) -> tuple[Mapping[str, object], ...]:
        """A list of mappings; an item that is none counts as an empty one."""
        match self._value(key):
            case None:
                return ()
            case list() as items:
                return tuple(_named(item) if isinstance(item, dict) else {} for item in items)
            case value:
                return self._refuse(key, "a list", kind(value), (), f'correct or remove "{key}"')

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._value(key)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        return self._refuse(key, "true or false", kind(value), default, f'write "{key}": true, without quotes')

    def number(self, key: str, default: _Value, lowest: int, highest: int) -> int | _Value:
        value = self._value(key)
        if value is None:
            return default
        if type(value) is int and lowest <= value <= highest:  # a bool is an int, too
            return value
        found = quoted(str(value)) if type(value) in (int, float) else kind(value)
        expected = f"a whole number from {lowest} to {highest}"
        hint = f'write "{key}": {default}, which is what holds without it'
        return self._refuse(key, expected, found, default, hint if default is not None else f'correct "{key}"')

    def choice(self, key: str, options: Mapping[str, _Value]) -> _Value | None:
        value = self._value(key)
        if value is None:
            return None
        if isinstance(value, str) and value in options:
            return options[value]
        expected = "one of " + ", ".join(f'"{option}"' for option in options)
        found = f'"{quoted(value)}"' if isinstance(value, str) else kind(value)
        return self._refuse(key, expected, found, None, f'write "{key}": "{next(iter(options))}"')

    def inner(self, key: str) -> "Members | None":
        value = self._value(key)
        if value is None:
            return None
        if isinstance(value, dict):
            raw = self._members[key]
            members = msgspec.json.decode(raw, type=dict[str, Raw]) if isinstance(raw, Raw) else _named(value)
            inner = Members(members, key, loose=self._loose)
            inner.wrong = self.wrong
            return inner
        return self._refuse(key, "an object", kind(value), None, f'write "{key}": {{…}}')

    def _value(self, key: str) -> Any:
        value = self._members.get(key)
        if not isinstance(value, Raw):
            return value
        try:
            return msgspec.json.decode(value)
        except _UNREADABLE as error:
            self.complain(key, f"cannot be read: {_reason(error)}", f'correct or remove "{key}"')
            return None

    def _refuse(self, key: str, expected: str, found: str, default: _Value, hint: str) -> _Value:
        self.complain(key, f"must be {expected}, not {found}", hint)
        return default


def read_file(path: Path, largest: int, example: str, *, links: bool = True) -> bytes:
    """The whole of a regular file that may be anything. Raises `ManifestError`.

    Without `links` it must be the file itself: whoever may write there could have put a link to another's in its place.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        # Not opened unless it is a regular file: opening a pipe or a device may block or do something.
        if not stat.S_ISREG(path.stat(follow_symlinks=links).st_mode):
            raise ManifestError(f"{shown(path)} is not a regular file", hint=f"put a file there, such as {example}")
        # Should it have become a pipe meanwhile, reading it so returns at once.
        with os.fdopen(os.open(path, flags if links else flags | os.O_NOFOLLOW), "rb") as file:
            data = file.read(largest + 1) or b""
    except FileNotFoundError:
        raise ManifestError(f"{shown(path)}: there is no such file", hint=f"write one, such as {example}") from None
    except OSError as error:
        raise ManifestError(
            f"{shown(path)} cannot be read: {error.strerror or error}", hint="check the rights of the file and its disk"
        ) from error
    if len(data) > largest:
        raise ManifestError(
            f"{shown(path)} is larger than {largest} bytes", hint="keep what is not about starting it in another file"
        )
    return data


def json_members(path: Path, data: bytes, example: str) -> Mapping[str, object]:
    """The members, themselves unread. Raises `ManifestError`."""
    text = data.removeprefix(_BOM)
    _decoded(path, text)
    try:
        return msgspec.json.decode(text, type=dict[str, Raw])
    except msgspec.ValidationError:
        raise ManifestError(f"{shown(path)} must be a JSON object", hint=f"write {example}") from None
    except _UNREADABLE as error:
        raise ManifestError(
            f"{shown(path)} is not JSON: {_reason(error, text)}", hint=f"it looks like {example}"
        ) from error


def yaml_members(path: Path, data: bytes, example: str) -> Mapping[str, object]:
    """The members of a YAML mapping. Raises `ManifestError`."""
    import yaml  # 12 ms, and few have such a file

    text = _decoded(path, data.removeprefix(_BOM))
    try:
        # Written in Python, unlike the other loader: what is nested too deeply ends it with an exception.
        value = yaml.load(text, _loader())  # noqa: S506 - a safe loader, with fewer types
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestError(
            f"{shown(path)} is not YAML that can be used: {_yaml_reason(error)}", hint=f"it looks like {example}"
        ) from error
    if not isinstance(value, dict):
        raise ManifestError(f"{shown(path)} must be a YAML mapping", hint=f"write {example}")
    return _named(value)


def shown(text: str | Path) -> str:
    """A path or word as a message may carry it: whatever bytes a stranger chose, they are printable and UTF-8."""
    plain = str(text)
    return plain if plain.isprintable() else "".join(letter if letter.isprintable() else "\ufffd" for letter in plain)


def quoted(text: str) -> str:
    """Enough of it to recognise it."""
    return shown(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…")


def kind(value: object) -> str:
    """What it is, in words."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "a string with a NUL" if "\0" in value else "a string"
        case list():
            return "a list"
        case dict():
            return "an object"
    return "null" if value is None else "something else"


def _decoded(path: Path, text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise ManifestError(f"{shown(path)} is not UTF-8: {error.reason}", hint="save it as UTF-8") from error


def _named(members: Mapping[Any, object]) -> dict[str, object]:
    return {key: value for key, value in members.items() if isinstance(key, str)}


def _yaml_reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return shown(reason) + (f" in line {mark.line + 1}" if mark else "")


def _taken(key: object, keys: set[object]) -> bool:
    known = key in keys
    keys.discard(key)
    return known


def _loader() -> Any:
    """Knows null, true, false and whole numbers: `version: 1.0` and `2026-01-01` are texts here.

    It has no aliases, by which a short text can stand for a very long one, and no tags, by which a text can ask to be
    made into something else. Who says a thing twice means neither.
    """
    import re

    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - declared so by its parent

        def compose_node(self, parent: Any, index: Any) -> Any:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # its types are not published
            alias, tagged = isinstance(event, yaml.AliasEvent), getattr(event, "tag", None) is not None
            if alias or tagged:
                problem = "it has an alias (*)" if alias else "it has a tag (!)"
                raise yaml.composer.ComposerError(problem=problem, problem_mark=event.start_mark)
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            made = super().construct_mapping(node, deep)
            if len(made) < len(node.value):
                left = set(made)
                again = next(key for key, _ in node.value if not _taken(self.construct_object(key), left))
                problem = f"{quoted(str(again.value))} is there twice"
                raise yaml.constructor.ConstructorError(problem=problem, problem_mark=again.start_mark)
            return made

    for tag, pattern, first in (
        ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
        ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
        ("int", r"[-+]?[0-9]{1,18}", list("-+0123456789")),
    ):
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), first)
    return Loader


def _reason(error: Exception, text: bytes = b"") -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    reason, _, position = str(error).removeprefix("JSON is malformed: ").partition(" (byte ")
    at = position.removesuffix(")")
    if not text or not at.isdigit():
        return reason
    line = text.count(b"\n", 0, int(at)) + 1
    return f"{reason} in line {line}"
