"""Dialogs of the real program in a real terminal."""

from pathlib import Path

import pytest

from hilt.frontends.terminal import MARK
from support.agent import calls, says
from support.extending import chaos, tool
from support.hilt_process import Hilt
from support.screen import Terminal, needs_tmux

pytestmark = needs_tmux
LISTENS = "Esc no"


@pytest.fixture
def hilt(tmp_path: Path) -> Hilt:
    return Hilt(tmp_path)


def started(hilt: Hilt, *arguments: str, columns: int = 80, rows: int = 24) -> Terminal:
    return Terminal(hilt.command(*arguments), hilt.environment, hilt.project, columns=columns, rows=rows)


def test_a_command_runs_once_it_is_allowed_and_not_before(hilt: Hilt) -> None:
    script = hilt.script(calls(("bash", {"command": "echo x > ran"})), says("well done"))
    with started(hilt, *script, "--permissions", "ask") as terminal:
        terminal.wait_for("Ask anything")
        terminal.type("go")
        terminal.press("Enter")
        screen = terminal.wait_for(LISTENS)
        assert f"{MARK} Allow bash? It runs programs" in screen and "│ echo x > ran" in screen
        assert " go" in screen  # the conversation is still to be seen above it
        assert not (hilt.project / "ran").exists()
        terminal.type("y")
        terminal.wait_for("well done")
        assert (hilt.project / "ran").exists()


def test_a_narrow_terminal_and_another_size_show_all_of_it(hilt: Hilt) -> None:
    script = hilt.script(calls(("bash", {"command": "printf '%s' " + "x" * 120 + "end"})), says("as you wish"))
    with started(hilt, *script, "--permissions", "ask", columns=40) as terminal:
        terminal.wait_for("Ask anything")
        terminal.type("go")
        terminal.press("Enter")
        screen = terminal.wait_for(LISTENS)
        assert "xend" in screen and "6 r  No, and say why" in screen
        terminal.resize(100, 12)
        screen = terminal.wait_until(lambda shown: "more line" in shown or "xend" in shown, "the other size")
        terminal.wait_for("6 r  No, and say why")
        terminal.type("r")
        terminal.wait_for("No, because:")
        terminal.type("too long")
        terminal.press("Enter")
        terminal.wait_for("as you wish")
        terminal.wait_for("too long")


@pytest.mark.parametrize("answer", ["y", "Escape"])
def test_what_came_with_a_folder_runs_only_after_a_yes(hilt: Hilt, answer: str) -> None:
    made = chaos("brought", "hello", f"touch:{hilt.folder}/started", "ready")
    made.write(hilt.project / ".hilt" / "extensions")
    with started(hilt, *hilt.script(says("hello"))) as terminal:
        screen = terminal.wait_for(LISTENS)
        assert f"{MARK} Trust what came with this folder?" in screen and str(hilt.project) in screen.replace("\n  ", "")
        terminal.press(answer)
        terminal.wait_until_gone("Trust what came")
        terminal.wait_for("✓ 1 extension" if answer == "y" else "untrusted")
        assert (hilt.folder / "started").exists() is (answer == "y")


def test_a_question_of_an_extension_is_answered(hilt: Hilt) -> None:
    asking = 'host_request:{"method":"host/askUser","params":{"prompt":"Really?","choices":["Yes","No"]}}'
    made = tool("nosy", asking, "record:../heard").write(hilt.folder / "extensions")
    with started(hilt, *hilt.script(says("hello")), "--ext", str(made)) as terminal:
        terminal.wait_for("nosy › asks you")
        terminal.wait_for("Esc dismiss")
        terminal.type("2")
        terminal.wait_until_gone("asks you")
    assert '"selected":"No"' in (hilt.folder / "extensions" / "heard").read_text().replace("\\", "")
