"""Lines of a file of any size, in flat memory: skip, take, count.

Works on UTF-8 bytes; a line ends with LF and nothing else. What to do with the lines is `read`'s.
"""

import codecs
import os
from collections.abc import Iterable, Iterator

from hilt.tools.background import Wanted

_CHUNK = 256 * 1024
_MARKS = (  # UTF-32's first bytes begin with UTF-16's, so it comes first
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def byte_order_mark(head: bytes) -> tuple[bytes, str]:
    """The mark a text begins with and the encoding it stands for; UTF-8 without one."""
    return next(((mark, name) for mark, name in _MARKS if head.startswith(mark)), (b"", "utf-8"))


def chunks(fd: int, head: bytes, encoding: str, wanted: Wanted) -> Iterator[bytes]:
    """The rest of the file after `head`, head included, as UTF-8 bytes."""
    raw = _raw(fd, head, wanted)
    return raw if encoding == "utf-8" else _transcoded(raw, encoding)


def _raw(fd: int, head: bytes, wanted: Wanted) -> Iterator[bytes]:
    if head:
        yield head
    while chunk := os.read(fd, _CHUNK):
        yield chunk
        wanted.check()


def _transcoded(raw: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in raw:
        yield decoder.decode(chunk).encode()
    yield decoder.decode(b"", final=True).encode()


class Lines:
    """A place in a text that moves forward only."""

    def __init__(self, source: Iterator[bytes]) -> None:
        self._source = source
        self._chunk = b""
        self._at = 0
        self.passed = 0
        """How many lines lie behind."""

    def more(self) -> bool:
        """Whether anything is left."""
        while self._at >= len(self._chunk):
            chunk = next(self._source, None)
            if chunk is None:
                return False
            self._chunk, self._at = chunk, 0
        return True

    def skip(self, count: int) -> None:
        """Pass over that many lines, or all there are."""
        goal = self.passed + count
        inside = False
        while self.passed < goal and self.more():
            here = self._chunk.count(b"\n", self._at)
            if self.passed + here < goal:
                self.passed += here
                inside = not self._chunk.endswith(b"\n")
                self._at = len(self._chunk)
            else:
                inside = False
                while self.passed < goal:
                    self._at = self._chunk.index(b"\n", self._at) + 1
                    self.passed += 1
        self.passed += inside  # the last line may lack its end

    def take(self, cap: int) -> tuple[bytes, int]:
        """The next line, cut to `cap` bytes, and its true length. Only when there is more."""
        kept = bytearray()
        length = 0
        while self.more():
            end = self._chunk.find(b"\n", self._at) + 1 or len(self._chunk)
            kept += self._chunk[self._at : min(end, self._at + cap - len(kept))]
            length += end - self._at
            self._at = end
            if self._chunk[end - 1] == 0x0A:
                break
        self.passed += 1
        return bytes(kept), length

    def count_rest(self, budget: int) -> int | None:
        """How many lines there are in all, or None when finding out would read more than the budget."""
        inside = False
        while self.more():
            if budget <= 0:
                return None
            self.passed += self._chunk.count(b"\n", self._at)
            inside = not self._chunk.endswith(b"\n")
            budget -= len(self._chunk) - self._at
            self._at = len(self._chunk)
        self.passed += inside
        return self.passed
