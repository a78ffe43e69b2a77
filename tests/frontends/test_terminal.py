"""The choke point before a terminal: nothing that could do more than be read gets through."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.frontends.terminal import clean, one_line
from support.properties import patient

HOSTILE = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\x1b\x9b\x9d\x90\x9c\x07\x08\r\n\t\x00\x7f\x85[]0123;:mHJKPX^_\\\u202e\u2066\u200b\ufeff"),
    )
)
HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b\u200e\u200f\u061c\ufeff\ud800-\udfff]"
)
SGR = re.compile("\x1b\\[[0-9;:]*m")


@patient
@given(HOSTILE)
def test_plain_output_has_no_control_character_but_line_break_and_tab(text: str) -> None:
    assert not HARMFUL.search(clean(text))


@patient
@given(HOSTILE)
def test_coloured_output_has_no_escape_but_colours_and_each_line_ends_its_own(text: str) -> None:
    shown = clean(text, colour=True)
    assert not HARMFUL.search(SGR.sub("", shown))
    for line in shown.split("\n"):
        colours = SGR.findall(line)
        assert not colours or colours[-1] in ("\x1b[m", "\x1b[0m")


@patient
@given(HOSTILE, st.booleans())
def test_cleaning_twice_changes_nothing_more(text: str, colour: bool) -> None:
    once = clean(text, colour=colour)
    assert clean(once, colour=colour) == once


@patient
@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"])))
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert clean(text) == text
    assert clean(text, colour=True) == text


@pytest.mark.parametrize(
    ("attack", "harmless"),
    [
        ("a\x1b]52;c;ZXZpbA==\x07b", "ab"),
        ("a\x1b]52;c;ZXZpbA==\x1b\\b", "ab"),
        ("a\x1b]0;title\x07b", "ab"),
        ("\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\", "click"),
        ("a\x1b[2J\x1b[Hb", "ab"),
        ("a\x1b[1A\x1b[2Kb", "ab"),
        ("a\x1b[?1049hb", "ab"),
        ("a\x1b[6nb", "ab"),
        ("a\x1bPq#0\x1b\\b", "ab"),
        ("a\x1b_Gf=100\x1b\\b", "ab"),
        ("a\x1b^note\x1b\\b", "ab"),
        ("a\x1bXnote\x1b\\b", "ab"),
        ("a\x1bcb", "ab"),
        ("a\x9b2Jb", "ab"),
        ("a\x9d52;c;ZXZpbA==\x9cb", "ab"),
        ("a\x90q\x9cb", "ab"),
        ("safe\rrm -rf", "saferm -rf"),
        ("abc\x08\x08\x08xyz", "abcxyz"),
        ("a\x00b\x7fc", "abc"),
        ("if \u202e}\u2066admin", "if }admin"),
        ("pass\u200bword\ufeff", "password"),
        ("run\U000e0072\U000e006d", "run"),
        ("half \ud83d pair", "half  pair"),
        ("an unfinished \x1b]0;title", "an unfinished "),
        ("an unfinished \x1b", "an unfinished "),
    ],
)
def test_what_could_command_a_terminal_is_taken_out(attack: str, harmless: str) -> None:
    assert clean(attack) == harmless
    assert clean(attack, colour=True) == harmless


def test_an_unfinished_string_command_does_not_swallow_the_next_line() -> None:
    assert clean("\x1b]0;never ended\nstill here") == "\nstill here"


def test_colours_stay_only_when_asked_and_end_with_their_line() -> None:
    painted = "\x1b[1;31mred\nplain \x1b[32mgreen\x1b[0m\x1b[2J"
    assert clean(painted) == "red\nplain green"
    assert clean(painted, colour=True) == "\x1b[1;31mred\x1b[0m\nplain \x1b[32mgreen\x1b[0m"


def test_emoji_made_of_joined_parts_stay_whole() -> None:
    assert clean("👩\u200d💻") == "👩\u200d💻"


@patient
@given(HOSTILE, st.integers(1, 50))
def test_one_line_is_one_line_and_no_wider_than_asked(text: str, width: int) -> None:
    line = one_line(text, width)
    assert "\n" not in line and len(line) <= width


def test_a_cut_line_ends_in_an_ellipsis() -> None:
    assert one_line("one\ttwo\nthree", 40) == "one two three"
    assert one_line("abcdefgh", 5) == "abcd…"
