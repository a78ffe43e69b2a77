"""One line of a trace: what it says, what it must not say, and how long it may be. Pure.

`{"time","at","extension","pid","dialect","direction","frame"}`, and where it applies `raw` and `cut`. Every line has
the first seven, so that whoever filters them need not ask which kind it is.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from hilt.model.extensions import Dialect
from hilt.model.masking import MASK, Mask
from hilt.packages.environment import may_have_token, tokens_hidden

Direction: TypeAlias = Literal["to_extension", "from_extension", "lifecycle"]

LONGEST = 256 * 1024
"""Bytes of a frame that are kept as they are."""
_STRING = 1024
"""Characters of each string in a frame that is longer than that."""
_MEMBERS = 200
"""Members of each list and object in it."""
_RAW = 4096
"""Characters of a line that is kept as text."""
_CONFIDENTIAL = re.compile(
    r"(?:^|[_-])(?:api[_-]?key|access[_-]?key|private[_-]?key|token|secret|password|passphrase|authorization|cookie)$",
    re.IGNORECASE,
)
"""Names of members whose text is nobody else's business."""
_MAY_BE_CONFIDENTIAL = re.compile(rb"key|token|secret|password|passphrase|authorization|cookie", re.IGNORECASE)


class Who(Struct, frozen=True):
    """Between whom a line passed, beside us."""

    extension: str
    dialect: Dialect | Literal[""]
    pid: int = 0


class Traced(Struct, frozen=True):
    """A line as it is written to the file."""

    time: str
    """RFC 3339, in UTC, with microseconds."""
    at: float
    """Milliseconds since the trace was begun, by a clock that nobody sets."""
    extension: str
    pid: int
    dialect: str
    direction: Direction
    frame: Any
    """The JSON of the line; null when it has none."""
    raw: str | UnsetType = UNSET
    """The text of a line that is no JSON, or of which too little is kept for it to be any."""
    cut: int | UnsetType = UNSET
    """How many bytes the whole of it had, when only a part is kept."""


class Secrets(Struct, frozen=True):
    """What must not be in a trace: what is known to be secret, and what looks like it."""

    masks: tuple[Mask, ...]

    def may_be_in(self, line: bytes) -> bool:
        """A quick look at a line of JSON, for hardly any has something to hide."""
        if any(mask.may_be_in(line) for mask in self.masks) or _MAY_BE_CONFIDENTIAL.search(line):
            return True
        return may_have_token(line.decode())

    def hide(self, text: str, *, ended: bool = True) -> str:
        """Also within JSON within a string. A text that has not `ended` may end with the beginning of a secret."""
        for mask in self.masks:
            text, _ = mask.cut(text, in_json=True, ended=ended)
        return tokens_hidden(text, MASK)

    def harmless(self, value: Any) -> Any:
        """A value of JSON, as a trace has it."""
        return _harmless(value, self.hide)


def written(who: Who, direction: Direction, line: bytes, when: float, at: float, secrets: Secrets) -> bytes:
    """The line of the trace for a line that passed; `when` is seconds since 1970, `at` milliseconds."""
    try:
        frame = msgspec.json.decode(line)
        if secrets.may_be_in(msgspec.json.encode(frame)):  # written anew: it may have been escaped in any way
            frame = _harmless(frame, secrets.hide)
        cut: int | UnsetType = UNSET
        if len(line) > LONGEST:
            frame, cut = _shortened(frame), len(line)
        encoded = _line(who, direction, when, at, frame, cut=cut)
        if len(encoded) <= LONGEST or cut is UNSET:
            return encoded
    except (ValueError, RecursionError, OverflowError):
        pass  # no JSON, or some that cannot be written again: then its text must do
    return written_raw(who, direction, line, len(line), when, at, secrets)


def written_raw(
    who: Who, direction: Direction, head: bytes, size: int, when: float, at: float, secrets: Secrets
) -> bytes:
    """The same of one that is kept as text, of which this is the beginning."""
    text = secrets.hide(head.decode("utf-8", "replace"), ended=len(head) == size)
    cut = size if len(text) > _RAW or len(head) < size else UNSET
    return _line(who, direction, when, at, None, raw=text[:_RAW], cut=cut)


def written_event(who: Who, what: str, when: float, at: float, secrets: Secrets, **facts: Any) -> bytes:
    """Something that happened to a process, or to the trace."""
    return _line(who, "lifecycle", when, at, _harmless({"type": what, **facts}, secrets.hide))


def _line(
    who: Who,
    direction: Direction,
    when: float,
    at: float,
    frame: Any,
    raw: str | UnsetType = UNSET,
    cut: int | UnsetType = UNSET,
) -> bytes:
    time = datetime.fromtimestamp(when, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    traced = Traced(time, round(at, 3), who.extension, who.pid, who.dialect, direction, frame, raw, cut)
    return msgspec.json.encode(traced) + b"\n"


def _harmless(value: Any, hide: Callable[[str], str]) -> Any:
    match value:
        case str():
            return hide(value).encode("utf-8", "backslashreplace").decode()  # half a pair of surrogates is no text
        case dict():
            return {_harmless(key, hide): _member(key, item, hide) for key, item in value.items()}
        case list() | tuple():
            return [_harmless(item, hide) for item in value]
    return value


def _member(key: str, value: Any, hide: Callable[[str], str]) -> Any:
    return MASK if value and isinstance(value, str) and _CONFIDENTIAL.search(key) else _harmless(value, hide)


def _shortened(value: Any) -> Any:
    match value:
        case str():
            return value if len(value) <= _STRING else f"{value[:_STRING]}… [{len(value) - _STRING} more characters]"
        case dict():
            return {_shortened(key): _shortened(value[key]) for key in list(value)[:_MEMBERS]}
        case list():
            more = [f"… [{len(value) - _MEMBERS} more]"] if len(value) > _MEMBERS else []
            return [_shortened(item) for item in value[:_MEMBERS]] + more
    return value
