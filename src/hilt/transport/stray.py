"""What a program prints where nobody listens: written to its log, line by line, and never understood.

Programs that speak on descriptors 3 and 4 may print as they like. Their lines stand among their complaints and can be
told from them by what they begin with.
"""

from collections.abc import Iterable

from hilt.transport.lines import LineSplitter, TooLong
from hilt.transport.pipes import Source
from hilt.transport.stderr import Log, Pump

_MARK = b"stdout: "
_LONGEST = 16 * 1024
"""Of a line that is kept; of a longer one only the beginning is."""


class Stray:
    """Give it lines that were taken for something else first, or a whole stream."""

    def __init__(self, log: Log | None) -> None:
        self._log = log
        self._pump: _Printed | None = None

    def lines(self, lines: Iterable[bytes | TooLong]) -> None:
        if self._log and (kept := b"\n".join(_MARK + _short(line) for line in lines if line)):
            self._log.line(kept)

    def follow(self, source: Source, begun: LineSplitter | None = None) -> None:
        """Everything that comes from there from now on, after what was `begun` of a line. It is closed with this."""
        self._pump = _Printed(source, self, begun or LineSplitter(_LONGEST))

    def catch_up(self) -> None:
        if self._pump:
            self._pump.catch_up()

    def close(self) -> None:
        if self._pump:
            self._pump.close()


class _Printed(Pump):
    def __init__(self, source: Source, stray: Stray, splitter: LineSplitter) -> None:
        super().__init__(source)
        self._stray = stray
        self._splitter = splitter

    def take(self, chunk: bytes) -> None:
        self._stray.lines(self._splitter.feed(chunk) if chunk else self._splitter.finish())

    def close(self) -> None:
        super().close()
        self.take(b"")  # it may have ended in the middle of a line


def _short(line: bytes | TooLong) -> bytes:
    if isinstance(line, bytes) and len(line) <= _LONGEST:
        return line
    size, head = (len(line), line) if isinstance(line, bytes) else (line.size, line.head)
    return head[: LineSplitter.HEAD] + b"... (%d bytes)" % size
