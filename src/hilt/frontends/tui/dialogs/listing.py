"""What somebody is going to approve, as rows: whole, as it is, with whatever hides in it written out.

However long it is, it is drawn a piece at a time, and a row that goes on shows that it does.
"""

from collections.abc import Iterator

from textual.strip import Strip

from hilt.frontends.terminal import visible
from hilt.frontends.tui.drawing.wrapping import wrap
from hilt.frontends.tui.look import Look

_PIECE = 4096
"""Characters of a line that are laid out at once, about."""
_BEGINS, _GOES_ON = "│ ", "↳ "
"""Set it apart from what hilt says: no line of it can pass for one of hilt's."""


def listing(text: str, width: int, look: Look) -> Iterator[Strip]:
    begins, goes_on = [(_BEGINS, look.gutter)], [(_GOES_ON, look.gutter)]
    room = max(1, width - len(_BEGINS))
    size = max(1, _PIECE // room) * room  # it fills its rows, so nobody sees where it was cut
    for line in visible(text).split("\n"):
        for start in range(0, len(line) or 1, size):
            spans, front = [(line[start : start + size], look.block)], goes_on if start else begins
            yield from wrap(spans, width, indent=front, hanging=goes_on, hard=True, fill=look.block)
