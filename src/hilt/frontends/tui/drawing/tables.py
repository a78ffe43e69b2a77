"""Tables: columns fitted to the width, cells wrapped; where there is no room for columns, each cell behind its heading.

Owns the layout. The widths of columns are made from the first rows, so that a long table can be drawn in pieces.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from hilt.frontends.tui.drawing.blocks import Line, cells_of, text_of_parts
from hilt.frontends.tui.drawing.paint import Paint, Part
from hilt.frontends.tui.drawing.wrapping import height, wrap

Cell: TypeAlias = Sequence[Part]
Cells: TypeAlias = Sequence[Cell]

_BETWEEN, _CROSSING = " │ ", "─┼─"
_NARROWEST = 5
"""Cells of a column that has more to say; with less it is no column any more."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What all pieces of a table have in common."""

    headings: Cells
    aligned: Sequence[str]
    """`left`, `right` or `center`, for each."""
    natural: tuple[int, ...]
    """What each would take if there were room."""

    @classmethod
    def of(cls, headings: Cells, aligned: Sequence[str], rows: Sequence[Cells]) -> "Columns":
        columns = zip(headings, *rows, strict=True)
        return cls(headings, aligned, tuple([max(1, *map(_widest, column)) for column in columns]))


@dataclass(frozen=True, slots=True)
class Table:
    """A piece of a table: its first has the headings. Every row has as many cells as there are headings."""

    columns: Columns
    rows: Sequence[Cells]
    headed: bool = True
    indent: Sequence[Part] = ()
    hanging: Sequence[Part] = ()

    def height(self, width: int) -> int:
        widths = self._widths(width)
        if widths is None:
            return sum([line.height(width) for line in self._listed()])
        rows = (self.columns.headings, *self.rows) if self.headed else self.rows
        return sum([_tallest(row, widths) for row in rows]) + self.headed

    def widest(self) -> int:
        taken = max(cells_of(self.indent), cells_of(self.hanging))
        return max(2 * taken, taken + self._between() + sum(self.columns.natural))

    def draw(self, width: int, paint: Paint) -> list[Strip]:
        widths = self._widths(width)
        if widths is None:
            return [strip for line in self._listed() for strip in line.draw(width, paint)]
        rows: list[list[Segment]] = []
        if self.headed:
            rows += self._row(self.columns.headings, widths, paint)
            rows.append([Segment(_CROSSING.join(["─" * cells for cells in widths]), paint.style(("rule",)))])
        for row in self.rows:
            rows += self._row(row, widths, paint)
        before = [Segment(text, style) for text, style in paint.spans(self.hanging)]
        first = [Segment(text, style) for text, style in paint.spans(self.indent)]
        return [Strip([*(before if at else first), *row]) for at, row in enumerate(rows)]

    def _widths(self, width: int) -> tuple[int, ...] | None:
        taken = max(cells_of(self.indent), cells_of(self.hanging))
        return _fitted(self.columns.natural, width - taken - self._between()) if taken <= width // 2 else None

    def _between(self) -> int:
        return len(_BETWEEN) * (len(self.columns.natural) - 1)

    def _row(self, row: Cells, widths: Sequence[int], paint: Paint) -> Iterator[list[Segment]]:
        between, blank = Segment(_BETWEEN, paint.style(("rule",))), paint.style(("text",))
        cells = [wrap(paint.spans(cell), room) for cell, room in zip(row, widths, strict=True)]
        for at in range(max(map(len, cells))):
            segments: list[Segment] = []
            for strips, room, aligned in zip(cells, widths, self.columns.aligned, strict=True):
                if segments:
                    segments.append(between)
                segments += _placed(strips[at] if at < len(strips) else Strip([], 0), room, aligned, blank)
            yield segments

    def _listed(self) -> Iterator[Line]:
        """`heading: cell`, for each cell of each row."""
        indent = self.indent
        if not self.rows and self.headed:
            yield Line([part for cell in self.columns.headings for part in (*cell, (" ", ("text",)))], indent)
        for at, row in enumerate(self.rows):
            if at or not self.headed:
                yield Line((), indent, self.hanging)
                indent = self.hanging
            for heading, cell in zip(self.columns.headings, row, strict=True):
                yield Line([*heading, (": ", ("text", "strong")), *cell], indent, self.hanging)
                indent = self.hanging


def _widest(cell: Cell) -> int:
    text = text_of_parts(cell)
    return max(map(cell_len, text.split("\n"))) if "\n" in text else cell_len(text)


def _tallest(row: Cells, widths: Sequence[int]) -> int:
    return max([height(text_of_parts(cell), room) for cell, room in zip(row, widths, strict=True)])


def _placed(strip: Strip, room: int, aligned: str, blank: Style) -> Iterator[Segment]:
    spare = room - strip.cell_length
    left = {"right": spare, "center": spare // 2}.get(aligned, 0)
    if left:
        yield Segment(" " * left, blank)
    yield from strip
    if spare - left:
        yield Segment(" " * (spare - left), blank)


@lru_cache(64)
def _fitted(natural: tuple[int, ...], room: int) -> tuple[int, ...] | None:
    """The width of each column, the widest cut first; None if there is no room for columns."""
    if sum(natural) <= room:
        return natural
    least = [min(cells, _NARROWEST) for cells in natural]
    if sum(least) > room:
        return None
    level = min(max(natural), room)
    while sum(min(cells, level) for cells in natural) > room:
        level -= 1
    widths = [min(cells, level) for cells in natural]
    spare = room - sum(widths)
    for at, cells in enumerate(natural):
        if spare and cells > widths[at]:
            widths[at] += 1
            spare -= 1
    return tuple(widths)
