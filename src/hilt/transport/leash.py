"""Children end with this process, however it ends: also when it is killed and can do nothing about it.

Every child inherits the read end of a pipe to which nobody ever writes and whose write end only this process
has. The kernel is asked to signal the child's process group when something happens to the pipe; the only thing
that ever can is that this process is gone. Unlike PDEATHSIG, which has to be set by the child itself, this needs
no program in between, reaches the whole group, and does not depend on the thread that started the child.
A child that closes all its descriptors slips the leash; it still sees the end of its input.
"""

import fcntl
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOWEST = 20
"""Numbers below are for the child's own use: a shell works with 3 to 9, and with 10 for itself."""

_lock = threading.Lock()
_held: tuple[int, int] | None = None
"""The process that holds the leashes, for a fork has the number too but not the right, and the write end."""


@contextmanager
def leash() -> Iterator[tuple[int, ...]]:
    """The descriptors to pass to one child: one, or none where this does not work."""
    try:
        near = os.open(f"/proc/self/fd/{_write_end()}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        yield ()  # no /proc
        return
    try:
        far = fcntl.fcntl(near, fcntl.F_DUPFD_CLOEXEC, _LOWEST)
    finally:
        os.close(near)
    try:
        yield (far,)
    finally:
        os.close(far)


def fasten(fds: tuple[int, ...], group: int) -> None:
    """Once the child runs: whom to signal, and how."""
    for fd in fds:
        try:
            fcntl.fcntl(fd, fcntl.F_SETOWN, -group)
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
        except OSError:
            pass  # it has exited already


def _write_end() -> int:
    global _held
    with _lock:
        if _held is None or _held[0] != os.getpid():
            read, write = os.pipe()
            os.close(read)  # children get ends of their own, since a signal's addressee belongs to the open file
            _held = (os.getpid(), write)
        return _held[1]
