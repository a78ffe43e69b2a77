"""Extensions that the user disables and enables in a running session: real processes, and what is kept of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hilt.errors import HiltError, UsageError
from hilt.model.contributions import Effect
from hilt.model.events import ExtensionChanged, Intercepted
from hilt.packages.choices import Choices
from support.agent import echo
from support.agent import tool as builtin
from support.extending import DEADLINE, Extended, Made, chaos, extended, tool
from support.leftovers import nothing_left

ACT = builtin("act", echo, effect=Effect.EXECUTE)


def guard(name: str, *do: Any, **manifest: Any) -> Made:
    """`do` is what it does about each call, or further entries of its script."""
    entries = [item for item in do if isinstance(item, dict)]
    judging = {"on": "event_intercept", "do": [item for item in do if not isinstance(item, dict)]}
    return chaos(name, "hello", "intercept:tool_call", judging, *entries, "ready", **manifest)


def mine(folder: Path, *made: Made) -> None:
    """Among the user's own, where a choice is kept."""
    for one in made:
        one.write(folder / "user")


def offers(it: Extended) -> set[str]:
    snapshot = it.session.parts.registry.snapshot()
    return {*snapshot.tools, *(owned.owner for owned in snapshot.guards("tool_call"))}


@pytest.mark.usefixtures("dialect")
async def test_one_that_is_disabled_is_gone_when_that_is_said_and_comes_back_when_it_is_enabled(tmp_path: Path) -> None:
    mine(tmp_path, tool("t"), tool("other"))
    async with asyncio.timeout(DEADLINE), nothing_left(), extended(tmp_path) as it:
        await it.ready()
        pid = it.status("t").pid
        assert await it.host.disable("t") == "t is disabled"
        assert not Path(f"/proc/{pid}").exists(), "its process"
        assert offers(it) == {"other"}
        status = it.status("t")
        assert (status.state, status.pid, status.tools) == ("disabled", None, ())
        changes = [event.state for event in it.of(ExtensionChanged) if event.extension == "t"]
        assert changes[-2:] == ["stopped", "disabled"]
        assert (await it.call("t"))[1] is True
        assert await it.host.disable("t") == "t is disabled already"
        assert await it.host.enable("t") == "t is enabled, and ready"
        assert offers(it) == {"t", "other"}
        assert (await it.call("t"))[1] is False
        assert (await it.host.enable("t")).startswith("t is enabled already")
        assert it.status("t").pid != pid and len([one for one in it.host.statuses() if one.name == "t"]) == 1


async def test_it_is_told_that_it_ends_before_it_is_made_to(tmp_path: Path) -> None:
    frames = tmp_path / "frames"
    mine(tmp_path, tool("t", {"do": f"record:{frames}"}))
    async with extended(tmp_path) as it:
        await it.ready()
        await it.host.disable("t")
        assert it.frames("frames")[-1]["type"] == "shutdown"


async def test_a_reload_of_all_leaves_a_disabled_one_alone_and_keeps_one_that_was_enabled(tmp_path: Path) -> None:
    mine(tmp_path, tool("t"), tool("off", enabled=False))
    async with extended(tmp_path) as it:
        await it.ready("t")
        assert it.status("off").state == "disabled"
        assert await it.host.enable("off") == "off is enabled, and ready"
        await it.host.disable("t")
        await it.host.reload()
        assert {one.name: one.state for one in it.host.statuses()} == {"off": "ready", "t": "disabled"}
        with pytest.raises(UsageError, match="t is disabled") as refused:
            await it.host.reload("t")
        assert "/ext enable t" in refused.value.hint


async def test_one_that_a_flag_names_is_disabled_for_the_session_and_no_choice_is_kept(tmp_path: Path) -> None:
    kept: list[str] = []
    async with extended(tmp_path, tool("t"), keep=lambda name, _: kept.append(name)) as it:
        await it.ready()
        assert await it.host.disable("t") == "t is disabled for this session: --ext starts it again"
        assert "for this session" in it.status("t").reason
        await it.host.reload()
        assert it.status("t").state == "disabled"
        assert await it.host.enable("t") == "t is enabled, and ready"
        await it.host.reload()
        assert it.status("t").state == "ready"
        assert kept == []


async def test_a_choice_that_cannot_be_kept_changes_nothing(tmp_path: Path) -> None:
    def keep(name: str, on: bool) -> None:
        raise HiltError(f"{name} {on}: the disk is full")

    mine(tmp_path, tool("t"))
    async with extended(tmp_path, keep=keep) as it:
        await it.ready()
        with pytest.raises(HiltError, match="t False: the disk is full"):
            await it.host.disable("t")
        assert it.status("t").state == "ready" and (await it.call("t"))[1] is False


async def test_a_guard_that_the_user_disables_is_no_longer_asked(tmp_path: Path) -> None:
    mine(tmp_path, guard("g", "block:no", guard={"required": True}))
    async with extended(tmp_path, offered=(ACT,)) as it:
        await it.ready()
        assert "no" in (await it.call("act"))[0]
        await it.host.disable("g")
        seen = len(it.of(Intercepted))
        assert await it.call("act") == ("{}", False)
        assert len(it.of(Intercepted)) == seen
        await it.host.enable("g")
        assert (await it.call("act"))[1] is True


async def test_while_a_guard_is_being_stopped_nothing_gets_past_it(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    deaf = {"on": "shutdown", "do": [f"touch:{asked}"]}, {"on": "eof", "do": []}, {"do": "ignore_sigterm"}
    mine(tmp_path, guard("g", "block:no", *deaf, guard={"required": True}, stop_grace_ms=700))
    async with extended(tmp_path, offered=(ACT,)) as it, asyncio.TaskGroup() as group:
        await it.ready()
        stopping = group.create_task(it.host.disable("g"))
        await it.until(asked.exists, "it is told to end")
        assert (await it.call("act"))[1] is True
        assert not stopping.done(), "it is on its way out all the while"
        await stopping
        assert await it.call("act") == ("{}", False)


@pytest.mark.parametrize("state", ["failed", "starting", "restarting"])
async def test_one_that_is_not_well_can_be_disabled_too(tmp_path: Path, state: Any) -> None:
    made = {
        "failed": chaos("t", "exit:3"),
        "starting": chaos("t", "hang", start_timeout_ms=60_000, stop_grace_ms=100),
        "restarting": chaos("t", "hello", "ready", "exit:3"),
    }
    mine(tmp_path, made[state])
    async with asyncio.timeout(DEADLINE), nothing_left(), extended(tmp_path) as it:
        await it.state("t", state)
        assert await it.host.disable("t") == "t is disabled"
        assert it.status("t").state == "disabled"
        if state != "starting":
            assert "exited with code 3" in it.status("t").last_error, "what is known of it stays known"


async def test_one_that_cannot_be_started_says_so_when_it_is_enabled(tmp_path: Path) -> None:
    mine(tmp_path, chaos("t", "exit:3"))
    async with extended(tmp_path, choices={"t": Choices(enabled=False)}) as it:
        assert it.status("t").state == "disabled"
        told = await it.host.enable("t")
        assert told.startswith("t is enabled, and failed (exited with code 3")


async def test_one_that_cannot_be_found_again_says_why_when_it_is_enabled(tmp_path: Path) -> None:
    mine(tmp_path, tool("t"))
    async with extended(tmp_path, choices={"t": Choices(enabled=False)}) as it:
        (tmp_path / "user/t/extension.json").write_text("[]")
        with pytest.raises(UsageError, match=r"extension\.json"):
            await it.host.enable("t")


@pytest.mark.parametrize("verb", ["enable", "disable", "reload"])
async def test_a_name_that_is_none_is_refused_with_the_nearest(tmp_path: Path, verb: str) -> None:
    mine(tmp_path, tool("weather"), tool("notes", enabled=False))
    async with extended(tmp_path) as it:
        for wrong, meant in (("wether", "weather"), ("note", "notes")):
            with pytest.raises(UsageError, match=f"there is no extension {wrong}") as refused:
                await getattr(it.host, verb)(wrong)
            assert refused.value.hint.startswith(f'did you mean "{meant}"?')
        with pytest.raises(UsageError) as refused:
            await getattr(it.host, verb)("x" * 100_000)
        assert refused.value.hint == "there are: weather, notes" and len(refused.value.message) < 200


async def test_all_who_want_something_of_it_at_once_get_an_answer(tmp_path: Path) -> None:
    mine(tmp_path, tool("t"))
    async with asyncio.timeout(DEADLINE), nothing_left(), extended(tmp_path) as it:
        await it.ready()
        async with asyncio.TaskGroup() as group:
            told = [group.create_task(it.host.disable("t")), group.create_task(it.host.disable("t"))]
            group.create_task(it.host.reload())
        assert all("t is disabled" in one.result() for one in told)
        assert it.status("t").state == "disabled" and offers(it) == set()
