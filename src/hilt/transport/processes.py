"""Everything a program started, however far it strayed, and how to end it.

A program's processes are its process group, the descendants of its leader, and whoever carries its
marker in the environment: `setsid` and double forks leave the first two but not the third. They are
held by pidfd, so that a signal never reaches a stranger who got a freed process id. Without pidfds
(not Linux) only the group is known.
"""

import os
import select
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

_VARIABLE = "HILT_CALL"
_PIECE = 32 * 1024


class Process(Struct, frozen=True):
    pid: int
    parent: int
    group: int
    born: int
    """Clock ticks since boot: with the pid it names one process for good."""


def pidfds_work() -> bool:
    """Some kernels and sandboxes lack them."""
    try:
        os.close(os.pidfd_open(os.getpid()))
        return Path("/proc/self/stat").exists()
    except (AttributeError, OSError):
        return False


def mark(environment: Mapping[str, str], marker: str) -> dict[str, str]:
    """The environment by which everything started in it is found again."""
    # Markers add up, so that an outer hilt also finds what an inner one started.
    outer = environment.get(_VARIABLE) or os.environ.get(_VARIABLE, "")
    return {**environment, _VARIABLE: f"{outer}.{marker}".lstrip(".")}


def find(leader: int, marker: str) -> list[Process]:
    """The living processes of a program, by one walk through /proc. Blocks for some milliseconds."""
    return find_each([(leader, marker)])[0]


def find_each(programs: Sequence[tuple[int, str]]) -> list[list[Process]]:
    """The same for several programs, given as leader and marker, still by one walk."""
    everyone: dict[int, Process] = {}
    environments: dict[int, bytes] = {}
    children: dict[int, list[int]] = {}
    for process in _everyone():
        everyone[process.pid] = process
        environments[process.pid] = _read(f"/proc/{process.pid}/environ")  # at once: some do not live long
        children.setdefault(process.parent, []).append(process.pid)
    found = []
    for leader, marker in programs:
        mark = marker.encode()
        ours = {pid for pid, process in everyone.items() if leader in (pid, process.group)}
        ours |= {pid for pid, environment in environments.items() if mark in environment}
        _add_descendants(ours, children)
        ours.discard(os.getpid())
        found.append([everyone[pid] for pid in ours])
    return found


def family(leader: int) -> list[Process]:
    """The leader, its process group and all their descendants; those that strayed further are not found."""
    everyone = {process.pid: process for process in _everyone()}
    children: dict[int, list[int]] = {}
    for process in everyone.values():
        children.setdefault(process.parent, []).append(process.pid)
    ours = {pid for pid, process in everyone.items() if leader in (pid, process.group)}
    _add_descendants(ours, children)
    return [everyone[pid] for pid in ours]


def in_group(group: int) -> list[Process]:
    """The living processes of one process group. Blocks like `find`, but for half the time."""
    return [process for process in _everyone() if process.group == group]


def _add_descendants(ours: set[int], children: Mapping[int, list[int]]) -> None:
    waiting = list(ours)
    while waiting:
        fresh = [child for child in children.get(waiting.pop(), ()) if child not in ours]
        ours.update(fresh)
        waiting += fresh


def _everyone() -> Iterator[Process]:
    try:
        with os.scandir("/proc") as entries:
            pids = [int(entry.name) for entry in entries if entry.name.isdecimal()]
    except OSError:
        return
    # The newest first: who lives only for a moment would be gone by the time the others have been looked at.
    # Numbers are given out in rising order and then from the beginning; the last field here is the latest.
    latest = int((_read("/proc/loadavg").split() or [b"0"])[-1])
    for pid in sorted(pids, key=lambda pid: (pid > latest, -pid)):
        if process := _look(pid):
            yield process


def _look(pid: int) -> Process | None:
    """None when it is gone, or a zombie: only its parent can do anything about that."""
    status = _read(f"/proc/{pid}/stat")
    if not status:
        return None
    # The name in parentheses may hold anything; the fields after the last one are plain.
    fields = status[status.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X"):
        return None
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[19]))


def _read(path: str) -> bytes:
    """The whole file, or nothing: it is another user's, or gone. With as few calls as can be, for there are many."""
    pieces = []
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while piece := os.read(fd, _PIECE):
                pieces.append(piece)
                if len(piece) < _PIECE:
                    break
        finally:
            os.close(fd)
    except OSError:
        return b""
    return b"".join(pieces)


class Held:
    """Processes held by pidfd."""

    def __init__(self) -> None:
        self._fds: dict[int, int] = {}

    def hold(self, processes: list[Process]) -> None:
        for process in processes:
            if process.pid in self._fds:
                continue
            try:
                fd = os.pidfd_open(process.pid)
            except OSError:
                continue
            now = _look(process.pid)
            if now is None or now.born != process.born:  # gone, or somebody else by now
                os.close(fd)
            else:
                self._fds[process.pid] = fd

    def alive(self) -> bool:
        """Whether any is left; lets go of those that are not."""
        poll = select.poll()
        for fd in self._fds.values():
            poll.register(fd, select.POLLIN)
        ended = {fd for fd, _ in poll.poll(0)}
        for pid, fd in list(self._fds.items()):
            if fd in ended:
                os.close(self._fds.pop(pid))
        return bool(self._fds)

    def send(self, number: signal.Signals) -> None:
        for fd in self._fds.values():
            try:
                signal.pidfd_send_signal(fd, number)
            except (ProcessLookupError, PermissionError):
                pass  # gone, or another user's

    def release(self) -> None:
        while self._fds:
            os.close(self._fds.popitem()[1])


def signal_group(leader: int, number: signal.Signals) -> None:
    """Signal a process group whose leader has not been reaped: until then its number is nobody else's."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        pass
