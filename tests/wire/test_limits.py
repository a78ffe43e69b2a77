"""What may be registered, and that a refusal says why."""

import pytest
from msgspec import Raw, structs

from hilt.wire import frames_limits as limits
from hilt.wire.frames_types import Register, RegisterCommand, RegisterTool


@pytest.mark.parametrize("name", ["a", "add_two-3", "A" * 64])
def test_an_ordinary_tool_is_accepted(name: str) -> None:
    assert limits.tool_problem(RegisterTool(name, "d", Raw(b'{"type":"object"}')), 0) is None
    assert limits.tool_problem(RegisterTool(name), limits.TOOL_LIMIT - 1) is None


@pytest.mark.parametrize("name", ["", "a/b", "a b", "a\n", "\n", "A" * 65, "ä", "a" * 100_000])
def test_a_tool_with_a_name_no_model_takes_is_refused_by_name(name: str) -> None:
    reason = limits.tool_problem(RegisterTool(name), 0)
    assert reason and repr(name[:64])[:-1] in reason
    assert len(reason) < 300 and "\n" not in reason


@pytest.mark.parametrize(
    ("tool", "others", "word"),
    [
        (RegisterTool("x"), limits.TOOL_LIMIT, "256"),
        (RegisterTool("x", "é" * (limits.DESCRIPTION_LIMIT // 2) + "d"), 0, "description"),
        (RegisterTool("x", schema=Raw(b'{"a":"%b"}' % (b"y" * limits.SCHEMA_LIMIT))), 0, "schema"),
        (RegisterTool("x", output_schema=Raw(b'{"a":"%b"}' % (b"y" * limits.SCHEMA_LIMIT))), 0, "output_schema"),
        (RegisterTool("x", schema=Raw(b"[]")), 0, "object"),
        (RegisterTool("x", schema=Raw(b'{"a":1e999}')), 0, "schema"),
        (RegisterTool("x", exposure="secret"), 0, "exposure"),
    ],
)
def test_a_tool_beyond_a_limit_is_refused_by_name(tool: RegisterTool, others: int, word: str) -> None:
    reason = limits.tool_problem(tool, others)
    assert reason and reason.startswith("tool x: ") and word in reason


def test_what_is_exactly_at_a_limit_is_accepted() -> None:
    schema = b'{"a":"%b"}'
    schema = schema % (b"y" * (limits.SCHEMA_LIMIT - len(schema) + 2))
    assert len(schema) == limits.SCHEMA_LIMIT
    tool = RegisterTool("x", "d" * limits.DESCRIPTION_LIMIT, Raw(schema), Raw(schema), exposure="model-only")
    assert limits.tool_problem(tool, 0) is None


@pytest.mark.parametrize("name", ["todo", "git:status", "größe", "x" * 64])
def test_a_command_may_have_any_name_of_one_word(name: str) -> None:
    assert limits.command_problem(RegisterCommand(name), limits.COMMAND_LIMIT - 1) is None


@pytest.mark.parametrize("name", ["", "/todo", "a b", "a\tb", "a\x1b[2J", "a\u2028b", "x" * 65])
def test_a_command_nobody_could_type_is_refused(name: str) -> None:
    assert "command name" in (limits.command_problem(RegisterCommand(name), 0) or "")


def test_a_command_beyond_a_limit_is_refused() -> None:
    assert "256" in (limits.command_problem(RegisterCommand("x"), limits.COMMAND_LIMIT) or "")
    assert "description" in (
        limits.command_problem(RegisterCommand("x", "d" * (limits.DESCRIPTION_LIMIT + 1)), 0) or ""
    )


@pytest.mark.parametrize(("kind", "needed"), limits.KINDS.items())
def test_each_kind_of_contribution_needs_its_name(kind: str, needed: str) -> None:
    assert limits.register_problem(structs.replace(Register(kind), **{needed: "x"})) is None
    assert needed in (limits.register_problem(Register(kind)) or "")


def test_an_unknown_kind_of_contribution_is_refused_with_the_known_ones() -> None:
    reason = limits.register_problem(Register("tool", name="x"))
    assert reason and "'tool'" in reason and "prompt_section" in reason
    assert "description" in (limits.register_problem(Register("shortcut", key="k", description="d" * 9000)) or "")
