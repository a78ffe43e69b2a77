import asyncio
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.errors import ToolError
from hilt.tools.diff import Change, compare, split_lines
from hilt.tools.matching import Edit, apply, changes, find_all
from tools.kit import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def edits(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"oldText": old, "newText": new} for old, new in pairs]


async def test_all_edits_are_made_and_shown_as_rows_with_context(bench: Bench) -> None:
    file = bench.root / "f"
    file.write_text("".join(f"line {n}\n" for n in range(1, 31)))
    file.chmod(0o751)
    text = await bench.text("edit", path="f", edits=edits(("line 20\n", "twenty\nand more\n"), ("line 5\n", "")))
    assert text == (
        " line 2\n line 3\n line 4\n-line 5\n line 6\n line 7\n line 8\n...\n"
        " line 17\n line 18\n line 19\n-line 20\n+twenty\n+and more\n line 21\n line 22\n line 23"
    )
    assert "line 5\n" not in file.read_text()
    assert "line 19\ntwenty\nand more\nline 21\n" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o751
    assert bench.remembered[0][1] == file


async def test_the_preview_is_the_same_diff_and_changes_nothing(bench: Bench) -> None:
    (bench.root / "f").write_text("a\nb\nc\n")
    preview = await bench.preview("edit", path="f", edits=edits(("b", "B")))
    assert (bench.root / "f").read_text() == "a\nb\nc\n"
    assert preview == await bench.text("edit", path="f", edits=edits(("b", "B"))) == " a\n-b\n+B\n c"


async def test_the_preview_is_whole_where_the_answer_is_clipped(bench: Bench) -> None:
    (bench.root / "f").write_text("a\n")
    long = edits(("a\n", "".join(f"row {n}\n" for n in range(5_000))))
    assert (await bench.preview("edit", path="f", edits=long)).count("\n+row") == 5_000
    answer = await bench.text("edit", path="f", edits=long)
    assert answer.count("\n") <= 2_000
    assert answer.endswith("more lines]")


async def test_if_one_edit_fails_none_is_made(bench: Bench) -> None:
    (bench.root / "f").write_text("a\nb\n")
    message = await bench.refusal("edit", path="f", edits=edits(("a", "A"), ("nowhere at all", "x")))
    assert message.startswith("edit 2 of 2: oldText is not in the file")
    assert (bench.root / "f").read_text() == "a\nb\n"
    assert bench.remembered == []


async def test_a_text_that_occurs_more_than_once_is_refused_with_its_lines(bench: Bench) -> None:
    (bench.root / "f").write_text("x = 1\ny\nx = 1\n")
    assert "occurs 2 times, at lines 1, 3" in await bench.refusal("edit", path="f", edits=edits(("x = 1", "z")))
    (bench.root / "g").write_text("aaa")
    assert "occurs 2 times" in await bench.refusal("edit", path="g", edits=edits(("aa", "z")))


async def test_counting_occurrences_stops_when_it_is_hopeless(bench: Bench) -> None:
    (bench.root / "f").write_text("a" * 3_000_000)
    async with asyncio.timeout(5):
        assert "1000 times or more" in await bench.refusal("edit", path="f", edits=edits(("a", "b")))


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([("", "x")], "oldText is empty"),
        ([("a", "a")], "are the same"),
        ([("a\nb", "x"), ("b\nc", "y")], "edit 1 of 2 and edit 2 of 2 overlap"),
        ([], "edits is empty"),
    ],
)
async def test_edits_that_make_no_sense_are_refused(bench: Bench, pairs: list[tuple[str, str]], reason: str) -> None:
    (bench.root / "f").write_text("a\nb\nc\n")
    assert reason in await bench.refusal("edit", path="f", edits=edits(*pairs))


async def test_edits_that_touch_are_not_an_overlap(bench: Bench) -> None:
    (bench.root / "f").write_text("ab\n")
    await bench.call("edit", path="f", edits=edits(("b", "B"), ("a", "A")))
    assert (bench.root / "f").read_text() == "AB\n"


async def test_line_ends_and_the_mark_are_preserved(bench: Bench) -> None:
    (bench.root / "f").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    await bench.call("edit", path="f", edits=edits(("one\ntwo", "1\n1.5\n2")))
    assert (bench.root / "f").read_bytes() == b"\xef\xbb\xbf1\r\n1.5\r\n2\r\nthree\r\n"
    await bench.call("edit", path="f", edits=edits(("1.5\r\n2\r\n", "x\n")))
    assert (bench.root / "f").read_bytes() == b"\xef\xbb\xbf1\r\nx\r\nthree\r\n"


async def test_mixed_line_ends_stay_as_they_are_around_the_edit(bench: Bench) -> None:
    (bench.root / "f").write_bytes(b"a\r\nb\nc\r\nd\n")
    await bench.call("edit", path="f", edits=edits(("b\n", "B\nB\n"), ("c\n", "C\nC\n")))
    assert (bench.root / "f").read_bytes() == b"a\r\nB\nB\nC\r\nC\r\nd\n"


async def test_bytes_that_are_not_utf8_survive(bench: Bench) -> None:
    (bench.root / "f").write_bytes(b"\xff\xfe1 caf\xe9\nb\n\x80"[2:])
    text = await bench.text("edit", path="f", edits=edits(("b", "\udce9")))
    assert (bench.root / "f").read_bytes() == b"1 caf\xe9\n\xef\xbf\xbd\n\x80"
    text.encode()  # can be sent on


async def test_a_near_miss_shows_the_closest_lines_with_numbers(bench: Bench) -> None:
    (bench.root / "f").write_text("import os\n\ndef compute_total(items):\n    return sum(items)\n")
    message = await bench.refusal("edit", path="f", edits=edits(("def compute_totl(items):\n    pass", "x")))
    assert "The closest lines are:\n3: def compute_total(items):\n4:     return sum(items)" in message
    message = await bench.refusal("edit", path="f", edits=edits(("import so\n\ndef compute_totals(items):", "x")))
    assert "The closest lines are:\n1: import os\n2: \n3: def compute_total(items):" in message
    message = await bench.refusal("edit", path="f", edits=edits(("\treturn  sum(items)", "x")))
    assert "line 4 matches except for white space" in message


async def test_only_the_first_lines_of_a_large_file_are_searched_for_a_close_one(bench: Bench) -> None:
    near = "def compute_total(items):\n"
    wanted = edits(("def compute_totl(items):", "x"))
    (bench.root / "f").write_text("-\n" * 19_999 + near)
    assert "20000: def compute_total" in await bench.refusal("edit", path="f", edits=wanted)
    (bench.root / "f").write_text("-\n" * 20_000 + near)
    assert "closest" not in await bench.refusal("edit", path="f", edits=wanted)


async def test_what_cannot_be_edited_is_said(bench: Bench) -> None:
    (bench.root / "wide").write_bytes("text".encode("utf-16"))
    (bench.root / "bin").write_bytes(b"a\0b")
    with (bench.root / "huge").open("wb") as file:
        file.truncate(1 << 34)
    (bench.root / "near.txt").touch()
    change = edits(("a", "b"))
    assert "UTF-16" in await bench.refusal("edit", path="wide", edits=change)
    assert "binary" in await bench.refusal("edit", path="bin", edits=change)
    async with asyncio.timeout(5):
        assert "too large" in await bench.refusal("edit", path="huge", edits=change)
    assert "did you mean" in await bench.refusal("edit", path="near.tx", edits=change)
    assert "directory" in await bench.refusal("edit", path=".", edits=change)


async def test_the_jail_holds_for_editing(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    bench.workspace.jail.on = True
    assert "jailed" in await bench.refusal("edit", path="../secret", edits=edits(("s", "x")))


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "\n"]), max_size=25)


@given(LINES, LINES)
def test_changes_lead_from_the_old_lines_to_the_new(old: list[str], new: list[str]) -> None:
    assert replay(old, new, compare(old, new)) == new


def replay(old: list[str], new: list[str], found: list[Change]) -> list[str]:
    result, position = [], 0
    for change in found:
        result += old[position : change.old_start]
        assert len(result) == change.new_start
        result += new[change.new_start : change.new_end]
        position = change.old_end
    return result + old[position:]


TEXT = st.text(st.sampled_from("ab\n\r\udce9é"), max_size=40)


@given(TEXT, st.data())
def test_an_edit_changes_its_place_and_nothing_else(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    new = data.draw(st.text(st.sampled_from("xy\n"), max_size=10))
    try:
        (found,) = find_all(text, [Edit(text[start:end], new)])
    except ToolError:
        return
    edited = apply(text, [found])
    assert edited.startswith(text[: found.start])
    assert edited.endswith(text[found.end :])
    assert text[found.start : found.end].replace("\r\n", "\n") == text[start:end].replace("\r\n", "\n")
    assert found.text.replace("\r\n", "\n") == new
    old_lines, new_lines = split_lines(text), split_lines(edited)
    assert replay(old_lines, new_lines, changes(old_lines, new_lines, [found])) == new_lines


@given(st.lists(st.text("ab\n", max_size=4), min_size=1, max_size=8), st.data())
def test_several_edits_yield_the_same_as_their_diff(gaps: list[str], data: st.DataObject) -> None:
    marks = [f"<{index}>" for index in range(len(gaps))]
    text = "".join(gap + mark for gap, mark in zip(gaps, marks, strict=True))
    news = [data.draw(st.text("xy\n", max_size=5)) for _ in marks]
    found = find_all(text, [Edit(mark, new) for mark, new in zip(marks, news, strict=True)])
    edited = apply(text, found)
    assert edited == "".join(gap + new for gap, new in zip(gaps, news, strict=True))
    old_lines, new_lines = split_lines(text), split_lines(edited)
    assert replay(old_lines, new_lines, changes(old_lines, new_lines, found)) == new_lines


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([f"{n}\n" for n in range(6_000)], [f"{n if n % 2 else -n - 1}\n" for n in range(6_000)]),
        (["a\n", "b\n"] * 400, ["b\n", "c\n", "a\n"] * 400),
    ],
)
def test_texts_that_would_take_long_to_compare_are_replaced_whole(old: list[str], new: list[str]) -> None:
    assert len(compare(old, new)) == 1
    assert replay(old, new, compare(old, new)) == new
