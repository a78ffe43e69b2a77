"""Extensions of both dialects on a real screen: all that they can show, ask, take and be asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from hilt.frontends.terminal import MARK
from support.agent import calls, says
from support.hilt_process import Hilt, until
from support.leftovers import end_all_in
from support.offerer import Ask
from support.offering import heard, offering
from support.screen import Terminal, needs_tmux

pytestmark = needs_tmux
BOTH = pytest.mark.parametrize("dialect", ["frames", "jsonrpc"])


def _do(ask: Ask) -> Any:
    """Tell, or ask, the host whatever the test wants."""
    import json

    answers = []
    for method, params in json.loads(ask.params["args"]):
        if method.startswith("host/"):
            answers.append(ask.host(method.removeprefix("host/"), **params))
        else:
            ask.tell(method, **params)
    if answers:
        ask.tell("showMessage", text=f"was told {json.dumps(answers)}")
    return {}


def _pressed(ask: Ask) -> Any:
    ask.tell("notify", message=f"pressed {ask.params['key']}", level="success")


def _slowly(ask: Ask) -> Any:
    ask.tell("tool/progress", callId=ask.params["callId"], text="two of three rows\n")
    ask.wait_for("go on")
    return {"content": [{"type": "text", "text": "all three rows"}]}


def gardener(hilt: Hilt, dialect: Any, **more: Any) -> Path:
    return offering(
        "gardener",
        ("command", {"name": "do", "description": "does things", "immediate": True}),
        ("shortcut", {"key": "f5", "description": "a key"}),
        ("shortcut", {"key": "ctrl+c", "description": "hilt's own"}),
        ("command", {"name": "help", "description": "hilt's own"}),
        ("tool", {"name": "sow", "description": "sows", "parameters": {"type": "object"}}),
        answers={"command/execute": _do, "shortcut/handle": _pressed, "tool/execute": _slowly},
        dialect=dialect,
        **more,
    ).write(hilt.folder)


def started(hilt: Hilt, *arguments: str, **more: Any) -> Terminal:
    return Terminal(hilt.command(*arguments), hilt.environment, hilt.project, **more)


def do(terminal: Terminal, *told: tuple[str, dict[str, Any]]) -> None:
    terminal.type(f"/do {json.dumps(told)}")
    terminal.press("Enter")


@BOTH
def test_everything_that_an_extension_can_show_is_shown_with_its_name(hilt: Hilt, dialect: Any) -> None:
    with started(hilt, *hilt.script(says("well said")), "--ext", str(gardener(hilt, dialect)), rows=30) as terminal:
        terminal.wait_for("✓ 1 extension")
        do(
            terminal,
            ("setWidget", {"key": "a", "placement": "above-input", "content": "rows: \x1b[32mthree\x1b[0m"}),
            ("setWidget", {"key": "b", "placement": "below-status", "content": "rain at six"}),
            ("setStatus", {"key": "s", "text": "two weeds"}),
            ("notify", {"message": "a frost is coming", "level": "warn"}),
            ("showMessage", {"text": "a \x1b[1mlong\x1b[0m story"}),
            ("setInputText", {"text": "water the beets"}),
            ("showOverlay", {"key": "k", "title": "Keys", "content": "a adds", "anchor": "top-right", "width": "30"}),
        )
        for text in ("gardener  rows: three", "gardener  rain at six", "gardener: two weeds", "a frost is coming"):
            terminal.wait_for(text)
        screen = terminal.wait_for("› water the beets")
        rows = screen.split("\n")
        assert "gardener Keys" in rows[0] and rows[0].index("gardener Keys") > 40
        assert "[gardener]" in screen and "a long story" in screen
        assert "gardener" in next(row for row in rows if "a frost" in row)
        assert any("gardener" in row and "water the beets" not in row for row in rows[-8:-4])  # who wrote that
        terminal.press_until("Enter", "well said")  # not at once: the user is to see what it is
        terminal.press("Escape")
        terminal.wait_until_gone("a adds")
        do(
            terminal,
            ("setWidget", {"key": "a", "placement": "above-input", "content": ""}),
            ("setStatus", {"key": "s"}),
        )
        terminal.wait_until_gone("rows: three")
        terminal.wait_until_gone("two weeds")


@BOTH
def test_a_picker_and_a_question_are_answered_or_dismissed_and_always_say_so(hilt: Hilt, dialect: Any) -> None:
    items = [{"id": "b", "label": "beets"}, {"id": "t", "label": "turnips", "description": "round"}]
    picker = ("host/showPicker", {"title": "Which?", "items": items})
    question = ("host/askUser", {"prompt": "Now?", "choices": ["at once", "tomorrow"]})
    with started(hilt, *hilt.script(), "--ext", str(gardener(hilt, dialect)), rows=30) as terminal:
        terminal.wait_for("✓ 1 extension")
        do(terminal, picker)
        terminal.wait_for("gardener › Which?")
        terminal.wait_for("turnips")
        answered(terminal, "turn", "Enter")
        screen = terminal.wait_for("was told")
        assert '"t"' in screen and MARK not in screen
        do(terminal, question)
        terminal.wait_for("gardener › asks you")
        answered(terminal, "2")
        terminal.wait_for('"selected": "tomorrow"')
        do(terminal, picker)
        terminal.wait_for("gardener › Which?")
        answered(terminal, "", "Escape")
        terminal.wait_for('was told [{"selected": ""')
        do(terminal, question)
        terminal.wait_for("gardener › asks you")
        answered(terminal, "", "Escape")
        terminal.wait_for('"cancelled": true')


def answered(terminal: Terminal, text: str, *keys: str) -> None:
    """Once it listens: what is typed in the first moment is for something else."""
    terminal.wait_until(lambda screen: "does not count" not in screen and "Esc" in screen, "it listens")
    if text:
        terminal.type(text)
    if keys:
        terminal.press(*keys)


@BOTH
def test_a_shortcut_is_the_extensions_unless_it_is_hilts_own(hilt: Hilt, dialect: Any) -> None:
    # U7: the built-in wins, and the user is told.
    with started(hilt, *hilt.script(), "--ext", str(gardener(hilt, dialect)), rows=40) as terminal:
        terminal.wait_for("✓ 1 extension")
        terminal.press("F5")
        terminal.wait_for("pressed f5")
        screen = terminal.wait_for("conflict")
        assert "help" in screen and "gardener" in screen
        assert "ctrl+c" in terminal.wait_for("ctrl+c")
        terminal.type("/help")
        terminal.press("Enter")
        terminal.wait_for("─ help ")
        terminal.press("Escape")
        terminal.wait_until_gone("─ help ")
        terminal.press("C-c")
        terminal.wait_for("ctrl+c again to leave")
    assert [one["params"]["key"] for one in heard(hilt.folder / "gardener", "shortcut/handle")] == ["f5"]


@BOTH
def test_the_progress_of_a_tool_is_seen_before_its_result(hilt: Hilt, dialect: Any) -> None:
    folder = gardener(hilt, dialect)
    with started(hilt, *hilt.script(calls(("sow", {})), says("well sown")), "--ext", str(folder)) as terminal:
        terminal.wait_for("✓ 1 extension")
        terminal.type("sow")
        terminal.press("Enter")
        screen = terminal.wait_for("two of three rows")
        assert "gardener" in screen and "well sown" not in screen
        (folder / "go on").touch()
        terminal.wait_for("all three rows")
        terminal.wait_for("well sown")


@BOTH
def test_words_of_an_extension_carry_its_name_and_start_a_turn(hilt: Hilt, dialect: Any) -> None:
    with started(hilt, *hilt.script(says("at once")), "--ext", str(gardener(hilt, dialect))) as terminal:
        terminal.wait_for("✓ 1 extension")
        do(terminal, ("sendMessage", {"content": "please water"}))
        terminal.wait_for("at once")
        assert "gardener" in next(row for row in terminal.screen() if "gardener" in row and "extension" not in row)
        assert "please water" in terminal.text


@BOTH
def test_a_panel_goes_with_its_owner_and_comes_back_with_it(hilt: Hilt, dialect: Any) -> None:
    # U3, with a real kill.
    folder = gardener(hilt, dialect)
    with started(hilt, *hilt.script(says("well said")), "--ext", str(folder)) as terminal:
        terminal.wait_for("✓ 1 extension")
        do(terminal, ("panel/open", {"panel_id": "p", "title": "Rows", "lines": ["beets", "turnips"]}))
        terminal.wait_for("┃ turnips")
        terminal.press("Down")
        until(lambda: any("key" in one["method"] for one in heard(folder)), "it hears the key")
        end_all_in(folder)
        terminal.wait_for("gardener is gone")
        terminal.wait_until(lambda screen: "is gone" not in screen and "✓ 1 extension" in screen, "it is back")
        terminal.wait_for("┃ turnips")
        terminal.press("Escape")
        terminal.wait_until_gone("turnips")
        terminal.type("hello")
        terminal.press("Enter")
        terminal.wait_for("well said")


def test_two_extensions_that_ask_at_once_are_asked_one_after_the_other(hilt: Hilt) -> None:
    # U5
    def nosy(name: str, dialect: Any) -> str:
        made = offering(
            name,
            ("command", {"name": f"do-{name}", "immediate": True}),
            answers={"command/execute": _do},
            dialect=dialect,
        )
        return str(made.write(hilt.folder))

    extensions = ["--ext", nosy("beet", "frames"), "--ext", nosy("leek", "jsonrpc")]
    with started(hilt, *hilt.script(), *extensions) as terminal:
        terminal.wait_for("✓ 2 extensions")
        for name in ("beet", "leek"):
            asked = json.dumps([("host/askUser", {"prompt": f"May {name} grow?", "choices": ["yes", "no"]})])
            terminal.type(f"/do-{name} {asked}")
            terminal.press("Enter")
            if name == "beet":
                terminal.wait_for("beet › asks you")
                break
        terminal.wait_for("May beet grow?")
