"""Panels and the rest in a real terminal, with the real program and a real extension."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.agent import says
from support.hilt_process import Hilt
from support.offerer import Ask
from support.offering import heard, offering
from support.screen import Terminal, needs_tmux

pytestmark = needs_tmux


def show(ask: Ask) -> Any:
    for method, params in json.loads(ask.params["args"]):
        ask.tell(method, **params)


def note(ask: Ask) -> Any:
    ask.tell("notify", message=f"pressed {ask.params['key']}", level="success")


def started(hilt: Hilt, folder: Path, dialect: Any, columns: int = 80, rows: int = 24) -> Terminal:
    offers = ("command", {"name": "show", "immediate": True}), ("shortcut", {"key": "f5", "description": "a key"})
    answers = {"command/execute": show, "shortcut/handle": note}
    extension = offering("demo", *offers, answers=answers, dialect=dialect).write(folder)
    arguments = [*hilt.script(says("well said")), "--ext", str(extension)]
    return Terminal(hilt.command(*arguments), hilt.environment, hilt.project, columns=columns, rows=rows)


def told(folder: Path) -> list[tuple[Any, ...]]:
    return [
        (params["key"], params.get("text", "")) if "key" in params else (params.get("width"), params.get("height"))
        for params in (one["params"] for one in heard(folder / "demo") if one["method"].startswith("panel"))
    ]


@pytest.mark.parametrize("dialect", ["frames", "jsonrpc"])
def test_a_panel_is_a_conversation_in_a_real_terminal(hilt: Hilt, tmp_path: Path, dialect: str) -> None:
    panel = {"panel_id": "p", "title": "Today", "lines": ["\x1b[1mmilk\x1b[0m", "日本語 bread"], "footer": "q quits"}
    with started(hilt, tmp_path, dialect) as terminal:
        terminal.wait_for("1 extension")
        terminal.type(f"/show {json.dumps([('panel/open', panel)])}")
        terminal.press("Enter")
        terminal.wait_for("┃ 日本語 bread")
        terminal.press("Down", "Enter", "BSpace", "NPage", "é")
        terminal.resize(40, 30)
        terminal.wait_until(lambda screen: "━" * 20 in screen and "━" * 40 not in screen, "a narrower box")
        terminal.press("x", "Escape")
        terminal.wait_until_gone("bread")
        terminal.type("hello")
        terminal.wait_for("› hello")
    expected = [("down", ""), ("enter", ""), ("backspace", ""), ("pagedown", ""), ("rune", "é"), ("rune", "x")]
    assert [one for one in told(tmp_path) if isinstance(one[0], str)] == expected
    assert [one for one in told(tmp_path) if isinstance(one[0], int)] == [(76, 11), (36, 15)]
    assert told(tmp_path)[-1] == (None, None)  # its end


def test_everything_around_the_input_fits_40_columns(hilt: Hilt, tmp_path: Path) -> None:
    shown = [
        ("setWidget", {"key": "a", "placement": "above-input", "content": "on \x1b[32mmain\x1b[0m " + "x" * 80}),
        ("setWidget", {"key": "b", "placement": "below-status", "content": "日本語" * 20}),
        ("showOverlay", {"key": "k", "title": "Keys", "content": "a adds", "anchor": "top-right", "width": "50%"}),
        ("notify", {"message": "look at this " * 5, "level": "warn"}),
    ]
    with started(hilt, tmp_path, "frames", columns=40, rows=20) as terminal:
        terminal.wait_for("1 extension")
        terminal.type(f"/show {json.dumps(shown)}")
        terminal.press("Enter")
        for text in ("demo  on main", "demo  日本語", "╔═ demo Keys", "! demo look at this"):
            terminal.wait_for(text)
        terminal.press("F5")
        terminal.wait_for("✓ demo pressed f5")
        terminal.press("Escape")
        terminal.wait_until_gone("a adds")
        terminal.press("Escape")
        terminal.wait_until_gone("look at this")
        terminal.wait_for("demo  on main")
