"""A program from its start to the end of the last process it left behind.

`started` is the whole lifetime: whatever happens inside the block, nothing of the program runs after it and no
descriptor of it is open. Exit is seen through a pidfd, never through the end of the output, which a grandchild may
hold open for hours; it is reaped in the same moment. What the program says is the business of `channel`.
"""

import asyncio
import errno
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from msgspec import Struct

from hilt.transport.channels import Bounds, Channel
from hilt.transport.diagnosis import explain
from hilt.transport.launch import PIDFDS, Launch, Launched, Speaks, Spec, reap
from hilt.transport.pipes import PipeSink, PipeSource, Sink, Source
from hilt.transport.processes import Held, Process, find, find_each, in_group, signal_group
from hilt.transport.stderr import Stderr

if TYPE_CHECKING:
    from hilt.transport.either import Arrangement
    from hilt.transport.stray import Stray
    from hilt.transport.tapping import Tap

_STARTS = 16
_FLUSH = 0.5
_TERM_GRACE = 0.5
_KILL_GRACE = 0.4
_SEARCH = 0.5
_ROUND = 0.02
_POLL = 0.05
_LAST_ROUNDS = 3


class Exit(Struct, frozen=True):
    code: int | None
    """As the program returned it, unless a signal ended it."""
    signal: int | None = None

    def __str__(self) -> str:
        if self.signal is None:
            return f"exited with code {self.code}"
        try:
            known = signal.Signals(self.signal)
        except ValueError:
            return f"killed by signal {self.signal}"
        return f"killed by {known.name}"


@asynccontextmanager
async def started(spec: Spec, bounds: Bounds | None = None) -> AsyncIterator["Child"]:
    """Run a program for as long as the block. Raises StartError. At the end, and on cancellation, it is stopped."""
    child = await _start(spec, bounds)
    try:
        yield child
    finally:
        await child.stop(spec.grace)


async def _start(spec: Spec, bounds: Bounds | None) -> "Child":
    launch = Launch(spec)
    async with _here().gate:
        try:
            launched = await asyncio.to_thread(launch.run)
        except asyncio.CancelledError:
            launch.abandon()  # the thread goes on by itself, and cleans up after itself
            raise
        except RuntimeError as error:
            # No thread to be had, and a thread counts as a process. One that is there already may still come to it.
            launch.abandon()
            raise explain(OSError(errno.EAGAIN, str(error)), spec.argv[0]) from error
    try:
        return Child(launched, bounds or Bounds(), spec.speaks, spec.tap)
    except OSError as error:
        launched.dispose()
        raise explain(error, spec.argv[0]) from error


class Child:
    def __init__(self, launched: Launched, bounds: Bounds, speaks: Speaks | None, tap: "Tap | None" = None) -> None:
        self._process = launched.process
        self._marker = launched.marker
        self._leash = launched.leash
        self._log = launched.log
        self._stderr = Stderr(launched.stderr, launched.log)
        self._stray: Stray | None = None
        """Given where what it prints is, or may be, meant for nobody."""
        self._held = Held()
        self._exited = asyncio.Event()
        self._stopping = False
        self._groups: set[int] = set()
        """Process groups in which some of its processes were when last looked for."""
        self._blind = False
        """The last search did not come to an end."""
        self._swept = False
        """A search has found nothing of it any more."""
        self._stopped = asyncio.Event()
        self.pid = launched.process.pid
        self.exit: Exit | None = None
        """How it ended, once it has."""
        self.arrangement: Arrangement | None = "stdio" if launched.stdout is None else "fd34"
        """Where it speaks; None while it may be either."""
        self._tap = tap
        self.channel = self._channel(*self._pipes(launched, bounds, speaks), bounds)
        self._watch = _ExitWatch(launched.pidfd, self._note_exit)

    def _pipes(self, launched: Launched, bounds: Bounds, speaks: Speaks | None) -> tuple[Source, Sink]:
        source, sink = PipeSource(launched.read), PipeSink(launched.write)
        if launched.stdout is None:
            return source, sink
        from hilt.transport.stray import Stray  # these two only where there is another arrangement

        self._stray, stdout = Stray(launched.log), PipeSource(launched.stdout)
        if launched.stdin is None or speaks is None:
            self._stray.follow(stdout)
            return source, sink
        from hilt.transport.either import BothSinks, FirstSource

        self.arrangement = None
        both = BothSinks(sink, PipeSink(launched.stdin))
        first = FirstSource(source, stdout, speaks, bounds.line, self._stray)

        def decided(arrangement: "Arrangement") -> None:
            self.arrangement = arrangement
            both.keep(arrangement)

        first.on_decision(decided)
        return first, both

    def _channel(self, source: Source, sink: Sink, bounds: Bounds) -> Channel:
        if self._tap is None:
            return Channel(source, sink, bounds)
        from hilt.transport.tapping import TappedChannel  # hardly anybody is watched

        self._tap.started(self.pid)
        return TappedChannel(source, sink, bounds, self._tap)

    async def exited(self) -> Exit:
        """Wait until the program has ended. Says nothing of its output: see `Channel.drain`."""
        await self._exited.wait()
        assert self.exit
        return self.exit

    def last_words(self) -> list[str]:
        """The last 20 lines of its stderr, oldest first, as it wrote them."""
        return self._stderr.last_words()

    def complaints(self) -> str:
        """The end of its stderr, as much as is kept in memory."""
        return self._stderr.tail()

    def remark(self, text: str) -> None:
        """Put a line of ours among its complaints, where whoever looks for the reason will look."""
        if self._log:
            self._log.remark(text)

    @property
    def log_failure(self) -> OSError | None:
        """Why its stderr is not being logged, if it should be."""
        return self._log.failure if self._log else None

    async def stop(self, grace: float = 2.0) -> None:
        """End it and everything it started: ask, then insist. Takes a second more than the grace at most.

        Any number of times, also at the same time. When cancelled, it kills at once instead.
        """
        if self._stopping:
            await self._stopped.wait()
            return
        self._stopping = True
        try:
            await self._ask(grace)
            await self._insist()
            await self.channel.drain(_ROUND)
        finally:
            self._destroy()
            self._stopped.set()

    async def _ask(self, grace: float) -> None:
        """Nothing more will come: most programs end when they hear that."""
        deadline = asyncio.get_running_loop().time() + grace
        self._signal(signal.SIGCONT)  # a stopped one would hear nothing
        await self.channel.finish(min(_FLUSH, grace))
        try:
            async with asyncio.timeout_at(deadline):
                await self._exited.wait()
        except TimeoutError:
            pass

    async def _insist(self) -> None:
        """First with a signal that can be handled, then with one that cannot."""
        # Found before anything is signalled: a child of a dead parent no longer shows whose it was.
        if await self._nothing_left():
            return
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        await self._dies_within(_TERM_GRACE)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _KILL_GRACE
        # Until a whole search finds nobody: those that were held may have forked before they died.
        while not await self._nothing_left() and loop.time() < deadline:
            self._kill()
            await self._dies_within(_ROUND)

    async def _nothing_left(self) -> bool:
        """Search, and hold what is found."""
        found = await _here().search.find(self._group(), self._marker) if PIDFDS else []
        self._blind = found is None
        others = self._note(found or [])
        self._swept = not self._blind and not others and not self._alive()
        return self._swept

    def _note(self, found: list[Process]) -> list[Process]:
        """Hold all but the program itself, which is watched already."""
        others = [process for process in found if process.pid != self.pid]
        self._held.hold(others)
        self._groups = {process.group for process in others} - {os.getpgrp()}
        return others

    async def _dies_within(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self._alive():
            if loop.time() >= deadline:
                return
            await asyncio.sleep(_ROUND)

    def _alive(self) -> bool:
        return self._held.alive() or self.exit is None

    def _signal(self, number: signal.Signals) -> None:
        if self.exit is None:  # afterwards its number may be anyone's
            signal_group(self.pid, number)
        self._held.send(number)

    def _kill(self) -> None:
        self._signal(signal.SIGKILL)
        # One that forks and exits faster than it can be held does not leave its group. The groups were seen a moment
        # ago, and a number comes back only after all others have been used.
        for group in self._groups:
            signal_group(group, signal.SIGKILL)

    def _group(self) -> int:
        return self.pid if self.exit is None else -1

    def _note_exit(self) -> None:
        """In the loop, in the moment it happens."""
        code = self._process.poll()  # reaps it
        if code is None:
            return
        self._watch.close()
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            pass  # nobody left, as it should be
        except PermissionError:
            pass  # another user's by now: nothing we can do about it
        else:
            # Members keep the number of their group taken, so these are still its own.
            self._held.hold(in_group(self.pid))
        self.exit = Exit(code) if code >= 0 else Exit(None, -code)
        self._stderr.catch_up()
        if self._stray:
            self._stray.catch_up()
        if self._tap:
            self._tap.exited(self.exit, self.channel.dropped)
        self._exited.set()

    def _destroy(self) -> None:
        """Whatever is left, at once and without the loop; then close everything."""
        if not self._swept:
            for _ in range(_LAST_ROUNDS):
                if PIDFDS and not self._blind:
                    self._note(find(self._group(), self._marker))
                self._kill()
            if self.exit is None:
                reap(self._process)
                self._note_exit()
        self._watch.close()
        self._held.release()
        self._leash.release()
        self.channel.abort()
        self._stderr.close()
        if self._stray:
            self._stray.close()
        if self._log:
            self._log.close()


class _ExitWatch:
    """Calls back in the loop when a process may have ended. Owns its pidfd; without one it looks now and then."""

    def __init__(self, pidfd: int | None, note: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._pidfd = pidfd
        self._note = note
        self._timer: asyncio.TimerHandle | None = None
        if pidfd is None:
            self._timer = self._loop.call_later(_POLL, self._look)
        else:
            self._loop.add_reader(pidfd, note)

    def close(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = self._loop.call_later(_POLL, self._look)
        self._note()


class _Request(Struct, eq=False):
    leader: int
    marker: str
    found: list[Process] | None = None


class _Search:
    """Walks through /proc, one at a time; a walk serves all who asked before it began."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._waiting: list[_Request] = []

    async def find(self, leader: int, marker: str) -> list[Process] | None:
        """None when it takes too long, for /proc hangs with a process that hangs, or when there is no thread for it."""
        request = _Request(leader, marker)
        self._waiting.append(request)
        try:
            async with asyncio.timeout(_SEARCH), self._lock:
                if request.found is None:
                    await self._walk(list(self._waiting))
        except (TimeoutError, RuntimeError):
            pass
        finally:
            self._waiting.remove(request)
        return request.found

    async def _walk(self, requests: list[_Request]) -> None:
        programs = [(request.leader, request.marker) for request in requests]
        for request, found in zip(requests, await asyncio.to_thread(find_each, programs), strict=True):
            request.found = found


class _Here:
    """What the children of one event loop share."""

    def __init__(self) -> None:
        self.gate = asyncio.Semaphore(_STARTS)
        self.search = _Search()


_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Here] = WeakKeyDictionary()


def _here() -> _Here:
    loop = asyncio.get_running_loop()
    here = _loops.get(loop)
    if here is None:
        here = _loops[loop] = _Here()
    return here
