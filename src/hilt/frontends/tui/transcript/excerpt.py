"""Part of a text, drawn at a cost that does not depend on how long the text is."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from hilt.frontends.tui.drawing.wrapping import wrap
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.transcript.copying import DECORATION

Drawing: TypeAlias = Callable[[str, int, Style], list[Strip]]

MOST = 2_000
"""Rows of one text, also when all of it is wanted."""
_CHARACTERS = 60_000
"""Of one text, that are looked at."""


class Excerpt(NamedTuple):
    rows: list[Strip]
    hidden: int
    """Lines that are not in it, or not as a whole."""


def beginning(text: str, width: int, style: Style, most: int, draw: Drawing) -> Excerpt:
    """At most so many rows, from the first on."""
    text = text.removesuffix("\n")
    if not text:
        return Excerpt([], 0)
    rows: list[Strip] = []
    at = shown = 0
    while at <= len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        last, taken = min(end, _CHARACTERS), (most - len(rows) + 1) * width
        while True:
            until = min(last, at + taken)
            drawn = draw(text[at:until], width, style) or [Strip([])]
            if until == last or len(rows) + len(drawn) > most:
                break
            taken *= 2  # spaces are left out where rows break
        rows += drawn
        if len(rows) > most or until < end:
            break
        at, shown = end + 1, shown + 1
    return Excerpt(rows[:most], text.count("\n") + 1 - shown)


def ending(text: str, width: int, style: Style, most: int, draw: Drawing) -> Excerpt:
    """At most so many rows, up to the last."""
    text = text.removesuffix("\n")
    if not text:
        return Excerpt([], 0)
    pieces: list[list[Strip]] = []
    count = shown = 0
    end = len(text)
    while end >= 0:
        begin = text.rfind("\n", 0, end) + 1
        first, taken = max(begin, len(text) - _CHARACTERS), (most - count + 1) * width
        while True:
            start = max(first, end - taken)
            drawn = draw(text[start:end], width, style) or [Strip([])]
            if start == first or count + len(drawn) > most:
                break
            taken *= 2
        pieces.append(drawn)
        count += len(drawn)
        if count > most or start > begin:
            break
        end, shown = begin - 1, shown + 1
    rows = [row for piece in reversed(pieces) for row in piece]
    return Excerpt(rows[max(0, len(rows) - most) :], text.count("\n") + 1 - shown)


def more(hidden: int, width: int, look: Look, *, folded: bool | None, earlier: bool = False) -> list[Strip]:
    """The row that says what is left out."""
    if not hidden:
        return []
    what = f"{hidden} {'earlier' if earlier else 'more'} line{'s' * (hidden > 1)}"
    how = " (ctrl+o)" if folded else ", too many to show"
    return wrap([(f"… {what}{how}", look.gutter + DECORATION)], width)[:1]


def behind(prefix: str, rows: Iterable[Strip], style: Style) -> list[Strip]:
    """Rows with something before each of them that is no text."""
    front = Segment(prefix, style + DECORATION)
    cells = front.cell_length
    return [Strip([front, *row], cells + row.cell_length) for row in rows]
