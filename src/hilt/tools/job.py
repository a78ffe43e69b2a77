"""One command from its start to the end of the last process it left behind.

A job is a task of the shell's own, so it outlives the call that asked for it: the caller may leave at
once while the job still ends what was started. Exit is seen through a pidfd, never through the end of
the output, which a background process may keep open for hours.
"""

import asyncio
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from hilt.tools.output import create, discard
from hilt.transport.leash import Leash
from hilt.transport.processes import Held, Process, find, mark, pidfds_work, signal_group

Ending: TypeAlias = Literal["exit", "timeout", "flood", "left"]
"""`left`: whoever asked for the command went away."""

TICK = 0.05
_KILL_ROUNDS = 50
_ROUND = 0.02
_LINGER_TICK = 1.0
_REAPING = 1.0
_PIDFDS = pidfds_work()


class Limits(Struct, frozen=True):
    grace: float = 3.0
    """Seconds between SIGTERM and SIGKILL."""
    closing_grace: float = 0.5
    """The same while the shell closes."""
    flood: int = 64 * 1024 * 1024
    """Bytes of output after which a command is ended."""


class Command(Struct, frozen=True):
    text: str
    cwd: Path
    outputs: Path
    environment: Mapping[str, str]
    """Added to this process's own."""
    timeout: float | None = None


async def pause(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, but no longer than this."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


class Job:
    def __init__(self, command: Command, limits: Limits, closing: asyncio.Event) -> None:
        self._command = command
        self._limits = limits
        self._closing = closing
        self._marker = os.urandom(8).hex()
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._leash: Leash | None = None
        self._destroyed = False
        self._held = Held()
        self._wake = asyncio.Event()
        self._exited = False
        self._left = False
        self.output = command.outputs / f"bash-{self._marker}.log"
        self.ending: Ending = "exit"
        self.failure: OSError | ValueError | None = None
        """Why the command could not be started."""
        self.exit_code: int | None = None
        self.over = asyncio.Event()
        """The command has ended, or is being ended."""
        self.gone = asyncio.Event()
        """Nothing of it runs any more."""

    def leave(self) -> None:
        """Nobody waits for this command any more: end it, unless it has ended."""
        self._left = not self.over.is_set()
        self._wake.set()

    async def live(self) -> None:
        """The whole life. Raises nothing but cancellation, which ends everything at once."""
        try:
            child = await asyncio.to_thread(self._spawn)
            self.ending = await self._until_over(child)
            if self.ending == "exit":
                await self._linger(child)
            else:
                await self._end(child)
        except (OSError, ValueError) as error:
            self.failure = error
            self._destroy()
        except asyncio.CancelledError:
            self._destroy()
            raise
        finally:
            self._held.release()
            self._unleash()
            self.over.set()
            self.gone.set()
            if self.ending == "left" or self.failure:
                discard(self.output)

    def _spawn(self) -> "subprocess.Popen[bytes]":
        """Start the command. In a thread: fork and exec may take a while."""
        with ExitStack() as opened:
            fd = create(self.output)
            opened.callback(os.close, fd)
            leash = Leash()
            with ExitStack() as unless_it_runs:
                unless_it_runs.callback(leash.release)
                child = subprocess.Popen(
                    ["/bin/sh", "-c", self._command.text],
                    cwd=self._command.cwd,
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=fd,
                    stderr=fd,
                    start_new_session=True,
                    close_fds=True,
                    pass_fds=leash.far,
                )
                unless_it_runs.pop_all()
            leash.fasten(child.pid)
        with self._lock:
            self._child, self._leash = child, leash
            unwanted = self._destroyed
        if unwanted:  # the loop could not wait for this thread, so the thread cleans up
            self._destroy()
        return child

    def _environment(self) -> dict[str, str]:
        environment = {**os.environ, **self._command.environment, "AI_AGENT": "hilt", "AGENT": "hilt", "HILT": "1"}
        environment["PATH"] = _with_hilt(environment.get("PATH", os.defpath))
        return mark(environment, self._marker)

    async def _until_over(self, child: "subprocess.Popen[bytes]") -> Ending:
        """Wait until the command exits or must be ended, and say which."""
        loop = asyncio.get_running_loop()
        timeout = self._command.timeout
        deadline = math.inf if timeout is None else loop.time() + timeout
        with self._watching(child):
            while True:
                if self._exited or (not _PIDFDS and child.poll() is not None):
                    return "exit"
                if self._left or self._closing.is_set():
                    return "left"
                if loop.time() >= deadline:
                    return "timeout"
                if self._size() > self._limits.flood:
                    return "flood"
                await pause(self._wake, min(TICK, deadline - loop.time()))

    @contextmanager
    def _watching(self, child: "subprocess.Popen[bytes]") -> Iterator[None]:
        """While the block runs, the child's exit wakes the job."""
        if not _PIDFDS:
            yield
            return
        loop = asyncio.get_running_loop()
        fd = os.pidfd_open(child.pid)

        def note_exit() -> None:
            loop.remove_reader(fd)  # it stays readable for good
            self._exited = True
            self._wake.set()

        loop.add_reader(fd, note_exit)
        try:
            yield
        finally:
            loop.remove_reader(fd)
            os.close(fd)

    async def _linger(self, child: "subprocess.Popen[bytes]") -> None:
        """After the exit: answer first, then stay with what runs in the background until it ends or must."""
        self.exit_code = _exit_code(child)
        self.over.set()
        # Looked for before the exit is reaped, while the group's number cannot be anyone else's.
        self._held.hold(await self._find(child))
        child.wait()
        while self._held.alive():
            if self._closing.is_set() or self._size() > self._limits.flood:
                await self._end(child)
                return
            await pause(self._closing, _LINGER_TICK)
            if not self._held.alive():
                self._held.hold(await self._find(child))  # what those started may live on

    async def _end(self, child: "subprocess.Popen[bytes]") -> None:
        """Ask everything to end, and after the grace make it."""
        # Found before anything is signalled: a child of a dead parent no longer shows whose it was.
        self._held.hold(await self._find(child))
        self._signal(child, signal.SIGTERM)
        self._signal(child, signal.SIGCONT)  # a stopped process would not notice
        self.over.set()
        await self._grace()
        for _ in range(_KILL_ROUNDS):  # more than one, for what is being forked meanwhile
            self._held.hold(await self._find(child))
            self._signal(child, signal.SIGKILL)
            if not self._held.alive():
                break
            await asyncio.sleep(_ROUND)
        _reap(child)

    async def _grace(self) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        while self._held.alive() or not _PIDFDS:
            limit = self._limits.closing_grace if self._closing.is_set() else self._limits.grace
            if loop.time() - start >= limit:
                return
            await asyncio.sleep(_ROUND)

    async def _find(self, child: "subprocess.Popen[bytes]") -> list[Process]:
        if not _PIDFDS:
            return []
        return await asyncio.to_thread(find, _group(child), self._marker)

    def _signal(self, child: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
        if child.returncode is None:
            signal_group(child.pid, number)
        self._held.send(number)

    def _destroy(self) -> None:
        """At once and without the loop. Blocks for some milliseconds."""
        with self._lock:
            self._destroyed = True
            child = self._child
        if child is None:
            return
        for _ in range(3):
            if _PIDFDS:
                self._held.hold(find(_group(child), self._marker))
            self._signal(child, signal.SIGKILL)
        _reap(child)
        self._unleash()

    def _unleash(self) -> None:
        """Nothing of it is left."""
        with self._lock:
            leash, self._leash = self._leash, None
        if leash:
            leash.release()

    def _size(self) -> int:
        try:
            return self.output.stat().st_size
        except FileNotFoundError:
            return 0


def _group(child: "subprocess.Popen[bytes]") -> int:
    """The number of the child's process group, or of none once it has been reaped."""
    return child.pid if child.returncode is None else -1


def _exit_code(child: "subprocess.Popen[bytes]") -> int:
    """As shells count: 128 and the signal's number for a killed one. Leaves the child to be reaped."""
    if child.returncode is not None:
        code = child.returncode
        return code if code >= 0 else 128 - code
    status = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    if status is None:
        return 0
    return status.si_status if status.si_code == os.CLD_EXITED else 128 + status.si_status


def _reap(child: "subprocess.Popen[bytes]") -> None:
    try:
        child.wait(_REAPING)
    except subprocess.TimeoutExpired:
        pass  # stuck in the kernel; nothing more can be done about it from here


def _with_hilt(path: str) -> str:
    """`hilt` is at hand also when it was started by its full name: its own skill tells the model to run it.

    It comes last, so that it takes nobody's place.
    """
    place = os.path.dirname(sys.executable)  # noqa: PTH120 - a path of the system's, taken as it is
    if shutil.which("hilt", path=path) or not os.access(os.path.join(place, "hilt"), os.X_OK):  # noqa: PTH118
        return path
    return f"{path}{os.pathsep}{place}"
