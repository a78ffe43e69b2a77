"""A short script, interrupted at every single step the loop takes, in each of several ways: it ends all the same."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from extensions.model import answer_text
from hilt.model.content import text_of
from hilt.model.extensions import Dialect
from hilt.transport.process import Exit
from support.puppets import Manner, Script, Settings, World, token

PLAIN: Settings = {"start_timeout_ms": 1000, "tool_timeout_ms": 1000, "stop_grace_ms": 500}
QUIT = 2.0
"""Seconds that leaving may take, with that grace."""


async def call_a_tool(world: World) -> str:
    output = await world.it.session.call_tool("t1", {"token": 1}, "model")
    return text_of(output.content)


async def reload_it(world: World) -> str:
    return str(await world.it.host.reload("ant"))


async def add_another(world: World) -> str:
    world.write("cat", PLAIN)
    return str(await world.it.host.reload("cat"))


async def remove_it(world: World) -> str:
    world.remove("ant")
    return str(await world.it.host.reload("ant"))


def crash(name: str, world: World) -> None:
    for puppet in world.stage.live:
        if puppet.name == name:
            puppet.die(Exit(5), "ouch")


def desert(world: World) -> None:
    if world.caller:
        world.caller.cancel()


INTERRUPTIONS: dict[str, Callable[[World], object]] = {
    "its process crashes": partial(crash, "ant"),
    "its guard crashes": partial(crash, "bee"),
    "the caller leaves": desert,
    "hilt quits": World.leave,
    "hilt is cancelled": lambda world: world.main.cancel(),
}


@pytest.mark.timeout(300)  # a machine with other things to do takes several times as long
@pytest.mark.parametrize("how", INTERRUPTIONS)
@pytest.mark.parametrize("script", [call_a_tool, reload_it, add_another, remove_it])
def test_a_script_that_is_interrupted_at_any_step_ends_once_in_time_and_leaves_nothing(
    script: Script, how: str, quick_path: Path
) -> None:
    def folder(number: int) -> Path:
        (path := quick_path / str(number)).mkdir()
        return path

    steps = play(folder(0), script)
    assert steps > 50
    for step in range(1, steps):
        play(folder(step), script, step, INTERRUPTIONS[how])


@pytest.mark.timeout(300)  # a machine with other things to do takes several times as long
@pytest.mark.parametrize("how", INTERRUPTIONS)
def test_in_the_other_dialect_no_step_is_different(how: str, quick_path: Path) -> None:
    def folder(number: int) -> Path:
        (path := quick_path / str(number)).mkdir()
        return path

    steps = play(folder(0), call_a_tool, dialect="jsonrpc")
    assert steps > 50
    for step in range(1, steps):
        play(folder(step), call_a_tool, step, INTERRUPTIONS[how], dialect="jsonrpc")


def play(
    folder: Path,
    script: Script,
    step: int = 0,
    interrupt: Callable[[World], object] | None = None,
    dialect: Dialect = "frames",
) -> int:
    """Play it to its end, whatever happens at this step, and then quit. Answers how many steps it took."""
    world = World(folder, script)
    world.stage.manners["ant"] = Manner(tools=("t1",), cancels=True, answers=True, delay=0.1, dialect=dialect)
    world.stage.manners["bee"] = Manner(tools=("t2",), guards=True, answers=True, delay=0.1, dialect=dialect)
    world.write("ant", PLAIN)
    world.write("bee", {**PLAIN, "guard": {"on_failure": "block", "timeout_ms": 2000}})
    if interrupt:
        world.loop.before_step(step, lambda: interrupt(world))
    try:
        world.settle(10.0)
        if world.loop.interrupted:  # otherwise it comes later, while the host is left
            world.settle(10.0)
            check_the_others(world)
        world.leave()
        world.settle(QUIT)
        steps = world.loop.steps
        assert world.main.done(), "it does not come to an end"
        check_outcome(world)
        world.check_nothing_left()
    finally:
        world.close()
    return steps


def check_the_others(world: World) -> None:
    """Whatever it was, it is over, it has cost nobody but whom it befell, and that one is back or says why not."""
    assert world.caller is None or world.caller.done()
    if world.main.done():
        return
    for status in world.it.host.statuses():
        assert status.state == "ready" or (status.state == "failed" and "exited with code 5" in status.reason)
        if status.name == "bee" and status.state == "ready":
            output = world.run(world.it.session.call_tool("t2", {"token": 2}, "model"))
            assert text_of(output.content).startswith(f"{status.pid}:2:")


def check_outcome(world: World) -> None:
    """It ended once: with the answer it was given, or with words that say who is to blame."""
    assert len(world.outcomes) <= 1
    asked = [(p, frame) for p in world.stage.puppets for frame in p.asked("tool_call").values() if token(frame) == 1]
    assert len(asked) <= 1, "it ran twice"
    answers = [answer_text("tool_call", said.frame) for p, frame in asked for said in p.answers(frame["id"])]
    crashed = any(puppet.exit == Exit(5) for puppet in world.stage.puppets)
    for outcome in world.outcomes:
        if "gave no verdict" in outcome:
            assert "guard bee" in outcome
            assert not asked, "it ran although it was refused"
        elif answers:
            assert outcome in (*answers, "cancelled")
        else:
            assert outcome.startswith("reloaded: ") or "t1" in outcome or outcome == "cancelled"
            assert not (crashed and "was stopped" in outcome), "a crash is not a stop"
