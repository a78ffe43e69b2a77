"""`extension.json` as a value: what an extension says of itself, and the command line that follows from it.

Owns the rules of the file. It is read as the reference host reads it (keys in any case, `null` for "not said", keys
nobody knows passed over), and what is wrong with it is said field by field. Which files are read is `discovery`'s.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct

from hilt.errors import ManifestError
from hilt.model.verdicts import OnFailure

MANIFEST = "extension.json"
DataDir: TypeAlias = Literal["shared", "separate"]
"""`shared`: its state lies beside its code, as existing extensions expect."""

_LARGEST = 1024 * 1024
_LONGEST_NAME = 64
_LONGEST_SHOWN = 80
_FARTHEST_PRIORITY = 1_000_000
_MOST = 1_000_000
_GRAMMAR = '[A-Za-z0-9][A-Za-z0-9._-]{0,63}, not ending in "."'
_BOM = b"\xef\xbb\xbf"
_EXAMPLE = '{"name": "demo", "exec": "./run.py"}'
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""All that decoding can raise."""

_ON_FAILURE: Mapping[str, OnFailure] = {"block": "block", "ask": "ask", "allow": "allow"}
_DATA_DIR: Mapping[str, DataDir] = {"shared": "shared", "separate": "separate"}

_Value = TypeVar("_Value")


class Guard(Struct, frozen=True):
    """What its author asks for when it gives no verdict. The user's settings may be stricter."""

    on_failure: OnFailure | None = None
    """None leaves it to the user's settings."""
    timeout_ms: int = 5000
    required: bool = False
    """Nothing it guards may happen without it."""


class Limits(Struct, frozen=True):
    """What each of its processes may use; None is as much as the user may. No number suits all languages."""

    memory_mb: int | None = None
    """Of address space, which some runtimes reserve far more of than they use."""
    processes: int | None = None
    """Of the user's, all programs together: that is how the kernel counts. Has no effect on root."""
    open_files: int | None = None
    file_size_mb: int | None = None
    cpu_seconds: int | None = None


class Manifest(Struct, frozen=True):
    name: str
    version: str = ""
    exec: str = ""
    """As written; `resolve_exec` makes a command line of it. Empty when there is nothing to start: themes, skills."""
    args: tuple[str, ...] = ()
    language: str = ""
    description: str = ""
    enabled: bool = True
    guard: Guard | None = None
    """None when it does not declare itself a guard; it may intercept all the same."""
    priority: int = 0
    """Among interceptors, higher is asked first."""
    start_timeout_ms: int = 10_000
    """How long it may take to greet the host."""
    tool_timeout_ms: int = 60_000
    stop_grace_ms: int = 2000
    """How long it may take to end by itself, once told to."""
    data_dir: DataDir = "shared"
    skills: tuple[str, ...] = ()
    limits: Limits = Limits()


_UNSAID, _UNSAID_GUARD = Manifest(""), Guard()
"""What holds without a word about it."""


def read_manifest(directory: Path) -> Manifest:
    """Read and check it, without ever blocking on it. Raises `ManifestError` that says everything that is wrong."""
    path = directory / MANIFEST
    members = _Members(_object(path, _content(path)))
    manifest = Manifest(
        name=_name(members, directory),
        version=members.text("version"),
        exec=members.text("exec"),
        args=members.texts("args"),
        language=members.text("language"),
        description=members.text("description"),
        enabled=members.flag("enabled", default=_UNSAID.enabled),
        guard=_guard(members),
        priority=members.number("priority", _UNSAID.priority, -_FARTHEST_PRIORITY, _FARTHEST_PRIORITY),
        start_timeout_ms=members.number("start_timeout_ms", _UNSAID.start_timeout_ms, 100, 120_000),
        tool_timeout_ms=members.number("tool_timeout_ms", _UNSAID.tool_timeout_ms, 100, 3_600_000),
        stop_grace_ms=members.number("stop_grace_ms", _UNSAID.stop_grace_ms, 0, 10_000),
        data_dir=members.choice("data_dir", _DATA_DIR) or _UNSAID.data_dir,
        skills=members.texts("skills"),
        limits=_limits(members),
    )
    if not (manifest.exec or manifest.skills or _has_theme(directory)):
        members.complain("exec", "is missing", 'name the program to run, as in "exec": "./run.py"')
    if members.wrong:
        messages, hints = zip(*members.wrong.values(), strict=True)
        raise ManifestError(f"{shown(path)}: {'; '.join(messages)}", hint=hints[0], extension=manifest.name)
    return manifest


def resolve_exec(manifest: Manifest, directory: Path, path: str) -> tuple[str, ...]:
    """The command line. Raises `ManifestError` when a bare word is not on `path`; other programs are not looked at."""
    program = manifest.exec
    if "/" in program or program in (".", ".."):
        return (str(directory / program), *manifest.args)  # an absolute one stays as it is
    if found := on_path(program, path):
        return (found, *manifest.args)
    raise ManifestError(
        f'{shown(directory / MANIFEST)}: "exec": {_quoted(program)} is not on PATH',
        hint=f'install {_quoted(program)}, or give its path, as in "exec": "./{_quoted(program)}"',
        extension=manifest.name,
    )


def on_path(word: str, path: str) -> str | None:
    """The program of that name. Relative entries of PATH do not count: what they find depends on where one stands."""
    for folder in path.split(os.pathsep):
        candidate = Path(folder, word)
        if candidate.is_absolute() and os.access(candidate, os.X_OK) and candidate.is_file():
            return str(candidate)
    return None


def is_name(text: str) -> bool:
    """Whether it fits the grammar of names. A name becomes part of file names."""
    letters = text.replace(".", "").replace("_", "").replace("-", "")
    fits = 0 < len(text) <= _LONGEST_NAME and text.isascii() and letters.isalnum() and text[0].isalnum()
    return fits and not text.endswith(".")


def as_name(text: str) -> str:
    """The text with as little changed as makes it a name, or nothing."""
    fitted = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in text)
    return fitted.lstrip("._-")[:_LONGEST_NAME].rstrip(".")


def shown(text: str | Path) -> str:
    """A path or word as a message may carry it: whatever bytes a stranger chose, they are printable and UTF-8."""
    plain = str(text)
    return plain if plain.isprintable() else "".join(letter if letter.isprintable() else "\ufffd" for letter in plain)


class _Members:
    """The members of a JSON object, asked for one by one. What is wrong with them is collected, not raised."""

    def __init__(self, members: Mapping[str, Raw], within: str = "") -> None:
        # The exact spelling comes last, so it wins.
        self._members = {key.casefold(): raw for key, raw in members.items()} | dict(members)
        self._within = within
        self.wrong: dict[str, tuple[str, str]] = {}
        """By member, a message and a hint."""

    def complain(self, key: str, message: str, hint: str) -> None:
        """The first complaint about a member stands: others would only follow from it."""
        label = f"{self._within}.{key}" if self._within else f'"{key}"'
        self.wrong.setdefault(label, (f"{label} {message}", hint))

    def text(self, key: str) -> str:
        value = self._value(key)
        if value is None:
            return ""
        if isinstance(value, str) and "\0" not in value:
            return value
        return self._refuse(key, "a string", _kind(value), "", f'write "{key}": "…"')

    def texts(self, key: str) -> tuple[str, ...]:
        hint = f'write "{key}": ["…", "…"]'
        match self._value(key):
            case None:
                return ()
            case list() as items:
                odd = [at for at, item in enumerate(items) if not isinstance(item, str) or "\0" in item]
                if not odd:
                    return tuple(items)
                found = f"{_kind(items[odd[0]])} in place {odd[0] + 1}"
                return self._refuse(key, "a list of strings", found, (), hint)
            case value:
                return self._refuse(key, "a list of strings", _kind(value), (), hint)

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._value(key)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        return self._refuse(key, "true or false", _kind(value), default, f'write "{key}": true, without quotes')

    def number(self, key: str, default: _Value, lowest: int, highest: int) -> int | _Value:
        value = self._value(key)
        if value is None:
            return default
        if type(value) is int and lowest <= value <= highest:  # a bool is an int, too
            return value
        found = _quoted(str(value)) if type(value) in (int, float) else _kind(value)
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
        found = f'"{_quoted(value)}"' if isinstance(value, str) else _kind(value)
        return self._refuse(key, expected, found, None, f'write "{key}": "{next(iter(options))}"')

    def inner(self, key: str) -> "_Members | None":
        value = self._value(key)
        if value is None:
            return None
        if isinstance(value, dict):
            inner = _Members(msgspec.json.decode(self._members[key], type=dict[str, Raw]), key)
            inner.wrong = self.wrong
            return inner
        return self._refuse(key, "an object", _kind(value), None, f'write "{key}": {{…}}')

    def _value(self, key: str) -> Any:
        raw = self._members.get(key)
        try:
            return None if raw is None else msgspec.json.decode(raw)
        except _UNREADABLE as error:
            self.complain(key, f"cannot be read: {_reason(error)}", f'correct or remove "{key}"')
            return None

    def _refuse(self, key: str, expected: str, found: str, default: _Value, hint: str) -> _Value:
        self.complain(key, f"must be {expected}, not {found}", hint)
        return default


def _name(members: _Members, directory: Path) -> str:
    """Empty when there is none that could be used."""
    name = members.text("name")
    if is_name(name):
        return name
    wrong = f'must match {_GRAMMAR}: "{_quoted(name)}" does not' if name else "is missing"
    members.complain("name", wrong, f'write "name": "{as_name(name) or as_name(directory.name) or "demo"}"')
    return ""


def _guard(members: _Members) -> Guard | None:
    guard = members.inner("guard")
    if guard is None:
        return None
    return Guard(
        on_failure=guard.choice("on_failure", _ON_FAILURE),
        timeout_ms=guard.number("timeout_ms", _UNSAID_GUARD.timeout_ms, 100, 60_000),
        required=guard.flag("required", default=_UNSAID_GUARD.required),
    )


def _limits(members: _Members) -> Limits:
    limits = members.inner("limits")
    if limits is None:
        return _UNSAID.limits
    return Limits(
        memory_mb=limits.number("memory_mb", None, 16, _MOST),
        processes=limits.number("processes", None, 1, _MOST),
        open_files=limits.number("open_files", None, 16, _MOST),
        file_size_mb=limits.number("file_size_mb", None, 1, _MOST),
        cpu_seconds=limits.number("cpu_seconds", None, 1, _MOST),
    )


def _has_theme(directory: Path) -> bool:
    return any(os.access(directory / theme, os.F_OK) for theme in ("theme.json", "themes/theme.json"))


def _content(path: Path) -> bytes:
    try:
        # Not opened unless it is a regular file: opening a pipe or a device may block or do something.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ManifestError(f"{shown(path)} is not a regular file", hint=f"put a file there, such as {_EXAMPLE}")
        # Should it have become a pipe meanwhile, reading it so returns at once.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb") as file:
            data = file.read(_LARGEST + 1) or b""
    except FileNotFoundError:
        raise ManifestError(f"{shown(path)}: there is no such file", hint=f"write one, such as {_EXAMPLE}") from None
    except OSError as error:
        raise ManifestError(
            f"{shown(path)} cannot be read: {error.strerror or error}", hint="check the rights of the file and its disk"
        ) from error
    if len(data) > _LARGEST:
        raise ManifestError(
            f"{shown(path)} is larger than {_LARGEST} bytes", hint="keep what is not about starting it in another file"
        )
    return data


def _object(path: Path, data: bytes) -> Mapping[str, Raw]:
    """Its members unread: what is wrong in one nobody asks for does not matter."""
    text = data.removeprefix(_BOM)
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise ManifestError(f"{shown(path)} is not UTF-8: {error.reason}", hint="save it as UTF-8") from error
    try:
        return msgspec.json.decode(text, type=dict[str, Raw])
    except msgspec.ValidationError:
        raise ManifestError(f"{shown(path)} must be a JSON object", hint=f"write {_EXAMPLE}") from None
    except _UNREADABLE as error:
        raise ManifestError(
            f"{shown(path)} is not JSON: {_reason(error, text)}", hint=f"it looks like {_EXAMPLE}"
        ) from error


def _reason(error: Exception, text: bytes = b"") -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    reason, _, position = str(error).removeprefix("JSON is malformed: ").partition(" (byte ")
    at = position.removesuffix(")")
    if not text or not at.isdigit():
        return reason
    line = text.count(b"\n", 0, int(at)) + 1
    return f"{reason} in line {line}"


def _kind(value: object) -> str:
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
    return "null"


def _quoted(text: str) -> str:
    """Enough of it to recognise it."""
    return shown(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…")
