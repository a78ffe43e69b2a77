"""A few rows on the screen: drawn anew when what they show or their width changes, and not there when they are empty.

Owns when rows are drawn. What they say is up to each kind of surface, and how often that is asked for to the app.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from hilt.frontends.tui.look import Look
from hilt.frontends.tui.scene import Part, Scene

if TYPE_CHECKING:  # it is not on the way to the first frame
    from hilt.frontends.tui.client import Client


_INSISTING = 2.0


class Patience:
    """Whether Esc ends with what it closes. What comes back at once, however often it is closed, must not keep Esc from
    what it is for beside."""

    def __init__(self) -> None:
        self._first = self._last = float("-inf")
        """When Esc was pressed, of those times that followed each other quickly."""

    def takes(self, came: float) -> bool:
        """Esc closes something; the latest of its kind came then. Is that all it does?"""
        now = asyncio.get_running_loop().time()
        if now - self._last >= _INSISTING:
            self._first = now
        self._last = now
        return came < self._first or now == self._first


class Surface(Widget):
    DEFAULT_CSS = "Surface { height: auto; padding: 0 1; }"
    part: ClassVar[Part]
    """Of the scene, what it shows."""
    room: Callable[[], int]
    """How many rows there are for it."""

    def __init__(self, look: Look, client: "Client | None" = None) -> None:
        super().__init__()
        self.look = look
        self.client = client
        self._drawn: list[Strip] = []
        self._drawn_at: tuple[int, int] | None = None
        """The width and the room for which that is right; None when it is not."""
        self.room = lambda: self.app.size.height
        self.display = not self.empty

    @abstractmethod
    def show(self, scene: Scene) -> None:
        """Take what there is to show, and `redraw` if it is something else."""

    @property
    @abstractmethod
    def empty(self) -> bool:
        """Whether there is nothing to show."""

    @abstractmethod
    def rows(self, width: int) -> list[Strip]:
        """As it looks; none is wider than that."""

    def redraw(self) -> None:
        """It looks different from now on."""
        self._drawn_at = None
        if self.display is self.empty:
            self.display = not self.empty
        elif self.display:
            before = len(self._drawn)
            after = len(self._at(self.content_size.width)) if self.content_size.width else 0
            self.refresh(layout=before != after)

    def restyle(self, look: Look) -> None:
        self.look = look
        self.redraw()

    def _at(self, width: int) -> list[Strip]:
        room = self.room()
        if self._drawn_at != (width, room):
            self._drawn = self.rows(width)[: max(room, 0)]
            self._drawn_at = (width, room)
        return self._drawn

    @property
    def taken(self) -> int:
        """The rows that it takes."""
        return len(self._drawn) if self.display else 0

    def fit(self) -> None:
        """There may be more or less room."""
        if self.display and self._drawn_at and self._drawn_at[1] != self.room():
            self.redraw()

    # What Textual asks

    def get_content_height(self, _container: Size, _viewport: Size, width: int) -> int:
        return len(self._at(width)) if width > 0 else 0

    def render_line(self, y: int) -> Strip:
        rows = self._at(self.content_size.width)
        strip = rows[y] if y < len(rows) else Strip.blank(0)
        return strip.apply_style(self.ground)

    @property
    def ground(self) -> Style:
        """What everything is drawn on."""
        return self.rich_style
