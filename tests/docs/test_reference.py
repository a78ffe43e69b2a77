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
from hilt.agent.parts import NoExtensions
from hilt.cli import ext, narrowing
from hilt.cli.config import Background, Config, Guards, Retry
from hilt.cli.ext.listing import Row
from hilt.cli.wanted import PROJECT_PLACES
from hilt.commands.builtin import CommandParts, builtin_commands
from hilt.context.skills import Skill
from hilt.frontends.encode import event_json
from hilt.home import Home
from hilt.model.contributions import Tool
from hilt.model.conversation import StopReason, Usage
from hilt.model.events import Event, PromptSubmitted, RunStarted, StepLimitReached, TrustAsked
from hilt.model.models import ModelInfo
from hilt.packages import choices, layout
from hilt.packages.checkup import Finding
from hilt.providers.script import CallLine, Expectation, StatusLine, TextLine, ThinkingLine, Turn, UsageLine
from hilt.providers.usermodels import UserModel
from hilt.providers.vendors import PROVIDERS, Vendor
from hilt.registry.registry import Registry
from hilt.sessions.journal import Journal
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
EXPANDED = {"ui_request": {"request", "commands", "text"}, "usage": {"usage"}}
"""Fields whose parts stand in the JSON in their place."""
UNTOLD = {"tool_result": {"status", "executed", "args", "invalid", "details"}, "tool_call": {"known"}}
"""Fields that extensions may observe and clients are not told."""
TOLD = [kind for kind in get_args(Event) if kind not in (PromptSubmitted, RunStarted, StepLimitReached)]


def _text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def _row(name: str, key: str) -> str:
    """The row of a table that begins with this code."""
    for line in _text(name).splitlines():
        if line.startswith(f"| `{key}`"):
            return line
    raise AssertionError(f"docs/{name}: no row begins with `{key}`")


def _section(name: str, title: str) -> str:
    """What stands under a heading, up to the next of its rank."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^\1 |^## |\Z)", _text(name), re.DOTALL | re.MULTILINE)
    assert found, f"docs/{name} has no heading {title!r}"
    return found[2]


def _named(section: str) -> list[str]:
    """What the rows of its tables are about: all code in their first cells."""
    rows = [line for line in section.split("\n") if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


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
    assert set(shown["background"]) == set(Background.__struct_fields__)
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


def test_every_choice_about_an_extension_has_a_row_and_stands_in_the_example() -> None:
    section = _section("reference/configuration.md", "extensions")
    fields = choices.Choices.__struct_fields__
    assert sorted(_named(section)) == sorted(fields)
    (off,) = [line for line in section.split("\n") if line.startswith("| `off`")]
    assert [kind for kind in get_args(choices.Part) if f"`{kind}:" not in off] == []
    example = next(fence for fence in fences_of(DOCS / "reference/configuration.md") if "[extensions.w" in fence.text)
    (shown,) = tomllib.loads(example.text)["extensions"].values()
    assert set(shown) == set(fields) and msgspec.convert(shown, choices.Choices).sandbox == shown["sandbox"]


def test_everything_a_project_may_narrow_is_described() -> None:
    section = _section("reference/configuration.md", "A project's own file")
    assert [name.partition(".")[0] for name in _named(section)] == [*narrowing._FIELDS, "extensions"]
    (own,) = [line for line in section.split("\n") if line.startswith("| `extensions")]
    assert [name for name in narrowing._Own.__struct_fields__ if f"`{name}" not in own] == []


def test_every_file_of_hilts_home_is_described(tmp_path: Path) -> None:
    home = Home(tmp_path)
    made = [getattr(home, name) for name, kind in vars(Home).items() if isinstance(kind, property)]
    assert len(made) > 12
    text = _text("reference/configuration.md") + (ROOT / "README.md").read_text(encoding="utf-8")
    names = [str(path.relative_to(tmp_path)) for path in made]
    assert [name for name in names if name not in text] == []
    assert [place for place in PROJECT_PLACES if place not in _text("concepts/lifecycle.md")] == []


def test_every_verb_of_ext_is_in_the_readme_and_every_field_of_its_lists_in_the_reference() -> None:
    verbs = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(re.findall(r"\w+", " ".join(verbs))) == sorted(ext._VERBS)
    listed = [name for name in _named(_section("reference/cli.md", "hilt ext list")) if not name.startswith("--")]
    assert sorted(listed) == sorted(Row.__struct_fields__)
    validated = _section("reference/cli.md", "hilt ext validate")
    assert [field for field in Finding.__struct_fields__ if f"`{field}`" not in validated] == []
    caps = f"at most {layout.CAPS.entries:,} files and folders and {layout.CAPS.size >> 20} MiB"
    assert caps in " ".join(_text("reference/cli.md").split())


def test_a_question_of_trust_is_described_with_its_fields() -> None:
    question = event_json(TrustAsked("1", "/p", (("project:x", ("x",)),), "all"))
    assert sorted(_named(_section("reference/rpc.md", "Trust"))) == sorted(question.keys() - {"type"})
    (row,) = [line for line in _text("concepts/events.md").split("\n") if line.startswith("| `ui_request`")]
    assert [field for field in question.keys() - {"type"} if f"`{field}`" not in row] == []


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
    assert _row("concepts/sessions.md", record.TYPE)


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
        journal=Journal(SessionLog.in_memory(new_meta(str(tmp_path), "demo", "demo"))),
        store=SessionStore(tmp_path),
        skills=(),
        models=list,
        model=lambda: ModelInfo("demo", "demo"),
        usage=Usage,
        extensions=NoExtensions,
    )
    everywhere = _text("reference/commands.md").partition("\n## ")[0]
    described = re.findall(r"^\| `/([\w-]+)`", everywhere, re.MULTILINE)
    assert described == [command.name for command in builtin_commands(parts)]


def test_every_module_about_extensions_on_disk_is_in_the_overview() -> None:
    modules = {path.stem for path in (ROOT / "src/hilt/packages").rglob("*.py")} - {"__init__"}
    named = set(_named(_section("concepts/architecture.md", "How an extension comes to be started")))
    assert {name for name in named if not name.endswith("/")} == modules


def test_every_package_is_in_the_drawing_of_the_tree() -> None:
    packages = {path.parent.name for path in (ROOT / "src/hilt").glob("*/__init__.py")}
    drawn = set(re.findall(r"^  (\w+)/ ", _text("concepts/architecture.md"), re.MULTILINE))
    assert drawn == packages


def test_every_part_of_what_runs_extensions_is_in_the_drawing_of_it() -> None:
    source, text = ROOT / "src/hilt/extensions", _text("concepts/architecture.md")
    packages = {path.parent.name for path in source.glob("*/__init__.py")}
    assert set(re.findall(r"^extensions/(\w+) ", text, re.MULTILINE)) == packages
    drawn = re.findall(r"^ [├└] ((?:\w+, )*\w+) ", text.partition("extensions/methods ")[2], re.MULTILINE)
    modules = {path.stem for path in (source / "methods").glob("*.py")} - {"__init__", "methods"}
    assert {name for names in drawn for name in names.split(", ")} >= modules
