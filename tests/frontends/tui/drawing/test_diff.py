"""Diffs: numbered, marked so that they read without colour."""

from difflib import unified_diff

from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from hilt.frontends.tui.drawing.diff import diff
from hilt.frontends.tui.drawing.rows import text_of
from hilt.frontends.tui.look import DARK, Look
from support.properties import patient

LOOK = Look.of(DARK)
UNIFIED = """\
--- a/x.py
+++ b/x.py
@@ -8,3 +8,3 @@ def f():
 one
-two
+2
 three
@@ -20 +20,2 @@
 last
+more
\\ No newline at end of file
"""


def test_lines_are_numbered_and_marked() -> None:
    assert text_of(diff(UNIFIED, 60, LOOK)).split("\n") == [
        "--- a/x.py",
        "+++ b/x.py",
        "@@ -8,3 +8,3 @@ def f():",
        " 8   one",
        " 9 - two",
        " 9 + 2",
        "10   three",
        "@@ -20 +20,2 @@",
        "20   last",
        "21 + more",
        "\\ No newline at end of file",
    ]


def test_what_comes_and_goes_has_its_background_to_the_end_of_the_row() -> None:
    rows = diff(UNIFIED, 60, LOOK)
    for row, background in ((rows[4], LOOK.removed.bgcolor), (rows[5], LOOK.added.bgcolor)):
        assert row.cell_length == 60
        assert {segment.style.bgcolor for segment in list(row)[1:] if segment.style} == {background}


def test_long_lines_go_on_below_their_text() -> None:
    unified = "@@ -1 +1 @@\n-" + "a" * 10 + "\n+b\n"
    assert text_of(diff(unified, 9, LOOK)).split("\n")[2:] == ["1 - aaaaa", "    aaaaa", "1 + b"]


def test_both_sides_are_highlighted_each_for_itself() -> None:
    unified = '@@ -1,2 +1,2 @@\n-x = """\n+def f():\n     return 1\n'
    keyword = LOOK.syntax["Keyword"]
    styles: dict[str, Style | None] = {
        segment.text: segment.style for row in diff(unified, 60, LOOK, "python") for segment in row
    }
    assert styles["def"] == LOOK.added + keyword
    assert styles["return"] == LOOK.text + keyword


def test_lines_that_look_like_headers_within_a_hunk_are_lines() -> None:
    rows = text_of(diff("@@ -1,2 +1,2 @@\n--- old\n+++ new\n same\n", 60, LOOK)).split("\n")
    assert rows[1:] == ["1 - -- old", "1 + ++ new", "2   same"]


def test_an_empty_line_without_its_space_is_a_line() -> None:
    assert text_of(diff("@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", 60, LOOK)).split("\n")[2] == "2"


def test_what_is_no_diff_is_drawn_as_it_is() -> None:
    assert text_of(diff("nothing here\n+really\n", 60, LOOK)) == "nothing here\n+really"
    assert diff("", 60, LOOK) == []


def test_what_commands_a_terminal_is_taken_out_of_diffs() -> None:
    assert "\x1b" not in text_of(diff("@@ -1 +1 @@\n-\x1b[2Ja\n+\x1b]0;x\x07b\n", 60, LOOK))


lines = st.lists(st.text("ab漢\u0301 +-@\\", max_size=6), max_size=12)


@patient
@given(lines, lines, st.integers(1, 60))
def test_every_line_of_any_change_is_there(old: list[str], new: list[str], width: int) -> None:
    unified = "\n".join(unified_diff(old, new, "a", "b", lineterm=""))
    rows = diff(unified, width, LOOK, "python")
    assert all(row.cell_length <= width for row in rows)
    if width > 40:
        drawn = [row.text for row in rows]
        changed = [
            line for line in unified.split("\n") if line.startswith(("+", "-")) and line[:3] not in ("---", "+++")
        ]
        for line in changed:
            assert any(row.partition(f" {line[0]} ")[2].rstrip() == line[1:].rstrip() for row in drawn)


@patient
@given(st.text(st.sampled_from("@ -+,0129ab\n\\漢\x1b"), max_size=80), st.integers(1, 40))
def test_any_text_is_drawn(text: str, width: int) -> None:
    for row in diff(text, width, LOOK, "python"):
        assert row.cell_length <= width
        assert "\x1b" not in row.text
