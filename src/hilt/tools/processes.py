"""Everything a command started, however far it strayed, and how to end it.

A command's processes are its process group, the descendants of its leader, and whoever carries its
marker in the environment: `setsid` and double forks leave the first two but not the third. They are
held by pidfd, so that a signal never reaches a stranger who got a freed process id. Without pidfds
(not Linux) only the group is known.
"""

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct


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


def find(leader: int, marker: str) -> list[Process]:
    """The living processes of a command, by one walk through /proc. Blocks for some milliseconds."""
    everyone = {process.pid: process for process in _everyone()}
    ours = {pid for pid, process in everyone.items() if pid == leader or process.group == leader}
    ours |= {pid for pid in everyone if pid not in ours and _carries(pid, marker.encode())}
    children: dict[int, list[int]] = {}
    for process in everyone.values():
        children.setdefault(process.parent, []).append(process.pid)
    waiting = list(ours)
    while waiting:
        fresh = [child for child in children.get(waiting.pop(), ()) if child not in ours]
        ours.update(fresh)
        waiting += fresh
    ours.discard(os.getpid())
    return [everyone[pid] for pid in ours]


def _everyone() -> Iterator[Process]:
    try:
        with os.scandir("/proc") as entries:
            pids = [int(entry.name) for entry in entries if entry.name.isdecimal()]
    except OSError:
        return
    for pid in pids:
        if process := _look(pid):
            yield process


def _look(pid: int) -> Process | None:
    """None when it is gone, or a zombie: only its parent can do anything about that."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name in parentheses may hold anything; the fields after the last one are plain.
    fields = status[status.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X"):
        return None
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[19]))


def _carries(pid: int, marker: bytes) -> bool:
    try:
        return marker in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False  # another user's, or gone


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
