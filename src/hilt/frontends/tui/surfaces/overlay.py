"""Overlays of extensions: boxes above everything but dialogs, each where its owner wants it and with its name on it.

Owns a few boxes, which are used again and again, and where they stand. Esc closes the one on top.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from hilt.errors import UsageError
from hilt.frontends.terminal import one_line
from hilt.frontends.tui.drawing.plain import coloured
from hilt.frontends.tui.drawing.wrapping import clip, pad
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.scene import Part, Scene
from hilt.frontends.tui.surfaces.panel import edged
from hilt.frontends.tui.surfaces.surface import Patience
from hilt.model.events import OverlayShown

if TYPE_CHECKING:  # it is not on the way to the first frame
    from hilt.frontends.tui.client import Client

_AT_ONCE = 8
"""Those on top; what is under so many is not seen."""
_USUAL = 60
"""Columns, when nothing else is said."""
_LEAST = 16
_SIDES = 4
_NAME, _TITLE = 24, 60
_FRAME = "╔═╗║╚╝"


class Overlays:
    part = Part.OVERLAYS

    def __init__(
        self, look: Callable[[], Look], client: "Client", screen: Screen[object], room: Callable[[], Size]
    ) -> None:
        """`room` is how much of the screen they may cover, from its top: not the input."""
        self._look = look
        self._client = client
        self._screen = screen
        self._room = room
        self._overlays: Sequence[OverlayShown] = ()
        self._size = Size(0, 0)
        self._boxes: list[Box] = []
        self._came: dict[tuple[str, str], float] = {}
        self._patience = Patience()

    def show(self, scene: Scene) -> None:
        if scene.overlays != self._overlays:
            self._overlays = scene.overlays
            now = asyncio.get_running_loop().time()
            keys = [(one.extension, one.key) for one in self._overlays]
            self._came = {key: self._came.get(key, now) for key in keys}
            self._draw(self._room())

    def place(self) -> None:
        """There may be more or less room for them."""
        if self._overlays and (size := self._room()) != self._size:
            self._draw(size)

    def _draw(self, size: Size) -> None:
        self._size = size
        on_top = self._overlays[-_AT_ONCE:]
        while len(self._boxes) < len(on_top):
            self._boxes.append(Box(self._look()))
            self._screen.mount(self._boxes[-1])
        for number, box in enumerate(self._boxes):
            box.put(on_top[number] if number < len(on_top) else None, self._size)

    def close(self) -> bool:
        """Close the one on top. False when there is none, or it insists."""
        if not self._overlays:
            return False
        *self._overlays, top = self._overlays  # at once: what is there when this is drawn next has come again
        latest = max(self._came.values())
        del self._came[top.extension, top.key]
        self._client.do(_closed(self._client, top), "closing an overlay")
        return self._patience.takes(latest)


class Box(Widget):
    DEFAULT_CSS = "Box { layer: overlays; position: absolute; background: $surface; }"

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._overlay: OverlayShown | None = None
        self._screen_size = Size(0, 0)
        self._rows: list[Strip] = []
        self.display = False

    def put(self, overlay: OverlayShown | None, screen: Size) -> None:
        """Show this one, or none."""
        self._overlay, self._screen_size = overlay, screen
        self.display = overlay is not None
        if overlay is None:
            return
        width = columns(overlay.width, screen.width)
        self._rows = self._drawn(overlay, width, max(screen.height, 3))
        place = placed(overlay.anchor, Size(width, len(self._rows)), screen)
        self.styles.width, self.styles.height = place.width, place.height
        self.styles.offset = (place.x, place.y)
        self.refresh()

    def restyle(self, look: Look) -> None:
        self._look = look
        self.put(self._overlay, self._screen_size)

    def render_line(self, y: int) -> Strip:
        strip = self._rows[y] if y < len(self._rows) else Strip.blank(0)
        return strip.apply_style(self.rich_style)

    def _drawn(self, overlay: OverlayShown, width: int, height: int) -> list[Strip]:
        look, inner = self._look, max(width - _SIDES, 1)
        # What cannot be in sight is not measured.
        lines = overlay.content[: inner * height * 8].strip("\n").split("\n")
        rows = [row for line in lines[:height] for row in coloured(line, inner, look.text) or [Strip.blank(0)]]
        cut = len(rows) > height - 2 or len(lines) > height
        owner, title = one_line(overlay.extension, _NAME), one_line(overlay.title, _TITLE)
        head = [Segment(f" {owner}", look.badge), *([Segment(f" {title}", look.strong)] if title else [])]
        foot = " esc closes" + (" · there is more" if cut else "") + " "
        sides = Strip([Segment(f"{_FRAME[3]} ", look.accent)]), Strip([Segment(f" {_FRAME[3]}", look.accent)])
        inside = [Strip.join([sides[0], pad(clip(row, inner), inner, look.text), sides[1]]) for row in rows]
        return [
            edged(Strip([*head, Segment(" ", look.dim)]), _FRAME[0], _FRAME[1], _FRAME[2], width, look.accent),
            *inside[: height - 2],
            edged(Strip([Segment(foot, look.dim)]), _FRAME[4], _FRAME[1], _FRAME[5], width, look.accent),
        ]


def columns(wanted: str, screen: int) -> int:
    """How wide a box is that wants to be `40` or `50%` wide; one that says nothing of use is as wide as is usual."""
    number = wanted.strip().removesuffix("%").strip()
    width = _USUAL
    if number.isascii() and number.isdigit():
        width = int(number[:6])
        width = screen * width // 100 if wanted.strip().endswith("%") else width
    return max(min(width, screen), min(_LEAST, screen))


def placed(anchor: str, size: Size, screen: Size) -> Region:
    """Where a box stands: at the edges that it names, and in the middle otherwise."""
    words = set(anchor.lower().replace("_", "-").replace(" ", "-").split("-"))
    if not words <= {"top", "bottom", "left", "right", "center", "centre", "middle"}:
        words = set()
    spare_x, spare_y = max(screen.width - size.width, 0), max(screen.height - size.height, 0)
    x = 0 if "left" in words else spare_x if "right" in words else spare_x // 2
    y = 0 if "top" in words else spare_y if "bottom" in words else spare_y // 2
    return Region(x, y, min(size.width, screen.width), min(size.height, screen.height))


async def _closed(client: "Client", overlay: OverlayShown) -> None:
    try:
        await client.session.screen.close_overlay(overlay.extension, overlay.key)
    except UsageError:
        pass  # its owner did
