"""Trust and permission in a real terminal: nothing runs before a yes, and each answer reaches as far as it says."""

from typing import Any

from hilt.frontends.terminal import MARK
from support.agent import calls, says
from support.extending import chaos
from support.hilt_process import Hilt
from support.screen import Terminal, needs_tmux

pytestmark = needs_tmux
LISTENS = "Esc no"


def started(hilt: Hilt, *arguments: str, **more: Any) -> Terminal:
    return Terminal(hilt.command(*arguments), hilt.environment, hilt.project, **more)


def say(terminal: Terminal, text: str = "go") -> None:
    terminal.type(text)
    terminal.press("Enter")


def bash(number: int, rest: str = "") -> dict[str, Any]:
    return calls(("bash", {"command": f"echo {number} >> ran{rest}"}))


def ran(hilt: Hilt) -> list[str]:
    file = hilt.project / "ran"
    return file.read_text().split() if file.exists() else []


def test_each_answer_reaches_as_far_as_it_says(hilt: Hilt) -> None:
    # Four turns of one command each: once, no, no with a reason, and then for good.
    turns = [turn for number in range(1, 6) for turn in (bash(number), says(f"end of {number}"))]
    with started(hilt, *hilt.script(*turns), "--permissions", "ask", rows=40) as terminal:
        terminal.wait_for("asks first")
        say(terminal)
        assert f"{MARK} Allow bash?" in terminal.wait_for(LISTENS)
        assert ran(hilt) == []
        terminal.type("y")
        terminal.wait_for("end of 1")
        assert ran(hilt) == ["1"]
        say(terminal)
        terminal.wait_for(LISTENS)
        terminal.type("n")
        terminal.wait_for("end of 2")
        say(terminal)
        terminal.wait_for(LISTENS)
        terminal.type("r")
        terminal.wait_for("No, because:")
        say(terminal, "it is too late for that")
        terminal.wait_for("end of 3")
        assert "it is too late for that" in terminal.text
        say(terminal)
        terminal.wait_for(LISTENS)
        terminal.type("t")
        terminal.wait_for("end of 4")
        say(terminal)  # and is not asked again
        terminal.wait_for("end of 5")
        assert ran(hilt) == ["1", "4", "5"]


def test_esc_says_no_and_a_yes_to_everything_holds_for_the_session(hilt: Hilt) -> None:
    turns = [turn for number in range(1, 4) for turn in (bash(number), says(f"end of {number}"))]
    with started(hilt, *hilt.script(*turns), "--permissions", "ask", rows=40) as terminal:
        terminal.wait_for("asks first")
        say(terminal)
        terminal.wait_for(LISTENS)
        terminal.press("Escape")
        terminal.wait_for("end of 1")
        say(terminal)
        terminal.wait_for(LISTENS)
        terminal.type("s")
        terminal.wait_for("end of 2")
        say(terminal)
        terminal.wait_for("end of 3")
        assert ran(hilt) == ["2", "3"]


def test_a_prefix_is_allowed_and_nothing_else(hilt: Hilt) -> None:
    commands = ("git init -q .", "git init -q other", "git config --local a.b c")
    turns = [*(calls(("bash", {"command": command})) for command in commands), says("the end")]
    with started(hilt, *hilt.script(*turns), "--permissions", "ask", rows=40) as terminal:
        terminal.wait_for("asks first")
        say(terminal)
        assert "always for: git init" in terminal.wait_for(LISTENS)
        terminal.type("p")
        terminal.wait_for("│ git config --local a.b c")
        terminal.wait_for(LISTENS)
        assert (hilt.project / "other" / ".git").is_dir()
        terminal.type("n")
        terminal.wait_for("the end")
        assert "[a]" not in (hilt.project / ".git" / "config").read_text()


def test_a_change_is_shown_as_a_diff_and_made_only_when_it_is_allowed(hilt: Hilt) -> None:
    (hilt.project / "rows.txt").write_text("beets\nturnips\n")
    turn = calls(("edit", {"path": "rows.txt", "edits": [{"oldText": "turnips", "newText": "leeks"}]}))
    with started(hilt, *hilt.script(turn, says("sown")), "--permissions", "ask", rows=40) as terminal:
        terminal.wait_for("asks first")
        say(terminal)
        screen = terminal.wait_for(LISTENS)
        rows = screen.split("\n")
        assert any("-" in row and "turnips" in row for row in rows) and any(
            "+" in row and "leeks" in row for row in rows
        )
        terminal.type("y")
        terminal.wait_for("sown")
        assert (hilt.project / "rows.txt").read_text() == "beets\nleeks\n"


def test_shift_tab_changes_when_to_be_asked(hilt: Hilt) -> None:
    with started(hilt, *hilt.script(bash(1), says("end of 1")), "--permissions", "ask") as terminal:
        terminal.wait_for("asks first")
        terminal.press("BTab")
        terminal.wait_for("edits freely")
        terminal.press("BTab")
        terminal.wait_for("runs freely")
        say(terminal)
        terminal.wait_for("end of 1")
        assert ran(hilt) == ["1"]
        terminal.press("BTab")
        terminal.wait_for("asks first")


def test_nothing_of_a_folder_runs_before_it_is_trusted_and_it_is_asked_again_when_it_changed(hilt: Hilt) -> None:
    canary = hilt.folder / "canary"
    made = chaos("brought", "hello", f"touch:{canary}", "ready", dialect="jsonrpc")
    folder = made.write(hilt.project / ".hilt" / "extensions")
    with started(hilt, *hilt.script(says("well said"), says("and again")), rows=40) as terminal:
        screen = terminal.wait_for(LISTENS)
        assert f"{MARK} Trust what came with this folder?" in screen and "brought" in screen
        assert not canary.exists()
        terminal.press("Enter")  # what is selected first is no
        terminal.wait_for("brought untrusted")
        say(terminal)
        terminal.wait_for("well said")
        assert not canary.exists()
        quit_(terminal)
    with started(hilt, *hilt.script(says("well said")), rows=40) as terminal:
        terminal.wait_for(LISTENS)
        terminal.type("y")
        terminal.wait_for("✓ 1 extension")
        assert canary.exists()
        quit_(terminal)
    canary.unlink()
    with started(hilt, *hilt.script(says("well said")), rows=40) as terminal:
        screen = terminal.wait_for("✓ 1 extension")  # it was said
        assert "Trust" not in screen
        quit_(terminal)
    assert canary.exists()
    canary.unlink()
    (folder / "more.py").write_text("# something else\n")
    with started(hilt, *hilt.script(says("well said")), rows=40) as terminal:
        terminal.wait_for("Trust what came with this folder?")
        assert not canary.exists()
        quit_(terminal, "C-c")


def quit_(terminal: Terminal, *first: str) -> None:
    if first:
        terminal.wait_for(LISTENS)
        terminal.press(*first)
        terminal.wait_for("Ask anything")
    terminal.press("C-c", "C-c")
    terminal.wait_for("left with 0")


def test_all_of_a_long_command_can_be_read_before_it_is_allowed(hilt: Hilt) -> None:
    # A18: the last of it may be what matters.
    command = "; ".join(f"true {number}" for number in range(200)) + "; echo 1 >> ran"
    with started(
        hilt, *hilt.script(calls(("bash", {"command": command})), says("it ran")), "--permissions", "ask"
    ) as terminal:
        terminal.wait_for("asks first")
        say(terminal)
        screen = terminal.wait_for(LISTENS)
        assert "below: PgDn" in screen and "echo 1 >> ran" not in screen
        for _ in range(20):
            terminal.press("NPage")
        terminal.wait_for("echo 1 >> ran")
        terminal.type("y")
        terminal.wait_for("it ran")
        assert ran(hilt) == ["1"]
