"""Becoming the parent of every descendant whose own parent died, so that none escapes unseen and none stays a zombie.

Opt-in, because it is a property of the whole process: children of other libraries' children arrive here too.
"""

import asyncio
import os
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_EVERY = 0.5


async def adopt_orphans() -> None:
    """Adopt and reap until cancelled. Does nothing, until then, where the system cannot do it."""
    if not _become_subreaper(on=True):
        await asyncio.Event().wait()
    try:
        suspects: set[tuple[int, int]] = set()
        while True:
            try:
                zombies = await asyncio.to_thread(_zombies)
            except (OSError, RuntimeError):
                zombies = set()  # no descriptor or no thread to be had at the moment
            # A child that someone here started is reaped by its owner at once; who is still there is nobody's.
            for pid, _ in zombies & suspects:
                _reap(pid)
            suspects = zombies - suspects
            await asyncio.sleep(_EVERY)
    finally:
        _become_subreaper(on=False)


def _become_subreaper(*, on: bool) -> bool:
    import ctypes  # costs some milliseconds, and nothing else here needs it

    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def _zombies() -> set[tuple[int, int]]:
    """Children of ours that have ended, by pid and time of birth, which together name one process for good."""
    found = set()
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            status = Path(entry.path, "stat").read_bytes()
        except OSError:
            continue
        fields = status[status.rindex(b")") + 2 :].split()
        if fields[0] == b"Z" and int(fields[1]) == os.getpid():
            found.add((int(entry.name), int(fields[19])))
    return found


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass  # its owner was quicker after all
