"""Small programs that behave and misbehave, and what is left of them afterwards."""

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hilt.transport.launch import Spec
from hilt.transport.lines import TooLong
from hilt.transport.trampoline import Limits, Pipes

DEADLINE = 45.0
QUICK = 0.3
"""A grace for programs that will not use it."""

PATH = {"PATH": os.environ["PATH"]}


@dataclass
class Heard:
    """A listener that keeps what it is told."""

    lines: list[bytes] = field(default_factory=list)
    overlongs: list[TooLong] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def line(self, line: bytes) -> None:
        self.lines.append(line)

    def overlong(self, line: TooLong) -> None:
        self.overlongs.append(line)

    def ended(self) -> None:
        self.told.append("ended")

    def broken(self) -> None:
        self.told.append("broken")

    def stalled(self) -> None:
        self.told.append("stalled")


def shell(
    script: str,
    cwd: Path,
    *,
    pipes: Pipes = "stdio",
    log: Path | None = None,
    limits: Limits | None = None,
    grace: float = QUICK,
) -> Spec:
    return Spec(("/bin/sh", "-c", script), cwd, PATH, pipes, log, limits or Limits(), grace, speaks=speaks)


def python(code: str, cwd: Path, *, pipes: Pipes = "stdio", log: Path | None = None, grace: float = QUICK) -> Spec:
    return Spec((sys.executable, "-I", "-S", "-c", code), cwd, PATH, pipes, log, grace=grace, speaks=speaks)


def speaks(line: bytes) -> bool:
    """What shows that a line on stdout is meant for us."""
    return line.startswith(b"{")


async def until(condition: Callable[[], object], seconds: float = DEADLINE) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


def runs(pid: int) -> bool:
    """Whether the process is there and more than a zombie."""
    return state(pid) not in ("", "Z", "X")


def state(pid: int) -> str:
    """One letter as in /proc, or nothing when no such process is there."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def our_children() -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if entry.name.isdecimal() and int(parent) == os.getpid():
            found.add(int(entry.name))
    return found


def open_descriptors() -> dict[str, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue  # the listing's own
    return found
