"""Parts of an extension that the user switched off: they are nowhere, the rest of it goes on, and typos are told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hilt.errors import UsageError
from hilt.extensions.switches import Switches
from hilt.model.contributions import Effect
from hilt.model.events import Intercepted, Notified
from hilt.packages.choices import Choices
from support.agent import calls, echo, says
from support.agent import tool as builtin
from support.extending import Extended, Made, chaos, extended, tool
from support.leftovers import nothing_left

ACT = builtin("act", echo, effect=Effect.EXECUTE)
SECTION = 'register:{"kind":"prompt_section","title":"House rules","content":"obey me"}'
SHORTCUT = 'register:{"kind":"shortcut","key":"Ctrl+G"}'


@asynccontextmanager
async def without(tmp_path: Path, off: tuple[str, ...], *made: Made, **options: Any) -> AsyncIterator[Extended]:
    """These extensions, with so many parts of `t` switched off."""
    choices = {"t": Choices(off=off)}
    async with nothing_left(), extended(tmp_path, *made, choices=choices, offered=(ACT,), **options) as it:
        await it.ready(*(one.name for one in made))
        yield it


def test_a_switch_is_met_once_there_is_what_it_is_for() -> None:
    switches = Switches(("tool:a", "command:Ship", "guard"))
    assert switches.idle == ("tool:a", "command:Ship", "guard")
    assert switches.off("tool", "a") and not switches.off("tool", "A") and not switches.off("command", "a")
    assert switches.off("command", "ship") and switches.off("guard", "tool_call")
    assert not switches.idle


def test_a_kind_alone_is_all_of_that_kind() -> None:
    switches = Switches(("tool",))
    assert switches.off("tool", "a") and switches.off("tool", "b") and not switches.off("command", "a")


async def test_a_tool_that_is_off_is_nowhere_and_the_others_stay(tmp_path: Path) -> None:
    made = tool("t", "register_tool:deploy")
    async with without(tmp_path, ("tool:deploy",), made, turns=[says("hi")]) as it:
        assert it.status("t").tools == ("t",)
        told, is_error = await it.call("deploy")
        assert is_error and "unknown tool" in told
        await it.say()
        assert {spec.name for spec in it.provider.requests[0].tools} == {"act", "t"}
        assert it.warnings() == []


async def test_the_name_of_a_tool_that_is_off_is_free_for_a_later_extension(tmp_path: Path) -> None:
    other = chaos("other", "hello", "register_tool:deploy", "ready", {"on": "tool_call", "do": "answer:other"})
    async with without(tmp_path, ("tool:deploy",), tool("t", "register_tool:deploy"), other) as it:
        assert await it.call("deploy") == ("other", False)
        assert not any("conflict" in message for message in it.warnings())


async def test_a_tool_that_is_off_stays_off_when_it_is_registered_late_or_again(tmp_path: Path) -> None:
    late = [f"wait_for:{tmp_path / 'go'}", "register_tool:deploy", "register_tool:late"]
    async with without(tmp_path, ("tool:deploy",), tool("t", "register_tool:deploy", {"do": late})) as it:
        (tmp_path / "go").touch()
        await it.until(lambda: "late" in it.status("t").tools, "what it registers late")
        assert it.status("t").tools == ("t", "late")


@pytest.mark.parametrize("off", ["command:ship", "command:SHIP"])
async def test_a_command_that_is_off_is_nowhere_however_its_name_is_written(tmp_path: Path, off: str) -> None:
    made = tool("t", "register_command:Ship", "register_command:stay")
    async with without(tmp_path, (off,), made) as it:
        assert it.status("t").commands == ("stay",)
        with pytest.raises(UsageError, match="unknown command /ship"):
            await it.session.command("ship")
        assert it.warnings() == []


async def test_a_shortcut_and_a_section_that_are_off_are_nowhere(tmp_path: Path) -> None:
    off = ("shortcut:ctrl+g", "section:House rules")
    async with without(tmp_path, off, tool("t", SECTION, SHORTCUT), turns=[says("hi")]) as it:
        await it.say()
        assert "obey me" not in it.provider.requests[0].system
        with pytest.raises(UsageError, match="ctrl"):
            await it.session.press("ctrl+g")
        assert it.warnings() == []


async def test_without_switches_they_are_there(tmp_path: Path) -> None:
    async with without(tmp_path, (), tool("t", SECTION, SHORTCUT, "register_command:Ship"), turns=[says("hi")]) as it:
        await it.say()
        assert "obey me" in it.provider.requests[0].system
        assert it.status("t").commands == ("Ship",)
        assert "ctrl+g" in it.session.parts.registry.snapshot().shortcuts


@pytest.mark.parametrize("off", ["guard", "guard:tool_call"])
async def test_a_guard_that_is_off_is_not_asked_and_holds_nothing_back_and_events_still_reach_it(
    tmp_path: Path, off: str
) -> None:
    made = chaos(
        "t",
        f"record:{tmp_path / 'seen'}",
        "hello",
        "subscribe:tool_call,turn_end",
        "intercept:tool_call",
        {"on": "event_intercept", "do": "block:no"},
        "ready",
        guard={"required": True, "on_failure": "block"},
    )
    async with without(tmp_path, (off,), made, turns=[calls(("act", {})), says("so")]) as it:
        await it.say()
        assert it.result() == "{}" and it.of(Intercepted) == []
        assert it.status("t").guards == ()

        def told() -> list[str]:
            return [frame["event"] for frame in it.frames("seen") if frame["type"] == "event"]

        await it.until(lambda: told().count("turn_end") == 2, "all events")
        assert "tool_call" in told()
        assert not any(frame["type"] == "event_intercept" for frame in it.frames("seen"))
        assert it.warnings() == [], "a declared guard is there, so the switch is not misspelt"


async def test_a_required_guard_that_is_off_does_not_hold_calls_back_while_it_is_not_even_up(tmp_path: Path) -> None:
    made = chaos("t", f"wait_for:{tmp_path / 'go'}", "hello", "ready", guard={"required": True, "timeout_ms": 60_000})
    choices = {"t": Choices(off=("guard", "tool:typo"))}
    async with nothing_left(), extended(tmp_path, made, choices=choices, offered=(ACT,), settling=0.0) as it:
        async with asyncio.timeout(20):  # it has a minute to answer, if it is asked
            assert await it.call("act") == ("{}", False)
        (tmp_path / "go").touch()
        await it.warned("tool:typo")
        assert len(it.warnings()) == 1, "what is declared is there, also if it is never asked for"


async def test_one_kind_of_guard_is_off_and_the_other_is_not(tmp_path: Path) -> None:
    judge = {"on": "event_intercept:tool_call", "do": "block:no"}
    replace = {"on": "event_intercept:assistant_message", "do": "replace:other"}
    made = chaos("t", "hello", "intercept:tool_call,assistant_message", judge, replace, "ready")
    turns = [calls(("act", {})), says("so")]
    async with without(tmp_path, ("guard:assistant_message",), made, turns=turns) as it:
        outcome = await it.say()
        assert "no" in it.result() and outcome.text == "so"
        assert it.status("t").guards == ("tool_call",)


async def test_a_guard_that_is_off_stays_off_after_a_crash(tmp_path: Path) -> None:
    made = chaos(
        "t",
        "hello",
        "register_command:crash",
        "intercept:tool_call",
        {"on": "event_intercept", "do": "block:no"},
        {"on": "command_invoked", "do": "exit:3"},
        "ready",
    )
    async with without(tmp_path, ("guard",), made) as it:
        with pytest.raises(Exception, match="exited with code 3"):
            await it.session.command("crash")
        assert await it.call("act") == ("{}", False)
        await it.until(lambda: it.status("t").restarts == 1, "a second process")
        await it.ready("t")
        assert await it.call("act") == ("{}", False)


async def test_a_switch_for_what_it_does_not_have_is_told_once_when_it_is_ready(tmp_path: Path) -> None:
    off = ("tool:depoly", "command:ship", "guard:turn_start", "tool:deploy")
    noted = {"do": [f"wait_for:{tmp_path / 'go'}", "notify:after it was looked at"]}
    made = tool("t", "register_tool:deploy", {"on": "tool_call", "do": "exit:3"}, noted)
    async with without(tmp_path, off, made) as it:
        for part in ("tool:depoly", "command:ship", "guard:turn_start"):
            await it.warned("extension t", "config.toml", part)
        assert not any("tool:deploy," in message for message in it.warnings())
        await it.call("t")
        await it.until(lambda: it.status("t").restarts == 1, "a second process")
        await it.ready("t")
        (tmp_path / "go").touch()
        await it.seen(Notified)
        assert sum("tool:depoly" in message for message in it.warnings()) == 1
