"""The input of the real program in a real terminal."""

from pathlib import Path

import pytest

from support.agent import says
from support.hilt_process import Hilt
from support.screen import Terminal, needs_tmux

pytestmark = needs_tmux


def opened(hilt: Hilt, *, columns: int = 80, **environment: str) -> Terminal:
    script = hilt.script(says("first answer"), says("second answer"))
    return Terminal(hilt.command(*script), {**hilt.environment, **environment}, hilt.project, columns=columns)


@pytest.fixture
def hilt(tmp_path: Path) -> Hilt:
    return Hilt(tmp_path)


def test_what_is_pasted_is_a_chip_until_it_is_sent(hilt: Hilt) -> None:
    with opened(hilt) as terminal:
        terminal.wait_for("Ask anything")
        terminal.type("look: ")
        terminal.paste("".join(f"row {number}\n" for number in range(50)))
        terminal.wait_for("› look: [pasted text #1 +50 lines]")
        terminal.press("Enter")
        terminal.wait_for("first answer")
        assert "row 7" in terminal.text


def test_lines_are_broken_by_alt_enter_and_keys_keep_their_order(hilt: Hilt) -> None:
    with opened(hilt, columns=40) as terminal:
        terminal.wait_for("Ask anything")
        terminal.press(*"one", "M-Enter", *"two four", "C-j", *"fin")
        terminal.press("Up", "M-b", *"x日", "Left", "M-BSpace", "C-e", "!")
        terminal.wait_for("four!")
        rows = terminal.screen()
        at = rows.index(" › one")
        assert rows[at : at + 3] == [" › one", "   日two four!", "   fin"]


def test_what_is_no_utf8_does_no_harm(hilt: Hilt) -> None:
    with opened(hilt) as terminal:
        terminal.wait_for("Ask anything")
        terminal.send(b"a\xff\xfeb")
        terminal.wait_for("› a��b")


def test_a_prompt_of_an_earlier_session_comes_back_with_up(hilt: Hilt) -> None:
    with opened(hilt) as terminal:
        terminal.wait_for("Ask anything")
        terminal.type("remember me")
        terminal.press("Enter")
        terminal.wait_for("first answer")
        terminal.type("/exit")
        terminal.press("Enter")
        terminal.wait_for("left with 0")
    with opened(hilt) as terminal:
        terminal.wait_for("Ask anything")
        terminal.wait_for("script  ")  # the session is there
        terminal.press("Up")
        terminal.wait_for("› /exit")
        terminal.press("Up")
        terminal.wait_for("› remember me")


def test_the_users_own_editor_can_be_used(hilt: Hilt, tmp_path: Path) -> None:
    editor = tmp_path / "my editor"
    editor.write_text('#!/bin/sh\necho "editing: $(cat "$1")"\nread -r line\nprintf "%s\\nchanged" "$line" > "$1"\n')
    editor.chmod(0o755)
    with opened(hilt, EDITOR=f"'{editor}'") as terminal:
        terminal.wait_for("script  ")
        terminal.type("draft")
        terminal.press("C-x", "C-e")
        terminal.wait_for("editing: draft")
        terminal.type("typed outside")
        terminal.press("Enter")
        terminal.wait_for("› typed outside")
        terminal.press("Enter")
        terminal.wait_for("first answer")


def test_an_editor_that_cannot_be_run_leaves_the_text_as_it_was(hilt: Hilt) -> None:
    with opened(hilt, EDITOR="/nowhere/vi") as terminal:
        terminal.wait_for("script  ")
        terminal.type("draft")
        terminal.press("C-x", "C-e")
        terminal.wait_for("/nowhere/vi cannot be run")
        assert "› draft" in terminal.text


def test_a_shell_command_is_shown_with_its_output(hilt: Hilt) -> None:
    with opened(hilt) as terminal:
        terminal.wait_for("script  ")
        terminal.type("!echo a$((40+2))b")
        terminal.wait_for(" ! !echo")
        terminal.press("Enter")
        terminal.wait_for("a42b")
        terminal.wait_for("exit 0")
