"""Rows never wider than they may be, and nothing lost or split on the way."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from hilt.frontends.tui.drawing.cells import clusters_of
from hilt.frontends.tui.drawing.wrapping import clip, height, pad, wrap
from support.properties import patient

RED, BLUE = Style(color="red"), Style(color="blue")
PLAIN = Style.null()
PICTURES = ["👩‍👧", "👍🏽", "🇩🇪", "©️", "#️⃣", "漢", "각", "é", "e\u0301", "ก็"]

texts = st.lists(
    st.sampled_from([*PICTURES, " ", "  ", "a", "word", "longer-word", "—", "\t", "\n"]) | st.text("ab \n", max_size=9)
).map("".join)


def rows(text: str, width: int, *, hard: bool = False) -> list[str]:
    return [strip.text for strip in wrap([(text, PLAIN)], width, hard=hard)]


def test_words_move_to_the_next_row_as_a_whole() -> None:
    assert rows("one two three four", 9) == ["one two", "three", "four"]


def test_spaces_are_left_out_only_where_a_row_breaks() -> None:
    assert rows("  one   two    three", 9) == ["  one", "two", "three"]
    assert rows("  a  b", 9) == ["  a  b"]


def test_a_row_may_be_full_to_the_last_cell() -> None:
    assert rows("four five", 4) == ["four", "five"]
    assert rows("漢字 漢字", 4) == ["漢字", "漢字"]


def test_a_word_longer_than_a_row_is_broken() -> None:
    assert rows("abcdefgh ij", 3) == ["abc", "def", "gh", "ij"]


def test_hard_rows_are_full_and_keep_their_spaces() -> None:
    assert rows("a b  c d", 3, hard=True) == ["a b", "  c", " d"]
    assert rows("漢 字 x", 3, hard=True) == ["漢 ", "字 ", "x"]


def test_scripts_without_spaces_break_between_their_characters() -> None:
    assert rows("see 漢字漢字漢字", 9) == ["see 漢字", "漢字漢字"]


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("hard", [False, True])
def test_what_is_drawn_as_one_is_never_split(picture: str, hard: bool) -> None:
    broken = rows(f"a{picture}b{picture}{picture}", 2, hard=hard)
    assert sum(row.count(picture) for row in broken) == 3
    assert "".join(broken) == f"a{picture}b{picture}{picture}"


def test_a_style_that_begins_within_a_cluster_begins_behind_it() -> None:
    (row,) = wrap([("e", RED), ("\u0301x", BLUE)], 9)
    assert [(segment.text, segment.style) for segment in row] == [("e\u0301", RED), ("x", BLUE)]


def test_what_is_wider_than_the_whole_row_is_a_sign() -> None:
    assert rows("a漢b", 1) == ["a", "…", "b"]
    assert height("a漢b", 1) == 3


def test_tabs_lead_to_the_next_stop() -> None:
    assert rows("a\tb\tcd", 20) == ["a   b   cd"]
    (row,) = wrap([("ab", RED), ("\tc", BLUE)], 20)
    assert row.text == "ab  c"


def test_line_feeds_are_kept() -> None:
    assert rows("one\n\ntwo", 20) == ["one", "", "two"]


def test_nothing_is_one_empty_row() -> None:
    assert rows("", 5) == [""]
    assert [strip.text for strip in wrap([], 5, indent=[("> ", RED)])] == ["> "]


def test_rows_stand_behind_their_prefixes() -> None:
    strips = wrap([("one two three", PLAIN)], 8, indent=[("1. ", RED)], hanging=[("   ", BLUE)])
    assert [strip.text for strip in strips] == ["1. one", "   two", "   three"]


def test_prefixes_leave_half_of_a_narrow_row_to_the_text() -> None:
    strips = wrap([("漢字", PLAIN)], 3, indent=[("> > > ", RED)], hanging=[("> > > ", RED)])
    assert [strip.text for strip in strips] == [">漢", ">字"]
    assert height("漢字", 3, indent=6, hanging=6) == 2


def test_styles_follow_their_words_over_rows() -> None:
    strips = wrap([("one ", RED), ("two three", BLUE), (" four", RED)], 9)
    assert [[(segment.text, segment.style) for segment in strip] for strip in strips] == [
        [("one ", RED), ("two", BLUE)],
        [("three", BLUE)],
        [("four", RED)],
    ]


def test_rows_are_filled_up_with_a_style() -> None:
    strips = wrap([("one two", RED)], 5, fill=BLUE)
    assert [strip.cell_length for strip in strips] == [5, 5]
    assert list(strips[0])[-1] == Segment("  ", BLUE)


def test_clip_and_pad_make_a_row_fit() -> None:
    row = Strip([Segment("漢字", RED)])
    assert clip(row, 3).text == "漢 "
    assert clip(row, 4) is row
    assert clip(row, 0).text == ""
    assert pad(row, 6, BLUE).text == "漢字  "


@patient
@example("👩\u200d👧" * 9 + "\t", 1, True, 0)  # the spans meet within a cluster, before a tab
@given(texts, st.integers(1, 40), st.booleans(), st.integers(0, 8))
def test_no_row_is_too_wide_and_no_word_is_lost(text: str, width: int, hard: bool, prefix: int) -> None:
    middle = len(text) // 2
    before = [(" " * prefix, PLAIN)]
    strips = wrap([(text[:middle], RED), (text[middle:], BLUE)], width, indent=before, hanging=before, hard=hard)
    assert len(strips) == height(text, width, indent=prefix, hanging=prefix, hard=hard)
    for strip in strips:
        assert strip.cell_length == sum(cell_len(segment.text) for segment in strip) <= width
    if width > 1:
        assert _bare("".join(strip.text for strip in strips)) == _bare(text)


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_clusters_cover_a_text_without_gaps(text: str) -> None:
    clusters = clusters_of(text)
    assert "".join(text[start:end] for start, end, _ in clusters or [(0, len(text), 0)]) == text


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFFFF, exclude_categories=["Cc", "Cs"])))
def test_text_that_needs_no_measuring_takes_a_cell_a_character(text: str) -> None:
    for letter in text:
        if clusters_of(letter) is None:
            assert cell_len(letter) == 1


def _bare(text: str) -> str:
    return re.sub(r"\s", "", text)
