"""Listings: highlighted where the language is known, wrapped behind a mark, the text always as it was written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.strip import Strip

from hilt.frontends.tui.drawing.code import HIGHLIGHTED, PIECE, READABLE, code, piece, tokens
from hilt.frontends.tui.drawing.rows import text_of
from hilt.frontends.tui.look import DARK, SYSTEM, Look
from support.properties import patient

LOOK = Look.of(DARK)


def colours(strips: list[Strip]) -> dict[str, str]:
    """The colour of each word, by name."""
    return {
        segment.text.strip(): segment.style.color.name
        for strip in strips
        for segment in strip
        if segment.style and segment.style.color and segment.text.strip()
    }


def test_a_known_language_is_highlighted() -> None:
    found = colours(code('def f(x):\n    return "text" + 12  # why', "python", 80, LOOK))
    assert found["def"] == found["return"] == DARK.keyword
    assert found["f"] == DARK.function
    assert found["12"] == DARK.number
    assert found["# why"] == DARK.comment
    assert found["(x):"] == DARK.text


@pytest.mark.parametrize("language", ["", "no-such-language", "../etc", "PYTHON3.99", "\x00"])
def test_an_unknown_language_is_plain(language: str) -> None:
    strips = code("def f(): pass", language, 80, LOOK)
    assert text_of(strips) == "def f(): pass"
    assert {segment.style for strip in strips for segment in strip} == {LOOK.block}


def test_a_listing_has_a_background_to_the_end_of_each_row() -> None:
    for strip in code("a = 1\n\nb", "python", 20, LOOK):
        assert strip.cell_length == 20
        assert all(segment.style and segment.style.bgcolor == LOOK.block.bgcolor for segment in strip)


def test_a_long_line_goes_on_behind_a_mark() -> None:
    assert text_of(code("abcdefghij kl\nx", "", 8, LOOK)) == "abcdefgh\n↳ ij kl\nx"


def test_blank_lines_and_indentation_stay() -> None:
    text = "\n\n  if x:\n\n\ty()\n"
    assert text_of(code(text, "python", 40, LOOK)) == "\n\n  if x:\n\n    y()"


def test_what_commands_a_terminal_is_taken_out_of_code() -> None:
    assert text_of(code("a\x1b[31mb\x07", "python", 40, LOOK)) == "ab"


def test_too_much_to_highlight_is_plain() -> None:
    much = "x = 1\n" * (HIGHLIGHTED // 5 + 1)
    assert {role for line in tokens(much.split("\n"), "python") for _, role in line} == {("block",)}
    long = ["x = 1", "y = '" + "a" * READABLE + "'"]
    assert {role for line in tokens(long, "python") for _, role in line} == {("block",)}
    assert len({role for line in tokens(long[:1], "python") for _, role in line}) > 1


def test_a_listing_is_cut_before_something_new() -> None:
    lines = ["def f():", *["    pass"] * 20, "def g():", *["    pass"] * 10]
    assert piece(tokens(lines, "python")) == 21


def test_a_listing_is_not_cut_within_a_string() -> None:
    lines = ["x = 1"] * 20 + ['y = """'] + ["words"] * 11
    assert piece(tokens(lines, "python")) == 20


def test_a_listing_that_is_one_string_is_cut_all_the_same() -> None:
    assert 0 < piece(tokens(['y = """', *["words"] * PIECE], "python")) <= PIECE


def test_without_colours_words_of_the_language_are_bold() -> None:
    (row,) = code("return x", "python", 20, Look.of(SYSTEM))
    assert next(iter(row)).style.bold  # type: ignore[union-attr]  # a segment of code has a style


@patient
@given(
    st.text(st.sampled_from("ab{}\"'\\/*#<>%\n\t ()[]=漢\u0301\x1b\r\x0b\x85\u2028`$;:"), max_size=80),
    st.sampled_from(["python", "javascript", "html", "c", "bash", "yaml", "json", "diff", "console", "rst", "css"]),
    st.integers(1, 60),
)
def test_any_text_in_any_language_is_drawn_as_it_was_written(text: str, language: str, width: int) -> None:
    lit, bare = code(text, language, width, LOOK), code(text, "", width, LOOK)
    assert [strip.text for strip in lit] == [strip.text for strip in bare]
    assert all(strip.cell_length <= width for strip in lit)
