"""What may be registered, and that a refusal says why."""

import pytest
from msgspec import Raw

from hilt.extensions import offered as limits
from hilt.extensions.offered import OfferedCommand, OfferedShortcut, OfferedTool


@pytest.mark.parametrize("name", ["a", "add_two-3", "A" * 64])
def test_an_ordinary_tool_is_accepted(name: str) -> None:
    assert limits.tool_problem(OfferedTool(name, "d", Raw(b'{"type":"object"}')), 0) is None
    assert limits.tool_problem(OfferedTool(name), limits.TOOL_LIMIT - 1) is None


@pytest.mark.parametrize("name", ["", "a/b", "a b", "a\n", "\n", "A" * 65, "ä", "a" * 100_000])
def test_a_tool_with_a_name_no_model_takes_is_refused_by_name(name: str) -> None:
    reason = limits.tool_problem(OfferedTool(name), 0)
    assert reason and repr(name[:64])[:-1] in reason
    assert len(reason) < 300 and "\n" not in reason


@pytest.mark.parametrize(
    ("tool", "others", "word"),
    [
        (OfferedTool("x"), limits.TOOL_LIMIT, "256"),
        (OfferedTool("x", "é" * (limits.DESCRIPTION_LIMIT // 2) + "d"), 0, "description"),
        (OfferedTool("x", schema=Raw(b'{"a":"%b"}' % (b"y" * limits.SCHEMA_LIMIT))), 0, "schema"),
        (OfferedTool("x", output_schema=Raw(b'{"a":"%b"}' % (b"y" * limits.SCHEMA_LIMIT))), 0, "output_schema"),
        (OfferedTool("x", schema=Raw(b"[]")), 0, "object"),
        (OfferedTool("x", schema=Raw(b'{"a":1e999}')), 0, "schema"),
        (OfferedTool("x", exposure="secret"), 0, "exposure"),
    ],
)
def test_a_tool_beyond_a_limit_is_refused_by_name(tool: OfferedTool, others: int, word: str) -> None:
    reason = limits.tool_problem(tool, others)
    assert reason and reason.startswith("tool x: ") and word in reason


def test_what_is_exactly_at_a_limit_is_accepted() -> None:
    schema = b'{"a":"%b"}'
    schema = schema % (b"y" * (limits.SCHEMA_LIMIT - len(schema) + 2))
    assert len(schema) == limits.SCHEMA_LIMIT
    tool = OfferedTool("x", "d" * limits.DESCRIPTION_LIMIT, Raw(schema), Raw(schema), exposure="model-only")
    assert limits.tool_problem(tool, 0) is None


@pytest.mark.parametrize("name", ["todo", "git:status", "größe", "x" * 64])
def test_a_command_may_have_any_name_of_one_word(name: str) -> None:
    assert limits.command_problem(OfferedCommand(name), limits.COMMAND_LIMIT - 1) is None


@pytest.mark.parametrize("name", ["", "/todo", "a b", "a\tb", "a\x1b[2J", "a\u2028b", "x" * 65])
def test_a_command_nobody_could_type_is_refused(name: str) -> None:
    assert "command name" in (limits.command_problem(OfferedCommand(name), 0) or "")


def test_a_command_beyond_a_limit_is_refused() -> None:
    assert "256" in (limits.command_problem(OfferedCommand("x"), limits.COMMAND_LIMIT) or "")
    assert "description" in (limits.command_problem(OfferedCommand("x", "d" * (limits.DESCRIPTION_LIMIT + 1)), 0) or "")


def test_a_shortcut_has_a_key_and_no_more_words_than_a_command() -> None:
    assert limits.shortcut_problem(OfferedShortcut("ctrl+g", "d" * limits.DESCRIPTION_LIMIT)) is None
    assert "key is missing" in (limits.shortcut_problem(OfferedShortcut("")) or "")
    long = OfferedShortcut("k", "d" * (limits.DESCRIPTION_LIMIT + 1))
    assert "description" in (limits.shortcut_problem(long) or "")
