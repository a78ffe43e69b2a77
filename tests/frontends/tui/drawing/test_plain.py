"""Text as it is, and with its author's colours; nothing else of what commands a terminal."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import Color
from rich.style import Style
from textual.strip import Strip

from hilt.frontends.tui.drawing.plain import coloured, coloured_line, plain
from hilt.frontends.tui.drawing.rows import text_of
from support.properties import patient

BASE = Style(color="white")
HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e]")


def styles(text: str) -> list[tuple[str, Style]]:
    (strip,) = coloured(text, 80, BASE)
    return [(segment.text, segment.style or Style.null()) for segment in strip]


def test_lines_and_tabs_are_kept_and_rows_wrapped() -> None:
    assert text_of(plain("one\n\n\ttwo three\n", 8, BASE)) == "one\n\n    two\nthree"


def test_an_empty_text_has_no_rows() -> None:
    assert plain("", 8, BASE) == coloured("", 8, BASE) == []


def test_what_commands_a_terminal_is_taken_out() -> None:
    assert text_of(plain("a\x1b[2Jb\x1b]0;title\x07c\x9b1md\x1b[31me", 80, BASE)) == "abcde"
    assert text_of(coloured("a\x1b[2Jb\x1b]0;title\x07c\x9b1md\x1b[31me", 80, BASE)) == "abcde"


def test_what_hides_text_is_written_out() -> None:
    assert text_of(plain("a\u202eb", 80, BASE)) == "a‹U+202E›b"


@pytest.mark.parametrize(
    ("codes", "style"),
    [
        ("31", Style(color=Color.from_ansi(1))),
        ("97", Style(color=Color.from_ansi(15))),
        ("44", Style(bgcolor=Color.from_ansi(4))),
        ("103", Style(bgcolor=Color.from_ansi(11))),
        ("38;5;200", Style(color=Color.from_ansi(200))),
        ("48:5:17", Style(bgcolor=Color.from_ansi(17))),
        ("38;2;1;2;3", Style(color=Color.from_rgb(1, 2, 3))),
        ("38:2::1:2:3", Style(color=Color.from_rgb(1, 2, 3))),
        ("1", Style(bold=True)),
        ("2;3", Style(dim=True, italic=True)),
        ("4;9", Style(underline=True, strike=True)),
        ("7", Style(reverse=True)),
        ("1;31;22", Style(color=Color.from_ansi(1))),
        ("31;39", Style.null()),
        ("4;4:0", Style.null()),
        ("58;5;1;1", Style(bold=True)),
        ("38;5;999", Style.null()),
        ("38;2;1", Style.null()),
        ("98", Style.null()),
    ],
)
def test_a_sequence_is_a_style(codes: str, style: Style) -> None:
    assert styles(f"a\x1b[{codes}mb\x1b[0mc") in (
        [("a", BASE), ("b", BASE + style), ("c", BASE)],
        [("a", BASE), ("b", BASE), ("c", BASE)] if style == Style.null() else [],
    )


def test_an_empty_sequence_resets_all() -> None:
    assert styles("\x1b[1;31ma\x1b[mb")[-1] == ("b", BASE)


def test_colours_end_with_their_line_and_hold_over_its_rows() -> None:
    red = BASE + Style(color=Color.from_ansi(1))
    rows = coloured("\x1b[31mone two\nthree", 5, BASE)
    assert [(row.text, next(iter(row)).style) for row in rows] == [("one", red), ("two", red), ("three", BASE)]


def test_a_row_of_a_panel_is_clipped() -> None:
    strip = coloured_line("\x1b[31m漢字\x1b[0m and\nmore", 6, BASE)
    assert (strip.text, strip.cell_length) == ("漢字 a", 6)
    assert coloured_line("漢字", 3, BASE).text == "漢 "
    assert coloured_line("", 3, BASE).text == ""


def test_a_sequence_cut_in_two_by_the_clipping_is_not_drawn() -> None:
    for length in range(1030, 1060):
        strip = coloured_line("\x1b[31m" * 300 + "x", 1, BASE)
        assert "\x1b" not in strip.text
        assert "\x1b" not in coloured_line("\u0301" * length + "\x1b[31m", 1, BASE).text


def test_a_row_of_millions_of_characters_costs_no_more_than_what_is_seen_of_it() -> None:
    assert coloured_line("e\u0301" * 5_000_000, 20, BASE).cell_length == 20


texts = st.lists(
    st.sampled_from(
        ["\x1b[", "\x1b[31m", "\x1b[1;4", "m", "0m", "\x1b]8;;x\x07", "\x9b", "\u202e", "\n", "\t", "漢", "a"]
    )
    | st.text(max_size=4)
).map("".join)


@patient
@given(texts, st.integers(1, 60))
def test_nothing_but_text_gets_to_the_screen(text: str, width: int) -> None:
    strips: list[Strip] = [*plain(text, width, BASE), *coloured(text, width, BASE), coloured_line(text, width, BASE)]
    for strip in strips:
        assert strip.cell_length <= width
        assert not HARMFUL.search(strip.text)
