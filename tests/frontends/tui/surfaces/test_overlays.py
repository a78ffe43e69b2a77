"""Overlays of real extensions: where they stand, how wide they are, and how they are closed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Region, Size

from hilt.frontends.tui.surfaces.overlay import Box, columns, placed
from hilt.model.events import OverlayClosed
from support.interface import Face, interface
from support.properties import patient
from support.showing import order, shower, tell

BOTH = pytest.mark.usefixtures("dialect")


def box(face: Face) -> Region:
    """Where the overlay stands."""
    rows = [(number, row) for number, row in enumerate(face.rows) if "╔" in row or "╚" in row]
    (top, first), (bottom, _) = rows
    left = len(first.partition("╔")[0])
    return Region(left, top, len(first[left:].rstrip()), bottom - top + 1)


def above_input(face: Face) -> int:
    return next(number for number, row in enumerate(face.rows) if row.startswith(" › ")) - 1


@BOTH
async def test_an_overlay_shows_its_title_its_owner_and_its_content_until_esc(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("help")) as face:
        tell(face, "help", "showOverlay", key="k", title="Keys", content="\x1b[1ma\x1b[0m adds\nb deletes")
        await face.shows("╔═ help Keys ═", "║ a adds", "║ b deletes", "esc closes")
        await face.press("h", "i")
        assert face.app.editor.text == "hi"  # it takes no keys but Esc
        await face.press("escape")
        await face.shows_no("adds")
        assert face.it.of(OverlayClosed) == [OverlayClosed("help", "k")]
        assert face.app.editor.text == "hi"


ANCHORS = {
    "top-left": (0, 0),
    "top": (20, 0),
    "top-right": (40, 0),
    "left": (0, 8),
    "center": (20, 8),
    "": (20, 8),
    "everywhere": (20, 8),
    "right": (40, 8),
    "bottom-left": (0, 17),
    "bottom_center": (20, 17),
    "Bottom Right": (40, 17),
}


async def test_an_overlay_stands_where_it_is_anchored_and_clear_of_the_input(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("help")) as face:
        for anchor, (x, y) in ANCHORS.items():
            said = f"at {anchor or 'no edge'}"
            tell(face, "help", "showOverlay", key="k", title="Keys", content=said, anchor=anchor, width="40")
            await face.shows(f"║ {said}", "Ask anything")
            assert above_input(face) == 20
            await face.until(lambda x=x, y=y: box(face) == Region(x, y, 40, 3), anchor)  # type: ignore[misc]


@given(st.text(max_size=8), st.integers(1, 300))
@patient
def test_a_width_always_fits_the_screen(wanted: str, screen: int) -> None:
    assert min(16, screen) <= columns(wanted, screen) <= screen


@pytest.mark.parametrize(
    ("wanted", "width"),
    [
        ("40", 40),
        ("50%", 50),
        (" 50 % ", 50),
        ("500", 100),
        ("200%", 100),
        ("0", 16),
        ("-3", 60),
        ("wide", 60),
        ("", 60),
    ],
)
def test_a_width_is_columns_or_a_share(wanted: str, width: int) -> None:
    assert columns(wanted, 100) == width


@given(st.text(max_size=20), st.integers(1, 100), st.integers(1, 100), st.integers(1, 100), st.integers(1, 100))
@patient
def test_a_box_is_always_on_the_screen(anchor: str, width: int, height: int, screen_x: int, screen_y: int) -> None:
    screen = Size(screen_x, screen_y)
    assert screen.region.contains_region(placed(anchor, Size(width, height), screen))


async def test_several_are_stacked_and_esc_closes_the_one_on_top(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("one"), shower("two")) as face:
        tell(face, "one", "showOverlay", key="k", title="", content="under", anchor="top-left", width="20")
        await face.shows("under")
        tell(face, "two", "showOverlay", key="k", title="", content="above", anchor="top-left", width="20")
        await face.shows("above")
        assert "under" not in face.text
        await face.press("escape")
        await face.shows("under")
        await face.press("escape")
        await face.shows_no("under")


async def test_an_overlay_goes_with_its_owner(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("help")) as face:
        tell(face, "help", "showOverlay", key="k", title="Keys", content="here")
        await face.shows("║ here")
        order(face, "help", die=True)
        await face.shows_no("║ here")


async def test_an_overlay_is_moved_when_the_screen_or_the_input_changes(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("help")) as face:
        tell(face, "help", "showOverlay", key="k", title="Keys", content="here", anchor="bottom-right", width="50%")
        await face.shows("║ here")
        assert box(face).right == 80
        await face.pilot.resize_terminal(40, 20)
        await face.until(lambda: box(face).right == 40 and box(face).width == 20)
        await face.until(lambda: box(face).bottom == above_input(face))
        await face.press("a", "ctrl+j", "b", "ctrl+j", "c")
        await face.until(lambda: box(face).bottom == above_input(face), "it makes room for the input")


async def test_an_overlay_that_comes_back_at_once_does_not_keep_esc_for_itself(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("help")) as face:
        await face.press("h", "i")
        for _ in range(2):
            tell(face, "help", "showOverlay", key="k", title="Keys", content="here")
            await face.shows("║ here")
            await face.press("escape")
            await face.shows_no("║ here")
        await face.until(lambda: face.app.editor.text == "", "the second Esc clears the input")


async def test_a_long_and_hostile_overlay_is_cut_and_harmless(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("help"), size=(40, 20)) as face:
        bad = "\x1b]0;t\x07◈ Allow?\u202e\x9b31m\n" + "日本語 line\n" * 500
        tell(face, "help", "showOverlay", key="k", title="◈ \x1b[2JT\u202e", content=bad, width="100%")
        shown = await face.shows("Allow?", "there is more", "Ask anything")
        assert not any(sign in shown for sign in ("\x1b", "\x9b", "\x07", "\u202e", "◈"))


async def test_no_more_boxes_are_made_than_can_be_seen(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("one"), shower("two")) as face:
        for name in ("one", "two"):
            order(face, name, *[("showOverlay", {"key": f"k{n}", "content": f"{name} {n}."}) for n in range(12)])
            await face.shows(f"{name} 11.")
        assert len(face.app.scene.overlays) == 24
        assert len(face.app.query(Box)) == 8
        await face.press("escape")
        await face.shows_no("two 11.")
        await face.shows("two 10.")
