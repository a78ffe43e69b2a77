"""Makes ready what came into sight: lays out what takes long, and decodes pictures, beside everything else.

Owns what the terminal knows of pictures: at most so many, those longest out of sight leave first, and none is left
when it closes.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from time import monotonic

from rich.color import Color
from textual.strip import Strip

from hilt.errors import ToolError
from hilt.frontends.tui.drawing.images import (
    SENT,
    Mode,
    fitted,
    half_blocks,
    mode_of,
    placeholders,
    removal,
    transmission,
)
from hilt.frontends.tui.drawing.png import MOST_PIXELS, Unreadable, decode
from hilt.frontends.tui.transcript.blocks import Block
from hilt.frontends.tui.transcript.pictures import Picture
from hilt.tools.background import Wanted, in_thread

KNOWN = 32
"""Pictures that the terminal keeps for us."""
SLICE = 0.005
"""Seconds of laying out, before others have their turn."""
SECONDS = 3.0
"""For decoding one."""
_FIRST = 0x68696C
"""Their numbers begin here, away from those that others choose."""


class Gallery:
    def __init__(self, mode: Mode, write: Callable[[str], None], changed: Callable[[], None]) -> None:
        """`write` sends to the terminal; `changed` is told when one is ready."""
        self._mode = mode
        self._write = write
        self._changed = changed
        self._known: dict[int, tuple[Picture, Block]] = {}
        """By number, those made ready least recently first."""
        self._next = 0

    @classmethod
    def here(cls, write: Callable[[str], None], changed: Callable[[], None]) -> "Gallery":
        """One for the terminal that this runs in."""
        return cls(mode_of(os.environ), write, changed)

    async def prepare(self, blocks: Sequence[Block], background: str) -> None:
        """`background` is the colour behind them."""
        for block in blocks:
            if block.asked:
                await self._lay_out(block)
            for picture in block.pictures:
                if await self._ready(picture, block, background):
                    block.touch()
                    self._changed()

    async def _lay_out(self, block: Block) -> None:
        while not block.advance(SLICE):  # noqa: ASYNC110 - nothing is waited for: others have their turn
            await asyncio.sleep(0)
        block.asked = False  # it may have to be done again, if more of it comes meanwhile
        block.touch()
        self._changed()

    async def _ready(self, picture: Picture, block: Block, background: str) -> bool:
        found = picture.examined()
        if found is None or found.mime_type != "image/png" or self._mode == "words":
            return False
        columns, rows = fitted(found.width, found.height)
        if self._mode == "kitty":
            if len(picture.image.data) > SENT:
                return False
            picture.shown = self._sent(picture, block, columns, rows)
            return True
        if found.width * found.height > MOST_PIXELS:
            return False
        below = Color.parse(background).get_truecolor()
        height = min(2 * rows, found.height)
        data = picture.image.data
        try:
            pixels = await in_thread(lambda wanted: decode(data, columns, height, below, _patience(wanted)))
        except (Unreadable, ToolError):
            return False
        picture.shown = half_blocks(pixels)
        return True

    def _sent(self, picture: Picture, block: Block, columns: int, rows: int) -> list[Strip]:
        number = _FIRST + self._next % (2 * KNOWN)
        self._next += 1
        self._known[number] = picture, block
        while len(self._known) > KNOWN:
            self._remove(next(iter(self._known)))
        for piece in transmission(number, picture.image.data, columns, rows):
            self._write(piece)
        return placeholders(number, columns, rows)

    def _remove(self, number: int) -> None:
        picture, block = self._known.pop(number)
        picture.shown, picture.asked = None, False  # it is made ready again when it comes into sight
        block.touch()
        self._write(removal(number))

    def close(self) -> None:
        for number in [*self._known]:
            self._remove(number)


def _patience(wanted: Wanted) -> Callable[[], None]:
    end = monotonic() + SECONDS

    def check() -> None:
        wanted.check()
        if monotonic() > end:
            raise Unreadable("it takes too long")

    return check
