"""Markdown as it is read: what each kind of block and markup looks like, and that nothing that was written is lost."""

import re
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from hilt.frontends.terminal import clean
from hilt.frontends.tui.drawing.inline import NESTED
from hilt.frontends.tui.drawing.markdown import Flow, markdown, warm
from hilt.frontends.tui.drawing.rows import text_of
from hilt.frontends.tui.look import DARK, Look
from support.markdown_texts import texts
from support.properties import patient

LOOK = Look.of(DARK)
HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]")


def drawn(text: str, width: int = 60) -> list[str]:
    return text_of(markdown(text, width, LOOK)).split("\n")


def styles(text: str) -> dict[str, Style]:
    return {
        segment.text: segment.style
        for strip in markdown(text, 80, LOOK)
        for segment in strip
        if segment.style is not None
    }


def test_markup_within_a_sentence_is_styled_and_not_shown() -> None:
    found = styles("a **b** *c* `d` ~~e~~ [f](u) ***g***")
    assert found["b"] == LOOK.text + LOOK.strong
    assert found["c"] == LOOK.text + LOOK.emphasis
    assert found["d"] == LOOK.text + LOOK.code
    assert found["e"].strike
    assert found["f"] == LOOK.text + LOOK.link
    assert found["g"].bold
    assert found["g"].italic
    assert drawn("a **b** *c* `d` ~~e~~") == ["a b c d e"]


def test_links_show_where_they_lead() -> None:
    assert drawn('[here](http://x.y/ü%20) and [there](z "why")') == ['here (http://x.y/ü%20) and there (z "why")']
    assert drawn("<http://x.y> [http://x.y](http://x.y) <a@b.c>") == ["http://x.y http://x.y a@b.c"]
    assert drawn("[run](javascript:alert)") == ["run (javascript:alert)"]


def test_images_are_named() -> None:
    assert drawn("![a cat](cat.png)") == ["[image: a cat] (cat.png)"]


def test_html_and_references_are_shown_as_they_were_written() -> None:
    assert drawn("<div>\n<b>x</b>\n\n[a]: http://x.y\n[b][a]") == ["<div>", "<b>x</b>", "", "[a]: http://x.y", "[b][a]"]


def test_line_breaks_are_kept() -> None:
    assert drawn("one\ntwo  \nthree\\\nfour") == ["one", "two", "three", "four"]


def test_headings_stand_out_without_colour() -> None:
    assert drawn("# One\ntext\n\nTwo\n---\n### Three ###") == ["One", "text", "", "Two", "", "Three"]
    found = styles("# One\n\n## Two *b*\n\n### Three")
    assert found["One"].bold
    assert found["One"].underline
    assert found["Two "].bold
    assert found["Three"].italic


def test_lists_are_nested_and_keep_their_numbers() -> None:
    assert drawn("- a\n  - b\n    - c\n      wraps because it is so long\n- d\n\n7. e\n8) f", 24) == [
        "• a",
        "  ◦ b",
        "    ▪ c",
        "      wraps because it",
        "      is so long",
        "• d",
        "",
        "7. e",
        "8) f",
    ]


def test_blank_lines_between_items_stay_where_they_are() -> None:
    assert drawn("- a\n\n- b\n- c\n\n  more") == ["• a", "", "• b", "• c", "", "  more"]


def test_a_list_stands_close_to_its_sentence_if_it_was_written_so() -> None:
    assert drawn("so:\n- a\n- b\n\nand\n\n- c") == ["so:", "• a", "• b", "", "and", "", "• c"]


def test_tasks_have_boxes() -> None:
    assert drawn("- [ ] to do\n- [x] done\n  - sub\n- [y] none") == ["☐ to do", "☑ done", "  ◦ sub", "• [y] none"]


def test_quotes_have_a_bar_before_each_row() -> None:
    assert drawn("> one two three\n> > four\n>\n> - five", 9) == [
        "│ one two",
        "│ three",
        "│",
        "│ │ four",
        "│",
        "│ • five",
    ]


def test_listings_are_drawn_as_code() -> None:
    assert drawn("a\n```python\ndef f():\n\n  pass\n```\nb") == ["a", "", "def f():", "", "  pass", "", "b"]
    assert styles("```python\ndef f():\n```")["def"] == LOOK.block + LOOK.syntax["Keyword"]
    assert drawn("    indented\n      more") == ["indented", "  more"]


def test_a_listing_shows_what_it_says_of_itself_unless_that_is_a_language() -> None:
    assert drawn("```src/main.py\nx\n```") == ["src/main.py", "x"]
    assert drawn("```python title=a\nx\n```") == ["python title=a", "x"]


def test_listings_within_items_and_quotes_stand_behind_their_marks() -> None:
    assert drawn("1. a\n   ```\n   x = 1\n   ```\n   b\n\n> ```\n> y\n> ```", 20) == [
        "1. a",
        "",
        "   x = 1",
        "",
        "   b",
        "",
        "│ y",
    ]


def test_a_table_has_columns_as_wide_as_they_need_to_be() -> None:
    assert drawn("| a | b | c |\n|:--|--:|:-:|\n| one | 2 | mid |\n| x | 22 |") == [
        "a   │  b │  c",
        "────┼────┼────",
        "one │  2 │ mid",
        "x   │ 22 │",
    ]


def test_cells_wrap_where_there_is_no_room() -> None:
    assert drawn("| a | b |\n|-|-|\n| one two three | four |", 16) == [
        "a         │ b",
        "──────────┼─────",
        "one two   │ four",
        "three     │",
    ]


def test_a_table_without_room_for_columns_is_a_list_of_its_cells() -> None:
    assert drawn("| key | value |\n|-|-|\n| abcdef | ghijkl |\n| m | n |", 9) == [
        "key:",
        "abcdef",
        "value:",
        "ghijkl",
        "",
        "key: m",
        "value: n",
    ]


def test_no_cell_of_a_table_is_lost() -> None:
    assert drawn("|a|b|\n|-|-|\n|1|2|3|x\\|y|\n|`c`|") == ["a │ b", "──┼────────────", "1 │ 2 | 3 | x|y", "c │"]


def test_a_rule_goes_across() -> None:
    assert drawn("a\n\n---\n\n> ---", 8) == ["a", "", "────────", "", "│ ──────"]


def test_what_commands_a_terminal_is_taken_out_also_where_it_is_written_in_entities() -> None:
    text = (
        "\x1b[31ma &#27;[2J &#x202e; &#13; &#10;b &#9672; `\x07c` [d](\x9bx)\n\n```\n\x1b]0;t\x07e\n```\n|\x1bf|\n|-|"
    )
    rows = markdown(text, 60, LOOK)
    assert not [strip.text for strip in rows if HARMFUL.search(strip.text) or "◈" in strip.text]
    assert "‹U+202E›" in text_of(rows)


def test_what_is_nested_too_deeply_is_drawn_as_it_was_written() -> None:
    for mark in ("> ", "- ", "1. "):
        text = mark * NESTED + "word"
        assert re.sub(r"\s", "", "".join(drawn(text, 400))) == re.sub(r"\s", "", text)


@pytest.mark.parametrize("text", ["[" * 5000, "![a](" * 1000, "*a **b " * 700, "`a" * 2000, "<a " * 1500, "~~a" * 1500])
def test_markup_that_parsers_choke_on_is_drawn_as_it_was_written(text: str) -> None:
    warm()
    start = thread_time()
    markdown(text, 60, LOOK)
    assert thread_time() - start < 0.1
    assert re.sub(r"\s", "", "".join(drawn(text))) == re.sub(r"\s", "", text)


def test_nothing_is_no_rows() -> None:
    assert markdown("", 20, LOOK) == markdown("\n \n\t\n", 20, LOOK) == []


@patient
@given(texts, st.integers(1, 200))
def test_any_text_is_drawn_within_its_width_and_without_losing_words(text: str, width: int) -> None:
    flow = Flow()
    flow.feed(text)
    flow.close()
    rows = flow.lines(width, LOOK)
    assert len(rows) == flow.height(width)
    for strip in rows:
        assert strip.cell_length == sum(cell_len(segment.text) for segment in strip) <= width
        assert not HARMFUL.search(strip.text)
    if width > 3 and "&" not in text:
        shown = re.sub(r"[^a-z]", "", "".join(strip.text for strip in rows))
        for word in re.findall(r"[a-z]{4,}", clean(text)):
            assert word in shown or word == "python"
