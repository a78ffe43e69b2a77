"""Lines that extensions keep near the input: above it, or below the status line. Each begins with whose it is.

Owns how the few rows are shared: whoever has much to say leaves room for the others.
"""

from collections.abc import Sequence

from textual.strip import Strip

from hilt.frontends.terminal import one_line
from hilt.frontends.tui.drawing.plain import coloured_line
from hilt.frontends.tui.drawing.wrapping import wrap
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.scene import Part, Scene
from hilt.frontends.tui.surfaces.surface import Surface
from hilt.model.events import WidgetShown
from hilt.model.extensions import Placement

_ROWS = 8
_NAME = 16
"""Cells of an extension's name."""


class Widgets(Surface):
    part = Part.WIDGETS

    def __init__(self, look: Look, placement: Placement) -> None:
        self._placement = placement
        self._widgets: Sequence[WidgetShown] = ()
        super().__init__(look)

    def show(self, scene: Scene) -> None:
        here = [one for one in scene.widgets if one.placement == self._placement]
        if here != self._widgets:
            self._widgets = here
            self.redraw()

    @property
    def empty(self) -> bool:
        return not self._widgets

    def rows(self, width: int) -> list[Strip]:
        if (room := min(_ROWS, self.room())) < 1:
            return []
        if len(self._widgets) > room:
            room -= 1  # for how many more there are
        shown = self._widgets[:room]
        lines = [_lines(one.content, room) for one in shown]
        rows: list[Strip] = []
        for widget, given in zip(shown, _shares([len(one) for one in lines], room), strict=True):
            rows += self._rows_of(widget, lines.pop(0), given, width)
        if hidden := len(self._widgets) - len(shown):
            rows += wrap([(f"+{hidden} more", self.look.dim)], width)[:1]
        return rows

    def _rows_of(self, widget: WidgetShown, lines: list[str], given: int, width: int) -> list[Strip]:
        name = wrap([(f"{one_line(widget.extension, _NAME)} ", self.look.badge)], max(width // 2, 1))[0]
        left = name.cell_length + 1
        rows = []
        for number, line in enumerate(lines[:given]):
            cut = number == given - 1 and len(lines) > given
            front = name if number == 0 else Strip.blank(name.cell_length)
            sign = "…" if cut and given > 1 else " "
            bar = wrap([(sign, self.look.gutter)], 1)[0]
            rows.append(Strip.join([front, bar, coloured_line(line, max(width - left, 0), self.look.text)]))
        return rows


def _lines(content: str, most: int) -> list[str]:
    """The first ones, and one more if there are more."""
    return content.strip("\n").split("\n", most + 1)[: most + 1]


def _shares(wanted: Sequence[int], room: int) -> list[int]:
    """How many rows each gets: all that it wants, as long as that leaves a fair share to those after it."""
    given = [0] * len(wanted)
    for place, index in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        given[index] = min(wanted[index], (room - sum(given)) // (len(wanted) - place))
    return given
