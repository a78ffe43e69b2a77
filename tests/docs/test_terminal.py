"""What the documents say about the terminal interface: keys, commands, themes, parts."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

from textual.binding import Binding

from docs.fences import ROOT, fences_of
from hilt.frontends.tui import themes
from hilt.frontends.tui.app import HiltApp
from hilt.frontends.tui.commands.reading import KEYS
from hilt.frontends.tui.commands.table import HERE, OWN
from hilt.frontends.tui.editor.completion import Completion
from hilt.frontends.tui.editor.editor import Editor
from hilt.frontends.tui.look import DARK, Look, Palette

DOCS = ROOT / "docs"
_SPELT = {
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "escape": "Esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "underscore": "_",
    "minus": "-",
}


def text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def section(name: str, heading: str) -> str:
    return re.split(r"^## ", text(name).partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]


def keys_in(heading: str) -> set[str]:
    """Those of the first column of its table."""
    rows = re.findall(r"^\| (`[^|]*) \|", section("reference/keys.md", heading), re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`([^`]+)`", row)}


def spelt(key: str) -> str:
    return "-".join(_SPELT.get(part, part.capitalize()) for part in key.split("+"))


def test_the_keys_at_a_glance_are_those_that_help_shows() -> None:
    rows = re.findall(r"^\| (.*) \| (.*) \|$", section("reference/keys.md", "At a glance"), re.MULTILINE)
    assert rows == [*KEYS]


def test_every_key_of_the_application_is_described_and_no_other() -> None:
    bound = {spelt(one.key) for one in HiltApp.BINDINGS if isinstance(one, Binding)}
    assert len(bound) == len(HiltApp.BINDINGS)
    assert keys_in("Anywhere but in dialogs and panels") == bound


def test_every_key_of_the_input_is_described_and_no_other() -> None:
    look = Look.of(DARK)
    assert keys_in("In the input") == {spelt(key) for key in Editor(look, Completion(look)).keys}


def test_every_command_of_the_terminal_and_every_dialog_is_described() -> None:
    described = re.findall(r"^\| `/([\w-]+)`", section("reference/commands.md", "In the terminal"), re.MULTILINE)
    assert described == [*OWN]
    opened = section("reference/commands.md", "What opens a dialog")
    assert re.findall(r"^\| `/([\w -]+)`", opened, re.MULTILINE) == [*HERE]


def test_every_colour_of_a_theme_is_described_and_the_example_can_be_used(tmp_path: Path) -> None:
    described = section("reference/configuration.md", "themes")
    table = described.partition("| name | of what |")[2]
    colours = [field.name for field in fields(Palette) if field.name != "dark"]
    rows = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)]
    assert [name for row in rows for name in row] == ["base", *colours]
    [example] = [fence for fence in fences_of(DOCS / "reference/configuration.md") if "themes/" in fence.saved_as]
    (tmp_path / "dusk.toml").write_text(example.text, encoding="utf-8")
    assert themes.find("dusk", tmp_path).accent == tomllib.loads(example.text)["accent"]
    assert [name for name in themes.BUILTIN if f"`{name}`" not in described] == []


def test_every_part_of_the_interface_is_in_the_drawing_of_it() -> None:
    source = ROOT / "src/hilt/frontends/tui"
    there = {path.name for path in source.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    drawn = section("concepts/architecture.md", "The terminal interface")
    named = re.findall(r"^ ?[ ├└│]* ?((?:\w+(?:\.py|/), )*\w+(?:\.py|/)) ", drawn, re.MULTILINE)
    parts = {one.rstrip("/") for names in named for one in names.split(", ")}
    assert parts == there - {"__init__.py"}
