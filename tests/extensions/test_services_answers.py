"""What each service of the host passes on, and what it answers: the very JSON of the protocol."""

from typing import Any

import msgspec
import pytest

from hilt.errors import HiltError, ServiceFault, Unavailable
from hilt.extensions.services.ports import Registered
from hilt.model.actions import Abort, Quit
from hilt.model.content import Image, Text, Thinking, ToolCall, text_of
from hilt.model.contributions import (
    Command,
    Compactor,
    Invocation,
    PromptSection,
    Shortcut,
    Tool,
    ToolOutput,
)
from hilt.model.conversation import AssistantMessage, Message, ToolMessage, ToolResult, Usage, UserMessage, user_text
from hilt.model.extensions import ExtensionState, ExtensionStatus, PickerItem
from hilt.model.services import (
    AgentReport,
    AgentTask,
    ChatRequest,
    LlmSnapshot,
    ModelListing,
    ModelOverride,
    SessionNode,
    ToolListing,
)
from hilt.model.stream import ToolSpec
from hilt.packages.permissions import Permissions
from hilt.wire.faults import INTERNAL, INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND
from support.facilities import WHEN, Served, World

STAMP = "2026-05-01T10:00:00.250000Z"
CALL = ToolCall("c1", "read", {"path": "a"})


async def fault(served: Served, method: str, params: Any = None) -> ServiceFault:
    with pytest.raises(ServiceFault) as refused:
        await served.ask(method, params)
    return refused.value


async def never(_: Any) -> Any:
    raise AssertionError("nobody asked for this")


async def unused(_: Invocation) -> ToolOutput:
    raise AssertionError("tools are called through the agent")


async def at_once() -> tuple[()]:
    return ()


# Tools

READ = ToolListing("read", "Reads.", {"type": "object"}, background_safe=True)
LATER = ToolListing("later", "Waits.", {"type": "object"}, deferred=True)


@pytest.mark.parametrize("filter_", [None, "", "all", "whatever"])
async def test_all_tools_are_listed_whatever_filter_but_one_is_given(filter_: str | None) -> None:
    served = Served(World(tools=(LATER, READ)))
    later = {"name": "later", "description": "Waits.", "parameters": {"type": "object"}, "deferred": True}
    read = {"name": "read", "description": "Reads.", "parameters": {"type": "object"}}
    assert await served.ask("listTools", {"filter": filter_}) == {"tools": [later, read]}
    assert await served.ask("listTools", {"filter": "background_safe"}) == {"tools": [read]}


async def test_definitions_of_tools_are_names_and_descriptions() -> None:
    told = await Served(World(tools=(LATER, READ))).ask("toolDefs")
    assert told == {"tools": [{"name": "later", "description": "Waits."}, {"name": "read", "description": "Reads."}]}


async def test_a_tool_is_called_in_the_askers_name_and_with_what_led_to_it() -> None:
    served = Served(World(), chain=lambda: ("outer",))
    served.world.offer(Tool("act", "", {}, unused))
    told = await served.ask("executeTool", {"name": "act", "args": {"n": 1}, "callId": "c7"})
    assert told == {"content": [{"type": "text", "text": "ok"}]}
    await served.ask("executeTool", {"name": "act", "args": None})
    assert served.world.done == [
        ("call_tool", "act", {"n": 1}, "t", ("outer",)),
        ("call_tool", "act", {}, "t", ("outer",)),
    ]


async def test_a_tool_that_fails_is_an_answer_and_says_the_code_and_the_hint_when_there_are_any() -> None:
    coded = ToolOutput.of("[error:E_X] no", is_error=True, error_code="E_X", error_hint="try b")
    served = Served(World(output=coded))
    served.world.offer(Tool("act", "", {}, unused))
    told = await served.ask("executeTool", {"name": "act"})
    assert told["isError"] is True and told["content"] == [{"type": "text", "text": "[error:E_X] no"}]
    assert (told["errorCode"], told["errorHint"]) == ("E_X", "try b")


async def test_a_code_that_is_no_text_is_not_passed_on_and_a_result_too_long_for_that_says_that_it_was_cut() -> None:
    served = Served(World(output=ToolOutput((Text("x" * 300_000),), details={"error_code": 7})))
    served.world.offer(Tool("act", "", {}, unused))
    told = await served.ask("executeTool", {"name": "act"})
    assert "errorCode" not in told
    assert len(told["content"][0]["text"]) == 256 * 1024 and "left out" in told["content"][1]["text"]


async def test_an_image_of_a_tool_is_passed_on() -> None:
    served = Served(World(output=ToolOutput((Image("image/png", b"\x89PNG"),))))
    served.world.offer(Tool("act", "", {}, unused))
    (block,) = (await served.ask("executeTool", {"name": "act"}))["content"]
    assert block["type"] == "image" and block["mime"] == "image/png" and block["data"] == "iVBORw=="


async def test_a_tool_that_nobody_offers_is_not_found() -> None:
    refused = await fault(Served(), "executeTool", {"name": "nope"})
    assert (refused.code, refused.message) == (NOT_FOUND, "unknown tool: nope")


async def test_only_a_deferred_tool_can_be_activated() -> None:
    served = Served(World(tools=(LATER, READ)))
    assert await served.ask("activateTool", {"name": "later"}) == {}
    for name in ("read", "nope"):
        refused = await fault(served, "activateTool", {"name": name})
        assert refused.code == NOT_FOUND and name in refused.message


@pytest.mark.parametrize(("names", "kept"), [(["read", "later"], ("read", "later")), (None, ()), ([], ())])
async def test_the_tools_of_the_model_are_narrowed_in_the_askers_name(names: Any, kept: tuple[str, ...]) -> None:
    served = Served()
    assert await served.ask("setToolFilter", {"names": names}) == {}
    assert served.world.done == [("narrow", kept, "t")]


# Configuration


async def test_settings_that_are_not_set_are_left_out() -> None:
    served = Served()
    told = await served.ask("config.get", {"keys": ["smallModel", "unset"]})
    assert told == {"values": {"smallModel": "value of smallModel"}}
    assert served.world.done == [("get", ("smallModel", "unset"), "t")]


async def test_the_text_of_its_own_is_anybodys_and_that_of_another_a_file() -> None:
    served = Served(permissions=Permissions(full=False))
    assert await served.ask("config.readExtension", {"name": "t"}) == {"content": "text of t"}
    refused = await fault(served, "config.readExtension", {"name": "other"})
    assert "hilt ext grant t fs.read" in refused.message and len(served.world.done) == 1
    reader = Served(permissions=Permissions(full=False, granted=("fs.read",)))
    assert await reader.ask("config.readExtension", {"name": "other"}) == {"content": "text of other"}


async def test_the_directory_of_extensions_is_told() -> None:
    assert await Served().ask("extensionsDir") == {"path": "/home/ada/.hilt/extensions"}


@pytest.mark.parametrize("spelling", ["google", "Gemini", "GOOGLE"])
async def test_a_key_is_given_for_the_provider_that_was_granted_however_it_is_spelt(spelling: str) -> None:
    served = Served(permissions=Permissions(full=False, granted=("auth:google",)))
    assert await served.ask("auth.getKey", {"provider": spelling}) == {"key": "key-of-google"}


async def test_a_key_that_was_not_granted_is_refused_with_the_reason_and_not_just_empty() -> None:
    served = Served(permissions=Permissions(full=False, granted=("auth:openai",)))
    refused = await fault(served, "auth.getKey", {"provider": "gemini"})
    assert "may not have your key for google" in refused.message
    assert "hilt ext grant t auth:google" in refused.message
    assert served.world.done == []


@pytest.mark.parametrize("provider", ["", "../google", "a b", "x" * 100, "\x1b[2J"])
async def test_what_is_no_name_of_a_provider_is_refused(provider: str) -> None:
    refused = await fault(Served(), "auth.getKey", {"provider": provider})
    assert refused.code == INVALID_PARAMS and refused.message.isprintable()


# Models at work


async def test_a_chat_is_passed_on_with_who_said_what() -> None:
    served = Served()
    said = [{"role": "assistant", "content": "a"}, {"role": "system", "content": "b"}, {"content": "c"}]
    told = await served.ask("chat", {"system": "S", "messages": said, "model": "small", "maxTokens": 9})
    assert told == {"text": "an answer", "usage": {"input": 4, "output": 2}}
    ((_, request, source),) = served.world.done
    assert isinstance(request, ChatRequest) and source == "t"
    assert (request.system, request.model, request.max_tokens) == ("S", "small", 9)
    assert [(type(one), text_of(one.content)) for one in request.messages if not isinstance(one, ToolMessage)] == [
        (AssistantMessage, "a"),
        (UserMessage, "b"),
        (UserMessage, "c"),
    ]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (HiltError("unknown model: x"), "resolve provider: unknown model: x"),
        (Unavailable("no network"), "chat error: no network"),
    ],
)
async def test_a_chat_that_fails_says_at_which_stage(error: HiltError, told: str) -> None:
    refused = await fault(Served(World(error=error)), "chat", {"messages": [{"content": "c"}]})
    assert (refused.code, refused.message) == (INTERNAL, told)


async def test_an_agent_has_the_tools_the_turns_and_the_time_that_it_should() -> None:
    served = Served(World(report=AgentReport("done", 3, Usage(5, 6))))
    told = await served.ask("agent.run", {"task": "look"})
    assert told == {"text": "done", "turns": 3, "usage": {"input": 5, "output": 6}}
    await served.ask("agent.run", {"task": "do", "system": "S", "tools": "all", "model": "m", "maxTurns": 2})
    await served.ask("agent.run", {"task": "look", "tools": "others", "maxTurns": -1})
    assert [task for _, task, _ in served.world.done] == [
        AgentTask("look", "", "background_safe", "", 30, 300.0),
        AgentTask("do", "S", "all", "m", 2, 300.0),
        AgentTask("look", "", "background_safe", "", 30, 300.0),
    ]


async def test_an_agent_that_ended_early_answers_with_what_it_has_and_why() -> None:
    served = Served(World(report=AgentReport("half", 1, Usage(), "its time is over")))
    told = await served.ask("agent.run", {"task": "look"})
    assert (told["text"], told["error"]) == ("half", "its time is over")


async def test_agents_in_the_background_are_started_cancelled_and_asked_after() -> None:
    served = Served()
    assert await served.ask("runBackground", {"prompt": "p"}) == {}
    assert await served.ask("isBackgroundRunning") == {"running": True}
    assert await served.ask("cancelBackground") == {}
    assert served.world.done == [("start", "p", "t"), ("cancel",)]


# The conversation

SPOKEN: tuple[Message, ...] = (
    user_text("look"),
    AssistantMessage((Thinking("hm"), Text(""), Text("first"), Text("second"), CALL), WHEN, "p", "m"),
    ToolMessage((ToolResult("c1", "read", (Text("1"),)), ToolResult("c2", "read", (Text("2"),), is_error=True)), WHEN),
    AssistantMessage((Thinking("only"),), WHEN, "p", "m"),
)


async def test_messages_say_what_they_and_their_blocks_are() -> None:
    told = (await Served(World(messages=SPOKEN)).ask("conversationMessages"))["messages"]
    assert [one["role"] for one in told] == ["user", "assistant", "tool_result", "tool_result", "assistant"]
    assert told[0]["content"] == "look"
    assert [one["type"] for one in told[1]["content"]] == ["thinking", "text", "text", "text", "tool_call"]
    assert told[1]["timestamp"] == STAMP and told[1]["model"] == "m"
    assert [one["isError"] for one in told[2:4]] == [False, True]
    assert await Served().ask("conversationMessages") == {"messages": []}


async def test_what_was_read_can_be_set_again() -> None:
    served = Served(World(messages=SPOKEN))
    told = await served.ask("conversationMessages")
    assert await served.ask("setConversationMessages", told) == {}
    assert served.world.done == [("replace", SPOKEN, "t")]


@pytest.mark.parametrize("messages", [None, []])
async def test_setting_no_messages_clears(messages: Any) -> None:
    served = Served()
    assert await served.ask("setConversationMessages", {"messages": messages}) == {}
    assert served.world.done == [("replace", (), "t")]


async def test_messages_of_which_one_cannot_be_read_are_not_set_at_all() -> None:
    served = Served()
    wrapped = {"type": "user", "data": {"content": "hi"}}
    refused = await fault(served, "setConversationMessages", {"messages": [wrapped, {"type": "x", "data": {}}, 7]})
    assert refused.code == INVALID_REQUEST
    assert refused.message.startswith("setConversationMessages: message 2: ") and "1 more" in refused.message
    assert served.world.done == []


async def test_the_snapshot_is_what_the_model_would_be_sent() -> None:
    tools = (ToolSpec("read", "Reads.", {"type": "object"}),)
    told = await Served(World(snapshot=LlmSnapshot("S", SPOKEN[:1], tools))).ask("llmSnapshot")
    assert told["system"] == "S" and [one["content"] for one in told["messages"]] == ["look"]
    assert told["tools"] == [{"name": "read", "description": "Reads.", "parameters": {"type": "object"}}]


async def test_the_last_text_is_the_first_of_the_newest_message_that_has_one() -> None:
    assert await Served(World(messages=SPOKEN)).ask("lastAssistantText") == {"text": "first"}
    assert await Served(World(messages=SPOKEN[:1])).ask("lastAssistantText") == {"text": ""}


async def test_compaction_is_asked_for_and_counted() -> None:
    served = Served()
    assert await served.ask("hasCompactor") == {"present": True}
    assert await served.ask("triggerCompact") == {"before": 9, "after": 3}
    assert await served.ask("toggleStepMode") == {"on": True}
    assert await served.ask("waitForIdle", None) == {}
    assert served.world.done == [("compact",), ("toggle_step", "t"), ("idle",)]


# Sessions


async def test_sessions_are_listed_with_the_second_they_began() -> None:
    row = {"id": "s1", "title": "A title", "cwd": "/p", "createdAt": "2026-05-01T10:00:00Z", "path": "/s/s1.jsonl"}
    assert await Served().ask("sessions") == {"sessions": [{**row, "parentId": "s0"}]}


async def test_what_changes_the_session_is_done_and_answered_with_nothing() -> None:
    """The reference answers these with an error although it has done them."""
    served = Served()
    for method, params in (
        ("loadSession", {"path": "/s"}),
        ("setSessionTitle", {"title": "T"}),
        ("appendSessionEntry", {"kind": "ext:k", "data": {"a": [1]}}),
        ("appendCustomMessage", {"role": "assistant", "content": "c"}),
        ("appendCustomMessage", {"role": "system", "content": "c"}),
        ("setLabel", {"targetId": "e", "label": "L"}),
        ("branchSession", {"entryId": "e"}),
        ("branchSessionWithSummary", {"entryId": "e", "summary": "S"}),
        ("resetSessionLeaf", {}),
        ("runBackground", {"prompt": "p"}),
    ):
        assert await served.ask(method, params) == {}
    assert served.world.done == [
        ("load", "/s"),
        ("set_title", "T"),
        ("append_entry", "ext:k", {"a": [1]}, "t"),
        ("append_message", "assistant", "c", "t"),
        ("append_message", "user", "c", "t"),
        ("set_label", "e", "L"),
        ("branch", "e", "", "t"),
        ("branch", "e", "S", "t"),
        ("reset", "t"),
        ("start", "p", "t"),
    ]


async def test_a_fork_says_of_what_and_how_much() -> None:
    assert await Served().ask("forkSession") == {"parentID": "s1", "messageCount": 4}


async def test_title_and_numbers_of_the_session_are_told() -> None:
    assert await Served().ask("sessionTitle") == {"title": "A title"}
    assert await Served().ask("sessionStats") == {
        "turnCount": 2,
        "totalInputTokens": 1,
        "totalOutputTokens": 2,
        "totalCacheReadTokens": 3,
        "totalCacheWriteTokens": 4,
        "totalCost": 0.5,
        "model": "p/m",
    }


async def test_the_tree_is_told_with_all_that_is_known_of_each_entry() -> None:
    root = SessionNode("a", "", "user", WHEN, 2, active=True, preview="look")
    leaf = SessionNode("b", "a", "compact", WHEN, 0, active=False, depth=1, label="L", tokens_before=5)
    served = Served(World(nodes=(root, leaf)))
    first = {"id": "a", "type": "user", "timestamp": STAMP, "children": 2}
    second = {"id": "b", "parentId": "a", "type": "compact", "timestamp": STAMP, "children": 0}
    assert await served.ask("sessionEntryInfos") == {"entries": [first, second]}
    assert await served.ask("sessionFullTree") == {
        "nodes": [
            {**first, "onActivePath": True, "depth": 0, "preview": "look"},
            {**second, "onActivePath": False, "depth": 1, "label": "L", "tokensBefore": 5},
        ]
    }


# The catalogue of models


async def test_models_are_listed_as_they_are_called() -> None:
    known = ModelListing(
        "m1", "p", "openai", "M 1", current=True, context_window=8, max_output=4, cost_input=0.5, cost_output=2.0
    )
    bare = ModelListing("m2", "p", "openai", "", current=False, reasoning=True)
    assert await Served(World(models=(known, bare))).ask("availableModels") == {
        "models": [
            {
                "id": "m1",
                "api": "openai",
                "displayName": "p/M 1",
                "provider": "p",
                "current": True,
                "contextWindow": 8,
                "maxTokens": 4,
                "costInput": 0.5,
                "costOutput": 2.0,
            },
            {
                "id": "m2",
                "api": "openai",
                "displayName": "p/m2",
                "provider": "p",
                "current": False,
                "reasoning": True,
                "costInput": 0.0,
                "costOutput": 0.0,
            },
        ]
    }


async def test_models_are_switched_read_again_and_written() -> None:
    served = Served()
    assert await served.ask("switchModel", {"modelId": "p/m", "persistDefault": True}) == {}
    assert await served.ask("syncModels") == {"updated": 7}
    overrides = {"p/m": {"name": "M", "contextWindow": 9}, "p/n": {}}
    assert await served.ask("writeModels", {"overrides": overrides}) == {"modelsWritten": 2}
    written = {"p/m": ModelOverride("M", 9, None), "p/n": ModelOverride()}
    assert served.world.done == [("switch", "p/m", "t", True), ("sync",), ("write", written)]


async def test_a_model_must_be_named() -> None:
    assert (await fault(Served(), "switchModel", {})).message == "modelId is required"


# Asking the user, and control


@pytest.mark.parametrize(
    ("picked", "answer"), [("a", {"selected": "a"}), (None, {"selected": "", "cancelled": True})], ids=["a", "none"]
)
async def test_a_picker_is_answered_also_when_it_is_dismissed(picked: str | None, answer: dict[str, Any]) -> None:
    served = Served(World(picked=picked))
    items = [{"id": "a", "label": "A", "desc": "first"}, {"id": "b", "label": "B"}]
    assert await served.ask("showPicker", {"title": "T", "items": items}) == answer
    assert served.world.done == [("pick", "T", (PickerItem("a", "A", "first"), PickerItem("b", "B")), "t")]


@pytest.mark.parametrize(
    ("picked", "told"),
    [("a", {"selected": "a", "cancelled": False}), (None, {"selected": "", "cancelled": True})],
)
async def test_a_question_is_answered_also_when_it_is_dismissed(picked: str | None, told: dict[str, Any]) -> None:
    served = Served(World(picked=picked))
    assert await served.ask("askUser", {"prompt": "P", "choices": ["a", "b"]}) == told
    assert served.world.done == [("ask", "P", ("a", "b"), "t")]


async def test_a_question_without_choices_is_refused() -> None:
    refused = await fault(Served(), "askUser", {"prompt": "P", "choices": []})
    assert (refused.code, refused.message) == (INVALID_PARAMS, "askUser: choices must not be empty")


async def test_ending_is_asked_for_in_the_askers_name() -> None:
    served = Served()
    assert await served.ask("requestQuit") == await served.ask("abort") == {}
    assert served.world.done == [("apply", (Quit(),), "t"), ("apply", (Abort(),), "t")]


# What is registered


async def test_commands_shortcuts_and_sections_are_told() -> None:
    world = World()
    world.offer(Command("Zeta", "Last.", never), Command("alpha", "First.", never))
    world.offer(
        Shortcut("ctrl+g", "Goes.", at_once),
        PromptSection("Second", "…", order=2),
        PromptSection("First", "…", order=1, tokens=40),
        owner="e",
    )
    served = Served(world)
    assert [one["name"] for one in (await served.ask("commands"))["commands"]] == ["Zeta", "alpha"]
    assert await served.ask("shortcuts") == {"shortcuts": {"ctrl+g": {"description": "Goes."}}}
    assert await served.ask("promptSections") == {
        "sections": [{"title": "First", "tokenHint": 40}, {"title": "Second"}]
    }


def status(name: str, state: ExtensionState = "ready", **more: Any) -> ExtensionStatus:
    known = ExtensionStatus(name, "1.2", "jsonrpc", state, "user", f"/x/{name}")
    return msgspec.structs.replace(known, **more)


async def test_extensions_are_told_after_what_is_built_in_and_those_that_do_not_run_are_not() -> None:
    world = World(
        statuses=(
            status("e", tools=("act",), commands=("go",)),
            status("off", "disabled"),
            status("bad", "failed"),
            status("new", "starting"),
        ),
        registered={
            "e": Registered("node", interceptors=("gate",), event_handlers=("watch",), message_hooks=("hook",))
        },
    )
    world.offer(Tool("read", "", {}, unused), Command("help", "", never))
    world.offer(
        Tool("act", "", {}, unused),
        Command("go", "", never),
        Shortcut("ctrl+g", "", at_once),
        Compactor("short", never),
        owner="e",
    )
    told = (await Served(world).ask("extInfos"))["extensions"]
    assert told[0] == {
        "name": "builtin",
        "kind": "builtin",
        "runtime": "python",
        "tools": ["read"],
        "commands": ["help"],
    }
    assert told[1] == {
        "name": "e",
        "kind": "external",
        "version": "1.2",
        "runtime": "node",
        "tools": ["act"],
        "commands": ["go"],
        "interceptors": ["gate"],
        "eventHandlers": ["watch"],
        "shortcuts": ["ctrl+g"],
        "messageHooks": ["hook"],
        "compactor": "short",
    }
    assert [one["name"] for one in told[2:]] == ["new"]


# Undo


async def test_a_file_that_was_changed_can_be_put_back_and_no_other() -> None:
    served = Served()
    assert await served.ask("undoSnapshots") == {"snapshots": {"/p/a": 3}}
    assert await served.ask("undoRestore", {"path": "/p/a"}) == {}
    refused = await fault(served, "undoRestore", {"path": "/p/b"})
    assert (refused.code, refused.message) == (NOT_FOUND, "no snapshot for path: /p/b")
