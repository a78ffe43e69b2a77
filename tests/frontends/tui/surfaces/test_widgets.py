"""Widgets of real extensions above the input and below the status line, and what goes with what is typed."""

import base64
from pathlib import Path

import pytest

from hilt.model.actions import AttachImage, DetachImage
from hilt.model.events import Inserted
from support.agent import calls, says
from support.extending import chaos
from support.interface import Face, interface
from support.showing import order, shower, tell

BOTH = pytest.mark.usefixtures("dialect")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def row_of(face: Face, text: str) -> int:
    return next(number for number, row in enumerate(face.rows) if text in row)


@BOTH
async def test_widgets_stand_above_the_input_and_below_the_status_line_with_their_owner(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("git")) as face:
        above = {"key": "a", "placement": "above-input", "content": "\x1b[33mon main\x1b[0m\n2 changed"}
        below = {"key": "b", "placement": "below-status", "content": "pushed"}
        order(face, "git", ("setWidget", above), ("setWidget", below))
        await face.shows("git  on main", "2 changed", "git  pushed")
        assert row_of(face, "on main") < row_of(face, "Ask anything") < row_of(face, "pushed")
        order(face, "git", ("setWidget", {**above, "content": ""}), ("setWidget", {**below, "content": "pulled"}))
        await face.shows("git  pulled")
        assert "on main" not in face.text and "pushed" not in face.text


async def test_widgets_go_with_their_owner(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("git")) as face:
        tell(face, "git", "setWidget", key="a", placement="above-input", content="on main")
        await face.shows("git  on main")
        order(face, "git", die=True)
        await face.shows_no("on main")


async def test_widgets_have_8_rows_in_all_and_each_its_share(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("git"), shower("todo"), size=(80, 40)) as face:
        many = "\n".join(f"file {number}." for number in range(20))
        order(face, "git", ("setWidget", {"key": "a", "placement": "above-input", "content": many}))
        await face.shows("file 7.")
        assert "file 8." not in face.text
        order(face, "todo", ("setWidget", {"key": "a", "placement": "above-input", "content": "one\ntwo"}))
        await face.shows("todo  one", "two", "file 5.")
        assert "file 6." not in face.text
        more = [("setWidget", {"key": f"k{n}", "placement": "above-input", "content": f"more {n}."}) for n in range(20)]
        order(face, "todo", *more)
        await face.shows("+15 more", "file 0.")
        assert sum("git" in row or "todo" in row for row in face.rows[-16:]) >= 7
        assert row_of(face, "+15 more") - row_of(face, "file 0.") == 7


async def test_hostile_widgets_are_harmless_and_clipped(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("git"), size=(40, 24)) as face:
        bad = "\x1b]0;t\x07\x1b[2J◈ Allow?\u202e\x9b31m 日本語" + "日" * 100 + "\nsecond"
        tell(face, "git", "setWidget", key="a", placement="above-input", content=bad)
        shown = await face.shows("git", "Allow?", "second")
        assert not any(sign in shown for sign in ("\x1b", "\x9b", "\x07", "\u202e", "◈"))


async def test_what_waits_is_shown_until_it_is_sent(tmp_path: Path) -> None:
    slow = chaos("slow", "hello", "register_tool:t", "ready", {"on": "tool_call", "do": ["wait_for:enough", "answer"]})
    turns = [calls(("t", {})), says("first done"), *[says(f"answer {n}") for n in range(5)]]
    async with interface(tmp_path, slow, turns=turns, mode="yolo") as face:
        face.say("go")
        await face.shows("esc to cancel")
        face.say("and\nthen this")
        await face.shows("waiting: and then this", "↑ takes it back")
        for number in range(4):
            face.say(f"more {number}")
        await face.shows("waiting: more 1", "(+2 more)")
        assert "waiting: more 2" not in face.text
        (tmp_path / "extensions/slow/enough").touch()
        await face.shows_no("waiting:")


async def test_an_attached_image_is_shown_with_who_attached_it(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("shots")) as face:
        await face.it.session.apply((AttachImage(PNG, "image/png"),), "shots")
        await face.shows("[image: png, 1 KB]", "from shots")
        await face.it.session.apply((DetachImage(),), "shots")
        await face.shows_no("[image")


@BOTH
async def test_what_an_extension_writes_into_the_input_is_seen_and_told(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("snip"), turns=[says("hi")]) as face:
        await face.press("o", "l", "d")
        tell(face, "snip", "setInputText", text="new \x1b[31mtext\u202e◈")
        await face.shows("snip wrote into the input", "new text")
        assert face.app.editor.text == "new text‹U+202E›‹U+25C8›"
        await face.until(lambda: face.app.editor.listening)
        await face.press("enter")
        await face.shows_no("wrote into the input")


async def test_what_is_inserted_comes_to_what_is_typed(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("snip", dialect="frames")) as face:
        await face.press("a", "space")
        order(face, "snip", answer={"action": "insert", "insert": "snippet"})
        await face.until(lambda: face.app.editor.text == "a snippet")
        await face.press("escape")
        await face.shows_no("wrote into the input")


async def test_a_flood_of_insertions_does_not_grow_for_ever(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("snip", dialect="frames")) as face:
        for number in range(1, 14):
            order(face, "snip", answer={"action": "insert", "insert": "x" * 90_000})
            await face.until(lambda number=number: len(face.it.of(Inserted)) == number)  # type: ignore[misc]
            await face.until(lambda: face.app.scene.written is None)
        assert "#11 90000 chars" in face.app.editor.text
        assert "#12 90000 chars" not in face.app.editor.text
        await face.press("escape")
        order(face, "snip", answer={"action": "insert", "insert": "again"})
        await face.until(lambda: face.app.editor.text == "again")
