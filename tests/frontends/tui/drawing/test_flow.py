"""A text that grows: drawn the same in whatever pieces it comes, and at a cost that does not grow with it."""

from collections.abc import Iterator
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from textual.strip import Strip

from hilt.frontends.tui.drawing.markdown import Flow, markdown
from hilt.frontends.tui.drawing.rows import text_of
from hilt.frontends.tui.look import DARK, LIGHT, Look
from support.markdown_texts import texts
from support.properties import patient

LOOK, OTHER = Look.of(DARK), Look.of(LIGHT)
SENTENCE = "The *quick* brown `fox` jumps over the **lazy** dog, [and](http://x.y) 漢字. "
CODE = 'def f(x):\n    """Words\n    of it.\n    """\n    return [x, "text", 12]  # why\n\n'
LARGE = {
    "prose": (SENTENCE * 4 + "\n\n") * 40,
    "a listing": "```python\n" + CODE * 100 + "```\nend",
    "a listing that never ends": "```\n" + "some words of it\n" * 500,
    "a paragraph of one line": SENTENCE * 130,
    "a paragraph of many lines": (SENTENCE + "\n") * 130,
    "a paragraph of short lines": "ab\n" * 1500,
    "a listing of short lines": "```\n" + "x\n" * 800,
    "a listing of long lines": "```python\n" + ("y = '" + "z " * 450 + "'\n") * 40,
    "one word": "x" * 12_000,
    "items": f"- {SENTENCE}\n" * 130,
    "items within one": "- top\n" + f"  - {SENTENCE}\n" * 130 + "\nend",
    "a listing within an item": "1. do:\n   ```python\n" + "   x = [1, 'text']\n" * 500 + "   ```\n   and\n2. end",
    "a quote": f"> {SENTENCE}\n" * 130 + "\nend",
    "a listing within a quote": "> ```\n" + "> some words\n" * 500 + "> ```\nend",
    "a table": "| a | b |\n|---|--:|\n" + f"| {SENTENCE} | 1 |\n" * 120 + "\nend",
    "markup": "**a [b](c ~~d `e " * 500,
}


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def flowed(*parts: str) -> Flow:
    flow = Flow()
    for part in parts:
        flow.feed(part)
    return flow


def segments(strips: list[Strip]) -> list[list[Segment]]:
    return [list(strip) for strip in strips]


@patient
@given(texts, st.data())
def test_in_any_pieces_it_is_drawn_as_the_whole(text: str, data: st.DataObject) -> None:
    flow, at = Flow(), 0
    while at < len(text):
        size = data.draw(st.integers(1, 12))
        flow.feed(text[at : at + size])
        at += size
        if data.draw(st.booleans()):
            rows = flow.lines(40, LOOK)
            assert len(rows) == flow.height(40)
            assert all(strip.cell_length <= 40 for strip in rows)
    flow.close()
    assert flow.text == text
    assert segments(flow.lines(40, LOOK)) == segments(markdown(text, 40, LOOK))


@pytest.mark.parametrize("kind", LARGE)
def test_also_where_large_blocks_are_cut_the_pieces_make_no_difference(kind: str) -> None:
    text = LARGE[kind]
    flow = Flow()
    for at, part in enumerate(pieces(text, 97)):
        flow.feed(part)
        if at % 5 == 0:
            flow.lines(60, LOOK)
    flow.close()
    assert segments(flow.lines(60, LOOK)) == segments(markdown(text, 60, LOOK))


@pytest.mark.parametrize("kind", LARGE)
def test_however_long_it_is_only_its_end_is_drawn_again(kind: str) -> None:
    flow = Flow()
    kept: list[Strip] = []
    worst = 0
    for part in pieces(LARGE[kind], 400):
        flow.feed(part)
        before, kept = kept, flow.lines(60, LOOK)
        same = {id(strip) for strip in before}
        worst = max(worst, sum(id(strip) not in same for strip in kept) - part.count("\n"))
    assert len(kept) > 130
    assert worst < 150  # what is parsed at once


def test_a_large_listing_and_a_large_item_keep_their_form() -> None:
    listing = text_of(markdown(LARGE["a listing"], 60, LOOK)).split("\n")
    assert listing[:6] == CODE.split("\n")[:6]
    assert listing[-2:] == ["", "end"]
    assert len(listing) == 100 * 6 + 2
    item = text_of(markdown(LARGE["a listing within an item"], 60, LOOK)).split("\n")
    assert item == ["1. do:", "", *["   x = [1, 'text']"] * 500, "", "   and", "2. end"]
    items = text_of(markdown(LARGE["items within one"], 200, LOOK)).split("\n")
    assert {row[:4] for row in items[1:-2]} == {"  ◦ "}
    quote = text_of(markdown(LARGE["a listing within a quote"], 60, LOOK)).split("\n")
    assert quote == [*["│ some words"] * 500, "", "end"]


def test_rows_of_a_large_table_have_the_columns_of_its_first() -> None:
    text = "| a | b |\n|---|--:|\n" + "| word | 1 |\n" * 40 + "| words of it | 2 |\n" * 40 + "\nend"
    rows = text_of(markdown(text, 200, LOOK)).split("\n")
    assert {row.index("│") for row in rows if "│" in row} == {5}
    assert rows[2:42] == ["word │ 1"] * 40
    assert rows[42:45] == ["word │ 2", "s of │", "it   │"]
    assert rows[-2:] == ["", "end"]


def test_a_listing_within_an_item_is_not_drawn_again_as_it_grows() -> None:
    flow = flowed("- a\n  ```\n" + "  some words of it\n" * 90)
    before = flow.lines(60, LOOK)
    flow.feed("  more\n")
    assert flow.lines(60, LOOK)[5] is before[5]


def test_no_more_than_some_items_within_items_are_taken_apart() -> None:
    flow = flowed("- " * 1500 + "\n" + "words\n" * 400)
    flow.close()
    steps = 1
    while not flow.advance(0):
        steps += 1
    assert steps < 60


def test_a_docstring_is_highlighted_as_one_wherever_the_listing_is_cut() -> None:
    string = LOOK.syntax["Literal.String"].color
    for strip in markdown(LARGE["a listing"], 60, LOOK):
        for segment in strip:
            if segment.text.strip() in ("Words", "of it."):
                assert segment.style
                assert segment.style.color == string


def test_some_rows_are_those_of_all() -> None:
    flow = flowed(LARGE["prose"], LARGE["a table"], LARGE["a listing"], "\n\nopen")
    rows = flow.lines(50, LOOK)
    for first, last in ((0, 10), (100, 150), (len(rows) - 30, len(rows)), (-5, 3), (len(rows), len(rows) + 9), (9, 4)):
        part = flow.rows(first, last, 50, LOOK)
        assert segments(part) == segments(rows[max(0, first) : max(0, last)])


def test_some_rows_at_a_new_width_cost_less_than_all() -> None:
    flow = flowed((SENTENCE * 4 + "\n\n") * 600)
    flow.close()
    flow.lines(80, LOOK)
    start = thread_time()
    height = flow.height(79)
    flow.rows(height // 2, height // 2 + 50, 79, LOOK)
    some = thread_time() - start
    start = thread_time()
    assert len(flow.lines(78, LOOK)) > 1000
    assert some < (thread_time() - start) / 2


def test_another_width_and_another_look_draw_it_anew() -> None:
    flow = flowed(LARGE["prose"])
    for width, look in ((40, LOOK), (80, LOOK), (80, OTHER), (20, OTHER)):
        assert segments(flow.lines(width, look)) == segments(markdown(LARGE["prose"], width, look))


def test_rows_that_were_forgotten_are_drawn_again() -> None:
    flow = flowed(LARGE["prose"])
    rows = flow.lines(40, LOOK)
    assert flow.lines(40, LOOK)[0] is rows[0]
    flow.forget()
    again = flow.lines(40, LOOK)
    assert again[0] is not rows[0]
    assert segments(again) == segments(rows)


def test_rows_of_what_was_passed_by_are_not_kept_for_ever() -> None:
    flow = flowed("- a\n" * 5000)
    first = flow.rows(0, 10, 40, LOOK)
    assert flow.rows(0, 10, 40, LOOK)[0] is first[0]
    for at in range(0, 5000, 50):
        flow.rows(at, at + 50, 40, LOOK)
    assert flow.rows(0, 10, 40, LOOK)[0] is not first[0]


def test_a_long_text_that_comes_at_once_is_parsed_bit_by_bit() -> None:
    flow = flowed(*LARGE.values())
    flow.close()
    steps = 1
    while not flow.advance(0):
        steps += 1
    assert steps > 20
    assert text_of(flow.lines(50, LOOK)).endswith("`e")


def test_a_sequence_that_comes_in_two_pieces_is_taken_out_all_the_same() -> None:
    flow = flowed("a\x1b")
    flow.lines(40, LOOK)
    flow.feed("[31mb\n\x1b]0;ti")
    flow.lines(40, LOOK)
    flow.feed("tle\x07c")
    assert text_of(flow.lines(40, LOOK)) == "ab\nc"


@pytest.mark.parametrize("begun", ["-", "--", "=", "1", "1.", "#", "`", "``", ">", "|", "|-", "* "])
def test_a_line_that_may_become_anything_changes_nothing_yet(begun: str) -> None:
    flow = flowed("some text\n" + begun)
    assert text_of(flow.lines(40, LOOK)) == "some text"
    assert flow.lines(40, LOOK)[0].text == "some text"
    assert next(iter(flow.lines(40, LOOK)[0])).style == LOOK.text
    flow.close()
    assert segments(flow.lines(40, LOOK)) == segments(markdown("some text\n" + begun, 40, LOOK))


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("see **bo", "see bo"),
        ("see **bold*", "see bold"),
        ("see **", "see "),
        ("see `co", "see co"),
        ("see `", "see "),
        ("see ~~go", "see go"),
        ("**a** and **b", "a and b"),
        ("see [x](http://a.", "see x (http://a.)"),
        ("2 ** 3", "2 ** 3"),
        ("```\nsee **bo", "see **bo"),
        ("- a\n  ```\n  see **bo", "• a\n\n  see **bo"),
    ],
)
def test_markup_that_was_begun_is_drawn_as_if_it_were_ended(text: str, seen: str) -> None:
    assert text_of(flowed(text).lines(40, LOOK)) == seen.rstrip(" ")


def test_a_line_of_code_that_has_not_begun_is_no_row() -> None:
    flow = flowed("```\nx\n")
    assert text_of(flow.lines(40, LOOK)) == "x"
    flow.close()
    assert text_of(flow.lines(40, LOOK)) == "x"


@pytest.mark.parametrize("text", ["\n" * 300_000, "- - - - " * 5_000, "> " * 10_000, "-\n" * 5_000, "|\n" * 20_000])
def test_a_flood_of_short_lines_takes_little_time(text: str) -> None:
    start = thread_time()
    flow = flowed(text)
    flow.close()
    flow.rows(0, 50, 40, LOOK)
    assert thread_time() - start < 5


def test_what_comes_after_the_end_is_drawn_too() -> None:
    flow = flowed("one")
    flow.close()
    flow.close()
    flow.lines(40, LOOK)
    flow.feed("two\n")
    assert text_of(flow.lines(40, LOOK)) == "one\ntwo"
    assert flow.text == "onetwo\n"
