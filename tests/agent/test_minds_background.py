"""Agents in the background: named, few, told of, kept on record, and gone with the session."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hilt.agent.budgets import Budgets
from hilt.agent.minds import Minds
from hilt.errors import UsageError
from hilt.model.content import Text
from hilt.model.contributions import Effect
from hilt.model.events import BackgroundChanged, Notified
from hilt.model.ports import Provider
from hilt.sessions.records import NoteRecord
from support.agent import DEADLINE, Harness, calls, echo, running, says, script, tool
from support.sources import Source


class Asked:
    """A source, asked directly."""

    name = "script"

    def __init__(self, source: Source) -> None:
        self.stream = source.stream

    async def aclose(self) -> None: ...


@asynccontextmanager
async def minded(
    provider: Provider, *offered: Any, limit: int = 1_000_000, turns: int = 5
) -> AsyncIterator[tuple[Harness, Minds]]:
    async with asyncio.timeout(DEADLINE), running(provider, *offered) as harness:
        minds = Minds(harness.session, Budgets(lambda _: limit), background_turns=turns)
        async with minds.working():
            yield harness, minds


def recorded(harness: Harness) -> list[Any]:
    log = harness.session.parts.log
    records = [log.read(entry) for entry in log.entries()]
    return [record.data for record in records if isinstance(record, NoteRecord) and record.kind == "background"]


def states(harness: Harness) -> list[tuple[str, str]]:
    return [(event.name, event.state) for event in harness.of(BackgroundChanged)]


async def test_it_works_beside_the_conversation_and_its_end_is_told_and_kept(tmp_path: Path) -> None:
    turns = script(tmp_path, calls(("look", {})), says("all is well"))
    offered = (("hilt", tool("look", echo)), ("hilt", tool("push", echo, effect=Effect.WRITE)))
    async with minded(turns, *offered) as (harness, minds):
        assert not minds.running()
        await minds.start("  look after the tests, please", "ext")
        assert minds.running()
        await harness.seen(BackgroundChanged, 2)
        assert states(harness) == [("look after the tests", "started"), ("look after the tests", "done")]
        assert harness.of(BackgroundChanged)[1].text == "all is well" and not minds.running()
        note = await harness.seen(Notified)
        assert isinstance(note, Notified) and "all is well" in note.message and note.extension == "ext"
        (record,) = recorded(harness)
        assert (record["prompt"], record["state"], record["turns"]) == ("  look after the tests, please", "done", 2)
        assert harness.session.transcript.messages == ()
        first = harness.provider.requests[0]
        assert [spec.name for spec in first.tools] == ["look"] and first.system == "be brief"


async def test_it_has_few_turns_and_says_when_they_were_not_enough(tmp_path: Path) -> None:
    turns = script(tmp_path, *[calls(("look", {}))] * 9)
    async with minded(turns, ("hilt", tool("look", echo)), turns=3) as (harness, minds):
        await minds.start("go on", "ext")
        await harness.seen(BackgroundChanged, 2)
        assert states(harness)[-1] == ("go on", "failed") and len(harness.provider.requests) == 3
        assert "max steps (3)" in recorded(harness)[0]["error"]


async def test_one_of_each_name_and_four_in_all_until_they_are_cancelled() -> None:
    source = Source("script", *([[]] * 5))
    async with minded(Asked(source)) as (harness, minds):
        for number in range(4):
            await minds.start(f"number {number}", "ext")
        for prompt, why in (("number 0", "already running"), ("a fifth", "4 background agents"), (" ", "needs a task")):
            with pytest.raises(UsageError, match=why):
                await minds.start(prompt, "ext")
        while len(source.requests) < 4:
            await asyncio.sleep(0)
        assert not harness.session.abort()  # the turn's end is not theirs
        minds.cancel()
        await harness.seen(BackgroundChanged, 8)
        assert {state for _, state in states(harness)[4:]} == {"cancelled"} and source.closed == 4
        assert not minds.running()
        await minds.start("number 0", "ext")


async def test_with_the_session_they_end_and_that_is_on_record() -> None:
    source = Source("script", [])
    async with minded(Asked(source)) as (harness, minds):
        await minds.start("for ever", "ext")
        await source.hanging.wait()
    assert source.closed == 1 and states(harness) == [("for ever", "started"), ("for ever", "cancelled")]
    assert recorded(harness)[0]["state"] == "cancelled"
    with pytest.raises(UsageError, match="ending"):
        await minds.start("too late", "ext")


async def test_one_that_fails_costs_nobody_else_anything(tmp_path: Path) -> None:
    class Broken(Source):
        def stream(self, request: Any) -> Any:
            raise ZeroDivisionError

    async with minded(Asked(Broken("script"))) as (harness, minds):
        await minds.start("break", "ext")
        await harness.seen(BackgroundChanged, 2)
        assert states(harness)[-1] == ("break", "failed")
        assert "ZeroDivisionError" in harness.of(BackgroundChanged)[-1].text
    async with minded(script(tmp_path, says("x", error={"status": 401, "message": "no key"}))) as (harness, minds):
        await minds.start("ask", "ext")
        await harness.seen(BackgroundChanged, 2)
        assert harness.of(BackgroundChanged)[-1].text == "x\nno key"


async def test_it_counts_towards_what_the_extension_may_use(tmp_path: Path) -> None:
    turns = script(tmp_path, says("a", usage={"input": 1000}))
    async with minded(turns, limit=1000) as (harness, minds):
        await minds.start("use it all", "ext")
        await harness.seen(BackgroundChanged, 2)
        assert minds.used("ext") == 1000 and harness.session.transcript.usage.input == 1000
        with pytest.raises(UsageError, match="extension_tokens"):
            await minds.start("more", "ext")


async def test_a_turn_and_an_agent_in_the_background_do_not_mix() -> None:
    source = Source("script", [], [Text("for the user")])
    async with minded(Asked(source)) as (harness, minds):
        await minds.start("beside", "ext")
        await source.hanging.wait()
        assert (await harness.say("hello")).text == "for the user"
        assert [len(request.messages) for request in source.requests] == [1, 1]
        assert len(harness.session.transcript.messages) == 2
