"""Starting one program: its pipes, its log, its process. Runs in a thread, for fork and exec may take a while.

Whatever goes wrong, every descriptor is closed again; whoever asked and has left meanwhile leaves no process behind.
"""

import fcntl
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from hilt.errors import StartError
from hilt.transport.diagnosis import check, explain
from hilt.transport.leash import Leash
from hilt.transport.policy import Confined, Policy
from hilt.transport.processes import mark, pidfds_work, signal_group
from hilt.transport.stderr import Log
from hilt.transport.trampoline import Limits, Pipes, stand_back, wrap

if TYPE_CHECKING:
    from hilt.transport.tapping import Tap

_REAPING = 1.0
_LOWEST = 20
"""Of descriptors that a shell passes on: the numbers below are for its own use."""
PIDFDS = pidfds_work()


Speaks: TypeAlias = Callable[[bytes], bool | None]
"""Whether a line on stdout shows that stdin and stdout are what counts. None if that remains to be seen."""


class Spec(Struct, frozen=True):
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    """The whole of it; only the marker by which its processes are found is added, and `PIGLET_FD` where it applies."""
    pipes: Pipes = "stdio"
    """`stdio`: lines on stdin and stdout. `fd34`: the program reads from 3 and writes to 4, and stdin is empty.
    `either`: it has all four, and shows by what it says which two count."""
    stderr_path: Path | None = None
    """Where its complaints are kept, besides the last lines in memory, and what it prints that counts for nothing."""
    limits: Limits = Limits()
    grace: float = 2.0
    """Seconds to end by itself, once told to, before signals follow."""
    policy: Policy | None = None
    """What to hold it to; without one it runs as the user does."""
    speaks: Speaks | None = None
    """With `either`."""
    tap: "Tap | None" = None
    """Who sees what is said to it and by it, if anybody does."""


class Launched(Struct, frozen=True):
    """A running program, and our ends of its pipes. Whoever has it must close it."""

    process: "subprocess.Popen[bytes]"
    pidfd: int | None
    marker: str
    write: int
    read: int
    stderr: int
    leash: Leash
    log: Log | None
    stdin: int | None = None
    """Where it reads from 3 or from here (`either`)."""
    stdout: int | None = None
    """Where it writes to 4 or to here (`either`), or prints what counts for nothing (`fd34`)."""

    def dispose(self) -> None:
        """End it at once. Blocks for some milliseconds."""
        _kill(self.process)
        self.leash.release()
        for fd in (self.write, self.read, self.stderr, self.pidfd, self.stdin, self.stdout):
            if fd is not None:
                os.close(fd)
        if self.log:
            self.log.close()


class Launch:
    """One start that may be given up on at any moment, by another thread."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._lock = threading.Lock()
        self._launched: Launched | None = None
        self._abandoned = False

    def run(self) -> Launched:
        """Raises StartError."""
        try:
            check(self._spec.argv, self._spec.cwd, self._spec.env)
            # One that cannot be held to its policy must not run at all.
            confined = _confined(self._spec, self._spec.policy) if self._spec.policy else None
            launched = _launch(self._spec, confined)
        except (OSError, ValueError) as error:
            raise explain(error, self._spec.argv[0]) from error
        with self._lock:
            self._launched = launched
            unwanted = self._abandoned
        if unwanted:
            launched.dispose()
            raise StartError(f"{self._spec.argv[0]} is no longer wanted")
        return launched

    def abandon(self) -> None:
        """Nobody waits for it any more: what runs or will run is ended."""
        with self._lock:
            self._abandoned = True
            launched = self._launched
        if launched:
            launched.dispose()


def _confined(spec: Spec, policy: Policy) -> Confined:
    from hilt.transport.sandbox import confine  # few programs are confined

    return confine(spec.argv, policy, spec.env.get("PATH"))


def _launch(spec: Spec, confined: Confined | None) -> Launched:
    marker = os.urandom(8).hex()
    env = mark(spec.env, marker)
    if spec.pipes == "either" and spec.speaks is None:
        raise ValueError("nobody could tell which of its pipes count")
    if spec.pipes != "stdio":
        env["PIGLET_FD"] = "1"
    with ExitStack() as theirs, ExitStack() as ours:
        stdin, write = _pipe(theirs, ours, our_end=1)
        read, stdout = _pipe(theirs, ours, our_end=0)
        complaints, stderr = _pipe(theirs, ours, our_end=0)
        second_in, second_out, far = _second(spec.pipes, theirs, ours)
        leash = Leash()
        ours.callback(leash.release)
        process = subprocess.Popen(
            wrap(confined.argv if confined else spec.argv, spec.pipes, spec.limits, far),
            cwd=spec.cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=(*leash.far, *far),
            close_fds=True,
            start_new_session=True,
        )
        ours.callback(_kill, process)
        leash.fasten(process.pid)
        stand_back(process.pid, spec.limits.nice)
        pidfd = os.pidfd_open(process.pid) if PIDFDS else None
        ours.pop_all()
    log = Log(spec.stderr_path) if spec.stderr_path else None
    if log and confined and spec.policy:
        gaps = "".join(f"; but {gap}" for gap in confined.gaps)
        astray = "".join(f"; not given, for a link there leads elsewhere: {path}" for path in spec.policy.astray)
        log.remark(f"confined by {confined.by}{gaps}{astray}")
    return Launched(process, pidfd, marker, write, read, complaints, leash, log, second_in, second_out)


def _pipe(theirs: ExitStack, ours: ExitStack, *, our_end: int) -> tuple[int, int]:
    pipe = os.pipe()
    ours.callback(os.close, pipe[our_end])
    theirs.callback(os.close, pipe[1 - our_end])
    return pipe


def _second(pipes: Pipes, theirs: ExitStack, ours: ExitStack) -> tuple[int | None, int | None, tuple[int, ...]]:
    """Our ends of the pipes besides the first three, as far as there are any, and what the program is to inherit.

    It keeps that as well as what is made of it, for not every shell can close descriptors with such high numbers.
    """
    if pipes == "stdio":
        return None, None, ()
    write, far = None, []
    if pipes == "either":
        stdin, write = _pipe(theirs, ours, our_end=1)
        far.append(stdin)
    read, stdout = _pipe(theirs, ours, our_end=0)
    far.append(stdout)
    high = []
    for fd in far:
        high.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST))
        theirs.callback(os.close, high[-1])
    return write, read, tuple(high)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    signal_group(process.pid, signal.SIGKILL)
    reap(process)


def reap(process: "subprocess.Popen[bytes]") -> None:
    """Wait for one that has been killed, but not for ever."""
    try:
        process.wait(_REAPING)
    except subprocess.TimeoutExpired:
        pass  # stuck in the kernel; nothing more can be done about it from here
