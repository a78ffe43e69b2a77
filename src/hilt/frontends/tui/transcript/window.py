"""Which rows of a conversation are in sight. Pure: knows of no screen, only of a width and a height.

What is looked at is held by a row of a block, not by a number of rows from the top: so nothing that happens above it
moves it, and no more is ever drawn than what is in sight. Heights of blocks that were never in sight are guessed;
nothing depends on them but how far down it all seems to be.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textual.strip import Strip

from hilt.frontends.tui.look import Look
from hilt.frontends.tui.transcript.blocks import Block

KEPT = 400
"""Blocks whose rows are kept, at most."""
KEPT_ROWS = 2_000
"""Rows that are kept out of sight. Each is some forty objects: many of them would make collecting garbage long."""
_COUNTED = 50
"""Blocks that are drawn only to say how much is new."""
GAP = Strip([])
"""Above every block."""


class Line(NamedTuple):
    """A row in sight."""

    block: int
    row: int
    """Of the block; 0 is the gap above it."""
    serial: int
    """Of the block: stays the same as others come and go, and grows from one to the next."""
    strip: Strip


class Place(NamedTuple):
    """A character in the conversation."""

    serial: int
    row: int
    column: int


@dataclass(slots=True)
class _Drawn:
    version: int
    rows: Sequence[Strip]
    stands_in: bool


class Window:
    def __init__(self, look: Look, width: int = 80, height: int = 24) -> None:
        self.width, self.height = width, height
        self.following = True
        """Whether the end stays in sight."""
        self._look = look
        self._source: Sequence[Block] = ()
        self._blocks: list[Block] = []
        self._indexes: dict[Block, int] = {}
        self._heights: list[int] = []
        self._serials: list[int] = []
        self._next = 0
        self._top, self._row = 0, 0
        """The first row in sight, by its block."""
        self._drawn: dict[Block, _Drawn] = {}
        """Those used least recently first."""
        self._drawn_rows = 0
        self._touched: dict[Block, None] = {}
        self._noting = self._note  # one for all of them
        self._left: tuple[Block, int] | None = None
        """The last block and its height, when the end went out of sight."""

    # What there is

    def show(self, blocks: Sequence[Block]) -> None:
        """Take what is new. A list may grow at its end; for any other change it is another list."""
        known = len(self._blocks)
        grown = blocks is self._source and len(blocks) >= known and (not known or blocks[known - 1] is self._blocks[-1])
        self._source = blocks
        if not grown:
            self._replace(blocks)
        for block in blocks[len(self._blocks) :]:
            self._append(block, self._next)
        self._settle()

    def _append(self, block: Block, serial: int) -> None:
        block.touched = self._noting
        self._indexes[block] = len(self._blocks)
        self._blocks.append(block)
        self._serials.append(serial)
        self._heights.append(1 + block.guess(self.width))
        self._next = max(self._next, serial + 1)

    def _replace(self, blocks: Sequence[Block]) -> None:
        """Go by identity: what is still there stays where it is in sight."""
        old, serials, heights = self._blocks, self._serials, self._heights
        indexes, top = self._indexes, self._top
        self._blocks, self._serials, self._heights, self._indexes = [], [], [], {}
        for block in blocks:
            index = indexes.get(block)
            if index is not None and (not self._serials or serials[index] > self._serials[-1]):
                self._append(block, serials[index])
                self._heights[-1] = heights[index]
            else:
                self._append(block, self._next)
        for gone in indexes.keys() - self._indexes.keys():
            gone.touched = None
            self._touched.pop(gone, None)
            self._drop(gone)
        while top >= 0 and (not old or old[top] not in self._indexes):
            top -= 1
        if top < 0 and not self._indexes.keys() & indexes.keys():
            self.following = True
        if not old or top < 0 or old[top] is not old[self._top]:
            self._row = 0  # what was looked at is gone: what stood before it comes into sight
        self._top = self._indexes[old[top]] if old and top >= 0 else 0
        if self._left and self._left[0] not in self._indexes:
            self._left = None

    def _note(self, block: Block) -> None:
        self._touched[block] = None

    def _settle(self) -> None:
        """Guess anew what has changed; what of it is in sight is drawn, and then known."""
        for block in self._touched:
            self._heights[self._indexes[block]] = 1 + block.guess(self.width)
        self._touched.clear()

    def __len__(self) -> int:
        return len(self._blocks)

    def __getitem__(self, index: int) -> Block:
        return self._blocks[index]

    # How it is shown

    def resize(self, width: int, height: int) -> None:
        if width != self.width and self._blocks and not self.following:
            before = self._height(self._top)
            row = self._row
            self._forget(width)
            self._row = row * self._height(self._top) // max(before, 1)
        elif width != self.width:
            self._forget(width)
        self.height = height

    def restyle(self, look: Look) -> None:
        self._look = look
        self._forget(self.width)

    def _forget(self, width: int) -> None:
        self.width = width
        for drawn in self._drawn.values():
            drawn.version, drawn.rows = -1, ()
        self._drawn_rows = 0
        self._heights = [1 + block.guess(width) for block in self._blocks]
        if self._left:
            block = self._left[0]
            self._left = block, self._height(self._indexes[block])

    # Drawing

    def rows(self, index: int) -> Sequence[Strip]:
        """A block, without the gap above it."""
        block = self._blocks[index]
        drawn = self._drawn.pop(block, None)
        if drawn is None or drawn.version != block.version:
            stood_in = drawn is not None and drawn.stands_in
            before = len(drawn.rows) if drawn else 0
            rows = block.rows(self.width, self._look)
            drawn = _Drawn(block.version, rows, block.unready and not block.partial)
            self._drawn_rows += len(rows) - before
            if stood_in and not block.unready and index == self._top and not self.following:
                self._row += len(rows) - before  # it was come upon from below: its end stays where it was
        self._drawn[block] = drawn
        self._heights[index] = len(drawn.rows) + 1 if drawn.rows else 0
        if len(self._drawn) > KEPT:
            self._drop(next(iter(self._drawn)))
        return drawn.rows

    def _drop(self, block: Block) -> None:
        if drawn := self._drawn.pop(block, None):
            self._drawn_rows -= len(drawn.rows)
            block.forget()

    def _height(self, index: int) -> int:
        """As it is, not as it is guessed."""
        self.rows(index)
        return self._heights[index]

    def in_sight(self) -> list[Line]:
        """At most as many as the window is high."""
        self._settle()
        if self.following:
            self._to_end()
        lines, ended = self._filled()
        if ended and not self.following:
            self.following = True
            if len(lines) < self.height:
                self._to_end()
                lines, _ = self._filled()
        self._watch_end()
        seen = len({line.block for line in lines})
        while self._drawn_rows > KEPT_ROWS and len(self._drawn) > seen + _COUNTED:
            self._drop(next(iter(self._drawn)))
        return lines

    def _to_end(self) -> None:
        missing = self.height
        self._top, self._row = len(self._blocks), 0
        while missing > 0 and self._top > 0:
            self._top -= 1
            missing -= self._height(self._top)
        self._row = max(0, -missing)

    def _filled(self) -> tuple[list[Line], bool]:
        """The rows from the first one on, and whether there is no further one."""
        lines: list[Line] = []
        self._clamp()
        index, row = self._top, self._row
        while index < len(self._blocks):
            rows = self.rows(index)
            if rows:
                if len(lines) == self.height:
                    return lines, False
                until = min(len(rows) + 1, row + self.height - len(lines))
                serial = self._serials[index]
                strips = [*([] if row else [GAP]), *rows[max(row - 1, 0) : until - 1]]
                lines += [Line(index, at, serial, strip) for at, strip in enumerate(strips, row)]
                if until <= len(rows):
                    return lines, False
            index, row = index + 1, 0
        return lines, True

    def _clamp(self) -> None:
        """The block at the top may have become shorter."""
        if self._top < len(self._blocks):
            height = self._height(self._top)
            self._row = max(0, min(self._row, height - 1))

    # Moving

    def scroll(self, rows: int) -> None:
        """Down, or up by a negative number."""
        if not self._blocks:
            return
        if self.following:
            self._to_end()
        self.following = False
        self._clamp()
        self._row += rows
        while self._row < 0 and self._top > 0:
            self._top -= 1
            self._row += self._height(self._top)
        while self._top < len(self._blocks) - 1 and self._row >= (height := self._height(self._top)):
            self._top += 1
            self._row -= height
        self._row = max(self._row, 0)

    def go_to(self, index: int) -> None:
        """Bring a block to the top."""
        if self._blocks:
            self._top, self._row, self.following = max(0, min(index, len(self._blocks) - 1)), 1, False

    def to_start(self) -> None:
        self._top, self._row, self.following = 0, 0, not self._blocks

    def to_fraction(self, fraction: float) -> None:
        """So far down, as far as that is known."""
        wanted = int(fraction * sum(self._heights))
        for index, height in enumerate(self._heights):
            if wanted < height:
                self._top, self._row, self.following = index, 0, False
                self._row = wanted * self._height(index) // height
                return
            wanted -= height
        self.following = True

    def hold(self) -> None:
        """What is at the top stays there, also if it was the end that stayed in sight."""
        if self.following:
            self._to_end()
            self.following = False

    # Where that is

    @property
    def extent(self) -> tuple[int, int]:
        """Rows above what is in sight, and of all; about."""
        return sum(self._heights[: self._top]) + self._row, sum(self._heights)

    def _watch_end(self) -> None:
        if self.following:
            self._left = None
        elif self._left is None and self._blocks:
            last = len(self._blocks) - 1
            self._left = self._blocks[last], self._height(last)

    @property
    def new(self) -> int:
        """Rows that have come since the end went out of sight."""
        if self._left is None:
            return 0
        block, height = self._left
        first = self._indexes[block]
        for index in range(first, len(self._blocks)) if len(self._blocks) - first <= _COUNTED else ():
            self.rows(index)
        return max(0, self._heights[first] - height) + sum(self._heights[first + 1 :])

    # Reading

    def between(self, start: Place, end: Place) -> Iterator[tuple[Strip, int, int | None]]:
        """Each row from one place to another, and the columns of it that are meant."""
        index = bisect_left(self._serials, start.serial)
        while index < len(self._blocks) and (serial := self._serials[index]) <= end.serial:
            rows = self._complete(index)
            first = start.row if serial == start.serial else 0
            last = end.row if serial == end.serial else len(rows)
            for at in range(first, min(last, len(rows)) + 1 if rows else 0):
                here = (serial, at)
                left = start.column if here == start[:2] else 0
                right = end.column if here == end[:2] else None
                yield rows[at - 1] if at else GAP, left, right
            index += 1

    def _complete(self, index: int) -> Sequence[Strip]:
        """A block with all its rows, however long it takes to lay out."""
        rows, block = self.rows(index), self._blocks[index]
        if block.unready:
            block.advance(float("inf"))
            block.touch()
            rows = self.rows(index)
        return rows
