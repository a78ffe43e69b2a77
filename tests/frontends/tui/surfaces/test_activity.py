"""What runs, for how long, and for whom everybody waits; and that nothing moves when nothing runs."""

import asyncio
from pathlib import Path

import pytest

from hilt.frontends.tui.app import HiltApp
from hilt.frontends.tui.surfaces.activity import Activity, elapsed
from support.agent import calls, says
from support.extending import chaos
from support.interface import interface

BOTH = pytest.mark.usefixtures("dialect")
SLOW = {"on": "tool_call", "do": ["wait_for:enough", "answer"]}


@BOTH
async def test_the_line_says_what_runs_and_is_empty_again_afterwards(tmp_path: Path) -> None:
    tool = chaos("slow", "hello", "register_tool:crawl", "ready", SLOW)
    turns = [calls(("crawl", {}), usage={"output": 1234}), says("done")]
    async with interface(tmp_path, tool, turns=turns, mode="yolo") as face:
        face.say("go")
        shown = await face.shows("running crawl", "esc to cancel", "↓ 1.2k tokens")
        assert shown.split("running crawl")[1].lstrip()[0].isdigit()
        (tmp_path / "extensions/slow/enough").touch()
        await face.shows_no("esc to cancel")
        await face.until(lambda: face.app.query_one(Activity)._timer is None, "nothing moves any more")


async def test_the_spinner_turns_at_most_8_times_a_second_and_only_while_something_runs(tmp_path: Path) -> None:
    tool = chaos("slow", "hello", "register_tool:crawl", "ready", SLOW)
    async with interface(tmp_path, tool, turns=[calls(("crawl", {})), says("done")], mode="yolo") as face:
        line = face.app.query_one(Activity)
        assert line._timer is None and line.size.height == 1
        face.say("go")
        await face.shows("running crawl")
        assert line._timer is not None and line._timer._interval >= 1 / 8
        first = face.text.split(" running crawl")[0][-1]
        await face.until(lambda: face.text.split(" running crawl")[0][-1] != first, "it turns")
        await face.press("escape")
        await face.until(lambda: line._timer is None, "it stops")


@BOTH
async def test_a_guard_that_takes_its_time_is_named_and_esc_ends_the_wait(tmp_path: Path) -> None:
    guard = chaos("warden", "hello", "intercept:tool_call", "ready", {"on": "event_intercept", "do": []})
    tool = chaos("slow", "hello", "register_tool:crawl", "ready")
    async with interface(tmp_path, guard, tool, turns=[calls(("crawl", {})), says("done")], mode="yolo") as face:
        face.say("go")
        await face.shows("warden (guard): 1.", "(esc to stop waiting)")
        await face.press("escape")
        await face.until(lambda: not face.it.session.busy, "it is over")
        await face.shows_no("warden (guard)")


@BOTH
async def test_a_command_that_hangs_is_named_too_and_can_be_left(tmp_path: Path) -> None:
    stuck = chaos("stuck", "hello", "register_command:think", "ready", {"on": "command_invoked", "do": []})
    async with interface(tmp_path, stuck) as face:
        face.say("/think")
        await face.shows("stuck (command /think): 1.")
        await face.press("escape")
        await face.shows_no("(command /think)")


async def test_a_hint_of_the_moment_is_shown_also_before_there_is_a_session() -> None:
    app = HiltApp()
    async with app.run_test(size=(40, 20)) as pilot:
        await pilot.press("ctrl+c")
        async with asyncio.timeout(10):
            while "again to leave" not in app.query_one(Activity).render_line(0).text:
                await pilot.pause(0.01)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59.4, "59 s"), (60, "1:00 min"), (3599, "59:59 min"), (7260, "2:01 h")]
)
def test_a_time_is_told_as_people_do(seconds: float, text: str) -> None:
    assert elapsed(seconds) == text
