"""Notes of real extensions: levels, owners, how many are shown, and when they go."""

from pathlib import Path

import pytest

from support.agent import says
from support.extending import chaos
from support.interface import interface
from support.showing import order, shower, tell

BOTH = pytest.mark.usefixtures("dialect")


@BOTH
async def test_notes_have_their_owner_and_a_mark_for_their_level_and_the_newest_is_last(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("lint")) as face:
        levels = {"info": "·", "success": "✓", "warn": "!", "error": "✗"}
        order(face, "lint", *[("notify", {"message": f"it is {level}", "level": level}) for level in levels])
        await face.shows(*[f"{mark} lint it is {level}" for level, mark in levels.items()])
        rows = [row.strip() for row in face.rows]
        assert [rows.index(f"{mark} lint it is {level}") for level, mark in levels.items()] == sorted(
            rows.index(f"{mark} lint it is {level}") for level, mark in levels.items()
        )


async def test_only_the_last_notes_are_shown_until_all_are_wanted(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("lint")) as face:
        order(face, "lint", *[("notify", {"message": f"note {number}."}) for number in range(1, 21)])
        await face.shows("+16 more (ctrl+n)", "note 17.", "note 20.")
        assert "note 16." not in face.text
        assert sum("lint note" in row for row in face.rows) == 4
        await face.press("ctrl+n")
        await face.shows("note 10.", "+9 more", "note 20.")
        await face.press("ctrl+n")
        await face.shows("+16 more (ctrl+n)")


async def test_a_long_note_is_cut_among_others_and_wrapped_on_its_own(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("lint"), size=(40, 24)) as face:
        tell(face, "lint", "notify", message="word " * 25 + "end")
        await face.shows("· lint word", "end")
        order(face, "lint", ("notify", {"message": "long " * 200}), ("notify", {"message": "short"}))
        await face.shows("· lint short", "…", "+1 more")
        rows = [row for row in face.rows if "long" in row]
        assert len(rows) == 2


async def test_a_note_goes_with_the_next_prompt(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("lint"), turns=[says("well said")]) as face:
        tell(face, "lint", "notify", message="look here")
        await face.shows("lint look here")
        face.say("hello")
        await face.shows("well said")
        await face.shows_no("look here")


@BOTH
async def test_esc_clears_notes_and_only_then_what_is_typed(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("lint")) as face:
        tell(face, "lint", "notify", message="look here")
        await face.shows("lint look here")
        await face.press("h", "i", "escape")
        await face.shows_no("look here")
        assert face.app.editor.text == "hi"
        assert face.it.session.notes.shown == []
        await face.press("escape")
        assert face.app.editor.text == ""


async def test_notes_that_come_again_and_again_do_not_keep_esc_from_the_turn(tmp_path: Path) -> None:
    slow = chaos("slow", "hello", "register_tool:t", "ready", {"on": "tool_call", "do": []})
    turns = [{"content": [{"type": "tool_call", "name": "t", "args": {}}]}]
    async with interface(tmp_path, shower("lint"), slow, turns=turns, mode="yolo") as face:
        face.say("go")
        await face.shows("esc to cancel")
        for _ in range(2):
            tell(face, "lint", "notify", message="look here")
            await face.shows("lint look here")
            await face.press("escape")
            await face.until(lambda: not face.it.session.notes.shown)
        await face.until(lambda: not face.it.session.busy, "the turn is cancelled")


async def test_hostile_notes_are_harmless(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("lint"), size=(40, 24)) as face:
        bad = "\x1b]52;c;aGk=\x07\x1b[2J◈ Allow?\u202e\x9b31m\nsecond line\r\x00 日本語" + "e\u0301" * 100
        order(face, "lint", ("notify", {"message": bad, "level": "nonsense"}))
        shown = await face.shows("lint", "Allow?", "second line", "日本語")
        assert not any(sign in shown for sign in ("\x1b", "\x9b", "\x07", "\u202e", "◈", "\r", "\x00"))
