"""Which tools a model gets: narrowed by extensions, shown when activated, with a word on each."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from hilt.agent.activation import ACTIVATE, Activation
from hilt.agent.toolbox import Toolbox
from hilt.model.actions import Display, Settle
from hilt.model.content import text_of
from hilt.model.contributions import Command, Effect, Exposure, Tool
from hilt.model.events import ToolResultAdded
from hilt.registry.registry import Registry
from hilt.registry.snapshot import Owner, freeze
from support.agent import Harness, calls, echo, running, says, script, tool
from support.hilt_process import Hilt
from support.properties import patient


def toolbox(harness: Harness) -> Toolbox:
    session = harness.session
    return Toolbox(session.parts.registry, session.activation)


def made(name: str, exposure: Exposure = "direct", **more: Any) -> Tool:
    return structs.replace(tool(name, echo), exposure=exposure, **more)


def offered(harness: Harness, number: int = -1) -> list[str]:
    return [spec.name for spec in harness.provider.requests[number].tools]


# Narrowing


async def test_what_an_extension_leaves_out_is_neither_offered_nor_callable_until_it_is_lifted(tmp_path: Path) -> None:
    model = script(tmp_path, calls(("write", {}), ("read", {})), says("ok"), says("ok"))
    async with running(model, tool("read", echo), tool("write", echo)) as harness:
        toolbox(harness).narrow(("read", "later"), "planner")
        await harness.say("go")
        refused, done = harness.of(ToolResultAdded)
        assert offered(harness) == ["read"]
        toolbox(harness).narrow((), "planner")
        await harness.say("again")
        assert offered(harness) == ["read", "write"]
    assert refused.is_error and not refused.executed and not done.is_error
    assert "write cannot be called now: planner narrowed the tools" in text_of(refused.content)
    assert "the tools are: read" in text_of(refused.content)


async def test_several_narrow_together_and_each_ends_with_its_owner(tmp_path: Path) -> None:
    model = script(tmp_path, *map(says, "abc"))
    async with running(model, *(tool(name, echo) for name in ("a", "b", "c"))) as harness:
        toolbox(harness).narrow(("a", "b"), "one")
        toolbox(harness).narrow(("b", "c"), "two")
        await harness.say("go")
        await harness.session.apply((Settle("it ended"),), "one")
        await harness.say("go")
        await harness.session.apply((Settle("it ended"),), "two")
        await harness.say("go")
        assert [offered(harness, number) for number in range(3)] == [["b"], ["b", "c"], ["a", "b", "c"]]


async def test_it_survives_commands_and_is_not_for_calls_that_extensions_make(tmp_path: Path) -> None:
    async def show(_: str) -> tuple[Display]:
        return (Display("x"),)

    async with running(script(tmp_path, says("ok")), tool("a", echo), tool("b", echo), Command("c", "", show)) as it:
        toolbox(it).narrow(("a",), "one")
        await it.session.command("c")
        await it.say("go")
        assert offered(it) == ["a"]
        assert not (await it.session.call_tool("b", {}, "ext")).is_error


async def test_a_deferred_tool_that_is_left_out_cannot_be_activated(tmp_path: Path) -> None:
    model = script(tmp_path, calls((ACTIVATE, {"names": ["hidden"]})), says("ok"))
    async with running(model, made("hidden", "deferred"), made("other", "deferred")) as harness:
        toolbox(harness).narrow(("other",), "one")
        await harness.say("go")
        (spec,) = harness.provider.requests[0].tools
        (result,) = harness.of(ToolResultAdded)
    assert spec.name == ACTIVATE and "hidden" not in spec.description
    assert result.is_error and "no inactive tool is called hidden" in text_of(result.content)


def test_a_model_at_work_beside_is_within_the_same_bounds_and_its_own() -> None:
    snapshot = freeze([(Owner("test"), tuple(tool(name, echo) for name in "abc"))])
    whole = Activation()
    beside = Activation(whole, only=("a", "b"))
    whole.narrow(("b", "c"), "one")
    assert [spec.name for spec in whole.offered(snapshot)] == ["b", "c"]
    assert [spec.name for spec in beside.offered(snapshot)] == ["b"]
    assert "one narrowed" in beside.withheld("a") or "not among the tools" in beside.withheld("a")
    whole.bereave("one")
    assert [spec.name for spec in beside.offered(snapshot)] == ["a", "b"]


NAMES = st.frozensets(st.sampled_from("abcd"))


@patient
@given(filters=st.lists(st.tuples(st.sampled_from(("one", "two")), NAMES), max_size=6))
def test_what_is_offered_is_what_the_last_wish_of_each_extension_leaves(
    filters: list[tuple[str, frozenset[str]]],
) -> None:
    snapshot = freeze([(Owner("test"), tuple(tool(name, echo) for name in "abcd"))])
    activation, wishes = Activation(), dict[str, frozenset[str]]()
    for source, names in filters:
        activation.narrow(names, source)
        wishes[source] = names or frozenset("abcd")
    left = set("abcd").intersection(*wishes.values())
    assert {spec.name for spec in activation.offered(snapshot)} == left
    assert {name for name in "abcd" if not activation.withheld(name)} == left


# Listing and activating


async def test_tools_are_listed_by_name_with_what_is_fit_for_an_agent_nobody_watches() -> None:
    registry, activation = Registry(), Activation()
    own = (tool("read", echo), tool("bash", echo, effect=Effect.EXECUTE))
    with (
        registry.publish(Owner("hilt", builtin=True), own),
        registry.publish(Owner("ext"), (tool("look", echo), made("more", "deferred"))),
    ):
        box = Toolbox(registry, activation)
        listed = {one.name: one for one in box.list()}
        assert list(listed) == ["bash", "look", "more", "read"]
        assert [name for name, one in listed.items() if one.background_safe] == ["read"]
        assert [name for name, one in listed.items() if one.deferred] == ["more"]
        assert box.activate("more") and box.activate("more")  # twice does no harm
        assert not box.activate("read") and not box.activate("unknown")
        assert not any(one.deferred for one in box.list())


async def test_an_activated_tool_is_shown_whole_from_the_next_call_on(tmp_path: Path) -> None:
    async with running(script(tmp_path, says("a"), says("b")), made("more", "deferred")) as harness:
        await harness.say("go")
        assert offered(harness) == [ACTIVATE]
        toolbox(harness).activate("more")
        await harness.say("go")
        assert offered(harness) == ["more"]


# Hints


async def test_a_word_on_each_offered_tool_is_part_of_the_system_prompt(tmp_path: Path) -> None:
    tools = (
        made("look", hint="for looking\n  around"),
        made("quiet"),
        made("later", "deferred", hint="not yet"),
        made("gone", hint="never"),
    )
    async with running(script(tmp_path, says("ok"), says("ok")), *tools) as harness:
        toolbox(harness).narrow(("look", "quiet", "later"), "one")
        await harness.say("go")
        first = harness.provider.requests[0].system
        toolbox(harness).narrow(("quiet",), "one")
        await harness.say("go")
        second = harness.provider.requests[1].system
    assert first == "be brief\n\n# Tool usage notes\n\n- look: for looking around"
    assert second == "be brief"


def test_a_client_can_narrow_the_tools_and_lift_it_again(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    shell = calls(("bash", {"command": "echo hi"}))
    with hilt.rpc(*hilt.script(shell, says("ok"), shell, says("ok"))) as rpc:
        assert rpc.ask("host", method="host/setToolFilter", params={"names": ["read"]})["success"]
        rpc.send(type="prompt", message="go")
        refused = rpc.event("tool_result")
        assert refused["is_error"] and "rpc narrowed the tools" in refused["content"][0]["text"]
        rpc.event("done")
        assert rpc.ask("host", method="host/setToolFilter", params={"names": None})["success"]
        rpc.send(type="prompt", message="again")
        assert not rpc.event("tool_result")["is_error"]
        rpc.event("done")
