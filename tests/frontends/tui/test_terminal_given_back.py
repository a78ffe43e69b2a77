"""However the interface ends, the terminal is as it was found: settings, modes, keyboard, screen."""

import signal
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from support.agent import calls, says
from support.hilt_process import Hilt
from support.leftovers import end_all_in
from support.offerer import Ask
from support.offering import offering
from support.tty import Tty

_TYPED = b"sk anything"
"""Stands in the first frame."""


@pytest.fixture
def hilt(tmp_path: Path) -> Hilt:
    return Hilt(tmp_path)


def started(hilt: Hilt, *arguments: str, shell: bool = False) -> Tty:
    command = hilt.command(*hilt.script(says("well said")), *arguments)
    return Tty(command, hilt.environment, hilt.project, shell=shell)


def talked(tty: Tty) -> None:
    """Something has been said, so that there is a session to go on with."""
    tty.wait_for(_TYPED)
    tty.send(b"good day\r")
    tty.wait_for(b"well said")


def assert_resumable(tty: Tty) -> None:
    assert b"hilt --session " in tty.output.rpartition(b"\x1b[?1049l")[2], "the way back is told on the shell's screen"


def test_the_interface_changes_the_terminal_while_it_runs(hilt: Hilt) -> None:
    """Or the other tests would say nothing."""
    with started(hilt) as tty:
        talked(tty)
        assert tty.settings() != tty.before
        assert {1049, 1000, 1006, 2004, 2048, 1016, 25} <= tty.changed_modes().keys()
        assert tty.keyboard_depth() == 1


@pytest.mark.parametrize(
    ("keys", "code"), [(b"/exit\r", 0), (b"\x03\x03", 0), (b"\x04", 0)], ids=["exit", "ctrl-c twice", "ctrl-d"]
)
def test_leaving_gives_the_terminal_back_and_tells_the_way_back(hilt: Hilt, keys: bytes, code: int) -> None:
    with started(hilt) as tty:
        talked(tty)
        tty.send(keys)
        assert tty.wait() == code
        tty.assert_as_found()
        assert_resumable(tty)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_gives_the_terminal_back(hilt: Hilt, number: signal.Signals) -> None:
    with started(hilt) as tty:
        talked(tty)
        tty.signal(number)
        assert tty.wait() == 128 + number
        tty.assert_as_found()
        assert_resumable(tty)


def test_a_signal_in_the_middle_of_a_turn_gives_the_terminal_back(hilt: Hilt) -> None:
    command = hilt.command(*hilt.script(calls(("bash", {"command": "echo under way; sleep 60"}))))
    with Tty(command, hilt.environment, hilt.project) as tty:
        tty.wait_for(_TYPED)
        tty.send(b"go\r")
        tty.wait_for(b"under way")
        tty.signal(signal.SIGTERM)
        assert tty.wait() == 128 + signal.SIGTERM
        tty.assert_as_found()
        assert_resumable(tty)


def test_three_signals_in_a_row_give_the_terminal_back(hilt: Hilt) -> None:
    with started(hilt) as tty:
        talked(tty)
        for _ in range(3):
            tty.signal(signal.SIGTERM)
        assert tty.wait() == 128 + signal.SIGTERM
        tty.assert_as_found()


def test_a_window_that_is_closed_ends_the_program(hilt: Hilt) -> None:
    with started(hilt) as tty:
        talked(tty)
        tty.hang_up()
        assert tty.process.wait(30) != 0


def test_a_configuration_that_is_wrong_is_told_on_the_shells_screen(hilt: Hilt) -> None:
    hilt.home.mkdir()
    (hilt.home / "config.toml").write_text("max_steps = 0\n")
    with started(hilt) as tty:
        assert tty.wait() != 0
        tty.assert_as_found()
        assert b"max_steps" in tty.output.rpartition(b"\x1b[?1049l")[2]


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ("app.HiltApp.action_cycle_permissions", b"\x1b[Z"),
        ("app.HiltApp.on_editor_submitted", b"hello\r"),
        ("status.Status.render_line", b"\x1b[Z"),
        ("transcript.view.Transcript.show", b"again\r"),
        ("transcript.view.Transcript.render_line", b"again\r"),
        ("editor.editor.Editor._on_key", b"x"),
        ("editor.area.Area.render_line", b"x"),
        ("editor.completion.Completion.render_line", b"/"),
        ("dialogs.sheet.Sheet.render_line", b"/help\r"),
        ("dialogs.dialog.Dialog.rows", b"/help\r"),
        ("surfaces.surface.Surface.render_line", b"again\r"),
        ("surfaces.panel.Panels.rows", b"/show\r"),
        ("surfaces.overlay.Overlays.show", b"/show\r"),
        ("surfaces.notes.Notes.rows", b"/show\r"),
        ("surfaces.widgets.Widgets.rows", b"/show\r"),
        ("presenter.Presenter.__call__", b"again\r"),
        ("client.Client.submit", b"again\r"),
    ],
)
def test_a_mistake_in_the_interface_gives_the_terminal_back(
    hilt: Hilt, tmp_path: Path, where: str, keys: bytes
) -> None:
    owner, _, name = f"hilt.frontends.tui.{where}".rpartition(".")
    module, _, kind = owner.rpartition(".")
    program = tmp_path / "broken.py"
    program.write_text(
        textwrap.dedent(f"""
        import os, sys
        from importlib import import_module
        from hilt.cli.main import main
        owner = getattr(import_module({module!r}), {kind!r})
        sound = owner.{name}
        def broken(self, *args, **kwargs):
            if os.path.exists({str(tmp_path / "now")!r}):
                raise RuntimeError("a mistake that holds sk-secret-word")
            return sound(self, *args, **kwargs)
        owner.{name} = broken
        sys.exit(main())
        """)
    )
    shown = ["--ext", str(shower(hilt))] if b"/show" in keys else []
    turns = [says("well said"), calls(("bash", {"command": "sleep 60"}))]
    with Tty([sys.executable, str(program), *hilt.script(*turns), *shown], hilt.environment, hilt.project) as tty:
        talked(tty)
        if shown:
            tty.wait_for(b"1 extension")
        (tmp_path / "now").touch()
        tty.send(keys)
        assert tty.wait() == 1
        tty.assert_as_found()
        told = tty.output.rpartition(b"\x1b[?1049l")[2]
        assert b"Traceback" not in told
        assert_resumable(tty)
        assert "Traceback" in (hilt.home / "logs" / "hilt.log").read_text()


def _show(ask: Ask) -> Any:
    ask.tell(
        "panel/open", panel_id="p", title="\x1b]0;owned\x07", lines=["\x1b[?1049l\x1bc\x1b[>4;2m\x9b?25h", "a line"]
    )
    ask.tell("showOverlay", key="o", title="\x1b[?2004l", content="\x1b[?1000l\x1b[<u above")
    ask.tell("setWidget", key="w", placement="above-input", content="\x1b[?7l a widget")
    ask.tell("notify", message="\x1b[?1h\x1b= a note")


def _flood(ask: Ask) -> Any:
    number = 0
    while True:
        number += 1
        ask.tell("panel/open", panel_id="p", lines=[f"line {number}"])
        ask.tell("notify", message=f"note {number}")


def shower(hilt: Hilt, answer: Any = _show) -> Path:
    command = ("command", {"name": "show", "description": "shows", "immediate": True})
    return offering("shower", command, answers={"command/execute": answer}).write(hilt.folder)


@pytest.mark.parametrize("end", ["exit", "term", "killed extension"])
def test_a_hostile_panel_leaves_nothing_behind(hilt: Hilt, end: str) -> None:
    folder = shower(hilt)
    with started(hilt, "--ext", str(folder)) as tty:
        talked(tty)
        tty.wait_for(b"1 extension")
        tty.send(b"/show\r")
        tty.wait_for(b"a widget")
        tty.wait_for(b"a line")
        if end == "killed extension":
            end_all_in(folder)
            tty.wait_for(b"is gone")
        if end == "term":
            tty.signal(signal.SIGTERM)
        else:
            tty.send(b"\x1b[17~")  # F6: from the panel to the input
            tty.send(b"/exit\r")
        assert tty.wait() == (128 + signal.SIGTERM if end == "term" else 0)
        tty.assert_as_found()
        assert b"owned" not in tty.output and b"\x1bc" not in tty.output
        assert_resumable(tty)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_the_middle_of_a_flood_gives_the_terminal_back(hilt: Hilt, number: signal.Signals) -> None:
    with started(hilt, "--ext", str(shower(hilt, _flood))) as tty:
        talked(tty)
        tty.wait_for(b"1 extension")
        tty.send(b"/show\r")
        tty.wait_for(b"note 1")
        tty.signal(number)
        assert tty.wait() == 128 + number
        tty.assert_as_found()
        assert_resumable(tty)


@pytest.mark.parametrize("dialog", [b"/help\r", b"/model\r", b"/btw why?\r"])
def test_a_signal_while_a_dialog_is_open_gives_the_terminal_back(hilt: Hilt, dialog: bytes) -> None:
    with started(hilt) as tty:
        talked(tty)
        tty.send(dialog)
        tty.wait_for(b"Esc ")
        tty.signal(signal.SIGTERM)
        assert tty.wait() == 128 + signal.SIGTERM
        tty.assert_as_found()
        assert b"internal error" not in tty.output
        assert_resumable(tty)


def test_leaving_before_there_is_a_session_gives_the_terminal_back(hilt: Hilt) -> None:
    with started(hilt) as tty:
        tty.wait_for(_TYPED)
        tty.send(b"\x03\x03")
        assert tty.wait() == 0
        tty.assert_as_found()
        assert b"error" not in tty.output


def test_suspending_gives_the_terminal_back_until_it_goes_on(hilt: Hilt) -> None:
    with started(hilt, shell=True) as tty:
        talked(tty)
        tty.send(b"\x1a")
        tty.wait_until_stopped()
        tty.assert_as_found()
        seen = len(tty.output)
        tty.signal(signal.SIGCONT)
        tty.output = tty.output[seen:]
        tty.wait_for(b"well said")
        assert tty.settings() != tty.before
        tty.output = b""
        tty.send(b"/exit\r")
        assert tty.wait() == 0
        assert tty.settings() == tty.before


def test_where_there_is_no_shell_to_go_back_to_it_is_not_suspended(hilt: Hilt) -> None:
    with started(hilt) as tty:
        talked(tty)
        tty.output = b""
        tty.send(b"\x1a")
        tty.wait_for(b"\x1b[?1049l")
        tty.wait_for(b"well said")  # all of it is drawn anew
        tty.send(b"/exit\r")
        assert tty.wait() == 0
        assert tty.settings() == tty.before


def test_being_killed_while_suspended_leaves_the_terminal_as_it_was(hilt: Hilt) -> None:
    with started(hilt, shell=True) as tty:
        talked(tty)
        tty.send(b"\x1a")
        tty.wait_until_stopped()
        tty.kill_job()
        tty.wait()
        tty.assert_as_found()


def test_what_is_written_to_stderr_stays_out_of_the_picture(hilt: Hilt, tmp_path: Path) -> None:
    written = tmp_path / "stderr"
    script = f"exec {sys.executable} -m hilt --provider demo 2>{written}"
    with Tty(["sh", "-c", script], hilt.environment, hilt.project) as tty:
        tty.wait_for(_TYPED)
        tty.send(b"/exit\r")
        assert tty.wait() == 0
        tty.assert_as_found()
    assert written.read_bytes() == b""
