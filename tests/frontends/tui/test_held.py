"""A call that the user is asked about: it waits, says so, and the waiting is not counted as its own time."""

import asyncio
from pathlib import Path

import pytest

from hilt.frontends.tui.transcript.call import Call
from support.agent import calls, says
from support.interface import interface

COMMAND = calls(("bash", {"command": "echo hello"}))


async def test_what_waits_for_an_answer_says_so_and_then_runs(tmp_path: Path) -> None:
    command = "until [ -e go ]; do sleep 0.05; done"
    async with interface(tmp_path, turns=[calls(("bash", {"command": command})), says("fine")], size=(80, 40)) as face:
        face.say()
        text = await face.shows("Allow bash?", f"○ bash {command} · waits for your answer")
        assert "running" not in text
        await face.answer("y")
        await face.shows(f"◐ bash {command} · running")
        (tmp_path / "go").touch()
        await face.shows(f"✓ bash {command} · done", "fine")


async def test_what_nobody_is_asked_about_never_waits(tmp_path: Path) -> None:
    async with interface(tmp_path, turns=[COMMAND, says("fine")], mode="yolo") as face:
        face.say()
        assert "waits" not in await face.shows("fine")


@pytest.mark.parametrize("waited", [0.0, 100.0])
def test_the_time_of_a_call_begins_with_the_answer(waited: float) -> None:
    call = Call("1", "bash")
    call.called({"command": "make"})
    call.start(10.0)
    call.tick(12.0)
    call.held()
    call.tick(12.0 + waited)
    assert call._state() == "waits for your answer"
    call.start(12.0 + waited)
    call.tick(15.0 + waited)
    assert call._state() == "running 3.0 s"


async def test_a_turn_that_is_cancelled_leaves_nothing_waiting(tmp_path: Path) -> None:
    async with interface(tmp_path, turns=[COMMAND, says("fine")], size=(80, 40)) as face:
        face.say()
        await face.shows("waits for your answer")
        face.it.session.abort()
        await face.shows("⊘ bash echo hello · cancelled")
        async with asyncio.timeout(10):
            await face.shows_no("waits for your answer")
