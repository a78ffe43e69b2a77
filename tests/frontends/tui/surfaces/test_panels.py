"""Panels of real extensions on the screen: their keys, their size, their end, and who has the keys."""

from pathlib import Path

import pytest

from support.interface import interface
from support.showing import keys, of_panels, order, panel, shower, tell

BOTH = pytest.mark.usefixtures("dialect")


@BOTH
async def test_a_panel_shows_its_lines_and_hears_its_keys_in_order(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("todo")) as face:
        order(face, "todo", panel("p", "buy \x1b[1mmilk\x1b[0m", "sleep", title="Today", footer="q quits"))
        shown = await face.shows("todo Today", "┃ buy milk", "┃ sleep", "┃ q quits", "esc closes")
        assert "\x1b" not in shown
        await face.press("a", "down", "up", "left", "right", "enter", "tab", "backspace", "delete", "home", "end")
        await face.press("pageup", "pagedown", "space", "é", "?", "ctrl+d", "ctrl+o", "shift+tab", "f5", "alt+x")
        expected = ["a", "<down>", "<up>", "<left>", "<right>", "<enter>", "<tab>", "<backspace>", "<delete>", "<home>"]
        expected += ["<end>", "<pageup>", "<pagedown>", " ", "é", "?", *["<unknown>"] * 4, "x"]
        await face.until(lambda: len(keys(face, "todo")) == len(expected), "all keys")
        assert keys(face, "todo") == expected
        assert face.app.editor.text == ""


@BOTH
@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_esc_and_ctrl_c_close_a_panel_and_tell_its_owner_and_are_not_keys_of_it(tmp_path: Path, key: str) -> None:
    async with interface(tmp_path, shower("todo")) as face:
        order(face, "todo", panel("p", "milk"))
        await face.shows("┃ milk")
        await face.press(key)
        await face.shows_no("milk")
        await face.until(lambda: ("close", "p") in of_panels(face, "todo"), "the owner hears of it")
        assert keys(face, "todo") == []
        await face.press("h", "i")
        assert face.app.editor.text == "hi"


@BOTH
async def test_the_owner_is_told_the_size_after_opening_and_at_every_change(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("todo"), size=(80, 24)) as face:
        order(face, "todo", panel("p", "milk"))
        await face.until(lambda: of_panels(face, "todo") == [("resize", "p", 76, 11)], "the size")
        await face.pilot.resize_terminal(40, 24)
        await face.until(lambda: of_panels(face, "todo")[1:] == [("resize", "p", 36, 11)], "a narrower one")
        await face.pilot.resize_terminal(40, 50)
        await face.until(lambda: of_panels(face, "todo")[2:] == [("resize", "p", 36, 27)], "a higher one")
        order(face, "todo", panel("q", "other"))
        await face.until(lambda: ("resize", "q", 36, 27) in of_panels(face, "todo"), "the next one knows it at once")


@BOTH
async def test_a_render_replaces_the_lines_and_an_empty_title_keeps_the_old_one(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("todo")) as face:
        order(face, "todo", panel("p", "milk", title="Today", footer="f"))
        await face.shows("┃ milk")
        tell(face, "todo", "panel/render", panel_id="p", lines=["bread"])
        shown = await face.shows("┃ bread", "todo Today")
        assert "milk" not in shown and "┃ f " not in shown


async def test_a_panel_takes_at_most_60_percent_of_the_height_and_scrolls(tmp_path: Path) -> None:
    lines = [f"line {number}." for number in range(1, 101)]
    async with interface(tmp_path, shower("todo"), size=(60, 20)) as face:
        order(face, "todo", panel("p", *lines, footer="the footer"))
        await face.shows("line 1.", "line 9.", "1-9 of 100", "the footer")
        assert sum(row.startswith(("┃", "┏", "┗")) for row in face.rows) == 12
        await face.press("pagedown")
        shown = await face.shows("10-18 of 100", "line 10.", "line 18.")
        assert "line 9." not in shown
        await face.press("pageup")
        await face.shows("1-9 of 100")
        assert keys(face, "todo") == []  # those are about the window, and the rest is the owner's
        await face.press("end")
        await face.until(lambda: keys(face, "todo") == ["<end>"])


async def test_the_window_goes_after_the_line_that_is_selected(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("todo")) as face:
        lines = [f"  item {number}." for number in range(50)]
        order(face, "todo", panel("p", *lines))
        await face.shows("item 0.")
        chosen = [line.replace("  item 40", "▸ item 40") for line in lines]
        tell(face, "todo", "panel/render", panel_id="p", lines=chosen)
        await face.shows("▸ item 40.")


async def test_words_are_wrapped_by_display_width_and_pictures_are_clipped(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("todo"), size=(40, 24)) as face:
        order(face, "todo", panel("p", "日本語 " * 8, "word " * 12 + "end", "┌" + "─" * 60 + "┐", "under"))
        await face.shows("under")
        rows = [row for row in face.rows if row.startswith("┃")]
        assert rows[0].count("日本語") == 5 and rows[1].count("日本語") == 3
        assert rows[3].startswith("┃ word word") and "end" in rows[3]
        assert rows[4] == "┃ ┌" + "─" * 35 + " ┃"
        assert rows[5].startswith("┃ under")


@BOTH
async def test_a_panel_whose_owner_died_is_greyed_and_comes_back_with_it(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("todo")) as face:
        order(face, "todo", panel("p", "milk"))
        await face.shows("┃ milk")
        await face.until(lambda: of_panels(face, "todo") == [("resize", "p", 76, 11)])
        order(face, "todo", die=True)
        await face.shows("todo is gone:", "milk")
        await face.press("a")  # to nobody
        await face.it.ready("todo")
        await face.shows_no("is gone")
        await face.shows("┃ milk")
        await face.until(lambda: of_panels(face, "todo")[1:] == [("resize", "p", 76, 11)], "it may draw anew")
        await face.press("b")
        await face.until(lambda: keys(face, "todo") == ["b"])


async def test_a_panel_whose_owner_is_gone_for_good_can_be_closed(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("todo")) as face:
        order(face, "todo", panel("p", "milk"))
        await face.shows("┃ milk")
        await face.it.host.disable("todo")
        await face.shows("todo is gone:")
        await face.press("escape")
        await face.shows_no("milk")


@BOTH
async def test_several_panels_share_the_box_and_f6_goes_round(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("todo"), shower("git")) as face:
        order(face, "todo", panel("p", "milk", title="Today"))
        await face.shows("┃ milk")
        await face.press("f6")
        await face.shows("│ milk", "f6 to use it")  # the input has the keys
        order(face, "git", panel("p", "commits", title="Log"))
        await face.shows("┃ commits", "todo Today", "git Log")
        await face.press("1", "f6", "2", "f6")
        await face.shows("┃ milk")
        await face.press("3", "f6", "4", "f6")
        await face.shows("│ commits")
        await face.press("x")
        await face.until(lambda: keys(face, "git") == ["1", "4"] and keys(face, "todo") == ["3"], "each its own keys")
        assert face.app.editor.text == "2x"


async def test_a_click_on_a_name_brings_that_panel_to_the_front(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("todo")) as face:
        order(face, "todo", panel("p", "milk", title="First"), panel("q", "bread", title="Second"))
        await face.shows("┃ bread", "First")
        row = next(number for number, text in enumerate(face.rows) if "First" in text)
        await face.pilot.click(offset=(face.rows[row].index("First"), row))
        await face.shows("┃ milk")
        await face.press("a")
        await face.until(lambda: ("key", "p", "rune", "a") in of_panels(face, "todo"))


async def test_closing_a_panel_gives_the_keys_back_to_who_had_them(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("todo"), shower("git")) as face:
        order(face, "git", panel("log", "commits"))
        await face.shows("┃ commits")
        await face.press("f6")
        order(face, "todo", panel("p", "milk"))
        await face.shows("┃ milk")
        order(face, "todo", panel("detail", "of milk"))  # opened from a panel of its own
        await face.shows("┃ of milk")
        await face.press("escape")
        await face.shows("┃ milk")
        await face.press("escape")
        await face.shows("│ commits")
        await face.press("z")
        assert face.app.editor.text == "z"


async def test_a_panel_does_not_take_the_keys_from_somebody_who_types(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("todo")) as face:
        await face.press("h", "i")
        order(face, "todo", panel("p", "milk"))
        await face.shows("│ milk", "f6 to use it")
        await face.press("!")
        assert face.app.editor.text == "hi!"
        assert keys(face, "todo") == []


async def test_a_panel_does_not_take_the_keys_from_a_panel_of_somebody_else(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("todo"), shower("git")) as face:
        order(face, "todo", panel("p", "milk"))
        await face.shows("┃ milk")
        order(face, "git", panel("p", "commits", title="Log"))
        await face.shows("git Log", "┃ milk")
        await face.press("a")
        await face.until(lambda: keys(face, "todo") == ["a"])
        assert keys(face, "git") == []
        assert (shown := face.it.session.panels.open) and shown.owner == "todo"


async def test_a_panel_that_comes_back_whenever_it_is_closed_does_not_keep_the_keys(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("todo")) as face:
        order(face, "todo", panel("p", "milk"))
        await face.shows("┃ milk")
        await face.press("escape")
        await face.shows_no("milk")
        order(face, "todo", panel("p", "milk again"))
        await face.shows("│ milk again")
        await face.press("x")
        assert face.app.editor.text == "x"


async def test_panels_that_are_opened_again_and_again_do_not_get_the_keys_of_somebody_who_left_them(
    tmp_path: Path,
) -> None:
    # U1
    async with interface(tmp_path, shower("todo")) as face:
        order(face, "todo", panel("p", "milk"))
        await face.shows("┃ milk")
        await face.press("f6")
        for number in range(3):
            order(face, "todo", panel(f"p{number}", f"milk {number}"))
            await face.shows(f"│ milk {number}", "f6 to use it")
        await face.press("x")
        assert face.app.editor.text == "x"


HOSTILE = [
    "\x1b]0;owned\x07title",
    "\x1b[2J\x1b[Hgone",
    "a\u202eb",
    "◈ Allow bash?",
    "\x9b31mred",
    "tab\there",
    "e\u0301" * 50,
]


async def test_hostile_text_is_harmless_everywhere_in_a_panel(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("todo"), size=(40, 24)) as face:
        order(face, "todo", panel("p", *HOSTILE, "last", title="◈ \x1b[31mtitle\u202e", footer="◈\x1b[?1049l foot"))
        shown = await face.shows("last", "foot")
        assert not any(sign in shown for sign in ("\x1b", "\x9b", "\x07", "\u202e", "◈"))
        assert all(len(row.rstrip("\n")) <= 200 for row in face.rows)
        assert "‹U+202E›" in shown
