"""The reference names everything there is, so that adding something and not describing it fails."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from docs.fences import ROOT, fences_of
from hilt.agent.session import NoExtensions
from hilt.cli.config import Config, Guards, Retry
from hilt.commands.builtin import CommandParts, builtin_commands
from hilt.context.skills import Skill
from hilt.model.contributions import Tool
from hilt.model.conversation import StopReason, Usage
from hilt.model.events import Event, PromptSubmitted
from hilt.model.models import ModelInfo
from hilt.providers.script import CallLine, Expectation, StatusLine, TextLine, ThinkingLine, Turn, UsageLine
from hilt.providers.usermodels import UserModel
from hilt.providers.vendors import PROVIDERS, Vendor
from hilt.registry.registry import Registry
from hilt.sessions.log import SessionLog
from hilt.sessions.records import KnownRecord, new_meta
from hilt.sessions.store import SessionStore
from hilt.tools import builtin_tools
from hilt.tools.jail import Jail
from hilt.tools.job import Limits
from hilt.tools.read import MOST_BYTES, MOST_LINES
from hilt.tools.shell import Shell
from hilt.tools.workspace import Workspace

DOCS = ROOT / "docs"
EXPANDED = {"ui_request": {"request"}, "usage": {"usage"}}
"""Fields whose parts stand in the JSON in their place."""
UNTOLD = {"tool_result": {"status", "executed", "args", "invalid"}}
"""Fields that extensions may observe and clients are not told."""
TOLD = [kind for kind in get_args(Event) if kind is not PromptSubmitted]


def _text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def _row(name: str, key: str) -> str:
    """The row of a table that begins with this code."""
    for line in _text(name).splitlines():
        if line.startswith(f"| `{key}`"):
            return line
    raise AssertionError(f"docs/{name}: no row begins with `{key}`")


def test_the_tables_of_flags_are_those_of_the_parsers() -> None:
    script = ROOT / "scripts" / "write_cli_reference.py"
    checked = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, timeout=30)
    assert checked.returncode == 0, checked.stderr


def test_a_flag_that_is_not_in_the_reference_is_noticed(tmp_path: Path) -> None:
    copy = tmp_path / "scripts" / "write_cli_reference.py"
    reference = tmp_path / "docs" / "reference" / "cli.md"
    for path in (copy, reference):
        path.parent.mkdir(parents=True)
    copy.write_text((ROOT / "scripts" / copy.name).read_text(encoding="utf-8"), encoding="utf-8")
    reference.write_text(_text("reference/cli.md").replace("| `--jail`", "| `--goal`"), encoding="utf-8")
    checked = subprocess.run([sys.executable, copy, "--check"], capture_output=True, text=True, timeout=30)
    assert checked.returncode == 1 and "out of date" in checked.stderr


def test_the_example_configuration_has_every_field_at_its_default() -> None:
    block = next(fence for fence in fences_of(DOCS / "reference/configuration.md") if fence.language == "toml")
    shown = tomllib.loads(block.text)
    assert set(shown) == set(Config.__struct_fields__) and set(shown["retry"]) == set(Retry.__struct_fields__)
    assert set(re.findall(r"^(?:# )?(\w+) = ", block.text.partition("[guards]")[2], re.MULTILINE)) == set(
        Guards.__struct_fields__
    )
    # TOML has no null: what an absent choice amounts to is shown instead.
    assert msgspec.convert(shown, Config) == msgspec.structs.replace(Config(), permissions="yolo")


def test_every_variable_that_is_read_from_the_environment_is_listed() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r'os\.environ(?:\.get\(|\[)"(\w+)"', source))
    read.update(name for vendor in PROVIDERS.values() for name in vendor.env)
    assert len(read) > 5
    assert [name for name in sorted(read) if f"`{name}`" not in _text("reference/configuration.md")] == []


def test_every_field_of_a_model_of_ones_own_is_described() -> None:
    described = _text("reference/configuration.md")
    assert [name for name in UserModel.__struct_encode_fields__ if f"`{name}`" not in described] == []


@pytest.mark.parametrize("vendor", PROVIDERS.values(), ids=lambda vendor: str(vendor.name))
def test_every_provider_stands_in_the_table_with_its_default_and_its_keys(vendor: Vendor) -> None:
    row = _row("guides/models-and-keys.md", vendor.name)
    for word in (vendor.default_model, *vendor.env, *vendor.aliases):
        assert not word or f"`{word}`" in row


@pytest.mark.parametrize("event", TOLD, ids=lambda event: str(event.__struct_config__.tag))
def test_every_event_is_described_with_its_fields(event: Any) -> None:
    tag = event.__struct_config__.tag
    row = _row("concepts/events.md", tag)
    fields = set(event.__struct_fields__) - EXPANDED.get(tag, set()) - UNTOLD.get(tag, set())
    assert [field for field in fields if f"`{field}`" not in row] == []


def test_every_way_a_prompt_can_end_is_described() -> None:
    for stop in get_args(StopReason):
        assert _row("concepts/events.md", stop)


@pytest.mark.parametrize("record", get_args(KnownRecord), ids=lambda record: str(record.TYPE))
def test_every_record_of_a_session_is_described(record: Any) -> None:
    assert _row("concepts/session-log.md", record.TYPE)


@pytest.mark.parametrize("kind", [Turn, TextLine, ThinkingLine, CallLine, UsageLine, StatusLine, Expectation])
def test_every_field_of_a_script_is_described(kind: Any) -> None:
    text = _text("reference/script-model.md")
    assert [field for field in kind.__struct_fields__ if f"`{field}`" not in text] == []


async def test_every_tool_is_described_with_its_arguments_and_its_effect(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, Jail(tmp_path), tmp_path / "outputs")
    async with Shell() as shell:
        tools = builtin_tools(workspace, shell, [Skill("a", "b", tmp_path / "SKILL.md", "project")])
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", _text("reference/tools.md"), re.DOTALL | re.MULTILINE))
    assert list(sections) == [tool.name for tool in tools]
    for tool in tools:
        missing = [name for name in _arguments(tool.schema) if not re.search(rf"`[^`]*\b{name}`", sections[tool.name])]
        assert missing == [], tool.name
        assert _overview(tool) in _text("reference/tools.md")


def _overview(tool: Tool) -> str:
    effect = {"read": "reads", "write": "writes", "execute": "executes"}[tool.effect]
    return f"| [`{tool.name}`](#{tool.name}) | {effect} | {'yes' if tool.parallel else 'no'} |"


def _arguments(schema: dict[str, Any]) -> list[str]:
    """Every name in a schema, at any depth."""
    names: list[str] = []
    for name, value in schema.get("properties", {}).items():
        names += [name, *_arguments(value), *_arguments(value.get("items", {}))]
    return names


def test_the_limits_of_the_tools_are_those_of_the_code() -> None:
    text = _text("reference/tools.md")
    assert f"{MOST_LINES:,} lines or {MOST_BYTES:,} bytes" in text
    assert f"more than {Limits().flood >> 20} MiB" in text
    assert f"after {Limits().grace:g} s" in text


def test_every_slash_command_is_described_and_no_other(tmp_path: Path) -> None:
    parts = CommandParts(
        registry=Registry(),
        cwd=str(tmp_path),
        log=SessionLog.in_memory(new_meta(str(tmp_path), "demo", "demo")),
        store=SessionStore(tmp_path),
        skills=(),
        models=list,
        model=lambda: ModelInfo("demo", "demo"),
        usage=Usage,
        extensions=NoExtensions,
    )
    described = re.findall(r"^\| `/([\w-]+)`", _text("reference/commands.md"), re.MULTILINE)
    assert described == [command.name for command in builtin_commands(parts)]


def test_every_package_is_in_the_drawing_of_the_tree() -> None:
    packages = {path.parent.name for path in (ROOT / "src/hilt").glob("*/__init__.py")}
    drawn = set(re.findall(r"^  (\w+)/ ", _text("concepts/architecture.md"), re.MULTILINE))
    assert drawn == packages
