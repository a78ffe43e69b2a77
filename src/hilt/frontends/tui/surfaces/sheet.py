"""The lines of a panel behind a window of a few rows: which of them are in sight, and how they are scrolled.

Words are wrapped; pictures, that is lines with frames and bars in them, would be torn apart by that and are clipped.
Only what is in sight is ever measured, so the number of lines and their length do not matter: where the window stands
is a line and a row of it, and how many rows there are in all is never asked.
"""

import re
from collections.abc import Sequence

from rich.style import Style
from textual.strip import Strip

from hilt.frontends.terminal import clean
from hilt.frontends.tui.drawing.plain import coloured, coloured_line

_LONGEST, _LONGEST_PLAIN = 1000, 10_000
"""Characters of a line; what follows is left out. Plain ones need no measuring, one by one."""
_SHADES = 100
"""Changes of colour in a line; one with more is no rainbow but a flood, and has none."""
_KEPT = 256
"""Lines of which the rows are kept."""
_HEAPED = re.compile("([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{2}){2,}")
"""More accents on one letter than any language has: they take no room, but each has to be measured."""
_PICTURE = re.compile("[\u2500-\u259f]")
_CHOSEN = "▸"
"""Begins the line that the owner of a panel has selected, in most of them."""
_SOUGHT = 16
"""Characters of a line within which that is."""


class Sheet:
    def __init__(self) -> None:
        self.lines: Sequence[str] = ()
        self._top = (0, 0)
        """The first row in sight: a line, and a row of that line."""
        self._width = 1
        self._style = Style.null()
        self._grey = False
        self._rows: dict[int, list[Strip]] = {}
        self._chosen: int | None = None
        self._follow = False

    def put(self, lines: Sequence[str]) -> None:
        """Show these. The window stays where it is, but goes after a selection that has moved."""
        if lines == self.lines:
            return
        self.lines = lines
        self._rows.clear()
        before, self._chosen = self._chosen, _chosen(lines)
        self._follow = self._follow or self._chosen not in (None, before)

    def window(self, width: int, height: int, style: Style, *, grey: bool = False) -> list[Strip]:
        """The rows in sight: fewer than `height` only when there are no more. `grey` leaves no colour but the style."""
        if (width, style, grey) != (self._width, self._style, self._grey):
            self._width, self._style, self._grey = width, style, grey
            self._rows.clear()
        if self._follow and self._chosen is not None:
            self._follow = False
            self._bring(self._chosen, height)
        self._stay_inside(height)
        line, row = self._top
        rows: list[Strip] = []
        while line < len(self.lines) and len(rows) < height:
            rows += self._of(line)[row:]
            line, row = line + 1, 0
        return rows[:height]

    def scroll(self, by: int, height: int) -> None:
        """Move the window so many rows down, or up, as it was last drawn."""
        line, row = self._top
        row += by
        while row < 0 and line > 0:
            line -= 1
            row += len(self._of(line))
        while line < len(self.lines) and row >= len(self._of(line)):
            row -= len(self._of(line))
            line += 1
        self._top = (line, max(row, 0))
        self._stay_inside(height)

    def whole(self, height: int) -> bool:
        """Whether all of it is in sight."""
        left = height
        for line in range(len(self.lines)):
            left -= len(self._of(line))
            if left < 0:
                return False
        return True

    def in_sight(self, height: int) -> tuple[int, int]:
        """The first line in sight and the one after the last."""
        line, row = self._top
        left = height + row
        first = line
        while line < len(self.lines) and left > 0:
            left -= len(self._of(line))
            line += 1
        return first, line

    def _bring(self, line: int, height: int) -> None:
        """Into sight."""
        first, end = self.in_sight(height)
        if line < first:
            self._top = (line, 0)
        elif line >= end - (end < len(self.lines)):
            self._top = self._above(line + 1, height)

    def _stay_inside(self, height: int) -> None:
        """There is nothing to see below the end. (At the very top that cannot be, and the end need not be drawn.)"""
        if self._top != (0, 0):
            self._top = min(self._top, self._above(len(self.lines), height))

    def _above(self, line: int, height: int) -> tuple[int, int]:
        """Where the window stands when this line is the first below it."""
        left = height
        while line > 0 and left > 0:
            line -= 1
            left -= len(self._of(line))
        return (line, max(-left, 0))

    def _of(self, line: int) -> list[Strip]:
        rows = self._rows.get(line)
        if rows is None:
            if len(self._rows) >= _KEPT:
                self._rows.clear()
            rows = self._rows[line] = self._draw(self.lines[line])
        return rows

    def _draw(self, line: str) -> list[Strip]:
        text = _HEAPED.sub(r"\1", line[:_LONGEST_PLAIN])
        most = _LONGEST_PLAIN if text.isascii() and "\x1b" not in text else _LONGEST
        text = text if len(text) <= most and len(line) <= _LONGEST_PLAIN else f"{text[:most]}…"
        if self._grey or text.count("\x1b") > _SHADES:
            text = clean(text)
        if _PICTURE.search(text):
            seen = text if "\x1b" in text else text[: 4 * self._width]
            return [coloured_line(seen, self._width, self._style)]
        return coloured(text, self._width, self._style) or [Strip.blank(0)]


def _chosen(lines: Sequence[str]) -> int | None:
    return next((number for number, line in enumerate(lines) if _CHOSEN in line[:_SOUGHT]), None)
