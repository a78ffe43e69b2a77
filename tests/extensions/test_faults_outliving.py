"""Extensions and the process of hilt itself, as the system sees them: terminals, signals, orphans, sudden death."""

import json
import os
import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hilt.model.extensions import Dialect
from support.extending import Made, chaos, tool
from support.hilt_process import Hilt, Rpc, until
from transport.children import runs, state

pytestmark = pytest.mark.usefixtures("dialect")

STUBBORN = ("ignore_sigterm", "mute", {"on": "eof", "do": []})
"""Ends for no request."""

# What a shell with job control does: it leads a session with a terminal, and hilt has a group of its own in front.
SHELL = """
import os, signal, subprocess, sys
os.setsid()
terminal = os.open(sys.argv[1], os.O_RDWR)
ignored = (signal.SIGINT, signal.SIGTTOU, signal.SIGTSTP)
for number in ignored:
    signal.signal(number, signal.SIG_IGN)
signal.signal(signal.SIGHUP, lambda *_: os.killpg(hilt.pid, signal.SIGHUP))
as_before = lambda: [signal.signal(number, signal.SIG_DFL) for number in ignored]
hilt = subprocess.Popen(sys.argv[2:], process_group=0, preexec_fn=as_before)
os.tcsetpgrp(terminal, hilt.pid)
sys.stderr.write(f"hilt has {hilt.pid}\\n")
sys.exit(hilt.wait())
"""


class AtTerminal(Hilt):
    """hilt as started by a shell at a terminal; its input and output are pipes all the same."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.keyboard, self.terminal = os.openpty()

    def command(self, *arguments: str | bytes) -> list[str | bytes]:
        shell = [sys.executable, "-c", SHELL, os.ttyname(self.terminal)]
        return [*shell, *super().command(*arguments)]

    def type(self, key: bytes) -> None:
        os.write(self.keyboard, key)

    def close(self) -> None:
        for descriptor in (self.keyboard, self.terminal):
            try:
                os.close(descriptor)
            except OSError:
                pass


@contextmanager
def at_terminal(folder: Path, *made: Made) -> Iterator[tuple[AtTerminal, Rpc, int]]:
    """The terminal, the client, and hilt's own process id."""
    hilt = AtTerminal(folder)
    try:
        with hilt.rpc("--provider", "demo", *flags(folder, *made)) as rpc:
            until(lambda: "hilt has " in rpc.errors, "hilt")
            yield hilt, rpc, int(rpc.errors.split("hilt has ")[1].split()[0])
    finally:
        hilt.close()


def flags(folder: Path, *made: Made) -> list[str]:
    return [word for one in made for word in ("--ext", str(one.write(folder / "extensions")))]


def status(rpc: Rpc, name: str = "t") -> dict[str, Any]:
    found: list[dict[str, Any]] = rpc.ask("extensions")["data"]["extensions"]
    return next(one for one in found if one["name"] == name)


def call(rpc: Rpc, name: str = "t") -> str:
    """The text of the result when the model calls a tool."""
    results = [line for line in rpc.prompt(f"call `{name}`") if line["type"] == "tool_result"]
    return str(results[0]["content"][0]["text"])


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def children(process: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and parent(int(entry.name)) == process:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


# L9, L10, L17


def test_at_a_terminal_an_extension_has_none_inherits_nothing_and_keys_reach_hilt_alone(
    tmp_path: Path, dialect: Dialect
) -> None:
    made = tool("t", "record:record", "write_env:env")
    folder = tmp_path / "extensions" / "t"
    with at_terminal(tmp_path, made) as (hilt, rpc, process):
        before = termios.tcgetattr(hilt.terminal)
        rpc.event("ext_status", extension="t", state="ready")
        extension = status(rpc)["pid"]
        assert os.tcgetpgrp(hilt.keyboard) == process, "or this test tests nothing"
        facts = json.loads((folder / "env").read_text())
        assert facts["tty"] == "ENXIO"
        assert facts["sid"] == facts["pgid"] == facts["pid"] == extension
        assert facts["cwd"] == str(folder) and facts["env"]["HILT"] == "1"
        kinds = {int(number): what.partition(":")[0] for number, what in facts["fds"].items()}
        if dialect == "frames":
            assert [kinds.pop(number) for number in (0, 1, 2)] == ["pipe"] * 3
        else:
            assert [kinds.pop(number) for number in range(5)] == ["/dev/null", "pipe", "pipe", "pipe", "pipe"]
            kinds = {number: kind for number, kind in kinds.items() if facts["fds"][str(number)] != facts["fds"]["1"]}
        [leash] = kinds.items()  # by which it goes when hilt is killed
        assert leash[0] >= 20 and leash[1] == "pipe"

        hilt.type(b"\x1a")
        until(lambda: state(process) == "T", "hilt to be stopped")
        assert state(extension) not in ("", "T", "Z")
        os.kill(process, signal.SIGCONT)
        assert call(rpc) == "ok"

        hilt.type(b"\x03")
        assert rpc.process.wait(20) == 130
        until(lambda: not runs(extension), "the end of the extension")
        rows = [json.loads(line) for line in (folder / "record").read_text().splitlines()]
        assert not [row for row in rows if "signal" in row]
        told = [row.get("frame") or json.loads(row["line"]) for row in rows if "line" in row]
        assert told[-1]["type"] == "shutdown", "it ended properly"
        assert "KeyboardInterrupt" not in (hilt.home / "logs" / "ext-t.log").read_text()
        assert termios.tcgetattr(hilt.terminal) == before


def test_when_the_terminal_goes_away_hilt_ends_and_its_extensions_with_it(tmp_path: Path) -> None:
    made = [tool("t", "record:record"), chaos("deaf", "hello", *STUBBORN, "ready", stop_grace_ms=200)]
    with at_terminal(tmp_path, *made) as (hilt, rpc, _):
        rpc.event("ext_status", extension="deaf", state="ready")
        until(lambda: status(rpc)["state"] == "ready", "the other one")
        processes = [status(rpc, name)["pid"] for name in ("t", "deaf")]
        hilt.close()
        assert rpc.process.wait(20) == 129
        until(lambda: not any(map(runs, processes)), "the end of the extensions")
        assert '\\"shutdown\\"' in (tmp_path / "extensions" / "t" / "record").read_text()


# L7


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
def test_a_daemon_of_an_extension_becomes_a_child_of_hilt_and_goes_with_the_extension(tmp_path: Path) -> None:
    made = tool("t", {"on": "tool_call", "do": ["daemonize:daemons", "answer"]})
    daemons = tmp_path / "extensions" / "t" / "daemons"
    hilt = Hilt(tmp_path)
    with hilt.rpc("--provider", "demo", *flags(tmp_path, made, tool("well"))) as rpc:
        for name in ("t", "well"):
            until(lambda name=name: status(rpc, name)["state"] == "ready", name)  # type: ignore[misc]
        call(rpc)
        call(rpc)
        lonely, other = map(int, daemons.read_text().split())
        assert parent(lonely) == parent(other) == rpc.process.pid
        os.kill(lonely, signal.SIGKILL)
        until(lambda: not state(lonely), "the daemon to be reaped")
        os.kill(status(rpc)["pid"], signal.SIGKILL)
        until(lambda: status(rpc)["restarts"] == 1 and status(rpc)["state"] == "ready", "a restart")
        until(lambda: not state(other), "the daemon of the one that crashed to be gone and reaped")
        call(rpc)
        last = int(daemons.read_text().split()[-1])
        assert parent(last) == rpc.process.pid
        until(lambda: len(children(rpc.process.pid)) == 3, "no zombie")  # two extensions and a daemon
        assert call(rpc, "well") == "ok"
        assert rpc.close() == 0
    assert not runs(last)


# L8


def test_when_hilt_is_killed_its_extensions_and_what_they_started_are_gone_too(tmp_path: Path) -> None:
    stubborn = tool("t", *STUBBORN, {"on": "tool_call", "do": ["grandchild:grandchildren", "answer"]})
    limited = tool("limited", *STUBBORN, limits={"open_files": 100})
    hilt = Hilt(tmp_path)
    with hilt.rpc("--provider", "demo", *flags(tmp_path, stubborn, limited)) as rpc:
        for name in ("t", "limited"):
            until(lambda name=name: status(rpc, name)["state"] == "ready", name)  # type: ignore[misc]
        call(rpc)
        started = [int((tmp_path / "extensions" / "t" / "grandchildren").read_text())]
        started += [status(rpc, name)["pid"] for name in ("t", "limited")]
        assert all(map(runs, started))
        rpc.process.kill()
        rpc.process.wait(20)
        until(lambda: not any(map(runs, started)), "the end of all it had started")
