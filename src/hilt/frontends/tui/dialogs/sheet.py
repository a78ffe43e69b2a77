"""What a dialog is drawn on: the box itself, and rows that are drawn a few at a time.

Neither knows what is in them: the dialog does.
"""

from collections.abc import Iterator
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from hilt.frontends.tui.drawing.wrapping import pad

if TYPE_CHECKING:
    from hilt.frontends.tui.dialogs.dialog import Dialog

Placed: TypeAlias = tuple[str, int, Strip]
"""The part that a row belongs to (`head`, `page`, `foot` or none), its place there, and the row."""

_WHEEL = 3
_AT_ONCE = 32
_MOMENT = 0.008
"""Seconds for which rows are drawn without a pause."""


class Drawn:
    """What scrolls, as far as it is drawn."""

    def __init__(self, width: int, rest: Iterator[Strip]) -> None:
        self.width = width
        self.rows: list[Strip] = []
        self.done = False
        self._rest = rest

    def drawn(self) -> bool:
        """Go on for a moment; whether that was all."""
        until = monotonic() + _MOMENT
        while not self.done and monotonic() < until:
            some = list(islice(self._rest, _AT_ONCE))
            self.rows += some
            self.done = len(some) < _AT_ONCE
        return self.done


class Sheet(Widget):
    """The box, as its dialog draws it."""

    DEFAULT_CSS = "Sheet { width: 100%; height: auto; background: $surface; }"
    ALLOW_SELECT = False

    def __init__(self, dialog: "Dialog[Any]") -> None:
        super().__init__()
        self._dialog = dialog
        self._rows: list[Placed] | None = None

    def redraw(self) -> None:
        self._rows = None
        if self.is_mounted:
            self.refresh(layout=True)

    def get_content_height(self, _container: Size, viewport: Size, width: int) -> int:
        return self._dialog.wanted(width, viewport)

    def render_line(self, y: int) -> Strip:
        rows, width, ground = self._placed(), self.size.width, self._dialog.look.block
        # What shines through a screen leaves no ground below the letters but the terminal's: so it is painted here.
        return pad(rows[y][2], width, ground).apply_style(ground) if y < len(rows) else Strip.blank(width, ground)

    def _placed(self) -> list[Placed]:
        if self._rows is None:
            self._rows = self._dialog.rows(self.size.width, self.size.height)
        return self._rows

    def on_resize(self, _: Resize) -> None:
        self._rows = None
        self._dialog.placed()
        self.refresh()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        event.stop()
        self._dialog.scroll_by(_WHEEL)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        event.stop()
        self._dialog.scroll_by(-_WHEEL)

    def on_click(self, event: Click) -> None:
        event.stop()
        rows = self._placed()
        if self._dialog.counts(event.time) and event.y < len(rows) and (part := rows[event.y][0]):
            self._dialog.clicked(part, rows[event.y][1])
