"""The window on a panel's lines, against a model that draws them all; and what it costs when there are very many."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

from hilt.frontends.tui.drawing.plain import coloured, coloured_line
from hilt.frontends.tui.surfaces.sheet import Sheet
from support.properties import patient

STYLE = Style(color="#ffffff")
LETTERS = st.sampled_from([*"ab ─│▸\t\n日é◈\u202e\x9b", "e\u0301", "👩\u200d👧", "\x1b[31m", "\x1b[0m", "\x1b]0;x\x07"])
LINES = st.lists(st.lists(LETTERS, max_size=25).map("".join), max_size=15)


def all_rows(lines: list[str], width: int) -> list[str]:
    rows: list[Strip] = []
    for line in lines:
        picture = any("\u2500" <= letter <= "\u259f" for letter in line)
        rows += [coloured_line(line, width, STYLE)] if picture else coloured(line, width, STYLE) or [Strip.blank(0)]
    return [row.text for row in rows]


@given(LINES, st.integers(1, 50), st.integers(1, 12), st.lists(st.integers(-15, 15), max_size=8))
@patient
def test_the_window_shows_what_it_would_if_all_was_drawn(
    lines: list[str], width: int, height: int, moves: list[int]
) -> None:
    sheet = Sheet()
    sheet.put(tuple(line.replace("▸", ">") for line in lines))
    rows = all_rows([line.replace("▸", ">") for line in lines], width)
    top = 0
    for move in [0, *moves]:
        sheet.scroll(move, height)
        top = max(0, min(top + move, len(rows) - height))
        assert [row.text for row in sheet.window(width, height, STYLE)] == rows[top : top + height]
        assert sheet.whole(height) == (len(rows) <= height)


@given(LINES, st.integers(1, 50), st.integers(1, 12), st.booleans())
@patient
def test_no_row_is_too_wide_or_has_anything_but_text(lines: list[str], width: int, height: int, grey: bool) -> None:
    sheet = Sheet()
    sheet.put(tuple(lines))
    for row in sheet.window(width, height, STYLE, grey=grey):
        assert cell_len(row.text) <= width
        assert row.text.replace("\u200d", "").isprintable() and "◈" not in row.text


@given(LINES, LINES, st.integers(1, 50), st.integers(1, 12))
@patient
def test_a_selection_that_has_moved_is_in_sight(before: list[str], after: list[str], width: int, height: int) -> None:
    sheet = Sheet()
    sheet.put(tuple(line.replace("▸", ">") for line in before))
    sheet.window(width, height, STYLE)
    plain = [line.replace("▸", ">").replace("\n", " ") for line in after]
    lines = [*plain, "▸ chosen", *plain]
    sheet.put(tuple(lines))
    shown = [row.text for row in sheet.window(width, height, STYLE)]
    if width >= len("▸ chosen"):
        assert "▸ chosen" in shown


@pytest.mark.parametrize(
    ("line", "most"),
    [
        ("e" + "\u0301" * 100_000, 10),
        ("e\u0301" * 100_000, 1001),
        ("日" * 100_000, 1001),
        ("─" * 100_000, 80),
        ("x" * 100_000, 10_001),
        ("\x1b[31mx" * 100_000, 10_001),
    ],
)
def test_no_more_of_a_line_is_measured_than_can_matter(line: str, most: int) -> None:
    # U2
    sheet = Sheet()
    sheet.put((line,))
    sheet.window(80, 30, STYLE)
    assert sum(len(row.text) for row in sheet._of(0)) <= most


def test_a_line_with_endless_colours_has_none() -> None:
    sheet = Sheet()
    sheet.put(("\x1b[31mx" * 50, "\x1b[31mx" * 500))
    few, many = sheet.window(80, 2, STYLE)
    assert any(segment.style != STYLE for segment in few)
    assert all(segment.style == STYLE for segment in many)


def test_of_very_many_lines_only_those_in_sight_are_drawn() -> None:
    sheet = Sheet()
    sheet.put(tuple("日本語 " * 3000 for _ in range(10_000)))
    sheet.window(120, 30, STYLE)
    assert len(sheet._rows) <= 30
    sheet.scroll(30, 30)
    assert len(sheet.window(120, 30, STYLE)) == 30
    assert len(sheet._rows) <= 90
