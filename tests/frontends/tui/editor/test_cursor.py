"""Where one is in the input can be seen, whatever the theme, and so can what can be typed there."""

from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style

from hilt.frontends.tui.look import DARK, LIGHT, SYSTEM, Palette
from support.interface import Face, interface


def cells(face: Face, row: str) -> list[tuple[str, Style]]:
    """What is seen of the row with this in it."""
    for strip in face.app.screen._compositor.render_strips():
        shown: list[Segment] = list(strip)
        if row in "".join(segment.text for segment in shown):
            return [(letter, segment.style or Style.null()) for segment in shown for letter in segment.text]
    raise AssertionError(face.text)


def seen(style: Style) -> tuple[str, str]:
    """The colours of a cell, as a terminal would draw them."""
    colour = style.color.name if style.color and not style.color.is_default else "text"
    behind = style.bgcolor.name if style.bgcolor and not style.bgcolor.is_default else "ground"
    return (behind, colour) if style.reverse else (colour, behind)


@pytest.mark.parametrize("palette", [DARK, LIGHT, SYSTEM], ids=["dark", "light", "system"])
async def test_the_cell_under_the_cursor_looks_unlike_its_neighbours(tmp_path: Path, palette: Palette) -> None:
    async with interface(tmp_path) as face:
        face.app.restyle(palette)
        await face.press("a", "b", "c", "left", "left")
        await face.shows("abc")
        (_, a), (_, b), (_, c) = [cell for cell in cells(face, "abc") if cell[0] in "abc"]
        assert seen(a) == seen(c)
        assert seen(b) != seen(a)


async def test_a_hint_that_has_no_room_leaves_out_whole_parts(tmp_path: Path) -> None:
    async with interface(tmp_path, size=(40, 12)) as face:
        await face.shows("› Ask anything · / for commands\n")
        await face.pilot.resize_terminal(12, 12)
        await face.shows("› Ask any")
