"""Shortcuts of real extensions, what they may not take, and what an extension may not do without the user."""

from pathlib import Path

import pytest
from textual.screen import ModalScreen

from hilt.frontends.tui.app import HiltApp
from hilt.frontends.tui.editor.editor import Editor
from hilt.frontends.tui.surfaces.keys import OURS, normal, ours, panel_key
from hilt.model.actions import Quit
from support.agent import calls, says
from support.extending import chaos
from support.interface import interface
from support.offering import heard
from support.showing import order, panel, shower

BOTH = pytest.mark.usefixtures("dialect")


@BOTH
async def test_a_shortcut_is_run_however_its_key_is_written(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("quick", "Ctrl-T", "F5", "alt+p")) as face:
        await face.press("h", "ctrl+t")
        await face.shows("quick pressed Ctrl-T")
        await face.press("f5", "alt+p")
        await face.shows("quick pressed F5", "quick pressed alt+p")
        assert face.app.editor.text == "h"


@BOTH
async def test_a_key_of_hilts_stays_hilts_and_that_is_told_once(tmp_path: Path) -> None:
    # U7
    async with interface(tmp_path, shower("thief", "ctrl+o", "Ctrl+C", "x", "enter", "F6", "escape")) as face:
        await face.shows("its shortcut ctrl+o does nothing", "its shortcut f6 does nothing")
        assert face.text.count("its shortcut") == 6
        await face.press("x", "ctrl+o", "f6")
        assert face.app.editor.text == "x"
        assert "pressed" not in face.text
        await face.it.host.reload("thief")
        await face.it.ready("thief")
        await face.pilot.pause(0.1)
        assert face.text.count("its shortcut") == 6


async def test_a_panel_with_the_keys_has_those_of_shortcuts_too(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("quick", "f5")) as face:
        order(face, "quick", panel("p", "milk"))
        await face.shows("┃ milk")
        await face.press("f5", "f6")
        await face.shows("│ milk")
        assert "pressed" not in face.text
        await face.press("f5")
        await face.shows("quick pressed f5")


async def test_whatever_has_a_binding_is_hilts_own() -> None:
    app = HiltApp()
    async with app.run_test() as pilot:
        bound = [*pilot.app._bindings.key_to_bindings, *pilot.app.query_one(Editor)._bindings.key_to_bindings]
        assert {"ctrl+o", "f6", "ctrl+n", "escape"} <= set(bound)
        assert all(ours(key, bound) for key in bound)
        assert not ours("f5", bound)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Ctrl-G", "ctrl+g"),
        ("control+g", "ctrl+g"),
        ("shift+ctrl+p", "ctrl+shift+p"),
        ("Option+Left", "alt+left"),
        ("ctrl+i", "tab"),
        ("Ctrl+[", "escape"),
        ("ctrl+-", "ctrl+minus"),
        ("ctrl++", "ctrl+plus"),
        ("-", "-"),
        ("+", "+"),
        (" ", "space"),
        ("PgDn", "pagedown"),
        ("", ""),
    ],
)
def test_a_key_has_one_spelling(written: str, meant: str) -> None:
    assert normal(written) == meant
    assert normal(meant) == meant


@pytest.mark.parametrize("key", ["a", "A", "ü", " ", "shift+a", "enter", "Return", "ctrl+m", "esc", "Ctrl-I"])
def test_keys_that_type_or_mean_something_are_hilts_own(key: str) -> None:
    assert ours(key)
    assert "f6" in OURS


@pytest.mark.parametrize(
    ("key", "character", "told"),
    [
        ("a", "a", ("rune", "a")),
        ("upper_a", "A", ("rune", "A")),
        ("space", " ", ("rune", " ")),
        ("question_mark", "?", ("rune", "?")),
        ("alt+x", None, ("rune", "x")),
        ("alt+left", None, ("left", "")),
        ("enter", "\r", ("enter", "")),
        ("tab", "\t", ("tab", "")),
        ("ctrl+a", "\x01", ("unknown", "")),
        ("shift+tab", None, ("unknown", "")),
        ("f1", None, ("unknown", "")),
    ],
)
def test_a_panel_is_told_the_names_of_the_protocol(key: str, character: str | None, told: tuple[str, str]) -> None:
    assert panel_key(key, character) == told


async def test_an_extension_can_end_the_program_when_nothing_runs(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("bye")) as face:
        await face.it.session.apply((Quit(),), "bye")
        await face.until(lambda: not face.app.is_running or face.app._exit, "it ends")


async def test_an_extension_cannot_end_the_program_while_something_runs_and_that_is_told_once(tmp_path: Path) -> None:
    slow = chaos("slow", "hello", "register_tool:t", "ready", {"on": "tool_call", "do": []})
    async with interface(tmp_path, slow, turns=[calls(("t", {})), says("x")], mode="yolo") as face:
        face.say("go")
        await face.shows("esc to cancel")
        for _ in range(3):
            await face.it.session.apply((Quit(),), "bye")
        await face.shows("wants to end the program")
        assert face.text.count("wants to end the program") == 1
        assert not face.app._exit


async def test_a_dialog_has_the_keys_of_shortcuts_too(tmp_path: Path) -> None:
    tool = chaos("slow", "hello", "register_tool:t", "ready")
    async with interface(tmp_path, shower("quick", "f5"), tool, turns=[calls(("t", {})), says("x")]) as face:
        face.say("go")
        await face.until(lambda: face.app.screen.is_modal, "it asks")
        await face.press("f5")
        await face.answer("n")
        await face.until(lambda: not face.it.session.busy)
        await face.app.push_screen(ModalScreen())  # one that leaves keys alone
        await face.press("f5")
        face.app.pop_screen()
        assert heard(tmp_path / "extensions/quick", "shortcut/handle") == []
        await face.press("f5")
        await face.shows("quick pressed f5")
