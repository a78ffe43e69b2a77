"""Cutting a byte stream into lines, with a ceiling on how long one may be.

Records end at `\\n` and nowhere else: U+2028, `\\x0b` and a lone `\\r` are legal inside them.
"""

from msgspec import Struct

_NEWLINE, _RETURN = b"\n\r"


class TooLong(Struct, frozen=True):
    """A line over the limit. It was skipped, not kept; `head` is its beginning."""

    head: bytes
    size: int


class LineSplitter:
    """Feed it chunks, take whole lines. Memory stays within the limit whatever arrives."""

    HEAD = 4096

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pending: list[bytes] = []
        self.size = 0
        """Bytes of the line that has begun and not ended."""

    def feed(self, chunk: bytes) -> list[bytes | TooLong]:
        last = len(chunk) - 1
        if not self.size and 0 <= last <= self._limit and chunk[last] == _NEWLINE and b"\r" not in chunk:
            return [*chunk[:last].split(b"\n")]  # nearly always: whole lines, none too long
        *ends, rest = chunk.split(b"\n")
        lines: list[bytes | TooLong] = []
        for piece in ends:
            self._push(piece)
            lines.append(self._take())
        self._push(rest)
        return lines

    def finish(self) -> list[bytes | TooLong]:
        """The last line may lack its newline; it counts all the same."""
        return [self._take()] if self.size else []

    def _push(self, piece: bytes) -> None:
        before, self.size = self.size, self.size + len(piece)
        if self.size <= self._limit:
            self._pending.append(piece)
        elif before <= self._limit:
            # Just crossed: from here on only the beginning is worth its memory.
            self._pending = [b"".join((*self._pending, piece))[: min(self.HEAD, self._limit)]]

    def _take(self) -> bytes | TooLong:
        line, size = b"".join(self._pending), self.size
        self._pending, self.size = [], 0
        if size > self._limit:
            return TooLong(line, size)
        return line.removesuffix(b"\r")
