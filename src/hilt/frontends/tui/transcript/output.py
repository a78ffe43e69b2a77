"""What a program wrote: the end of it while it runs, and afterwards all of it, most of it folded away."""

from textual.strip import Strip

from hilt.frontends.tui.drawing.plain import coloured
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.transcript.excerpt import MOST, beginning, ending, more
from hilt.frontends.tui.transcript.tail import Tail

LIVE = 8
"""Rows while it runs."""
FOLDED = 10


class Output:
    def __init__(self, *, from_end: bool, folded: int = FOLDED) -> None:
        """`from_end`: what came last matters most; `folded`: rows at the end, when it is folded."""
        self._from_end = from_end
        self._folded = folded
        self._tail: Tail | None = None
        self._whole: str | None = None

    def add(self, text: str) -> None:
        """More of it, while it runs."""
        if self._tail is None:
            self._tail = Tail()
        self._tail.add(text)

    def end(self, whole: str) -> None:
        """This is all."""
        self._whole, self._tail = whole, None

    @property
    def is_empty(self) -> bool:
        return not self._whole and not self._tail

    def rows(self, width: int, look: Look, *, folded: bool, failed: bool = False) -> list[Strip]:
        if self._whole is None:
            text = self._tail.text if self._tail else ""
            return ending(text, width, look.dim, LIVE if folded else MOST, coloured).rows
        style = look.text if failed else look.dim
        most = self._folded if folded else MOST
        if self._from_end:
            rows, hidden = ending(self._whole, width, style, most, coloured)
            return [*more(hidden, width, look, folded=folded, earlier=True), *rows]
        rows, hidden = beginning(self._whole, width, style, most, coloured)
        return [*rows, *more(hidden, width, look, folded=folded)]

    def guess(self, width: int, *, folded: bool) -> int:
        """About as many rows."""
        if self._whole is None:
            return LIVE if self._tail else 0
        rows = self._whole.count("\n") + 1 + len(self._whole) // max(width, 1) if self._whole else 0
        return min(rows, self._folded + 1 if folded else MOST)
