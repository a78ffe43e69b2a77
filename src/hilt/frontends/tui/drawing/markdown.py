"""Markdown as rows: of a whole text, and of one that grows.

Owns what is drawn and kept: parsed blocks for as long as the text is there, rows for the width and the look they were
last drawn with. Where the text is cut into blocks is up to `cutting`.
"""

from bisect import bisect_right
from collections.abc import Iterator
from time import monotonic

from textual.strip import Strip

from hilt.frontends.terminal import clean
from hilt.frontends.tui.drawing.blocks import UNKNOWN, Block
from hilt.frontends.tui.drawing.cutting import LARGE, Cutter
from hilt.frontends.tui.drawing.mending import mended
from hilt.frontends.tui.drawing.paint import Paint
from hilt.frontends.tui.look import Look

_KEPT = 512
"""Blocks of which rows are kept when only some are asked for."""


def markdown(text: str, width: int, look: Look) -> list[Strip]:
    """The rows of a whole text."""
    flow = Flow()
    flow.feed(text)
    flow.close()
    return flow.lines(width, look)


def warm() -> None:
    """Load what the first reply and the first listing would have to wait for; takes a tenth of a second."""
    from hilt.frontends.tui.drawing.code import known
    from hilt.frontends.tui.drawing.inline import parser

    parser()
    known("python")


class Flow:
    """A text that grows. What is finished is parsed and drawn once; only the end is done again as it changes."""

    def __init__(self) -> None:
        self.partial = False
        """Whether to make do with what is parsed: otherwise whoever asks for rows waits for all of them."""
        self._fed: list[str] = []
        self._line = ""
        """The last line, as it came: it may go on."""
        self._closed = False
        self._cutter = Cutter()
        self._blocks: list[Block] = []
        """Finished."""
        self._natural: list[tuple[int, int]] = []
        """For each of them, from which width on it has as many rows: so another width takes no time."""
        self._open: list[Block] | None = None
        """What is behind them, as it would be if nothing came any more; None: not known yet."""
        self._width = 0
        self._ends: list[int] = []
        """The row behind each finished block, at this width."""
        self._look: Look | None = None
        self._drawn: dict[int, list[Strip]] = {}
        """Rows of finished blocks, at this width and in this look."""
        self._drawn_open: list[Strip] | None = None

    @property
    def text(self) -> str:
        """All that was fed, as it came."""
        self._fed = ["".join(self._fed)]
        return self._fed[0]

    def feed(self, text: str) -> None:
        """More of it. What comes after the end begins a line."""
        if not text:
            return
        self._closed = False
        self._fed.append(text)
        self._changed()
        *whole, self._line = (self._line + text).split("\n")
        for line in whole:
            for part in _parts(line):
                self._cutter.add(clean(part))
        *whole, self._line = _parts(self._line)
        for part in whole:
            self._cutter.add(clean(part))

    def close(self) -> None:
        """Nothing comes any more."""
        if not self._closed:
            self._closed = True
            self._changed()
            if self._line:
                self._cutter.add(clean(self._line))
                self._line = ""

    def advance(self, seconds: float) -> bool:
        """Parse what was fed, for about so long; whether that is done. For a long text that comes at once."""
        deadline = monotonic() + seconds
        while (blocks := self._cutter.step(final=self._closed)) is not None:
            self._blocks += blocks
            self._natural += [(block.widest(), block.height(UNKNOWN)) for block in blocks]
            if monotonic() > deadline:
                return False
        return True

    def height(self, width: int) -> int:
        """How many rows there are at this width; much cheaper than drawing them."""
        self._lay_out(width)
        return self._finished() + (0 if self.partial else sum([block.height(width) for block in self._opened()]))

    def lines(self, width: int, look: Look) -> list[Strip]:
        """All rows."""
        self._lay_out(width)
        return self._rows(0, self._finished(), look) + self._open_rows(look)

    def rows(self, first: int, last: int, width: int, look: Look) -> list[Strip]:
        """Those from `first` to the one before `last`. Only blocks that are among them are drawn, and few are kept."""
        self._lay_out(width)
        if len(self._drawn) > _KEPT:
            self.forget()
        finished = self._finished()
        found = self._rows(max(0, first), min(last, finished), look)
        return found + self._open_rows(look)[max(0, first - finished) : max(0, last - finished)]

    def forget(self) -> None:
        """Keep no rows: for a text that is not on the screen any more."""
        self._drawn.clear()
        self._drawn_open = None

    def _changed(self) -> None:
        self._open = self._drawn_open = None

    def _lay_out(self, width: int) -> None:
        if not self.partial:
            self.advance(float("inf"))
        if width != self._width:
            self._width = width
            self._ends.clear()
            self.forget()
        done, end = len(self._ends), self._finished()
        for block, (widest, rows) in zip(self._blocks[done:], self._natural[done:], strict=True):
            end += rows if widest <= width else block.height(width)
            self._ends.append(end)

    def _finished(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _rows(self, first: int, last: int, look: Look) -> list[Strip]:
        """Of finished blocks."""
        if first >= last:
            return []
        paint = self._painting(look)
        at = bisect_right(self._ends, first)
        begin = self._ends[at - 1] if at else 0
        rows: list[Strip] = []
        while begin + len(rows) < last and at < len(self._blocks):
            drawn = self._drawn.get(at)
            if drawn is None:
                drawn = self._drawn[at] = self._blocks[at].draw(self._width, paint)
            rows += drawn
            at += 1
        return rows[first - begin : last - begin]

    def _open_rows(self, look: Look) -> list[Strip]:
        paint = self._painting(look)
        if self.partial:
            return []
        if self._drawn_open is None:
            self._drawn_open = [strip for block in self._opened() for strip in block.draw(self._width, paint)]
        return self._drawn_open

    def _opened(self) -> list[Block]:
        if self._open is None:
            cutter = self._cutter.copy()
            line = clean(self._line)
            if line := line if cutter.listing else mended(line):
                cutter.add(line)
            self._open = [block for blocks in iter(lambda: cutter.step(final=True), None) for block in blocks]
        return self._open

    def _painting(self, look: Look) -> Paint:
        if self._look is not look:
            self._look = look
            self.forget()
        return Paint.of(look)


def _parts(line: str) -> Iterator[str]:
    """A line, cut at a space if it is very long. Where depends on nothing that comes later."""
    start = 0
    while len(line) - start > LARGE:
        gap = line.find(" ", start + LARGE, start + 2 * LARGE)
        if gap < 0 and len(line) - start <= 2 * LARGE:
            break
        end = gap if gap >= 0 else start + 2 * LARGE
        yield line[start:end]
        start = end + (gap >= 0)
    yield line[start:]
