"""Permissions: what each mode allows, how far a yes reaches, and what a refusal tells the model."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.agent.permissions import Permissions
from hilt.errors import ToolError
from hilt.model.actions import PermissionMode, SetPermissions
from hilt.model.content import Args, text_of
from hilt.model.contributions import Effect, Invocation, Preview, Tool, ToolOutput
from hilt.model.conversation import ToolMessage, ToolResult
from hilt.model.events import PermissionDecided
from hilt.model.ports import PermissionAnswer, PermissionRequest, Scope
from hilt.tools import builtin_tools
from hilt.tools.jail import Jail
from hilt.tools.shell import Shell
from hilt.tools.workspace import Workspace
from support.agent import Harness, calls, echo, running, says, script, tool
from support.killing import Place

NO = PermissionAnswer(approved=False)
YES = PermissionAnswer(approved=True)


class Person:
    """Gives the same answer to everything, and remembers the questions."""

    def __init__(self, answer: PermissionAnswer = YES) -> None:
        self.answer = answer
        self.asked: list[PermissionRequest] = []

    async def ask(self, request: PermissionRequest) -> PermissionAnswer:
        self.asked.append(request)
        return self.answer

    @property
    def shown(self) -> list[str]:
        return [request.preview.text for request in self.asked]


def running_command(command: str, name: str = "bash") -> PermissionRequest:
    return PermissionRequest("c", name, Effect.EXECUTE, {"command": command}, Preview("command", command))


def writing(name: str = "write") -> PermissionRequest:
    return PermissionRequest("c", name, Effect.WRITE, {"path": "a"}, Preview("diff", "+++ a"))


def yes(scope: Scope) -> PermissionAnswer:
    return PermissionAnswer(approved=True, scope=scope)


# Modes


@pytest.mark.parametrize(
    ("mode", "effect", "asks"),
    [
        ("ask", Effect.READ, False),
        ("ask", Effect.WRITE, True),
        ("ask", Effect.EXECUTE, True),
        ("accept-edits", Effect.READ, False),
        ("accept-edits", Effect.WRITE, False),
        ("accept-edits", Effect.EXECUTE, True),
        ("yolo", Effect.READ, False),
        ("yolo", Effect.WRITE, False),
        ("yolo", Effect.EXECUTE, False),
    ],
)
async def test_the_mode_decides_what_is_asked_about(
    tmp_path: Path, mode: PermissionMode, effect: Effect, asks: bool
) -> None:
    person = Person(NO)
    model = script(tmp_path, calls(("act", {"n": 1})), says("ok"))
    async with running(model, tool("act", echo, effect=effect), permissions=Permissions(mode, person)) as harness:
        await harness.say("go")
        result = last_result(harness)
    assert len(person.asked) == asks
    assert result.is_error is asks


async def test_a_change_of_mode_counts_from_the_next_call(tmp_path: Path) -> None:
    person = Person()
    model = script(tmp_path, calls(("act", {})), says("ok"), calls(("act", {})), says("ok"))
    act = tool("act", echo, effect=Effect.WRITE)
    async with running(model, act, permissions=Permissions("yolo", person)) as harness:
        await harness.say("go")
        assert not person.asked
        await harness.session.apply((SetPermissions("ask"),), "test")
        await harness.say("again")
        assert len(person.asked) == 1


# How far a yes reaches


async def test_once_is_once() -> None:
    person = Person(yes("once"))
    permissions = Permissions("ask", person)
    for _ in range(2):
        assert (await permissions.decide(running_command("git status"))).source == "user"
    assert len(person.asked) == 2


async def test_a_yes_for_the_tool_covers_that_tool_alone() -> None:
    person = Person(yes("tool"))
    permissions = Permissions("ask", person)
    await permissions.decide(running_command("git status"))
    assert (await permissions.decide(running_command("rm -rf x"))).source == "remembered"
    assert (await permissions.decide(running_command("git status", name="shell"))).source == "user"
    assert (await permissions.decide(writing())).source == "user"


async def test_a_yes_for_the_session_covers_everything() -> None:
    person = Person(yes("session"))
    permissions = Permissions("ask", person)
    await permissions.decide(running_command("git status"))
    assert (await permissions.decide(writing())).source == "remembered"
    assert (await permissions.decide(running_command("a; b"))).source == "remembered"
    assert len(person.asked) == 1


async def test_a_yes_for_a_prefix_covers_commands_that_begin_with_the_same_two_words() -> None:
    permissions = await after_a_yes_for("git status")
    assert await covered(permissions, "git status --short")
    assert await covered(permissions, "  git   status -s ")
    for other in ("git push", "git", "gitstatus", "git statusx", "rm -rf x", "sudo git status", "GIT status"):
        assert not await covered(permissions, other), other
    assert not await covered(permissions, "git status", name="shell")


@pytest.mark.parametrize(
    "rest",
    [
        "; rm -rf x",
        " && rm -rf x",
        " || rm -rf x",
        " & rm -rf x",
        " | sh",
        "\nrm -rf x",
        "\r\nrm -rf x",
        " $(rm -rf x)",
        " `rm -rf x`",
        ' "$(rm -rf x)"',
        " > /etc/passwd",
        " >> ~/.profile",
        " < /etc/shadow",
        " <(rm -rf x)",
        " 2>file",
        "() { rm -rf x",
    ],
)
async def test_a_prefix_never_covers_a_command_that_does_more(rest: str) -> None:
    permissions = await after_a_yes_for("git status")
    assert not await covered(permissions, "git status" + rest)


@pytest.mark.parametrize(
    "joined", ["git status; rm -rf x", "git status | head", "git status\nls", "git $(echo status)"]
)
async def test_a_yes_for_the_prefix_of_a_joined_command_covers_that_very_command_only(joined: str) -> None:
    permissions = await after_a_yes_for(joined)
    assert await covered(permissions, joined)
    for other in ("git status", joined + " -x", joined.replace("git", "hg"), "git status; rm -rf y"):
        assert not await covered(permissions, other), other


@given(
    st.sampled_from([";", "&", "|", "<", ">", "`", "\n", "(", ")", "$("]),
    st.text(min_size=0, max_size=20),
    st.text(min_size=0, max_size=20),
)
def test_no_text_around_an_operator_makes_a_prefix_cover_it(operator: str, before: str, after: str) -> None:
    async def check() -> None:
        permissions = await after_a_yes_for("git status")
        assert not await covered(permissions, f"git status {before}{operator}{after}")

    asyncio.run(check())


async def test_a_yes_for_the_prefix_of_a_change_to_a_file_covers_no_other_change() -> None:
    person = Person(yes("prefix"))
    permissions = Permissions("ask", person)
    await permissions.decide(writing())
    assert (await permissions.decide(writing())).source == "user"


@pytest.mark.parametrize(
    ("allowed", "asked"),
    [
        ("sh -c ls", "sh -c 'rm -rf x'"),
        ("python -c pass", "python -c evil"),
        ("git -c a=b status", "git -c core.sshCommand=evil fetch"),
        ("env A=1 ls", "env A=1 rm -rf x"),
        ("find . -name x", "find . -delete"),
        ("rm one", "rm one -rf /"),
        ("npm run test", "npm run evil"),
        ("uv run pytest", "uv run rm -rf x"),
    ],
)
async def test_where_the_second_word_says_nothing_the_command_is_remembered_whole(allowed: str, asked: str) -> None:
    permissions = await after_a_yes_for(allowed)
    assert await covered(permissions, allowed)
    assert not await covered(permissions, asked)


async def test_a_no_is_not_remembered() -> None:
    person = Person(PermissionAnswer(approved=False, scope="session"))
    permissions = Permissions("ask", person)
    assert not (await permissions.decide(writing())).approved
    person.answer = YES
    assert (await permissions.decide(writing())).approved


async def after_a_yes_for(command: str) -> Permissions:
    person = Person(yes("prefix"))
    permissions = Permissions("ask", person)
    await permissions.decide(running_command(command))
    person.answer = NO
    return permissions


async def covered(permissions: Permissions, command: str, name: str = "bash") -> bool:
    return (await permissions.decide(running_command(command, name))).approved


# What is shown, and what the model hears


async def test_the_reason_of_a_refusal_reaches_the_model(tmp_path: Path) -> None:
    person = Person(PermissionAnswer(approved=False, reason="not on a Friday"))
    model = script(tmp_path, calls(("act", {})), says("then on Monday", expect={"role": "tool", "contains": "Friday"}))
    async with running(model, tool("act", forbidden, effect=Effect.WRITE), permissions=asking(person)) as harness:
        assert (await harness.say("go")).text == "then on Monday"
        assert last_result(harness).is_error
        (decided,) = harness.of(PermissionDecided)
    assert (decided.approved, decided.source, decided.reason) == (False, "user", "not on a Friday")


async def test_a_refusal_without_a_reason_says_who_refused(tmp_path: Path) -> None:
    model = script(tmp_path, calls(("act", {})), says("ok"))
    async with running(model, tool("act", forbidden, effect=Effect.WRITE), permissions=asking(Person(NO))) as harness:
        await harness.say("go")
        assert "declined" in text_of(last_result(harness).content)


async def test_with_nobody_to_ask_it_refuses_and_says_permission_and_how_to_get_it(tmp_path: Path) -> None:
    permissions = Permissions("ask", None)
    model = script(tmp_path, calls(("act", {})), says("ok"))
    async with running(model, tool("act", forbidden, effect=Effect.WRITE), permissions=permissions) as harness:
        await harness.say("go")
        told = text_of(last_result(harness).content)
    assert "permission" in told and "--permissions yolo" in told


async def test_what_is_shown_of_a_command_is_what_runs(tmp_path: Path) -> None:
    person = Person()
    command = "printf '%s' a b  c > out.txt  # with  spaces, quotes \" and ünïcode"
    async with at_work(tmp_path, person, calls(("bash", {"command": command})), says("ok")) as harness:
        await harness.say("go")
        assert person.shown == [command] and person.asked[0].preview.kind == "command"
        assert person.asked[0].args == {"command": command}
        assert not last_result(harness).is_error
    assert (tmp_path / "out.txt").read_text() == "abc"


async def test_a_long_command_is_shown_whole(tmp_path: Path) -> None:
    person = Person(NO)
    command = "true " + "x" * 100_000 + "; touch gone-too-far"
    async with at_work(tmp_path, person, calls(("bash", {"command": command})), says("ok")) as harness:
        await harness.say("go")
    assert person.shown == [command] and not (tmp_path / "gone-too-far").exists()


async def test_what_is_shown_of_a_change_is_the_whole_change_and_nothing_happens_before_the_answer(
    tmp_path: Path,
) -> None:
    target = tmp_path / "notes.txt"
    target.write_text("".join(f"line {number}\n" for number in range(1000)))
    before = target.read_text()

    class Looking(Person):
        async def ask(self, request: PermissionRequest) -> PermissionAnswer:
            assert target.read_text() == before
            return await super().ask(request)

    person = Looking()
    new = "".join(f"LINE {number}\n" for number in range(1000))
    async with at_work(
        tmp_path, person, calls(("write", {"path": "notes.txt", "content": new})), says("ok")
    ) as harness:
        await harness.say("go")
    (shown,) = person.shown
    assert target.read_text() == new
    assert [line[1:] for line in shown.split("\n") if line.startswith("-") and line[1] == "l"] == before.splitlines()
    assert [line[1:] for line in shown.split("\n") if line.startswith("+") and line[1] == "L"] == new.splitlines()


async def test_a_tool_without_a_preview_shows_its_arguments(tmp_path: Path) -> None:
    person = Person()
    args = {"to": "all", "text": "hello <world>", "n": [1, None]}
    model = script(tmp_path, calls(("send", args)), says("ok"))
    async with running(model, tool("send", echo, effect=Effect.EXECUTE), permissions=asking(person)) as harness:
        await harness.say("go")
        assert json.loads(text_of(last_result(harness).content)) == args
    assert json.loads(person.shown[0]) == args and person.asked[0].preview.kind == "json"


async def test_a_preview_that_fails_refuses_without_asking(tmp_path: Path) -> None:
    person = Person()
    edits = [{"oldText": "a", "newText": "b"}]
    turn = calls(("edit", {"path": "missing.txt", "edits": edits}))
    async with at_work(tmp_path, person, turn, says("ok")) as harness:
        await harness.say("go")
        result = last_result(harness)
    assert not person.asked and not (tmp_path / "missing.txt").exists()
    assert result.is_error and "missing.txt" in text_of(result.content)


@pytest.mark.parametrize(
    "error",
    [
        ToolError("cannot be shown"),
        OSError("cannot be shown"),
    ],
)
async def test_a_preview_that_breaks_costs_one_call_and_leaves_a_conversation_that_goes_on(
    tmp_path: Path, error: Exception
) -> None:
    async def broken(_: Args) -> Preview:
        raise error

    person = Person()
    act = Tool("act", "act", {"type": "object"}, forbidden, Effect.EXECUTE, preview=broken)
    model = script(tmp_path, calls(("act", {})), says("ok"), says("fine"))
    async with running(model, act, permissions=asking(person)) as harness:
        assert (await harness.say("go")).text == "ok"
        assert "cannot be shown" in text_of(last_result(harness).content)
        assert (await harness.say("go on")).text == "fine"
    assert not person.asked


async def test_invalid_arguments_are_refused_without_asking(tmp_path: Path) -> None:
    person = Person()
    async with at_work(tmp_path, person, calls(("bash", {"cmd": "ls"})), says("ok")) as harness:
        await harness.say("go")
        assert last_result(harness).is_error
    assert not person.asked


# The real program


def test_print_mode_refuses_what_would_have_to_be_asked_about(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    write = {"path": "a.txt", "content": "a"}
    turns = place.script("turns", calls(("write", write), ("bash", {"command": "touch b.txt"})), says("I may not."))
    ended = place.run("-p", "--permissions", "ask", "--provider", "script", "--script", turns, "go")
    assert (ended.code, ended.out) == (0, b"I may not.\n")
    assert ended.err.count("permission denied") == 2
    assert not list(place.cwd.iterdir())


def test_over_rpc_the_question_carries_the_whole_command_and_a_refusal_its_reason(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    command = "touch no.txt " + "x" * 20_000
    turns = place.script("turns", calls(("bash", {"command": command})), says("as you wish"))
    events: list[dict[str, Any]] = []
    with place.conversing("rpc", "--permissions", "ask", "--provider", "script", "--script", turns) as (process, send):
        assert process.stdout
        send({"type": "prompt", "message": "go"})
        for line in process.stdout:
            events.append(event := json.loads(line))
            if event["type"] == "ui_request":
                send({"type": "ui_response", "id": event["id"], "approved": False, "reason": "no new files"})
            if event["type"] == "done":
                break
    by_type = {event["type"]: event for event in events}
    assert by_type["ui_request"]["preview"] == {"kind": "command", "text": command}
    assert by_type["tool_result"]["content"] == [{"type": "text", "text": "no new files"}]
    assert by_type["permission_decision"]["approved"] is False
    assert not list(place.cwd.iterdir())


@asynccontextmanager
async def at_work(folder: Path, person: Person, *turns: dict[str, Any]) -> AsyncIterator[Harness]:
    """The built-in tools in a folder, with somebody who is asked about everything."""
    async with Shell() as shell:
        tools = builtin_tools(Workspace(folder, Jail(folder), folder / "outputs"), shell)
        async with running(script(folder, *turns), *tools, permissions=asking(person)) as harness:
            yield harness


def asking(person: Person) -> Permissions:
    return Permissions("ask", person)


def last_result(harness: Harness) -> ToolResult:
    """The newest result, as the model was sent it."""
    message = harness.provider.requests[-1].messages[-1]
    assert isinstance(message, ToolMessage)
    return message.results[-1]


async def forbidden(_: Invocation) -> ToolOutput:
    raise AssertionError("it ran")
