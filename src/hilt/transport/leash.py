"""Children end with this process, however it ends: also when it is killed and can do nothing about it.

Every child inherits the read end of a pipe whose write end only this process has, and to which nobody ever writes. The
kernel is asked to signal the child's process group when something happens to the pipe; the only thing that ever can is
that this process is gone. Unlike PDEATHSIG, which has to be set by the child itself, this needs no program in between,
reaches the whole group, and does not depend on the thread that started the child.

Each child has a pipe of its own: whoever has one end of a pipe can open the other, so a child that pulls at its leash
must be the only one to feel it. One that closes all its descriptors slips the leash; it still sees its input end.
"""

import fcntl
import os
import signal

_LOWEST = 20
"""Numbers below are for the child's own use: a shell works with 3 to 9, and with 10 for itself."""


class Leash:
    """For one child: give it `far`, tell its group by `fasten`, and `release` once it is gone."""

    def __init__(self) -> None:
        read, self._write = os.pipe()
        try:
            self._far = fcntl.fcntl(read, fcntl.F_DUPFD_CLOEXEC, _LOWEST)
        except OSError:
            os.close(self._write)
            raise
        finally:
            os.close(read)

    @property
    def far(self) -> tuple[int, ...]:
        """What the child inherits."""
        return (self._far,)

    def fasten(self, group: int) -> None:
        """The child runs: whom to signal, and how. Our copy of its end is closed."""
        try:
            fcntl.fcntl(self._far, fcntl.F_SETOWN, -group)
            fcntl.fcntl(self._far, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(self._far, fcntl.F_SETFL, fcntl.fcntl(self._far, fcntl.F_GETFL) | os.O_ASYNC)
        except (OSError, AttributeError):
            pass  # it has exited already, or this system cannot do it
        finally:
            os.close(self._far)
            self._far = -1

    def release(self) -> None:
        """Nothing of the child is left. Any number of times."""
        for fd in (self._far, self._write):
            if fd >= 0:
                os.close(fd)
        self._far = self._write = -1
