"""What is pasted, and what is dropped on the terminal."""

import asyncio
import shlex
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.events import Paste

from hilt.frontends.tui.app import HiltApp
from hilt.frontends.tui.editor import paste
from hilt.frontends.tui.editor.paste import cleaned, dropped
from support.input_box import Typing, input_box
from support.properties import patient


async def pasted(box: Typing, text: str) -> None:
    """As the terminal sends it."""
    box.app.post_message(Paste(text))
    await box.pilot.pause()


async def test_a_paste_is_put_in_and_never_sent() -> None:
    async with input_box() as box:
        await box.write("see:")
        await pasted(box, "one\rtwo\r\nthree\n")
        await box.until(lambda: box.text == "see:one\ntwo\nthree\n")
        assert box.sent == []


async def test_a_long_paste_collapses_to_a_chip_and_is_sent_whole() -> None:
    async with input_box() as box:
        await box.write("why ")
        await pasted(box, "error\r" * 42)
        await box.until(lambda: box.text == "why [pasted text #1 +42 lines]")
        await pasted(box, "y" * 1500)
        await box.until(lambda: "#2" in box.text)
        await box.press("enter")
        assert box.sent == ["why " + "error\n" * 42 + "y" * 1500]
        assert list(box.editor.past.entries) == box.sent


async def test_backspace_takes_a_chip_away_whole_and_delete_does_too() -> None:
    async with input_box() as box:
        await pasted(box, "x" * 2000)
        await box.write("ab")
        await box.press("left", "left", "backspace")
        assert box.text == "ab"
        await box.press("home")
        await pasted(box, "x" * 2000)
        await box.press("home", "delete")
        assert box.text == "ab"


async def test_deleting_a_word_of_a_chip_deletes_the_chip() -> None:
    async with input_box() as box:
        await box.write("a ")
        await pasted(box, "x" * 2000)
        await box.press("ctrl+w")
        assert box.text == "a "


async def test_the_cursor_goes_over_a_chip_in_one_step() -> None:
    async with input_box() as box:
        await box.write("a")
        await pasted(box, "x" * 2000)
        await box.press("left")
        assert box.editor.cursor_location == (0, 1)
        await box.press("right")
        assert box.editor.cursor_location == (0, len(box.text))


async def test_what_is_typed_inside_of_a_chip_comes_behind_it() -> None:
    async with input_box() as box:
        await pasted(box, "x" * 2000)
        box.editor.move_cursor((0, 5))
        await box.write("z")
        assert box.text == "[pasted text #1 2000 chars]z"


async def test_undo_brings_a_chip_back_with_what_it_stands_for() -> None:
    async with input_box() as box:
        await pasted(box, "x" * 2000)
        await box.press("backspace")
        assert box.text == ""
        await box.press("ctrl+underscore", "enter")
        assert box.sent == ["x" * 2000]


async def test_what_was_cut_can_be_put_in_again_and_a_chip_stays_one() -> None:
    async with input_box() as box:
        await pasted(box, "x" * 2000)
        await box.press("super+x")
        assert box.text == ""
        await box.press("ctrl+v", "enter")
        assert box.sent == ["x" * 2000]


async def test_the_file_dropped_on_the_terminal_is_sent_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "my notes.txt"
    file.touch()
    async with input_box() as box:
        await pasted(box, str(file).replace(" ", "\\ ") + " ")
        await box.until(lambda: box.text == "[file:1:my notes.txt] ")
        await pasted(box, f"'{tmp_path}'")
        await box.until(lambda: box.text == f"[file:1:my notes.txt] [dir:2:{tmp_path.name}/] ")
        await box.press("enter")
        assert box.sent == [f"'{file}' {shlex.quote(str(tmp_path))}"]


async def test_what_commands_a_terminal_is_taken_out_of_a_paste() -> None:
    async with input_box() as box:
        await pasted(box, "a\x1b[31mb\x07\x00c\td\u202ee\x9b2Jf")
        await box.until(lambda: box.text == "abc\td‹U+202E›ef")


async def longest_step(over: asyncio.Event) -> float:
    """Seconds of work after which the loop came to something else, at worst."""
    worst = 0.0
    while not over.is_set():
        before = time.thread_time()
        await asyncio.sleep(0)
        worst = max(worst, time.thread_time() - before)
    return worst


async def test_five_megabytes_are_put_in_without_holding_up_anything() -> None:
    text = "a line of a very long text\r\n" * 180_000
    before = time.thread_time()
    cleaned(text)
    at_once = time.thread_time() - before
    async with input_box() as box, asyncio.TaskGroup() as group:
        over = asyncio.Event()
        step = group.create_task(longest_step(over))
        await pasted(box, text)
        await box.until(lambda: box.text == "[pasted text #1 +180000 lines]")
        over.set()
        assert await step < at_once * 0.7
        await box.press("enter")
        assert box.sent == [text.replace("\r\n", "\n").rstrip()]


@pytest.mark.parametrize("wrap", ["{}", "'{}'", '"{}"', "file://{}", " {} \n"])
def test_a_path_is_recognised_however_a_terminal_writes_it(tmp_path: Path, wrap: str) -> None:
    assert dropped(wrap.format(tmp_path)) == [(tmp_path, True)]


def test_several_dropped_files_are_several(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "t w o"
    one.touch()
    two.touch()
    assert dropped(f"{one} '{two}'") == [(one, False), (two, False)]


def test_spaces_of_a_path_need_no_quotes_when_it_is_alone(tmp_path: Path) -> None:
    (tmp_path / "it's a file").touch()
    assert dropped(str(tmp_path / "it's a file")) == [(tmp_path / "it's a file", False)]


@pytest.mark.parametrize(
    "text", ["tests", "/nowhere/at/all", "/", "'/", "/\0", "/" + "x" * 5000, "file://[x", "see /tmp"]
)
def test_a_word_is_not_a_file_by_chance(text: str) -> None:
    assert dropped(text) == ([(Path("/"), True)] if text == "/" else [])


@patient
@given(st.text(), st.integers(1, 7))
def test_cleaning_in_slices_leaves_nothing_that_commands_a_terminal(text: str, size: int) -> None:
    before, paste._SLICE = paste._SLICE, size
    try:
        assert not [letter for letter in cleaned(text) if letter < " " and letter not in "\n\t"]
        assert "\x7f" not in cleaned(text)
    finally:
        paste._SLICE = before


@patient
@given(st.text(st.sampled_from("ab \n\x1b[31m\r日"), max_size=200))
def test_cleaning_in_lines_is_cleaning_at_once(text: str) -> None:
    whole = cleaned(text)
    before, paste._SLICE = paste._SLICE, max((len(line) + 1 for line in text.split("\n")), default=1)
    try:
        assert cleaned(text) == whole
    finally:
        paste._SLICE = before


async def test_hostile_words_of_the_command_line_stand_harmless_in_the_input() -> None:
    hostile = "\x1b]52;c;aGk=\x07\x9b31m\x1b[2J one \u202etwo\r\x00three"
    app = HiltApp(typed=hostile)
    async with app.run_test() as pilot:
        await pilot.pause()
        assert not {letter for letter in app.editor.text if letter < " " or "\x7f" <= letter < "\xa0"} - {"\n"}
        rows = app.screen._compositor.render_strips()
        shown = "".join(segment.text for row in rows for segment in row)
        assert "one" in shown and "three" in shown
        assert not {letter for letter in shown if letter < " " or "\x7f" <= letter < "\xa0" or letter == "\u202e"}
