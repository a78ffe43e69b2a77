"""Esc closes what extensions show, one after the other; however much they show, it soon does what it is for."""

from pathlib import Path
from typing import Any

from hilt.model.events import Done
from support.agent import calls
from support.extending import chaos
from support.interface import Face, interface
from support.showing import order, shower

SLOW = ("hello", "register_tool:t", "ready", {"on": "tool_call", "do": ["wait_for:never", "answer"]})


def overlay(key: str) -> tuple[str, dict[str, Any]]:
    return "showOverlay", {"key": key, "content": f"overlay {key}."}


def note(text: str) -> tuple[str, dict[str, Any]]:
    return "notify", {"message": text}


async def running(face: Face) -> None:
    face.say("go")
    await face.shows("running t")


async def test_whoever_shows_two_things_in_turn_does_not_keep_esc_from_the_turn(tmp_path: Path) -> None:
    made = (shower("loud"), chaos("slow", *SLOW))
    async with interface(tmp_path, *made, turns=[calls(("t", {}))], mode="yolo") as face:
        await running(face)
        order(face, "loud", overlay("a"), overlay("b"), note("note 0."))
        await face.shows("overlay b.", "note 0.")
        for number in range(1, 5):
            await face.press("escape")
            pair = [overlay("b"), overlay("a")] if number % 2 else [overlay("a"), overlay("b")]
            order(face, "loud", *pair, note(f"note {number}."))
            await face.shows(f"note {number}.", "overlay a." if number % 2 else "overlay b.")
        assert [done.stop for done in face.it.of(Done)] == ["aborted"]


async def test_whoever_shows_things_faster_than_they_are_drawn_does_not_keep_esc_from_the_turn(tmp_path: Path) -> None:
    made = (shower("loud"), chaos("slow", *SLOW))
    async with interface(tmp_path, *made, turns=[calls(("t", {}))], mode="yolo") as face:
        await running(face)
        around, session = face.app.around, face.it.session
        assert around is not None
        order(face, "loud", overlay("a"), note("noted."))
        await face.shows("overlay a.", "noted.")
        for _ in range(4):
            face.app.action_cancel()
            # It is there again before anybody has seen it go.
            around.overlays.show(face.app.scene)
            around.notes.show(face.app.scene)
        await face.until(lambda: [done.stop for done in face.it.of(Done)] == ["aborted"], "it was cancelled")
        assert not session.busy


async def test_esc_closes_what_is_there_before_it_cancels_the_turn(tmp_path: Path) -> None:
    made = (shower("calm"), chaos("slow", *SLOW))
    async with interface(tmp_path, *made, turns=[calls(("t", {}))], mode="yolo") as face:
        await running(face)
        order(face, "calm", overlay("a"), overlay("b"), note("noted."))
        await face.shows("overlay b.", "noted.")
        for gone in ("overlay b.", "overlay a.", "noted."):
            await face.press("escape")
            await face.shows_no(gone)
            assert not face.it.of(Done)
        await face.press("escape")
        await face.until(lambda: face.it.of(Done), "it was cancelled")
