"""Parts of texts, at a cost that does not depend on their length."""

from hypothesis import example, given
from hypothesis import strategies as st
from rich.style import Style
from textual.strip import Strip

from hilt.frontends.tui.drawing.plain import plain
from hilt.frontends.tui.transcript.excerpt import beginning, ending
from hilt.frontends.tui.transcript.tail import Tail
from support.properties import patient

STYLE = Style.null()
TEXTS = st.text(alphabet="ab \n漢é", max_size=120)


def texts(rows: list[Strip]) -> list[str]:
    return [row.text for row in rows]


@patient
@given(TEXTS, st.integers(2, 12), st.integers(1, 12))
@example("aa   aa", 2, 2)  # spaces are left out where rows break, so that they hold more of the text
@example("aaaa   ", 2, 2)
def test_the_beginning_of_a_text_is_that_of_all_its_rows(text: str, width: int, most: int) -> None:
    rows, hidden = beginning(text, width, STYLE, most, plain)
    whole = plain(text, width, STYLE) if text.removesuffix("\n") else []
    assert texts(rows) == texts(whole)[:most]
    assert (hidden > 0) == (len(whole) > most)


@patient
@given(TEXTS, st.integers(2, 12), st.integers(1, 12))
@example("aa" + " " * 7 + "aa", 2, 2)
def test_the_end_of_a_text_is_that_of_all_its_rows(text: str, width: int, most: int) -> None:
    rows, hidden = ending(text, width, STYLE, most, plain)
    whole = plain(text, width, STYLE) if text.removesuffix("\n") else []
    if any(len(line) > width for line in text.split("\n")):
        assert len(rows) == min(most, len(whole)), "a long line may be broken elsewhere when its beginning is not read"
    else:
        assert texts(rows) == texts(whole)[-most:]
    assert (hidden > 0) == (len(whole) > most)


def test_of_a_huge_text_only_what_may_be_seen_is_looked_at() -> None:
    looked = 0

    def draw(text: str, width: int, style: Style) -> list[Strip]:
        nonlocal looked
        looked += len(text)
        return plain(text, width, style)

    for text in ("word " * 200_000, "漢字\n" * 200_000, "x" * 1_000_000):
        for part in (beginning, ending):
            looked = 0
            assert len(part(text, 80, STYLE, 10, draw).rows) == 10
            assert looked < 2_000
            looked = 0
            assert len(part(text, 80, STYLE, 2_000, draw).rows) <= 2_000
            assert looked <= 60_000


def test_the_end_of_endless_output_is_kept_and_no_more() -> None:
    tail = Tail()
    for _ in range(10_000):
        tail.add("nobody looks at this\n")
    assert sum(map(len, tail._pieces)) < 70_000
    for number in range(20_000):
        tail.add(f"line {number}\n" * 20)
        if number % 7 == 0:
            assert len(tail.text) <= 70_000
    assert tail.text.endswith("line 19999\n")
    tail.add("x" * 10_000_000)
    assert tail.text == "x" * 65_536


def test_a_line_that_is_written_over_shows_what_was_written_last() -> None:
    tail = Tail()
    for done in range(101):
        tail.add(f"\r{done}%")
    tail.add("\r\nready\r\n")
    assert tail.text == "100%\nready\n"
