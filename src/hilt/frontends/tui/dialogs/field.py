"""One line that is typed: a filter, a reason. Owns the text; which keys reach it is up to the dialog."""

from rich.segment import Segment
from rich.style import Style
from textual.events import Key
from textual.strip import Strip

from hilt.frontends.terminal import clean
from hilt.frontends.tui.drawing.cells import clusters_of

_LONGEST = 4000
"""Characters; more than that is cut off."""
_CURSOR = "▏"


class Field:
    """Written at its end: what is typed here is short."""

    def __init__(self) -> None:
        self.text = ""

    def pressed(self, key: Key) -> bool:
        """Whether it was a key of the line's, and the text may be different now."""
        match key.key:
            case "backspace" | "ctrl+h":
                self.text = _without_last(self.text)
            case "ctrl+w" | "alt+backspace":
                self.text = self.text.rstrip().rpartition(" ")[0]
            case "ctrl+u":
                self.text = ""
            case _ if key.is_printable and key.character:
                self.add(key.character)
            case _:
                return False
        return True

    def add(self, text: str) -> None:
        self.text = (self.text + " ".join(clean(text).split("\n")))[:_LONGEST]

    def row(self, front: str, width: int, style: Style, dim: Style, *, empty: str = "") -> Strip:
        """With the end in sight; `empty` says what to type while nothing is there."""
        row = Strip([Segment(self.text, style)])
        room = max(1, width - len(front) - 1)
        if row.cell_length > room:
            row = row.crop(row.cell_length - room, row.cell_length)
        rest = [Segment(empty, dim)] if not self.text else []
        return Strip([Segment(front, dim), *row, Segment(_CURSOR, style), *rest])


def _without_last(text: str) -> str:
    clusters = clusters_of(text)
    return text[: clusters[-1][0]] if clusters else text[:-1]
