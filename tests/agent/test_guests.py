"""What extensions may ask of a session: to speak, to run commands and tools, to show something; and who sees a tool."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hilt.agent.activation import ACTIVATE
from hilt.agent.guests import Guests
from hilt.agent.permissions import Permissions
from hilt.errors import UsageError
from hilt.model.actions import (
    Action,
    Clear,
    ClearNotes,
    ClosePanel,
    Display,
    Notify,
    OpenPanel,
    Prompt,
    RenderPanel,
    Revive,
    Settle,
    Submit,
    ToolPrompt,
)
from hilt.model.content import text_of
from hilt.model.contributions import Command, Contribution, Effect, Invocation, Tool, ToolOutput
from hilt.model.conversation import user_text
from hilt.model.events import (
    Displayed,
    Inserted,
    NotesCleared,
    Notified,
    PanelClosed,
    PanelShown,
    PromptSubmitted,
    ToolCalled,
    ToolResultAdded,
    UserMessageAdded,
)
from hilt.model.extensions import Note, Panel
from hilt.model.ports import PermissionAnswer, PermissionRequest
from hilt.registry.snapshot import Owner
from support.agent import calls, echo, says, tool
from support.extending import Extended, extended

DEADLINE = 45.0
ECHO = tool("echo", echo)


def command(name: str, *actions: Action) -> Command:
    async def run(_: str) -> tuple[Action, ...]:
        return actions

    return Command(name, name, run)


@contextmanager
def offering(it: Extended, owner: str, *contributions: Contribution) -> Iterator[None]:
    with it.session.parts.registry.publish(Owner(owner, order=1), contributions):
        yield


async def submit(it: Extended, text: str = "go on", by: str = "ext") -> None:
    await Guests(it.session).apply((Submit(text),), by)


def said(it: Extended) -> list[str]:
    return [text_of(event.content) for event in it.of(UserMessageAdded)]


class Gate:
    """A tool that ends when the test lets it."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.open = asyncio.Event()

    async def run(self, _: Invocation) -> ToolOutput:
        self.begun.set()
        await self.open.wait()
        return ToolOutput.of("through")


# Submitting


async def test_what_an_extension_submits_is_a_turn_that_says_whose_it_is(tmp_path: Path) -> None:
    async with extended(tmp_path, turns=[says("hi")]) as it:
        await submit(it)
        await it.session.idle()
        assert it.of(PromptSubmitted)[0].extension == "ext"
        assert said(it) == ["go on"]


async def test_extensions_have_three_turns_in_a_row_whichever_they_are(tmp_path: Path) -> None:
    async with extended(tmp_path) as it:
        for name in ("a", "b", "c", "d"):
            await submit(it, f"from {name}", by=name)
        await it.session.idle()
        assert said(it) == ["from a", "from b", "from c"]
        assert it.of(Inserted) == [Inserted("d", "from d")]
        assert await it.warned("extension d", "3 turns", "up to you")


async def a_prompt(it: Extended) -> None:
    await it.say("me")


async def a_command(it: Extended) -> None:
    await it.session.command("mine")


async def a_line(it: Extended) -> None:
    await it.session.input("me again")


@pytest.mark.parametrize("speak", [a_prompt, a_command, a_line])
async def test_whatever_the_user_says_gives_them_three_more(
    tmp_path: Path, speak: Callable[[Extended], Awaitable[None]]
) -> None:
    async with extended(tmp_path, offered=(command("mine"),)) as it:
        for _ in range(2):
            for _ in range(4):
                await submit(it)
                await it.session.idle()
            await speak(it)
            await it.session.idle()
        assert said(it).count("go on") == 6
        assert len(it.of(Inserted)) == 2


async def test_so_does_what_the_user_says_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    gate = Gate()
    turns = [says("1"), says("2"), calls(("gate", {})), says("3")]
    async with extended(tmp_path, turns=turns, offered=(tool("gate", gate.run),)) as it:
        for _ in range(3):
            await submit(it)
        await it.until(gate.begun.is_set)
        await it.session.steer(user_text("this way"))
        gate.open.set()
        for _ in range(4):
            await submit(it)
        await it.session.idle()
        assert said(it).count("go on") == 6
        assert len(it.of(Inserted)) == 1


async def test_what_is_submitted_during_a_turn_waits_for_its_end(tmp_path: Path) -> None:
    gate = Gate()
    turns = [calls(("gate", {})), says("one"), says("two")]
    async with extended(tmp_path, turns=turns, offered=(tool("gate", gate.run),)) as it:
        job = await it.session.prompt(user_text("first"))
        await it.until(gate.begun.is_set)
        await submit(it, "second")
        assert it.session.waiting == ("second",)
        assert it.of(PromptSubmitted)[-1].queued
        gate.open.set()
        assert (await job.result()).text == "one"
        await it.session.idle()
        assert said(it) == ["first", "second"]


async def test_a_single_prompt_holds_nothing_that_extensions_add(tmp_path: Path) -> None:
    async with extended(tmp_path, one_shot=True) as it:
        await submit(it)
        assert await it.warned("extension ext", "single prompt")
        assert not it.session.busy and it.of(PromptSubmitted) == []


# Slash commands


async def test_a_slash_command_is_run_as_if_typed_and_belongs_to_its_owner(tmp_path: Path) -> None:
    seen: list[str] = []

    async def run(args: str) -> tuple[Action, ...]:
        seen.append(args)
        return (Display("shown"),)

    async with extended(tmp_path) as it:
        with offering(it, "owner", Command("Show", "", run)):
            for text in ("/show a  b", "/SHOW", "/show\tx", "/show\n two\nlines "):
                await Guests(it.session).slash(text, "ext")
        assert seen == ["a  b", "", "x", "two\nlines"]
        assert set(it.of(Displayed)) == {Displayed("owner", "shown")}


@pytest.mark.parametrize("text", ["/nothing", "/", "/ x"])
async def test_a_slash_command_nobody_offers_is_an_error(tmp_path: Path, text: str) -> None:
    async with extended(tmp_path) as it:
        with pytest.raises(UsageError, match="unknown command"):
            await Guests(it.session).slash(text, "ext")


async def test_prompts_of_commands_that_extensions_run_count_as_theirs_and_not_as_the_users(tmp_path: Path) -> None:
    async with extended(tmp_path, offered=(command("more", Prompt("more")),)) as it:
        for _ in range(4):
            await Guests(it.session).slash("/more", "ext")
            await it.session.idle()
        assert said(it) == ["more"] * 3
        assert await it.warned("extension ext", "3 turns")
        for _ in range(4):
            await it.session.command("more")
            await it.session.idle()
        assert said(it) == ["more"] * 7, "a person may say it as often as they like"


async def test_a_command_that_clears_ends_the_turn_first_when_an_extension_runs_it(tmp_path: Path) -> None:
    gate = Gate()
    offered = (tool("gate", gate.run), command("wipe", Clear()))
    async with extended(tmp_path, turns=[calls(("gate", {})), says("x")], offered=offered) as it:
        job = await it.session.prompt(user_text("first"))
        await it.until(gate.begun.is_set)
        with pytest.raises(UsageError, match="between turns"):
            await it.session.command("wipe")
        async with asyncio.timeout(DEADLINE):
            await Guests(it.session).slash("/wipe", "ext")
        assert (await job.result()).stop == "aborted"
        assert it.session.transcript.messages == ()


# Calling tools


async def call(it: Extended, name: str, *chain: str, **args: Any) -> tuple[str, bool]:
    async with asyncio.timeout(DEADLINE):
        output = await Guests(it.session).call_tool(name, args, "ext", chain)
    return text_of(output.content), output.is_error


async def test_a_call_goes_through_all_that_a_models_call_goes_through(tmp_path: Path) -> None:
    asked: list[PermissionRequest] = []

    class Person:
        async def ask(self, request: PermissionRequest) -> PermissionAnswer:
            asked.append(request)
            return PermissionAnswer(approved=False, reason="rather not")

    schema = {"type": "object", "required": ["n"]}
    act = tool("act", echo, effect=Effect.EXECUTE, schema=schema)
    async with extended(tmp_path, offered=(act,), permissions=Permissions("ask", Person())) as it:
        text, is_error = await call(it, "act")
        assert is_error and "invalid arguments" in text and '"n"' in text
        assert asked == []
        assert await call(it, "act", n=1) == ("rather not", True)
        assert asked[0].args == {"n": 1}
        assert (await call(it, "nothing"))[0].startswith('unknown tool "nothing"')


async def test_a_call_is_told_and_on_record_with_who_made_it_but_not_part_of_the_conversation(tmp_path: Path) -> None:
    async with extended(tmp_path, turns=[says("x")], offered=(ECHO,)) as it:
        assert await call(it, "echo", n=1) == ('{"n": 1}', False)
        (called,), (result,) = it.of(ToolCalled), it.of(ToolResultAdded)
        assert called.extension == result.extension == "ext"
        assert called.id == result.id
        (note,) = it.notes("extension_call")
        assert note == {
            "extension": "ext",
            "id": called.id,
            "name": "echo",
            "args": {"n": 1},
            "status": "completed",
            "text": '{"n": 1}',
        }
        await it.say("hi")
        assert len(it.provider.requests[0].messages) == 1


async def test_no_tool_runs_within_itself(tmp_path: Path) -> None:
    async with extended(tmp_path, offered=(ECHO,)) as it:
        text, is_error = await call(it, "echo", "other", "echo", "more")
        assert is_error and "other → echo → more → echo" in text
        assert it.of(ToolCalled) == []


async def test_four_tools_may_be_within_each_other_and_no_more(tmp_path: Path) -> None:
    chains: list[tuple[str, ...]] = []

    async def run(invocation: Invocation) -> ToolOutput:
        chains.append(invocation.chain)
        return ToolOutput.of("ran")

    async with extended(tmp_path, offered=(tool("last", run),)) as it:
        assert await call(it, "last", "a", "b", "c") == ("ran", False)
        text, is_error = await call(it, "last", "a", "b", "c", "d")
        assert is_error and "too deeply" in text and "a → b → c → d → last" in text
    assert chains == [("a", "b", "c")], "who is called knows what led to it"


async def test_a_call_whose_caller_has_lost_interest_ends_and_is_on_record(tmp_path: Path) -> None:
    gate = Gate()
    async with extended(tmp_path, offered=(tool("gate", gate.run),)) as it:
        async with asyncio.TaskGroup() as group:
            calling = group.create_task(call(it, "gate"))
            await it.until(gate.begun.is_set)
            calling.cancel()
        assert calling.cancelled()
        (result,) = it.of(ToolResultAdded)
        assert (result.status, result.is_error) == ("cancelled", True)
        assert [note["status"] for note in it.notes("extension_call")] == ["cancelled"]
        assert not len(it.session.stops)


async def test_a_stop_ends_calls_of_extensions_with_an_answer(tmp_path: Path) -> None:
    gate = Gate()
    async with extended(tmp_path, offered=(tool("gate", gate.run),)) as it, asyncio.TaskGroup() as group:
        calling = group.create_task(call(it, "gate"))
        await it.until(gate.begun.is_set)
        assert it.session.abort()
        text, is_error = await calling
        assert is_error and "Cancelled by the user" in text


# A tool's answer as a prompt


async def test_what_a_tool_has_to_say_is_put_to_the_model_with_the_prompt(tmp_path: Path) -> None:
    ask = command("look", ToolPrompt("echo", {"n": 1}, "what is this?"))
    async with extended(tmp_path, turns=[says("a number")], offered=(ECHO,)) as it:
        with offering(it, "ext", ask):
            await it.session.command("look")
        await it.session.idle()
        assert said(it) == ['what is this?\n\necho returned:\n{"n": 1}']
        assert it.of(ToolCalled)[0].extension == "ext"


async def test_that_the_tool_failed_is_put_to_the_model_too(tmp_path: Path) -> None:
    async with extended(tmp_path, turns=[says("oh")]) as it:
        await it.session.apply((ToolPrompt("nothing", {}, ""),), "ext")
        await it.session.idle()
        assert said(it)[0].startswith('nothing failed:\nunknown tool "nothing"')


async def test_a_prompt_made_of_a_tool_counts_like_any_other(tmp_path: Path) -> None:
    async with extended(tmp_path, offered=(ECHO, command("look", ToolPrompt("echo", {}, "look")))) as it:
        for _ in range(4):
            await Guests(it.session).slash("/look", "ext")
            await it.session.idle()
        assert len(said(it)) == 3


# Notes


async def test_notes_are_shown_until_the_user_speaks_and_never_reach_the_model(tmp_path: Path) -> None:
    async with extended(tmp_path, turns=[says("x"), says("y")]) as it:
        guests = Guests(it.session)
        await guests.apply((Notify("warn", "careful"), Notify("info", "well")), "a")
        await guests.apply((Notify("info", "me too"),), "b")
        assert it.of(Notified)[0] == Notified("a", "warn", "careful")
        assert it.session.notes.shown == [
            Note("a", "warn", "careful"),
            Note("a", "info", "well"),
            Note("b", "info", "me too"),
        ]
        await submit(it)
        await it.session.idle()
        assert len(it.session.notes.shown) == 3, "that was not the user"
        await it.say("hi")
        assert it.session.notes.shown == []
        assert it.of(NotesCleared) == [NotesCleared("a"), NotesCleared("b")]
        assert "careful" not in str(it.provider.requests)


async def test_an_extension_takes_away_its_own_notes_alone(tmp_path: Path) -> None:
    async with extended(tmp_path) as it:
        for name in ("a", "b"):
            await Guests(it.session).apply((Notify("info", name),), name)
        await Guests(it.session).apply((ClearNotes(),), "a")
        assert it.session.notes.shown == [Note("b", "info", "b")]
        assert it.of(NotesCleared) == [NotesCleared("a")]


async def test_clearing_the_conversation_clears_the_notes(tmp_path: Path) -> None:
    async with extended(tmp_path) as it:
        await Guests(it.session).apply((Notify("info", "note"),), "a")
        await it.session.apply((Clear(),), "hilt")
        assert it.session.notes.shown == []


async def test_only_so_many_notes_are_kept(tmp_path: Path) -> None:
    async with extended(tmp_path) as it:
        await Guests(it.session).apply(tuple(Notify("info", str(number)) for number in range(500)), "a")
        assert [note.message for note in it.session.notes.shown] == [str(number) for number in range(300, 500)]


# Panels


async def test_what_extensions_want_of_their_panels_is_done(tmp_path: Path) -> None:
    async with extended(tmp_path) as it:
        guests = Guests(it.session)
        await guests.apply((OpenPanel(Panel("p", "A")), OpenPanel(Panel("q"))), "a")
        await guests.apply((RenderPanel(Panel("p", "", ("two",))), ClosePanel("q")), "a")
        await it.seen(PanelShown, panel_id="p", lines=("two",))
        await it.seen(PanelClosed, panel_id="q")
        assert [one.panel for one in it.session.panels.all] == [Panel("p", "A", ("two",))]


async def test_the_panel_of_one_that_is_gone_is_closed_to_faces_saying_why_until_that_is_back(tmp_path: Path) -> None:
    async with extended(tmp_path) as it:
        guests = Guests(it.session)
        await guests.apply((OpenPanel(Panel("p")),), "a")
        await guests.apply((Settle("b is gone"),), "b")
        assert it.session.panels.shown
        await guests.apply((Settle("a is gone"),), "a")
        await it.seen(PanelClosed, extension="a", panel_id="p", reason="a is gone")
        await guests.apply((Revive(),), "a")
        await it.until(lambda: len(it.of(PanelShown)) == 2)
        assert it.session.panels.shown == PanelShown("a", "p", "", (), "")


# Deferred tools


SCHEMA = {"type": "object", "properties": {"rare_argument": {"type": "string"}}}


def deferred(name: str = "rare", description: str = "Does it.\nAt length.", **more: Any) -> Tool:
    return Tool(name, description, SCHEMA, echo, Effect.READ, exposure="deferred", **more)


def offers(it: Extended, number: int = -1) -> list[str]:
    return [spec.name for spec in it.provider.requests[number].tools]


async def test_a_deferred_tool_is_known_by_name_and_one_line_until_it_is_activated(tmp_path: Path) -> None:
    turns = [calls((ACTIVATE, {"names": ["rare"]})), calls(("rare", {"rare_argument": "x"})), says("done")]
    async with extended(tmp_path, turns=turns, offered=(ECHO, deferred(), deferred("other", "Other."))) as it:
        await it.say()
        first, second = it.provider.requests[:2]
        assert offers(it, 0) == ["echo", ACTIVATE]
        activator = first.tools[-1]
        assert activator.description.endswith("- rare: Does it.\n- other: Other.")
        assert "rare_argument" not in str(first.tools)
        assert it.result(0) == "active now: rare"
        assert offers(it, 1) == ["echo", "rare", ACTIVATE]
        assert [spec.schema for spec in second.tools if spec.name == "rare"] == [SCHEMA]
        assert "- rare" not in second.tools[-1].description
        assert it.result(1) == '{"rare_argument": "x"}'


async def test_once_all_are_active_there_is_nothing_to_activate(tmp_path: Path) -> None:
    turns = [calls((ACTIVATE, {"names": ["rare"]})), calls((ACTIVATE, {"names": ["rare"]})), says("done")]
    async with extended(tmp_path, turns=turns, offered=(deferred(),)) as it:
        await it.say()
        assert offers(it) == ["rare"]
        assert it.result().startswith(f'unknown tool "{ACTIVATE}"')


async def test_what_cannot_be_activated_says_what_can(tmp_path: Path) -> None:
    turns = [calls((ACTIVATE, {"names": ["rare", "nothing", "echo"]})), says("done")]
    async with extended(tmp_path, turns=turns, offered=(ECHO, deferred())) as it:
        await it.say()
        (result,) = it.of(ToolResultAdded)
        assert result.is_error
        assert it.result() == "no inactive tool is called nothing, echo; there are rare"
        assert offers(it) == ["echo", ACTIVATE], "all or none"


async def test_the_answer_of_a_tool_may_activate_others_also_before_they_are_there(tmp_path: Path) -> None:
    async def opens(_: Invocation) -> ToolOutput:
        return ToolOutput.of("opened", activate_tools=["rare", "later"])

    turns = [calls(("open", {})), says("one"), says("two")]
    async with extended(tmp_path, turns=turns, offered=(tool("open", opens), deferred())) as it:
        await it.say()
        assert offers(it) == ["open", "rare"]
        with offering(it, "ext", deferred("later")):
            await it.say()
        assert offers(it) == ["open", "rare", "later"]


async def test_a_deferred_tool_that_the_model_calls_all_the_same_runs_and_is_shown_from_then_on(tmp_path: Path) -> None:
    turns = [calls(("rare", {})), says("done")]
    async with extended(tmp_path, turns=turns, offered=(deferred(),)) as it:
        await it.say()
        assert it.result() == "{}"
        assert offers(it) == ["rare"]


async def test_a_call_of_an_extension_does_not_show_the_model_a_tool(tmp_path: Path) -> None:
    async with extended(tmp_path, turns=[says("x")], offered=(deferred(),)) as it:
        assert await call(it, "rare") == ("{}", False)
        await it.say()
        assert offers(it) == [ACTIVATE]


async def test_a_tool_of_that_name_that_somebody_offers_is_not_replaced(tmp_path: Path) -> None:
    own = Tool(ACTIVATE, "mine", {"type": "object"}, echo, Effect.READ)
    async with extended(tmp_path, turns=[calls((ACTIVATE, {"names": 1})), says("x")], offered=(own, deferred())) as it:
        await it.say()
        assert [spec.description for spec in it.provider.requests[0].tools] == ["mine"]
        assert it.result() == '{"names": 1}'


async def test_how_to_use_a_tool_is_told_with_the_tool_and_once(tmp_path: Path) -> None:
    offered = (deferred(instructions="handle with care"), deferred("twin", instructions="handle with care"))
    turns = [calls((ACTIVATE, {"names": ["rare", "twin"]})), says("x"), says("y")]
    async with extended(tmp_path, turns=turns, offered=offered) as it:
        await it.say()
        assert "care" not in it.provider.requests[0].system
        await it.say()
        assert it.provider.requests[-1].system.count("handle with care") == 1


# Exposure


async def test_a_tool_for_programs_is_unknown_to_the_model_and_open_to_extensions(tmp_path: Path) -> None:
    hidden = structs.replace(ECHO, name="hidden", exposure="codemode")
    async with extended(tmp_path, turns=[calls(("hidden", {})), says("x")], offered=(hidden, ECHO)) as it:
        await it.say()
        assert offers(it) == ["echo"]
        assert it.result() == 'unknown tool "hidden"; the tools are: echo'
        assert await call(it, "hidden") == ("{}", False)


async def test_a_tool_for_the_model_is_refused_to_extensions(tmp_path: Path) -> None:
    private = structs.replace(ECHO, name="private", exposure="model-only")
    async with extended(tmp_path, turns=[calls(("private", {})), says("x")], offered=(private, ECHO)) as it:
        await it.say()
        assert offers(it) == ["private", "echo"]
        assert it.result() == "{}"
        text, is_error = await call(it, "private")
        assert is_error and "for the model only" in text
        assert (await call(it, "nothing"))[0] == 'unknown tool "nothing"; the tools are: echo'
