"""What the user said, or an extension in the user's place."""

from collections.abc import Sequence

from textual.strip import Strip

from hilt.frontends.terminal import clean, one_line
from hilt.frontends.tui.drawing.plain import plain
from hilt.frontends.tui.drawing.wrapping import pad, wrap
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.transcript.blocks import Block, Grown
from hilt.frontends.tui.transcript.excerpt import MOST, beginning, behind, more
from hilt.frontends.tui.transcript.pictures import Picture
from hilt.model.content import Image

_SHOWN = 20
"""Rows of one that is folded."""


class Said(Block):
    def __init__(self, text: str, extension: str = "", images: tuple[Image, ...] = ()) -> None:
        self._grown = Grown(text)
        self.extension = extension
        self.pictures = tuple(map(Picture, images))
        self.folded = True if self._grown.rows(80) > _SHOWN else None

    @property
    def text(self) -> str:
        return self._grown.text

    @property
    def heading(self) -> str:
        return one_line(self.text, 200)

    def rows(self, width: int, look: Look) -> Sequence[Strip]:
        room = max(width - 2, 1)
        rows: list[Strip] = []
        if self.extension:
            rows += wrap([(f"[{clean(self.extension)}] says", look.block + look.badge)], room)
        text, hidden = beginning(self.text, room, look.block, _SHOWN if self.folded else MOST, plain)
        rows += [*text, *more(hidden, room, look, folded=self.folded)]
        for picture in self.pictures:
            rows += picture.rows(room, look)
        return behind("┃ ", [pad(row, room, look.block) for row in rows], look.user)

    def guess(self, width: int) -> int:
        rows = min(self._grown.rows(width), _SHOWN + 1 if self.folded else MOST)
        return rows + bool(self.extension) + len(self.pictures)
