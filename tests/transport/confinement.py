"""A small world with a home, a project and neighbours, and a probe that is let loose in it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hilt.transport import bubblewrap
from hilt.transport.policy import Policy
from support import probe
from transport.children import runs

DEADLINE = 30.0
PROBE = Path(probe.__file__)


@dataclass
class World:
    """Not below /tmp: every confined program has one of its own there, and would find nothing for that reason alone."""

    root: Path
    sibling: int = 0
    known: dict[str, Any] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def hilt(self) -> Path:
        return self.home / ".local/state/hilt"

    @property
    def code(self) -> Path:
        return self.hilt / "extensions/probe"

    @property
    def data(self) -> Path:
        return self.hilt / "data/probe"

    @property
    def project(self) -> Path:
        return self.home / "project"

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    def policy(self, **changes: Any) -> Policy:
        """The usual one: reads everything that is not secret, writes nothing but its data."""
        usual: dict[str, Any] = {
            "level": "standard",
            "code": self.code,
            "data": self.data,
            "readable": None,
            "writable": (),
            "hidden": (self.hilt, *(self.home / name for name in (".ssh", ".netrc", ".config/gh"))),
            "home": self.home,
            "network": False,
            "programs": False,
        }
        return Policy(**(usual | changes))

    @property
    def argv(self) -> tuple[str, ...]:
        return (sys.executable, "-I", "-S", str(self.code / "probe.py"), json.dumps(self.known))

    def left(self) -> list[int]:
        """Processes that still carry the mark of a run."""
        mark = f"PROBED={self.known['token']}".encode()
        return [pid for pid in _pids() if mark in _environment(pid) and runs(pid)]

    def end_left(self) -> None:
        for pid in self.left():
            with suppress(ProcessLookupError):  # it may end by itself between the look and the kill
                os.kill(pid, signal.SIGKILL)

    def exists(self, name: str) -> bool:
        return os.path.exists(self.known[name])


@contextmanager
def world(place: Path | None = None) -> Iterator[World]:
    root = Path(tempfile.mkdtemp(prefix=".hilt-world-", dir=place or Path.home()))
    made = World(root)
    try:
        for folder in (made.code, made.data, made.project, made.outside, made.home / ".ssh", made.home / ".config/app"):
            folder.mkdir(parents=True)
        shutil.copy(PROBE, made.code)
        for path, text in {
            made.home / ".ssh/id": "the key",
            made.home / "notes": "some notes",
            made.home / ".config/app/settings": "some settings",
            made.hilt / "auth.json": "the host's keys",
            made.project / "source": "some source",
            made.outside / "victim": "",
        }.items():
            path.write_text(text)
        yield made
    finally:
        shutil.rmtree(root)


@contextmanager
def neighbours(made: World) -> Iterator[None]:
    """Servers and a process of the same user's, of which the probe is told."""
    token = made.root.name
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(_echo())
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hilt-sock-"))
        Path(folder).chmod(0o755)
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(f"{folder}/s")
        Path(f"{folder}/s").chmod(0o777)
        unix.listen()
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{token}")
        abstract.listen()
        sibling = subprocess.Popen(
            ["/bin/sh", "-c", "read line", token], stdin=subprocess.PIPE, env={"KEY": token}, start_new_session=True
        )
        stack.callback(_end, sibling)
        temporary, memory = (Path(base, f"probe-{token}") for base in ("/tmp", "/dev/shm"))
        for left in (temporary, memory):
            stack.callback(left.unlink, missing_ok=True)
        made.known = {
            **{name: str(getattr(made, name)) for name in ("home", "hilt", "code", "data", "project", "outside")},
            "system": "/etc/passwd",
            "temporary": str(temporary),
            "memory": str(memory),
            "tcp": tcp.getsockname()[1],
            "udp": udp,
            "socket": f"{folder}/s",
            "abstract": f"@{token}",
            "sibling": sibling.pid,
            "token": token,
        }
        stack.callback(made.end_left)
        yield


def without_bubblewrap(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As on a machine that does not have it: it is nowhere to be found."""
    monkeypatch.setattr(bubblewrap, "_USUAL", ())
    monkeypatch.setattr(bubblewrap, "_known", None)
    monkeypatch.setenv("PATH", str(folder))


def run(argv: tuple[str, ...], made: World, cwd: Path | None = None) -> Mapping[str, str]:
    """What became of every attempt."""
    environment = {"PATH": os.environ["PATH"], "PROBED": made.known["token"], "HOME": str(made.home)}
    ended = subprocess.run(
        argv, cwd=cwd or made.code, env=environment, capture_output=True, timeout=DEADLINE, start_new_session=True
    )
    assert ended.returncode == 0, ended.stderr.decode()
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    return {line["try"]: line["outcome"] for line in lines}


@contextmanager
def _echo() -> Iterator[int]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))

        def serve() -> None:
            while (message := udp.recvfrom(64))[0] != b"end":
                udp.sendto(message[0], message[1])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield udp.getsockname()[1]
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as farewell:
                farewell.sendto(b"end", udp.getsockname())
            thread.join(DEADLINE)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.communicate(timeout=DEADLINE)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
