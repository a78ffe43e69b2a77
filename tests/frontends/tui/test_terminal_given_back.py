"""However the interface ends, the terminal is as it was found: settings, modes, keyboard, screen."""

import signal
import sys
import textwrap
from pathlib import Path

import pytest

from support.agent import calls, says
from support.hilt_process import Hilt
from support.tty import Tty

_TYPED = b"sk anything"
"""Stands in the first frame."""


@pytest.fixture
def hilt(tmp_path: Path) -> Hilt:
    return Hilt(tmp_path)


def started(hilt: Hilt, *arguments: str) -> Tty:
    return Tty(hilt.command(*hilt.script(says("well said")), *arguments), hilt.environment, hilt.project)


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
    "where",
    [
        "hilt.frontends.tui.app.HiltApp.action_cycle_permissions",
        "hilt.frontends.tui.status.Status.render_line",
        "hilt.frontends.tui.transcript.view.Transcript.show",
        "hilt.frontends.tui.editor.editor.Editor._on_key",
    ],
)
def test_a_mistake_in_the_interface_gives_the_terminal_back(hilt: Hilt, tmp_path: Path, where: str) -> None:
    owner, _, name = where.rpartition(".")
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
    command = [sys.executable, str(program), *hilt.script(says("well said"))]
    with Tty(command, hilt.environment, hilt.project) as tty:
        talked(tty)
        (tmp_path / "now").touch()
        tty.send(b"x\x1b[Z\r")
        assert tty.wait() == 1
        tty.assert_as_found()
        told = tty.output.rpartition(b"\x1b[?1049l")[2]
        assert b"the interface failed" in told
        assert b"Traceback" not in told
        assert_resumable(tty)
        assert "Traceback" in (hilt.home / "logs" / "hilt.log").read_text()


def test_suspending_gives_the_terminal_back_until_it_goes_on(hilt: Hilt) -> None:
    with started(hilt) as tty:
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


def test_being_killed_while_suspended_leaves_the_terminal_as_it_was(hilt: Hilt) -> None:
    with started(hilt) as tty:
        talked(tty)
        tty.send(b"\x1a")
        tty.wait_until_stopped()
        tty.process.kill()
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
