"""Commands that the user runs: what they get, what the model is told and when, and who cannot run one."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from hilt.agent import shelling
from hilt.agent.permissions import Permissions
from hilt.agent.shelling import REPORT, parsed, recalled, report
from hilt.errors import ToolError, UsageError
from hilt.model.actions import SendMessage, Steer, Submit
from hilt.model.content import text_of
from hilt.model.contributions import Invocation, ToolOutput
from hilt.model.conversation import UserMessage, user_text
from hilt.model.events import Noticed, UserMessageAdded
from hilt.model.ports import Provider
from hilt.sessions.log import SessionLog
from hilt.sessions.records import new_meta
from hilt.tools.bash import bash_tool
from hilt.tools.jail import Jail
from hilt.tools.shell import Shell
from hilt.tools.workspace import Workspace
from support.agent import DEADLINE, Harness, calls, running, says, script, tool
from support.properties import patient
from transport.children import runs, until


@asynccontextmanager
async def shelled(folder: Path, provider: Provider, *offered: Any, **options: Any) -> AsyncIterator[Harness]:
    """A session whose user can run commands in `folder`."""
    async with asyncio.timeout(DEADLINE), Shell() as shell, running(provider, *offered, **options) as harness:
        bash = bash_tool(Workspace(folder, Jail(folder), folder / "outputs"), shell)
        harness.session.parts = structs.replace(harness.session.parts, shell=bash)
        yield harness


class Screen:
    """Shows live output."""

    def __init__(self) -> None:
        self.shown = ""
        self._changed = asyncio.Event()

    async def __call__(self, text: str) -> None:
        self.shown += text
        self._changed.set()

    async def until(self, text: str) -> None:
        while text not in self.shown:
            self._changed.clear()
            await self._changed.wait()


def said(harness: Harness) -> list[str]:
    """What the user said, as the model will see it."""
    return [text_of(one.content) for one in harness.session.transcript.messages if isinstance(one, UserMessage)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("!ls -l", ("ls -l", True)),
        ("!!env", ("env", False)),
        ("!  cat <<x\n a\nx\n", ("cat <<x\n a\nx", True)),
        ("!!!x", ("!x", False)),
        ("!", None),
        ("!! ", None),
        (" !ls", None),
        ("hello!", None),
        ("", None),
    ],
)
def test_a_command_begins_with_one_mark_and_a_private_one_with_two(text: str, what: tuple[str, bool] | None) -> None:
    assert parsed(text) == what


async def test_a_command_runs_at_once_unasked_and_the_model_is_told_with_the_next_turn(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    log = SessionLog.create(path, new_meta("/p", "script", "script"))
    work = tmp_path / "work"
    work.mkdir()
    screen = Screen()
    provider = script(tmp_path, says("I see"))
    async with shelled(work, provider, log=log, permissions=Permissions("ask")) as harness:
        output = await shelling.run(harness.session, "pwd; echo oops >&2; exit 3", screen)
        assert output.is_error and output.details["exit_code"] == 3
        assert screen.shown == f"{work}\noops\n"
        (text,) = said(harness)
        assert text.startswith(f"{REPORT} (exit 3)") and f"{work}\noops" in text and "$ pwd; echo" in text
        (told,) = harness.events  # no tool, no permission, no turn
        assert isinstance(told, UserMessageAdded) and text_of(told.content) == text and told.extension == ""
        assert harness.provider.requests == []
        await harness.say("what is wrong?")
        (request,) = harness.provider.requests
        assert isinstance(first := request.messages[0], UserMessage) and text_of(first.content) == text
    log.close()
    with SessionLog.open(path) as again:
        assert again.messages()[0] == first


async def test_a_private_command_is_shown_and_the_model_never_hears_of_it(tmp_path: Path) -> None:
    screen = Screen()
    async with shelled(tmp_path, script(tmp_path)) as harness:
        output = await shelling.run(harness.session, "echo secret", screen, share=False)
        assert screen.shown == "secret\n" and not output.is_error
        assert harness.session.transcript.messages == () and harness.events == []


async def test_what_was_run_during_a_turn_is_told_when_it_has_ended(tmp_path: Path) -> None:
    begun, done = asyncio.Event(), asyncio.Event()

    async def dig(_: Invocation) -> ToolOutput:
        begun.set()
        await done.wait()
        return ToolOutput.of("gold")

    provider = script(tmp_path, calls(("dig", {})), says("found"), says("next"))
    async with shelled(tmp_path, provider, tool("dig", dig)) as harness, asyncio.TaskGroup() as group:
        turn = group.create_task(harness.say("go"))
        await begun.wait()
        queued = group.create_task(harness.say("explain"))
        output = await shelling.run(harness.session, "echo beside", Screen())
        assert not output.is_error and said(harness) == ["go"]
        assert not any("beside" in waiting for waiting in harness.session.waiting)  # nothing that could be taken back
        done.set()
        assert (await turn).text == "found" and (await queued).text == "next"
        first, told, last = said(harness)
        assert (first, last) == ("go", "explain") and "beside" in told
        assert "beside" in str(harness.provider.requests[2].messages)
        assert "beside" not in str(harness.provider.requests[1].messages)


async def test_aborting_ends_the_command_and_what_it_wrote_until_then_is_told(tmp_path: Path) -> None:
    screen = Screen()
    async with shelled(tmp_path, script(tmp_path)) as harness, asyncio.TaskGroup() as group:
        task = group.create_task(shelling.run(harness.session, "echo $$ > pid; echo listening; sleep 600", screen))
        await screen.until("listening")
        assert harness.session.abort()
        output = await task
        assert output.is_error and output.details["ending"] == "cancelled"
        (text,) = said(harness)
        assert "I stopped it before its end" in text and "listening" in text
        await gone(int((tmp_path / "pid").read_text()))
        assert not harness.session.abort()


async def test_cancelling_whoever_waits_ends_the_command_without_a_trace(tmp_path: Path) -> None:
    screen = Screen()
    async with shelled(tmp_path, script(tmp_path)) as harness, asyncio.TaskGroup() as group:
        task = group.create_task(shelling.run(harness.session, "echo $$ > pid; echo on; sleep 600", screen))
        await screen.until("on")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await gone(int((tmp_path / "pid").read_text()))
        assert said(harness) == [] and not harness.session.abort()


async def gone(pid: int) -> None:
    await until(lambda: not runs(pid))


async def test_of_a_stopped_flood_the_end_is_told_and_no_more_than_the_model_can_take(tmp_path: Path) -> None:
    screen = Screen()
    async with shelled(tmp_path, script(tmp_path)) as harness, asyncio.TaskGroup() as group:
        command = "seq 100000; echo the end; sleep 600"
        task = group.create_task(shelling.run(harness.session, command, screen))
        await screen.until("the end")
        harness.session.abort()
        text = text_of((await task).content)
        assert "the end" in text and "the beginning is left out" in text and "\n99999\n" in text
        assert len(text) < 31_000


async def test_the_limits_of_the_bash_tool_hold(tmp_path: Path) -> None:
    async with shelled(tmp_path, script(tmp_path)) as harness:
        output = await shelling.run(harness.session, "seq 100000", Screen())
        assert output.details["cut"] and Path(output.details["output"]).exists()
        assert len(said(harness)[0]) < 52_000
        with pytest.raises(ToolError, match="empty"):
            await shelling.run(harness.session, "  ", Screen())
        assert len(said(harness)) == 1


async def test_without_a_shell_nothing_is_run(tmp_path: Path) -> None:
    async with running(script(tmp_path)) as harness:
        with pytest.raises(UsageError, match="cannot be run here"):
            await shelling.run(harness.session, "ls", Screen())


async def test_whatever_an_extension_says_is_words_and_never_a_command(tmp_path: Path) -> None:
    turns = [says("no")] * 6
    async with shelled(tmp_path, script(tmp_path, *turns)) as harness:
        session = harness.session
        for number, action in enumerate((SendMessage, Submit, Steer)):
            await session.apply((action(f"!touch made{number}"),), "ext")  # type: ignore[arg-type]
            await session.idle()
        await session.interject("!touch made3", "ext")
        await session.idle()
        await session.input("!touch made4")
        await session.idle()
        assert list(tmp_path.glob("made*")) == []
        assert said(harness)[0] == "!touch made0" and said(harness)[-1] == "!touch made4"
        assert len(said(harness)) >= 4


async def test_only_so_much_waits_to_be_told_and_the_user_hears_of_the_rest(tmp_path: Path) -> None:
    begun, done = asyncio.Event(), asyncio.Event()

    async def dig(_: Invocation) -> ToolOutput:
        begun.set()
        await done.wait()
        return ToolOutput.of("gold")

    provider = script(tmp_path, calls(("dig", {})), says("found"))
    async with shelled(tmp_path, provider, tool("dig", dig)) as harness, asyncio.TaskGroup() as group:
        turn = group.create_task(harness.say("go"))
        await begun.wait()
        for number in range(102):
            await harness.session.mention(user_text(f"n{number}"))
        done.set()
        await turn
        assert said(harness)[1:] == [f"n{number}" for number in range(100)]
        assert [one.level for one in harness.of(Noticed)] == ["warn"] * 2


@patient
@given(st.text(alphabet="`~ \na$", max_size=200))
def test_no_output_can_end_the_fence_around_it(text: str) -> None:
    lines = report(ToolOutput.of(text, exit_code=0)).split("\n")
    fence = lines[2]
    assert re.fullmatch("`{3,}", fence) and lines[-1] == fence
    assert not any(line.strip().startswith(fence) for line in lines[3:-1])
    assert "\n".join(lines[3:-1]) == text


@given(st.text(), st.one_of(st.none(), st.integers(0, 255)))
@patient
def test_what_the_model_was_told_is_enough_to_show_the_command_again(text: str, code: int | None) -> None:
    output = ToolOutput.of(f"$ make all\n\n{text}", is_error=code != 0, exit_code=code)
    assert recalled(report(output)) == ("make all", output)


def test_that_a_command_was_stopped_is_known_again() -> None:
    told = recalled(report(ToolOutput.of("$ make\n\nout", exit_code=None, ending="cancelled")))
    assert told and told[1].details["ending"] == "cancelled"


@pytest.mark.parametrize("said", ["", "hello", REPORT, f"{REPORT} (exit 0).", f"{REPORT} (exit 0). It is fine"])
def test_other_things_that_were_said_are_no_commands(said: str) -> None:
    assert recalled(said) is None
