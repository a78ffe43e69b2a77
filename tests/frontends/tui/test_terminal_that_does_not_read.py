"""A terminal that does not read holds up nothing, and the interface can be ended all the same."""

import signal
import struct
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

from support.agent import calls, says
from support.hilt_process import DEADLINE, Hilt, until
from support.tty import Tty

_LARGE = struct.pack("HHHH", 100, 300, 0, 0)
_PAGE = "\n\n".join(["all work and no play " * 12] * 60)


@pytest.fixture
def hilt(tmp_path: Path) -> Hilt:
    return Hilt(tmp_path)


def unread(hilt: Hilt) -> Tty:
    """It draws much more than there is room for, and then leaves a file."""
    call = {"type": "tool_call", "name": "bash", "args": {"command": "sleep 0.05"}}
    told = [{"content": [{"type": "text", "text": f"{_PAGE} {page}"}, call]} for page in range(24)]
    script = hilt.script(*told, calls(("bash", {"command": "touch arrived"})), says("the end of it"))
    return Tty(hilt.command(*script), hilt.environment, hilt.project)


def let_it_draw(hilt: Hilt, tty: Tty) -> None:
    ioctl(tty._slave, termios.TIOCSWINSZ, _LARGE)
    tty.wait_for(b"sk anything")
    tty.send(b"go\r")
    until((hilt.project / "arrived").exists, "the agent goes on though nobody reads")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_though_nobody_reads(hilt: Hilt, number: signal.Signals) -> None:
    with unread(hilt) as tty:
        let_it_draw(hilt, tty)
        tty.signal(number)
        assert tty.process.wait(DEADLINE) == 128 + number
        assert tty.settings() == tty.before
        tty.wait()
        assert tty.changed_modes() == {}
