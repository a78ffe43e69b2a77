"""A program of which nobody knows yet where it speaks: on descriptors 3 and 4, or on stdin and stdout.

Until it is known, both inputs are given the same bytes and both outputs are read. Whoever writes to 4 knows of it, so
the first byte there decides; what is printed on stdout decides only if it is a line that cannot be anything else. One
that may be is kept until it is decided. From then on the pair that counts is all there is, without a step of ours
between, and of the other pair the input is at its end.
"""

import errno
import os
from collections.abc import Callable
from typing import Literal, TypeAlias

from hilt.transport.launch import Speaks
from hilt.transport.lines import LineSplitter
from hilt.transport.outbox import Bytes
from hilt.transport.pipes import Sink, Source
from hilt.transport.stray import Stray

Arrangement: TypeAlias = Literal["stdio", "fd34"]

_NOTHING_FOR_YOU = b"\n"
"""An empty line, which every reader of lines skips: something came, but it counts for nothing."""
_MOST_KEPT = 1024 * 1024
"""Bytes of lines that decide nothing. Whoever says more than that means us."""


class BothSinks:
    """Takes what the slower of the two has taken. The faster may be ahead by what it will be given again."""

    write: Callable[[Bytes], int]

    def __init__(self, descriptors: Sink, stdin: Sink) -> None:
        self._descriptors, self._stdin = _Side(descriptors), _Side(stdin)
        self._sides = [self._descriptors, self._stdin]
        """Those that can still be written to."""
        self._ready: Callable[[], object] | None = None
        self.write = self._write

    def keep(self, arrangement: Arrangement) -> None:
        """Only this one counts, from here on."""
        chosen, other = self._descriptors, self._stdin
        if arrangement == "stdio":
            chosen, other = other, chosen
        other.sink.close()
        self._sides = [side for side in self._sides if side is chosen]
        self.write = self._write
        if self._ready:
            chosen.sink.watch(self._ready)  # it may be waiting for the other one only

    def grow(self) -> bool:
        return any(side.sink.grow() for side in self._sides if self._lacks_room(side))

    def watch(self, ready: Callable[[], object]) -> None:
        self._ready = ready
        self._watch_the_full()

    def unwatch(self) -> None:
        self._ready = None
        for side in self._sides:
            side.sink.unwatch()

    def close(self) -> None:
        self._ready = None
        for side in (self._descriptors, self._stdin):
            side.sink.close()

    def _write(self, data: Bytes) -> int:
        error = OSError(errno.EPIPE, os.strerror(errno.EPIPE))
        for side in tuple(self._sides):
            try:
                side.take(data)
            except OSError as gone:
                error = gone
                side.sink.close()
                self._sides.remove(side)
        if not self._sides:
            raise error
        taken = min(side.ahead for side in self._sides)
        for side in self._sides:
            side.ahead -= taken
        if len(self._sides) == 1:
            self.write = self._sides[0].sink.write
        elif self._ready:
            self._watch_the_full()
        return taken

    def _watch_the_full(self) -> None:
        """And no others: where there is room and nothing to write, the loop would never come to rest."""
        for side in self._sides:
            if self._ready and self._lacks_room(side):
                side.sink.watch(self._ready)
            else:
                side.sink.unwatch()

    def _lacks_room(self, side: "_Side") -> bool:
        """The only one is not asked what it took, so it is that one if any."""
        return side.full or len(self._sides) == 1


class _Side:
    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.ahead = 0
        """Bytes it has taken that count as not taken yet."""
        self.full = False
        """It did not take all that it was last given."""

    def take(self, data: Bytes) -> None:
        rest = memoryview(data)[self.ahead :]
        try:
            self.ahead += self.sink.write(rest) if rest else 0
        except BlockingIOError:
            pass
        self.full = self.ahead < len(data)


class FirstSource:
    """Reads both until one has decided, and then that one."""

    read: Callable[[int], bytes]

    def __init__(self, descriptors: Source, stdout: Source, speaks: Speaks, longest: int, stray: Stray) -> None:
        self._descriptors, self._stdout = descriptors, stdout
        self._open = [descriptors, stdout]
        self._speaks = speaks
        self._splitter = LineSplitter(longest)
        self._stray = stray
        self._kept: list[bytes] = []
        """Lines that may be speech."""
        self._room = _MOST_KEPT
        self._decided: Callable[[Arrangement], None] = lambda _: None
        self.read = self._read

    def on_decision(self, decided: Callable[[Arrangement], None]) -> None:
        self._decided = decided

    def grow(self) -> bool:
        return any(source.grow() for source in self._open)

    def watch(self, ready: Callable[[], object]) -> None:
        for source in self._open:
            source.watch(ready)

    def unwatch(self) -> None:
        for source in self._open:
            source.unwatch()

    def close(self) -> None:
        for source in self._open:
            source.close()
        self._open = []

    def _read(self, most: int) -> bytes:
        """Perhaps more than so many: a line is only given away once it is whole."""
        if self._descriptors in self._open:
            chunk = _piece(self._descriptors, most)
            if chunk:
                self._keep_descriptors()
                return chunk
            if chunk is not None:
                self._end(self._descriptors)
        if self._stdout in self._open:
            chunk = _piece(self._stdout, most)
            if chunk is not None:
                return self._printed(chunk) if chunk else self._printed_last()
        return self._nothing()

    def _printed(self, chunk: bytes) -> bytes:
        """From the line that decides on, all of it."""
        begin = 0
        while end := chunk.find(b"\n", begin) + 1:
            [line] = self._splitter.feed(chunk[begin:end])
            begin = end
            if isinstance(line, bytes) and self._means_us(line):
                return self._keep_stdout() + chunk[begin:]
            if not isinstance(line, bytes):
                self._stray.lines((line,))
        self._splitter.feed(chunk[begin:])
        return _NOTHING_FOR_YOU

    def _printed_last(self) -> bytes:
        for line in self._splitter.finish():
            if isinstance(line, bytes) and self._means_us(line):
                return self._keep_stdout()
            if not isinstance(line, bytes):
                self._stray.lines((line,))
        self._let_go()
        self._end(self._stdout)
        return self._nothing()

    def _means_us(self, line: bytes) -> bool:
        """It is kept if it does, and if it may."""
        shown = self._speaks(line) if line else False
        if shown is False:
            self._stray.lines((line,))
            return False
        self._kept.append(line)
        self._room -= len(line)
        return bool(shown) or self._room < 0

    def _let_go(self) -> None:
        self._stray.lines(self._kept)
        self._kept = []

    def _nothing(self) -> bytes:
        """The end once both have ended; until then the other may still say something."""
        if self._open:
            raise BlockingIOError
        return b""

    def _end(self, source: Source) -> None:
        source.close()
        self._open.remove(source)

    def _keep_descriptors(self) -> None:
        self._let_go()
        if self._stdout in self._open:
            self._open.remove(self._stdout)
            self._stdout.unwatch()
            self._stray.follow(self._stdout, self._splitter)
        self.read = self._descriptors.read
        self._decided("fd34")

    def _keep_stdout(self) -> bytes:
        """What was kept, from the first line that may have been speech on."""
        if self._descriptors in self._open:
            self._end(self._descriptors)
        self.read = self._stdout.read
        self._decided("stdio")
        said, self._kept = b"".join(line + b"\n" for line in self._kept), []
        return said


def _piece(source: Source, most: int) -> bytes | None:
    """None when nothing is there yet; nothing at its end, or when it is broken."""
    try:
        return source.read(most)
    except BlockingIOError:
        return None
    except OSError:
        return b""
