"""One line of a session file: `{"type","id","parent","time","n","c","data",…}`, always in this order.

`n` counts the records of the file. `c` is the CRC-32 of the line without those eight digits, so that a
line is either exactly what was written or known to be damaged, and a whole one need not be parsed to
be trusted: opening a session reads only the part before `c`. Lines without `c` are accepted as JSON.
Pure: bytes in, values out.
"""

from collections.abc import Mapping
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

PADDING = b"\0 \t\r"
"""Left around lines by power losses and by editors; never part of a record."""

_MARK = b',"c":"'
_DIGITS = 8
_HEAD = ("type", "id", "parent", "time", "n")


class Head(Struct, gc=False):
    type: str
    id: str
    parent: str = ""
    time: str = ""
    n: int = -1


class Moved(Struct, frozen=True):
    """A long string that lives in a side file; the data has an empty string in its place."""

    at: tuple[str | int, ...]
    """The keys and positions that lead to it."""
    blob: str


class Line(Struct):
    """A line with its data still encoded."""

    type: str
    id: str
    data: Raw
    parent: str = ""
    time: str = ""
    n: int = -1
    c: str = ""
    blobs: tuple[Moved, ...] = ()


class _Role(Struct):
    role: str


class _RoleOnly(Struct):
    message: _Role


_HEADS = msgspec.json.Decoder(Head)
_LINES = msgspec.json.Decoder(Line)
_ROLES = msgspec.json.Decoder(_RoleOnly)
_FIELDS = msgspec.json.Decoder(dict[str, Raw])


def parse(line: bytes) -> Head | None:
    """Who a line is, or None when it is damaged."""
    try:
        at = line.find(_MARK)
        if at >= 0 and _checksum(line, at) == line[at + len(_MARK) : at + len(_MARK) + _DIGITS]:
            head = _HEADS.decode(line[:at] + b"}")
        else:
            whole = _LINES.decode(line)
            if whole.c:
                return None
            head = Head(whole.type, whole.id, whole.parent, whole.time, whole.n)
    except (ValueError, RecursionError):
        return None
    return head if head.id and head.type else None


def open_line(line: bytes) -> Line | None:
    """The line with its data at hand; its checksum was looked at when it was parsed."""
    try:
        return _LINES.decode(line)
    except (ValueError, RecursionError):
        return None


def role_of(line: bytes) -> str:
    """Whose message a `message` line is, without reading the message."""
    for role in ("user", "assistant"):
        if line.find(b'"data":{"message":{"role":"%s"' % role.encode(), 0, 512) >= 0:
            return role
    whole = open_line(line)
    try:
        return _ROLES.decode(whole.data).message.role if whole else ""
    except (ValueError, RecursionError):
        return ""


def fields_of(line: bytes) -> dict[str, bytes]:
    """Every field as it stands, known or not, to be changed and sealed again."""
    return {key: bytes(value) for key, value in _FIELDS.decode(line).items()}


def seal(fields: Mapping[str, bytes]) -> bytes:
    """A line, without its end, from encoded fields: the known ones in their order, then the rest."""
    known = (*_HEAD, "c", "data")
    rest = ["data", *(key for key in fields if key not in known)]
    before = b"{" + _joined(fields, [key for key in _HEAD if key in fields]) + _MARK
    after = b'",' + _joined(fields, rest) + b"}"
    return b"%b%08x%b" % (before, crc32(after, crc32(before)), after)


def _joined(fields: Mapping[str, bytes], keys: list[str]) -> bytes:
    return b",".join(b"%b:%b" % (msgspec.json.encode(key), fields[key]) for key in keys)


def _checksum(line: bytes, at: int) -> bytes:
    view = memoryview(line)
    digits = at + len(_MARK)
    return b"%08x" % crc32(view[digits + _DIGITS :], crc32(view[:digits]))
