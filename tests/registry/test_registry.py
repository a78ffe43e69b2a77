"""Who offers what: precedence, conflicts, and how long a publication lasts."""

from types import MappingProxyType

import pytest

from hilt.model.actions import Action
from hilt.model.contributions import Command, Invocation, Tool, ToolOutput
from hilt.registry.registry import Registry
from hilt.registry.snapshot import Conflict, Owner, freeze

BUILTIN, FIRST, SECOND = Owner("hilt", builtin=True), Owner("first"), Owner("second")


def tool(name: str, description: str = "") -> Tool:
    async def invoke(_: Invocation) -> ToolOutput:
        return ToolOutput.of(description)

    return Tool(name, description, {}, invoke)


def command(name: str, description: str = "") -> Command:
    async def run(_: str) -> tuple[Action, ...]:
        return ()

    return Command(name, description, run)


def test_what_is_published_is_seen_exactly_as_long_as_its_block_runs() -> None:
    registry = Registry()
    with registry.publish(FIRST, [tool("a")]):
        with registry.publish(SECOND, [tool("b"), command("c")]):
            assert list(registry.snapshot().tools) == ["a", "b"]
            assert registry.snapshot().command("c") is not None
        assert list(registry.snapshot().tools) == ["a"]
        assert registry.snapshot().command("c") is None
    assert not registry.snapshot().tools


def test_a_block_that_fails_takes_its_contributions_with_it() -> None:
    registry = Registry()
    with pytest.raises(RuntimeError), registry.publish(FIRST, [tool("a")]):
        raise RuntimeError
    assert not registry.snapshot().tools


def test_a_snapshot_does_not_change_when_the_registry_does() -> None:
    registry = Registry()
    with registry.publish(FIRST, [tool("a")]):
        before = registry.snapshot()
        assert registry.snapshot() is before
    assert before.tool("a") is not None
    assert registry.snapshot() is not before
    assert isinstance(before.tools, MappingProxyType)


def test_two_equal_publications_end_each_with_its_own_block() -> None:
    registry, offered = Registry(), [tool("a")]
    with registry.publish(FIRST, offered):
        with registry.publish(FIRST, offered):
            pass
        assert registry.snapshot().tool("a") is not None


def test_a_built_in_keeps_its_name_although_an_extension_was_first() -> None:
    theirs, ours = tool("bash", "theirs"), tool("bash", "ours")
    snapshot = freeze([(FIRST, (theirs,)), (BUILTIN, (ours,))])
    assert snapshot.tool("bash") is ours
    assert snapshot.conflicts == (Conflict("tool", "bash", "hilt", "first"),)


def test_between_extensions_the_first_one_keeps_the_name_and_its_successor_inherits_it() -> None:
    registry = Registry()
    one, two = tool("shout", "one"), tool("shout", "two")
    with registry.publish(SECOND, [two]), registry.publish(FIRST, [one]):
        assert registry.snapshot().tool("shout") is two
        assert registry.snapshot().conflicts == (Conflict("tool", "shout", "second", "first"),)
    with registry.publish(FIRST, [one]):
        assert registry.snapshot().tool("shout") is one
        assert registry.snapshot().conflicts == ()


def test_commands_are_one_name_whatever_their_case_and_tools_are_not() -> None:
    snapshot = freeze(
        [(FIRST, (command("Help"), tool("Read"))), (SECOND, (command("HELP"), tool("read")))],
    )
    found = snapshot.command("hElP")
    assert found is not None and found.owner == "first"
    assert snapshot.conflicts == (Conflict("command", "HELP", "first", "second"),)
    assert list(snapshot.tools) == ["Read", "read"]


def test_a_tool_and_a_command_may_share_a_name() -> None:
    snapshot = freeze([(FIRST, (tool("todo"),)), (SECOND, (command("todo"),))])
    assert snapshot.conflicts == ()
    assert snapshot.tool("todo") is not None and snapshot.command("todo") is not None


@pytest.mark.parametrize("spelt", ["Bash", "BASH", "web-fetch", "Web_Fetch"])
def test_a_tool_that_is_spelt_nearly_like_a_built_in_one_is_a_conflict(spelt: str) -> None:
    offered = ((FIRST, (tool(spelt),)), (BUILTIN, (tool("bash"), tool("web_fetch"))))
    snapshot = freeze(offered)  # A15
    assert list(snapshot.tools) == ["bash", "web_fetch"]
    assert snapshot.conflicts == (Conflict("tool", spelt, "hilt", "first"),)


def test_one_owner_offering_a_name_twice_keeps_the_first_and_is_in_no_conflict_with_itself() -> None:
    one, two = tool("a", "one"), tool("a", "two")
    snapshot = freeze([(FIRST, (one, two))])
    assert snapshot.tool("a") is one
    assert snapshot.conflicts == ()


def test_unknown_names_are_nothing_rather_than_an_error() -> None:
    assert Registry().snapshot().tool("x") is None
    assert Registry().snapshot().command("x") is None
