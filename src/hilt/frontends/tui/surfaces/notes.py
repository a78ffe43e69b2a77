"""Notes of extensions above the input: the newest last, whose they are, and how serious they are.

Owns how many rows they take. Which notes there are, and for how long, is the agent's business.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.style import Style
from textual.strip import Strip

from hilt.frontends.terminal import clean, one_line
from hilt.frontends.tui.drawing.wrapping import wrap
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.scene import Part, Scene
from hilt.frontends.tui.surfaces.surface import Patience, Surface
from hilt.model.extensions import Note

if TYPE_CHECKING:  # it is not on the way to the first frame
    from hilt.frontends.tui.client import Client

_ROWS = 5
_OF_ONE = 3
"""Rows of one note among several, as long as not all of them are wanted."""
_MARKS = {"info": "·", "success": "✓", "warn": "!", "error": "✗"}
_NAME = 24
"""Cells of an extension's name."""


class Notes(Surface):
    part = Part.NOTES

    _notes: Sequence[Note] = ()
    _all = False
    """Whether the user wants to see them all."""

    def __init__(self, look: Look, client: "Client") -> None:
        self._patience = Patience()
        self._came = 0.0
        """When there were notes again."""
        super().__init__(look, client)

    def show(self, scene: Scene) -> None:
        if scene.notes != self._notes:
            if not self._notes:
                self._came = asyncio.get_running_loop().time()
            self._notes = scene.notes
            self._all = self._all and bool(self._notes)
            self.redraw()

    @property
    def empty(self) -> bool:
        return not self._notes

    def dismiss(self) -> bool:
        """Take them away. False when there were none, or they insist."""
        if self.empty or self.client is None:
            return False
        self._notes = ()  # at once: what is there when they are drawn next has come again
        self.redraw()
        self.client.do(self.client.session.notes.clear_all(), "clearing notes")
        return self._patience.takes(self._came)

    def unfold(self) -> None:
        """All of them, as far as there is room, or the last ones again."""
        self._all = not self._all
        self.redraw()

    def rows(self, width: int) -> list[Strip]:
        room = min(self.room(), max(self.app.size.height // 2, _ROWS) if self._all else _ROWS)
        rows: list[Strip] = []
        hidden = len(self._notes)
        most = room if self._all or len(self._notes) == 1 else _OF_ONE
        for note in reversed(self._notes):
            drawn = _drawn(note, width, max(min(most, room - (hidden > 1)), 1), self.look)
            if len(rows) + len(drawn) > room - (hidden > 1):
                break
            rows = drawn + rows
            hidden -= 1
        if hidden:
            more = f"+{hidden} more" + ("" if self._all else " (ctrl+n)")
            rows[:0] = wrap([(more, self.look.dim)], width)[:1]
        return rows


def _drawn(note: Note, width: int, most: int, look: Look) -> list[Strip]:
    style = _style(note.level, look)
    front = [(f"{_MARKS[note.level]} ", style), (f"{one_line(note.extension, _NAME)} ", look.badge)]
    # A note may be thousands of characters long, and a row has only so many.
    text = clean(note.message[: most * width * 4]).strip()
    rows = wrap([(text, style)], width, indent=front, hanging=[("  ", style)])
    if len(rows) > most > 1:
        rows[most - 1] = wrap([("  …", look.dim)], width)[0]
    return rows[:most]


def _style(level: str, look: Look) -> Style:
    return {"success": look.success, "warn": look.warn, "error": look.error}.get(level, look.text)
