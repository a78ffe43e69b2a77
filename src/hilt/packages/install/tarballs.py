"""Reading tar archives, of which only what a package needs is understood: files, directories, and long names.

Owns the format. Everything else, links, devices, sparse files, is refused by its kind before a byte of it is used;
the stream is read once from front to back, and no length it states is believed further than `_MOST_EXTRA`.
"""

from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

from hilt.packages.layout import refuse

_BLOCK = 512
_MOST_EXTRA = 64 * 1024
"""Of a name or of attributes, which are held in memory."""
_CHUNK = 1 << 16
_KINDS = {
    b"1": "is a hard link",
    b"2": "is a link",
    b"3": "is a device",
    b"4": "is a device",
    b"6": "is a pipe",
    b"S": "is a sparse file",
    b"M": "is a piece of a file",
}
_HINT = "an archive of an extension holds plain files and folders only"
_BROKEN = "get the archive again: it seems to be damaged"


class Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Member(Struct, frozen=True):
    path: str
    folder: bool
    size: int
    executable: bool


class Tar:
    """Members one by one; the content of each must be read, or skipped by going on, before the next."""

    def __init__(self, stream: Stream, origin: str) -> None:
        self._stream = stream
        self._origin = origin
        self._left = 0
        """Of the content of the current member."""
        self._padding = 0

    def __iter__(self) -> Iterator[Member]:
        name, attributes = "", dict[str, str]()
        while header := self._header():
            kind, size = header[156:157], self._number(header[124:136])
            if kind == b"L":
                name = self._extra(size).rstrip(b"\0").decode(errors="surrogateescape")
            elif kind == b"x":
                attributes = self._attributes(self._extra(size))
            elif kind == b"g":
                if {"path", "size"} & self._attributes(self._extra(size)).keys():
                    raise self._refusal("", "names all its files alike")
            else:
                yield self._member(header, kind, size, name, attributes)
                self._skip()
                name, attributes = "", {}

    def content(self) -> Iterator[bytes]:
        while self._left:
            chunk = self._exactly(min(self._left, _CHUNK))
            self._left -= len(chunk)
            yield chunk

    def _member(self, header: bytes, kind: bytes, size: int, name: str, attributes: dict[str, str]) -> Member:
        path = attributes.get("path") or name or _name(header)
        folder = kind == b"5" or (kind in (b"0", b"\0") and path.endswith("/"))
        if kind not in (b"0", b"\0", b"5"):
            raise self._refusal(path, _KINDS.get(kind, f"is of an unknown kind {kind!r}"))
        if any(key.startswith("GNU.sparse") for key in attributes):
            raise self._refusal(path, "is a sparse file")
        if stated := attributes.get("size"):
            if not (stated.isascii() and stated.isdigit() and len(stated) < 19):
                raise self._refusal(path, "states a size that is no number", _BROKEN)
            size = int(stated)
        if folder and size:
            raise self._refusal(path, "is a folder with content", _BROKEN)
        self._left, self._padding = size, -size % _BLOCK
        return Member(path.rstrip("/"), folder, size, bool(self._number(header[100:108]) & 0o111))

    def _header(self) -> bytes:
        """Empty at the end: a block of zeros, as there must be."""
        header = self._exactly(_BLOCK)
        if not header.strip(b"\0"):
            return b""
        blanked = header[:148] + b" " * 8 + header[156:]
        if self._number(header[148:156]) != sum(blanked):
            raise self._refusal("", "is no tar archive, or is damaged", _BROKEN)
        return header

    def _number(self, field: bytes) -> int:
        if field[0] & 0x80:
            return int.from_bytes(bytes((field[0] & 0x7F,)) + field[1:], "big")
        digits = field.strip(b" \0")
        if digits.strip(b"01234567"):
            raise self._refusal("", "holds a number that is none", _BROKEN)
        return int(digits or b"0", 8)

    def _extra(self, size: int) -> bytes:
        if size > _MOST_EXTRA:
            raise self._refusal("", "holds a name or attributes that are too long")
        data = self._exactly(size)
        self._exactly(-size % _BLOCK)
        return data

    def _attributes(self, data: bytes) -> dict[str, str]:
        """`LENGTH KEY=VALUE\\n`, one after another."""
        attributes = {}
        while data:
            stated, _, _ = data[:20].partition(b" ")
            length = int(stated) if stated.isdigit() else 0
            record, data = data[:length], data[length:]
            key, equals, value = record[len(stated) + 1 : -1].partition(b"=")
            if not equals or len(record) != length or not record.endswith(b"\n"):
                raise self._refusal("", "holds attributes that cannot be read", _BROKEN)
            attributes[key.decode(errors="surrogateescape")] = value.decode(errors="surrogateescape")
        return attributes

    def _skip(self) -> None:
        for _ in self.content():
            pass
        self._exactly(self._padding)
        self._padding = 0

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._stream.read(size)
            if not part:
                raise self._refusal("", "ends too early", _BROKEN)
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _refusal(self, path: str, why: str, hint: str = _HINT) -> Exception:
        return refuse(f"{self._origin}: {path}" if path else self._origin, why, hint)


def _name(header: bytes) -> str:
    name, prefix = header[:100].partition(b"\0")[0], header[345:500].partition(b"\0")[0]
    # Only the standard kind has a prefix; other programs keep other things there.
    joined = prefix + b"/" + name if prefix and header[257:263] == b"ustar\0" else name
    return joined.decode(errors="surrogateescape")
