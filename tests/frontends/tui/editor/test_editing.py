"""Typing, moving, deleting, and going back to what was sent before."""

import pytest
from textual.events import Key

from hilt.frontends.tui.editor.area import _KEYS as AREA_KEYS
from hilt.frontends.tui.editor.editor import HINT
from support.input_box import command, input_box


async def test_enter_sends_what_was_typed_and_leaves_nothing() -> None:
    async with input_box() as box:
        await box.write("hello there")
        await box.press("enter")
        assert (box.sent, box.text) == (["hello there"], "")


async def test_nothing_is_not_sent() -> None:
    async with input_box() as box:
        await box.write("  ")
        await box.press("ctrl+j", "enter")
        assert box.sent == []


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
async def test_a_line_can_be_broken(key: str) -> None:
    async with input_box() as box:
        await box.press("a", key, "b", "enter")
        assert box.sent == ["a\nb"]


async def test_a_backslash_before_enter_breaks_the_line() -> None:
    async with input_box() as box:
        await box.press("a", "\\", "enter", "b", "enter")
        assert box.sent == ["a\nb"]


async def test_a_hint_stands_in_an_empty_input() -> None:
    async with input_box() as box:
        assert box.rows[-1] == f" › {HINT}"
        await box.press("x")
        assert box.rows[-1] == " › x"


async def test_the_mark_tells_a_shell_command() -> None:
    async with input_box() as box:
        await box.write("!ls")
        assert box.rows[-1] == " ! !ls"


async def test_it_grows_up_to_ten_rows_and_shrinks_again() -> None:
    async with input_box() as box:
        await box.press("1", *(["ctrl+j", "x"] * 3))
        assert box.editor.region.height == 4
        await box.press(*(["ctrl+j", "y"] * 12))
        assert box.editor.region.height == 10
        assert box.rows[-1] == "   y"
        await box.press("ctrl+u")
        await box.pilot.pause()
        assert box.editor.region.height == 1


async def test_long_lines_are_wrapped_on_forty_columns_and_wide_characters_counted() -> None:
    async with input_box(size=(40, 12)) as box:
        box.editor.put("日本語" * 12, replace=False)
        await box.pilot.pause()
        assert box.editor.region.height == 3
        assert box.rows[-3] == " › 日本語日本語日本語日本語日本語日本"
        await box.press("x")
        assert box.rows[-1].endswith("語x")


MOVES = {
    "home": "|one two\nthree four",
    "ctrl+a": "|one two\nthree four",
    "end": "one two|\nthree four",
    "ctrl+e": "one two|\nthree four",
    "left": "one |two\nthree four",
    "ctrl+left": "one |two\nthree four",
    "alt+left": "one |two\nthree four",
    "alt+b": "one |two\nthree four",
    "right": "one tw|o\nthree four",
    "ctrl+right": "one two|\nthree four",
    "alt+right": "one two|\nthree four",
    "alt+f": "one two|\nthree four",
    "down": "one two\nthree| four",
    "ctrl+k": "one t|\nthree four",
    "ctrl+w": "one |wo\nthree four",
    "alt+backspace": "one |wo\nthree four",
    "backspace": "one |wo\nthree four",
    "delete": "one t|o\nthree four",
    "ctrl+d": "one t|o\nthree four",
    "alt+d": "one t|\nthree four",
    "tab": "one t|wo\nthree four",
}


@pytest.mark.parametrize("key", MOVES)
async def test_a_key_moves_or_deletes_as_in_a_shell(key: str) -> None:
    async with input_box() as box:
        box.editor.put("one two\nthree four", replace=False)
        box.editor.move_cursor((0, 5))
        await box.press(key)
        row, column = box.editor.cursor_location
        lines = box.text.split("\n")
        lines[row] = f"{lines[row][:column]}|{lines[row][column:]}"
        assert "\n".join(lines) == MOVES[key]


async def test_at_the_end_of_a_line_ctrl_k_takes_the_break_away() -> None:
    async with input_box() as box:
        box.editor.put("a\nb", replace=False)
        box.editor.move_cursor((0, 1))
        await box.press("ctrl+k")
        assert box.text == "ab"


async def test_undo_and_redo() -> None:
    async with input_box() as box:
        await box.write("abc")
        await box.press("ctrl+w", "ctrl+underscore")
        assert box.text == "abc"
        await box.press("ctrl+y")
        assert box.text == ""


async def test_what_is_drawn_as_one_is_deleted_and_passed_as_one() -> None:
    async with input_box() as box:
        box.editor.put("a👩‍👩‍👧e\u0301", replace=False)
        await box.press("backspace")
        assert box.text == "a👩‍👩‍👧"
        await box.press("left")
        assert box.editor.cursor_location == (0, 1)
        await box.press("right", "backspace")
        assert box.text == "a"


async def test_an_emoji_made_of_several_can_be_typed() -> None:
    async with input_box() as box:
        for letter, name in (("👩", "woman"), ("\u200d", "zero_width_joiner"), ("👧", "girl")):
            box.app.post_message(Key(name, letter))
        await box.pilot.pause()
        assert box.text == "👩\u200d👧"


async def test_keys_that_come_at_once_are_taken_in_their_order() -> None:
    async with input_box() as box:
        await box.press(*"abc", "home", "x", "ctrl+u", *"def", "left", "y", "enter")
        assert box.sent == ["deyf"]


async def test_ctrl_u_clears_it_all_and_up_brings_it_back() -> None:
    async with input_box() as box:
        await box.press("a", "ctrl+j", "b", "ctrl+u")
        assert box.text == ""
        await box.press("up")
        assert box.text == "a\nb"


async def test_up_and_down_walk_what_was_sent_and_what_is_being_written_is_kept() -> None:
    async with input_box() as box:
        for text in ("one", "two"):
            await box.write(text)
            await box.press("enter")
        await box.write("dra")
        await box.press("up")
        assert box.text == "two"
        await box.press("up", "up")
        assert box.text == "one"
        await box.write("!")
        await box.press("down", "down")
        assert box.text == "dra"
        await box.press("down")
        assert box.text == "dra"
        await box.press("up", "up")
        assert box.text == "one!"


async def test_in_several_rows_up_and_down_move_until_the_edge() -> None:
    async with input_box(size=(20, 10)) as box:
        await box.write("sent")
        await box.press("enter")
        box.editor.put("a row that is wrapped\nb", replace=False)
        await box.press("up")
        assert box.editor.cursor_location[0] == 0
        await box.press("up")
        assert box.text.startswith("a row")
        await box.press("up")
        assert box.text == "sent"
        await box.press("down")
        assert box.text.startswith("a row")


async def test_walking_goes_on_over_entries_of_several_rows() -> None:
    async with input_box() as box:
        for text in ("first", "x\ny\nz"):
            box.editor.put(text, replace=False)
            await box.press("enter")
        await box.press("up", "up")
        assert box.text == "first"
        await box.press("down")
        assert box.text == "x\ny\nz"
        await box.press("down")
        assert box.text == ""


async def test_a_command_that_was_recalled_opens_no_list_and_the_walk_goes_on() -> None:
    async with input_box(commands=[command("exit")]) as box:
        for text in ("before", "/exit"):
            box.editor.past.add(text)
        await box.press("up")
        assert box.text == "/exit"
        assert "▸" not in box.screen
        await box.press("up")
        assert box.text == "before"
        await box.press("down", "backspace")
        assert "▸ /exit" in box.screen


async def test_a_draft_that_was_left_for_an_older_prompt_is_not_lost() -> None:
    async with input_box() as box:
        await box.write("old")
        await box.press("enter")
        await box.write("draft")
        await box.press("up", "enter")
        assert box.sent == ["old", "old"]
        assert "draft" in box.editor.past.entries


async def test_what_was_written_into_an_older_prompt_and_left_is_not_lost() -> None:
    async with input_box() as box:
        for text in ("x" * 20_000, "old"):
            box.editor.past.add(text)
        await box.press("up", "!", "up", "down", "down")
        assert box.text == ""
        await box.write("new")
        await box.press("enter")
        assert list(box.editor.past.entries) == ["x" * 20_000, "old", "old!", "new"]


async def test_a_huge_prompt_comes_back_as_a_chip() -> None:
    async with input_box() as box:
        box.editor.past.add("x" * 50_000)
        await box.press("up")
        assert box.text == "[pasted text #1 50000 chars]"
        await box.press("enter")
        assert box.sent == ["x" * 50_000]


async def test_the_history_can_be_searched() -> None:
    async with input_box() as box:
        for text in ("fix the parser", "write a test", "fix the lexer"):
            box.editor.past.add(text)
        await box.write("draft")
        await box.press("ctrl+r")
        await box.until(lambda: box.app.screen.is_modal)
        await box.write("parser")
        await box.press("enter")
        await box.until(lambda: box.text == "fix the parser")
        assert "draft" in box.editor.past.entries


async def test_a_search_that_is_left_changes_nothing() -> None:
    async with input_box() as box:
        box.editor.past.add("old")
        await box.write("draft")
        await box.press("ctrl+r")
        await box.until(lambda: box.app.screen.is_modal)
        await box.press("escape")
        await box.until(lambda: not box.app.screen.is_modal)
        assert box.text == "draft"


async def test_what_was_given_at_the_start_stands_there() -> None:
    async with input_box(typed="from the\x1b[2J shell") as box:
        assert box.text == "from the shell"
        await box.press("enter")
        assert box.sent == ["from the shell"]


async def test_what_is_put_in_for_the_user_keeps_what_was_there() -> None:
    async with input_box() as box:
        await box.write("mine")
        box.editor.put("\x1b]0;x\x07theirs", replace=True)
        assert box.text == "theirs"
        assert list(box.editor.past.entries) == ["mine"]
        box.editor.put(" more", replace=False)
        assert box.text == "theirs more"


async def test_up_in_an_empty_input_takes_back_what_waits() -> None:
    async with input_box(waiting=["one", "two\nlines"]) as box:
        await box.press("up")
        await box.until(lambda: box.text == "one\n\ntwo\nlines")
        assert box.waiting == []


async def test_with_a_text_in_the_input_up_takes_nothing_back() -> None:
    async with input_box(waiting=["one"]) as box:
        await box.press("x", "up")
        assert (box.text, box.waiting) == ("x", ["one"])


async def test_every_key_that_is_said_to_mean_something_is_taken() -> None:
    async with input_box() as box:
        for key in sorted(box.editor.keys):
            box.editor.put("text", replace=True)
            assert box.editor.takes(key), key
            while box.app.screen.is_modal:
                box.app.pop_screen()
        assert set(AREA_KEYS) < set(box.editor.keys)
        assert not box.editor.takes("f5")
