"""What stands for something longer in the input."""

import shlex
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hilt.frontends.tui.editor.chips import Chips, is_long
from support.properties import patient


def test_many_lines_are_counted_and_a_long_line_is_measured() -> None:
    chips = Chips()
    assert chips.text("x\n" * 42) == "[pasted text #1 +42 lines]"
    assert chips.text("x" * 5000) == "[pasted text #2 5000 chars]"


def test_up_to_ten_lines_and_a_thousand_characters_are_not_long() -> None:
    assert not is_long("\n".join("1234567890"))
    assert not is_long("1\n" * 10)
    assert is_long("1\n" * 10 + "2")
    assert not is_long("x" * 1000)
    assert is_long("x" * 1001)


def test_a_file_stands_there_by_its_name_and_is_told_by_its_quoted_path() -> None:
    chips = Chips()
    label = chips.path(Path("/some where/notes [old].txt"), directory=False)
    folder = chips.path(Path("/src"), directory=True)
    assert (label, folder) == ("[file:1:notes (old).txt]", "[dir:2:src/]")
    assert chips.expand(f"read {label} and {folder}") == "read '/some where/notes [old].txt' and /src"


def test_what_a_label_stands_for_is_not_looked_at_again() -> None:
    chips = Chips()
    label = chips.text("see [pasted text #2 +11 lines]\n" * 11)
    other = chips.text("y\n" * 11)
    assert chips.expand(label) == "see [pasted text #2 +11 lines]\n" * 11
    assert other == "[pasted text #2 +11 lines]"


def test_a_label_that_is_not_in_use_is_plain_text() -> None:
    chips = Chips()
    chips.text("z" * 2000)
    assert chips.expand("[pasted text #7 +99 lines]") == "[pasted text #7 +99 lines]"
    assert chips.spans("[pasted text #7 +99 lines]") == []


def test_a_label_that_was_typed_before_is_not_taken_for_the_chip() -> None:
    chips = Chips()
    typed = "what is [pasted text #1 2000 chars]? "
    label = chips.text("z" * 2000, beside=typed)
    assert label == "[pasted text #2 2000 chars]"
    assert chips.expand(typed + label) == typed + "z" * 2000


def test_a_name_cannot_command_the_terminal_from_its_label() -> None:
    label = Chips().path(Path("/tmp/a\x1b]0;x\x07b\nc\u202ed"), directory=False)
    assert not set(label) & {"\x1b", "\x07", "\n", "\u202e"}


typed = (
    st.text(st.sampled_from("[]pasted text #12 +-lines chars\nx"), max_size=30)
    | st.text(max_size=20)
    | st.just("[pasted text #1 1002 chars]")
)
long = st.builds(lambda text: text * 501, st.text(min_size=2, max_size=4))


@patient
@given(typed, long, typed, long, typed)
def test_a_chip_is_what_was_pasted_whatever_is_around_it(first: str, one: str, mid: str, two: str, last: str) -> None:
    chips = Chips()
    around = first + mid + last
    a = chips.text(one, beside=around)
    b = chips.text(two, beside=around + a)
    shown = f"{first}{a}{mid}{b}{last}"
    if shown.count(a) == shown.count(b) == 1:  # not put together by chance from what is around
        assert chips.expand(shown) == f"{first}{one}{mid}{two}{last}"
        assert [shown[start:end] for start, end in chips.spans(shown)] == [a, b]


@patient
@given(st.text(st.characters(exclude_characters="\0/"), min_size=1, max_size=60))
def test_a_file_of_any_name_is_told_by_its_whole_path(name: str) -> None:
    chips = Chips()
    label = chips.path(Path("/folder") / name, directory=False)
    assert shlex.split(chips.expand(f"{label} ")) == [str(Path("/folder") / name)]
