"""The pipes: lines in and out, JSON as it may stand on them, and standard output taken away from the author's code.

Knows bytes and JSON, and nothing of what the lines mean. `json` itself is imported only when its C part is not there:
it costs as much as everything else together.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock

from hilt_sdk.values import SdkError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

LINE_LIMIT = 4 * 1024 * 1024
"""A line is shorter than this, its end included."""
_CHUNK = 65536
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


class LineTooLong(SdkError, ValueError):
    """A line that no host would take."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"{size} bytes are too many for one line, which is shorter than {LINE_LIMIT}; "
            "write a file and name it instead"
        )
        self.size = size


class Unwritable(SdkError, ValueError):
    """A value that JSON has no form for."""


# JSON


def _plain(value: Any) -> Any:
    """What JSON does not know by itself: dataclasses, enums, paths, sets."""
    kind = type(value)
    if hasattr(kind, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in kind.__dataclass_fields__}
    if hasattr(kind, "__members__"):  # an enum
        return value.value
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"JSON cannot hold a {kind.__name__}")


class _Reading:
    """What the C scanner asks of a decoder."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int

    @staticmethod
    def parse_constant(name: str) -> float:
        raise ValueError(f"{name} is not JSON")


def _codec() -> tuple[Callable[[str, int], tuple[Any, int]], Callable[[Any, int], Any]]:
    try:
        from _json import encode_basestring, make_encoder, make_scanner

        return make_scanner(_Reading()), make_encoder(  # type: ignore[arg-type]  # it asks for members, not for a class
            None, _plain, encode_basestring, None, ":", ",", False, False, False
        )
    except (ImportError, TypeError):  # another Python, or another version of its C part
        import json

        encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
        decoder = json.JSONDecoder(strict=False, parse_constant=_Reading.parse_constant)
        scan = decoder.scan_once  # type: ignore[attr-defined]  # documented in its source only
        return scan, lambda value, _: (encoder.encode(value),)


_scan, _encode = _codec()


def decoded(line: bytes) -> Any:
    """The value on a line. Raises `ValueError`."""
    text = line.decode().strip()
    try:
        value, end = _scan(text, 0)
    except StopIteration as stop:
        raise ValueError(f"no JSON at character {stop.value}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if end != len(text):
        raise ValueError(f"more after the JSON, at character {end}")
    return value


def encoded(value: Any) -> bytes:
    """A line, with its end. Raises `Unwritable` that names the member, or `LineTooLong`."""
    try:
        line = ("".join(_encode(value, 0)) + "\n").encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise _named(value, error) from None
    if len(line) >= LINE_LIMIT:
        raise LineTooLong(len(line))
    return line


def encoded_text(value: Any) -> str:
    """A value as text for people and models. Raises `Unwritable`."""
    return encoded(value)[:-1].decode()


def _named(value: Any, error: Exception) -> Unwritable:
    if isinstance(error, RecursionError):
        return Unwritable("the value: JSON cannot hold what contains itself, or is nested too deeply")
    place = _unwritable(value, "")
    return Unwritable(f"{place[0].lstrip('.')}: {place[1]}" if place else f"the value: JSON cannot hold it: {error}")


def _unwritable(value: Any, path: str) -> tuple[str, str] | None:
    """Where in the value is what JSON has no form for, and why."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return path or "the value", "JSON cannot hold half a character (a lone surrogate)"
        return None
    if isinstance(value, float):
        return None if value - value == 0 else (path or "the value", f"JSON cannot hold {_NOT_FINITE[str(value)]}")
    if value is None or isinstance(value, int):
        return None
    if isinstance(value, dict):
        for key, member in value.items():
            if not isinstance(key, (str, int, float)) and key is not None:
                return path or "the value", f"JSON cannot hold a {type(key).__name__} as a key"
            found = _unwritable(str(key), f"{path}.{key!a}") or _unwritable(member, f"{path}.{key}")
            if found:
                return found
        return None
    if isinstance(value, (list, tuple)):
        for number, member in enumerate(value):
            found = _unwritable(member, f"{path}[{number}]")
            if found:
                return found
        return None
    try:
        return _unwritable(_plain(value), path)
    except TypeError as error:
        return path or "the value", str(error)


# Lines


class Pipes:
    """One end of a wire. Only one thread reads at a time; any may write."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._writing = allocate_lock()
        self._lines: list[bytes] = []
        self._tail = b""
        self._skipping = False
        self.closed = False
        """The other end does not listen any more."""

    def read(self) -> bytes | None:
        """The next line without its end; None at the end of the input."""
        while not self._lines:
            data = self._more()
            if not data:
                return None
            parts = (self._tail + data if self._tail else data).split(b"\n")
            self._tail = parts.pop()
            if self._skipping and parts:  # the end of one that was too long
                self._skipping = False
                del parts[0]
            if len(self._tail) >= LINE_LIMIT:
                if not self._skipping:
                    log("a line of the host is too long, and was left out")
                self._tail, self._skipping = b"", True
            elif self._skipping:
                self._tail = b""
            parts.reverse()
            self._lines = parts
        return self._lines.pop()

    def write(self, line: bytes) -> None:
        """Write a line, whole. When nobody listens it is dropped."""
        with self._writing:
            rest: bytes | memoryview = line
            while not self.closed:
                try:
                    written = os.write(self._sink, rest)
                except BlockingIOError:
                    _wait(self._sink, writing=True)
                except OSError:
                    self.closed = True
                else:
                    if written == len(rest):
                        return
                    rest = memoryview(rest)[written:]

    def close(self) -> None:
        """Close both ends; what is written from here on is dropped."""
        with self._writing:
            self.closed = True
            os.close(self._sink)
        os.close(self._source)

    def _more(self) -> bytes:
        while True:
            try:
                return os.read(self._source, _CHUNK)
            except BlockingIOError:
                _wait(self._source, writing=False)
            except OSError:
                return b""


def _wait(descriptor: int, *, writing: bool) -> None:
    from select import select

    select([] if writing else [descriptor], [descriptor] if writing else [], [])


# Standard input and output


def chosen_dialect(environment: Mapping[str, str], asked: str = "") -> tuple[str, bool]:
    """The dialect, and whether it is spoken on descriptors 3 and 4."""
    wanted = asked or environment.get("HILT_SDK_DIALECT", "")
    if wanted not in ("", "frames", "jsonrpc"):
        raise ValueError(f"there is no dialect {wanted!r}: it is frames or jsonrpc")
    if wanted != "frames" and environment.get("PIGLET_FD") == "1" and _is_open(3) and _is_open(4):
        return "jsonrpc", True
    return wanted or "frames", False


def take_descriptors() -> Pipes:
    """Descriptors 3 and 4 as the wire; programs that the extension starts do not get them."""
    os.set_inheritable(3, False)
    os.set_inheritable(4, False)
    _flush_by_line()
    return Pipes(3, 4)


def take_stdio() -> Pipes:
    """Standard input and output as the wire. From here on whatever is printed goes to stderr, and stdin is empty."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    _flush_by_line()
    return Pipes(source, sink)


log_listeners: list[Callable[[str], object]] = []
"""Who else is told what is written to the log: hosts in tests."""


def log(text: str) -> None:
    """Write to the extension's log, which is stderr."""
    for listener in log_listeners:
        listener(text)
    if sys.stderr is not None:
        try:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            pass  # nobody keeps it


def _flush_by_line() -> None:
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
