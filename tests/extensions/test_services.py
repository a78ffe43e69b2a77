"""What all services of the host have in common: who may ask, for what, how long, and how it is told that it failed."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw
from msgspec.structs import fields

from hilt.agent.topics import TAIL
from hilt.cli.serving import Client
from hilt.errors import HiltError, ServiceFault
from hilt.extensions.services.asking import PUBLISHED, SUBSCRIPTIONS
from hilt.extensions.services.table import SERVICES
from hilt.model.contributions import Invocation, Tool, ToolOutput
from hilt.model.services import ToolListing
from hilt.packages.permissions import Permissions
from hilt.transport.memory import VirtualLoop
from hilt.wire.faults import INTERNAL, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, NOT_FOUND
from hilt.wire.jsonrpc_methods import METHODS
from support.facilities import Served, World

NOBODY = Permissions(full=False)
PARAMS: dict[str, Any] = {
    "executeTool": {"name": "echo"},
    "activateTool": {"name": "later"},
    "config.readExtension": {"name": "t"},
    "agent.run": {"task": "t"},
    "runBackground": {"prompt": "p"},
    "chat": {"messages": [{"content": "c"}]},
    "loadSession": {"path": "/s"},
    "appendSessionEntry": {"kind": "k"},
    "appendCustomMessage": {"content": "c"},
    "setLabel": {"targetId": "e"},
    "branchSession": {"entryId": "e"},
    "branchSessionWithSummary": {"entryId": "e"},
    "switchModel": {"modelId": "p/m"},
    "showPicker": {"items": [{"id": "a", "label": "A"}]},
    "askUser": {"choices": ["a"]},
    "undoRestore": {"path": "/p/a"},
    "auth.getKey": {"provider": "google"},
    "publish": {"topic": "t"},
    "subscribe": {"topic": "t"},
}
"""What a method needs to be given to be answered."""
OPTIONAL = {"showPicker", "publish", "subscribe", "executeTool", "activateTool", "config.readExtension"}
METHODS_ASKED = sorted(name.removeprefix("host/") for name in SERVICES if name != "host/unsubscribe")


async def fault(served: Served, method: str, params: Any = None) -> ServiceFault:
    with pytest.raises(ServiceFault) as refused:
        await served.ask(method, params)
    return refused.value


def test_there_is_a_service_for_every_request_of_the_protocol_and_no_other() -> None:
    asked = {name for name, method in METHODS.items() if name.startswith("host/") and method.kind == "request"}
    assert set(SERVICES) == asked
    assert len(asked - {"host/unsubscribe"}) == 52


async def test_a_method_that_does_not_exist_is_not_found() -> None:
    for method in ("host/nothing", "HOST/sessions", "", "tool/execute"):
        with pytest.raises(ServiceFault, match="method not found: ") as refused:
            await Served().services.answer(method, Raw(b"{}"), Served().asker)
        assert refused.value.code == METHOD_NOT_FOUND


async def test_a_name_made_of_a_strangers_bytes_is_shown_without_them_and_cut() -> None:
    with pytest.raises(ServiceFault) as refused:
        await Served().services.answer("\x1b]0;x\x07" + "m" * 10_000, Raw(b"{}"), Served().asker)
    assert refused.value.message.isprintable() and len(refused.value.message) < 1000


async def never(_: Invocation) -> ToolOutput:
    raise AssertionError("tools are called through the agent")


def stocked() -> World:
    """One in which everything succeeds."""
    world = World(picked="a", tools=(ToolListing("later", "", {}, deferred=True),))
    world.offer(Tool("echo", "", {}, never))
    return world


@pytest.mark.parametrize("method", METHODS_ASKED)
async def test_every_method_answers_with_what_its_type_says(method: str) -> None:
    """Also where `params` is missing or null, which the reference refuses."""
    shape = METHODS[f"host/{method}"].result
    assert shape
    for params in (PARAMS[method],) if method in PARAMS else (UNSET, None, {}):
        result = await Served(stocked()).ask(method, params)
        assert {one.encode_name for one in fields(shape) if one.required} <= set(result)


@pytest.mark.parametrize("method", sorted(PARAMS.keys() - OPTIONAL))
async def test_what_cannot_be_left_out_is_named(method: str) -> None:
    refused = await fault(Served(), method)
    member = next(iter(PARAMS[method]))
    assert refused.code == (INTERNAL if method == "switchModel" else INVALID_PARAMS)
    assert member in refused.message


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("sessions", [1], INVALID_PARAMS),
        ("executeTool", {"name": 1}, INVALID_PARAMS),
        ("executeTool", {"name": "t", "args": "ls"}, INVALID_PARAMS),
        ("setConversationMessages", {"messages": "none"}, INVALID_REQUEST),
        ("setToolFilter", {"names": "read"}, INVALID_PARAMS),
        ("writeModels", {"overrides": {"p/m": 5}}, INVALID_PARAMS),
    ],
)
async def test_params_that_cannot_be_read_are_refused_and_the_member_is_named(
    method: str, params: Any, code: int
) -> None:
    served = Served()
    refused = await fault(served, method, params)
    assert refused.code == code and refused.message.startswith(f"host/{method}: ")
    if isinstance(params, dict):
        assert next(reversed(params)) in refused.message
    assert served.world.done == []


async def test_keys_count_in_any_case_and_null_is_nothing() -> None:
    served = Served()
    await served.ask("setLabel", {"TargetID": "e", "LABEL": None})
    assert served.world.done == [("set_label", "e", "")]


# Permissions

NEEDED = {
    "tools:call": {"executeTool", "agent.run", "runBackground", "cancelBackground"},
    "conversation:read": {
        "conversationMessages",
        "llmSnapshot",
        "lastAssistantText",
        "sessions",
        "sessionEntryInfos",
        "sessionFullTree",
        "sessionStats",
        "sessionTitle",
        "undoSnapshots",
    },
    "conversation:write": {
        "setConversationMessages",
        "appendSessionEntry",
        "appendCustomMessage",
        "setLabel",
        "setSessionTitle",
        "branchSession",
        "branchSessionWithSummary",
        "resetSessionLeaf",
        "loadSession",
        "forkSession",
        "triggerCompact",
    },
    "ui:submit": {"switchModel", "requestQuit", "setToolFilter", "toggleStepMode", "abort", "writeModels"},
    "fs.write": {"undoRestore"},
    "auth:google": {"auth.getKey"},
}
GUARDED = [(permission, method) for permission, methods in NEEDED.items() for method in sorted(methods)]


@pytest.mark.parametrize(("permission", "method"), GUARDED, ids=[method for _, method in GUARDED])
async def test_without_its_permission_nothing_happens_and_the_refusal_says_how_to_grant_it(
    permission: str, method: str
) -> None:
    others = tuple(one for one in NEEDED if one != permission)
    served = Served(permissions=Permissions(full=False, granted=others))
    refused = await fault(served, method, PARAMS.get(method))
    assert refused.code == INTERNAL
    assert refused.message.startswith("permission denied: t may not ")
    assert f"(hilt ext grant t {permission})" in refused.message
    assert served.world.done == []

    served = Served(stocked(), permissions=Permissions(full=False, granted=(permission,)))
    await served.ask(method, PARAMS.get(method))


@pytest.mark.parametrize("method", sorted(set(METHODS_ASKED) - {method for _, method in GUARDED}))
async def test_everything_else_needs_no_permission(method: str) -> None:
    await Served(stocked(), permissions=NOBODY).ask(method, PARAMS.get(method))


# Failing


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("setLabel", "set label: entry X not found"),
        ("switchModel", "switch model: entry X not found"),
        ("triggerCompact", "compact failed: entry X not found"),
        ("setSessionTitle", "set session title: entry X not found"),
        ("config.readExtension", "read extension config: entry X not found"),
        ("chat", "resolve provider: entry X not found"),
        ("branchSession", "branch session: entry X not found"),
        ("abort", "entry X not found"),
    ],
)
async def test_what_cannot_be_done_says_what_and_why_and_keeps_the_hint(method: str, told: str) -> None:
    served = Served(World(error=HiltError("entry X not found", hint="look at the tree")))
    refused = await fault(served, method, PARAMS.get(method))
    assert (refused.code, refused.message, refused.hint) == (INTERNAL, told, "look at the tree")


@pytest.mark.parametrize("mistake", [ZeroDivisionError, TimeoutError])
@pytest.mark.parametrize("method", ["forkSession", "showPicker"])
async def test_a_mistake_of_hilts_own_is_a_fault_and_is_in_the_log(
    caplog: pytest.LogCaptureFixture, method: str, mistake: type[Exception]
) -> None:
    """Otherwise it would end the extension that asked."""
    refused = await fault(Served(World(error=mistake("oh"))), method)
    assert (refused.code, refused.message) == (INTERNAL, f"internal error: {mistake.__name__}: oh")
    assert f"host/{method} failed for t" in caplog.text


@pytest.mark.parametrize(
    ("method", "member"), [("loadSession", "path"), ("undoRestore", "path"), ("setLabel", "targetId")]
)
async def test_a_nul_is_part_of_no_name(method: str, member: str) -> None:
    served = Served()
    refused = await fault(served, method, {member: "a\0b"})
    assert refused.code == INVALID_PARAMS and member in refused.message and served.world.done == []


# Time

PATIENT = {"showPicker", "askUser", "waitForIdle"}
SLOW = {"triggerCompact": 60.0, "executeTool": 300.0, "chat": 300.0, "agent.run": 305.0}


def test_each_has_its_time_and_only_those_that_wait_for_people_or_the_agent_have_none() -> None:
    for name, service in SERVICES.items():
        method = name.removeprefix("host/")
        assert service.seconds == (None if method in PATIENT else SLOW.get(method, 30.0)), method


@pytest.mark.parametrize("method", ["forkSession", "triggerCompact", "chat", "syncModels", "undoRestore"])
def test_what_does_not_end_in_its_time_is_given_up_and_said_so(method: str) -> None:
    async def work() -> None:
        loop, seconds = asyncio.get_running_loop(), SERVICES[f"host/{method}"].seconds
        refused = await fault(Served(World(hangs=asyncio.Event())), method, PARAMS.get(method))
        assert refused.message == f"host/{method} did not end within {seconds:g} s" and refused.code == INTERNAL
        assert loop.time() == pytest.approx(seconds)

    virtually(work)


@pytest.mark.parametrize("method", sorted(PATIENT))
def test_who_waits_for_a_person_or_for_the_agent_waits_as_long_as_it_takes(method: str) -> None:
    async def work() -> None:
        answered = asyncio.Event()
        served = Served(World(hangs=answered, picked="a"))
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(served.ask(method, PARAMS.get(method)))
            await asyncio.sleep(86_400)
            assert not asked.done()
            answered.set()
        assert asked.result() in ({}, {"selected": "a"}, {"selected": "a", "cancelled": False})

    virtually(work)


async def test_whoever_is_cancelled_while_waiting_is_cancelled() -> None:
    served = Served(World(hangs=asyncio.Event()))
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(served.ask("waitForIdle"))
        while not served.world.done:
            await asyncio.sleep(0)
        asked.cancel()
    assert asked.cancelled()


def virtually(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(work())


# The bus


async def settled() -> None:
    """Whatever is due has been delivered."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_what_is_published_reaches_each_subscription_under_its_number_also_the_publishers_own() -> None:
    served = Served()
    other = served.another("other")
    mine = await served.ask("subscribe", {"topic": "news"})
    theirs = await served.ask("subscribe", {"topic": "news"}, other)
    await served.ask("subscribe", {"topic": "else"}, other)
    assert await served.ask("publish", {"topic": "news", "data": {"x": [1]}}) == {}
    await settled()
    assert served.delivered == [("news", one["subscriptionId"], {"x": [1]}) for one in (mine, theirs)]


async def test_a_subscription_ends_when_it_is_ended_and_is_its_askers_alone_to_end() -> None:
    served = Served()
    number = (await served.ask("subscribe", {"topic": "news"}))["subscriptionId"]
    with pytest.raises(ServiceFault, match=f"no subscription: {number}"):
        await served.ask("unsubscribe", {"subscriptionId": number}, served.another("other"))
    assert await served.ask("unsubscribe", {"subscriptionId": number}) == {}
    await served.ask("publish", {"topic": "news"})
    await settled()
    assert served.delivered == []
    refused = await fault(served, "unsubscribe", {"subscriptionId": number})
    assert refused.code == NOT_FOUND


async def test_one_that_leaves_hears_nothing_any_more_nor_does_what_it_asked_for_last() -> None:
    served = Served()
    await served.ask("subscribe", {"topic": "news"})
    served.asker.leave()
    await served.ask("subscribe", {"topic": "news"})
    await served.ask("publish", {"topic": "news"})
    await settled()
    assert served.delivered == [] and served.asker.subscriptions == 0


async def test_what_is_published_at_once_has_a_limit() -> None:
    served = Served()
    await served.ask("publish", {"topic": "news", "data": "x" * (PUBLISHED - 2)})
    refused = await fault(served, "publish", {"topic": "news", "data": "x" * (PUBLISHED - 1)})
    assert refused.code == INVALID_PARAMS and "limit" in refused.message


async def test_subscriptions_have_a_limit() -> None:
    served = Served()
    for number in range(SUBSCRIPTIONS):
        await served.ask("subscribe", {"topic": f"t{number}"})
    refused = await fault(served, "subscribe", {"topic": "one more"})
    assert str(SUBSCRIPTIONS) in refused.message
    assert served.asker.subscriptions == SUBSCRIPTIONS


async def test_what_commands_print_is_heard_only_by_those_who_may_read_the_conversation() -> None:
    served = Served(permissions=NOBODY)
    refused = await fault(served, "subscribe", {"topic": TAIL})
    assert "conversation:read" in refused.message and served.asker.subscriptions == 0
    reader = Served(permissions=Permissions(full=False, granted=("conversation:read",)))
    assert await reader.ask("subscribe", {"topic": TAIL}) == {"subscriptionId": 1}


async def test_a_topic_without_a_name_is_refused() -> None:
    for method in ("publish", "subscribe"):
        assert "topic" in (await fault(Served(), method, {"topic": ""})).message


# A program that drives the agent


@pytest.mark.parametrize("method", METHODS_ASKED)
async def test_a_client_may_ask_for_everything(method: str) -> None:
    client = Client(Served(stocked()).services, lambda *_: None)
    await client.answer(f"host/{method}", Raw(msgspec.json.encode(PARAMS.get(method))))


async def test_a_client_is_told_what_it_subscribed_to_until_it_leaves() -> None:
    told: list[tuple[str, int, Any]] = []
    served = Served()
    client = Client(served.services, lambda *what: told.append(what))
    for _ in range(2):
        await client.answer("host/subscribe", Raw(b'{"topic":"news"}'))
    await served.ask("publish", {"topic": "news", "data": 5})
    await settled()
    assert told == [("news", 1, 5), ("news", 2, 5)]
    client.leave()
    await served.ask("publish", {"topic": "news", "data": 6})
    await settled()
    assert len(told) == 2
