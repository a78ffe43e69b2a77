"""Who reads and who runs: handlers side by side, and none of them can keep the next line from being read.

The thread that read a question runs its handler itself, which saves a hand-over between threads for every call. Should
the handler take longer than a tick, a watchman lets another thread go on reading. A handler that was slow once is
run beside the reading from the start, until it is quick again. Coroutines run on one loop in a thread of their own.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident, start_new_thread
from time import perf_counter, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from hilt_sdk.coroutines import Coroutines

_TICK = 0.002
"""Seconds; a handler that is still at work after one to two of them loses the reading."""
_DROWSY = 25
"""Ticks without a call after which the watchman sleeps until there is one."""
_SLOW = 0.001
"""Seconds from which on a handler is run beside the reading."""
_THREADS = 256
"""Handlers at work at the same time; more wait."""
_SPARE = 8
"""Threads that are kept for the next time."""


class Pace:
    """How quick a handler was the last time."""

    __slots__ = ("slow",)

    def __init__(self) -> None:
        self.slow = False


class Job:
    """A handler to be run, with all it takes. `work` never raises."""

    __slots__ = ("pace", "work")

    def __init__(self, work: Callable[[], None], pace: Pace) -> None:
        self.work = work
        self.pace = pace


class Runner:
    def __init__(
        self, read: Callable[[], bytes | None], receive: Callable[[bytes], Job | None], ended: Callable[[], None]
    ) -> None:
        self._read = read
        self._receive = receive
        self._tell_ended = ended
        """Called once, when nothing more is read. The thread that runs `run` may be busy with a handler then."""
        self._baton: list[int] = []
        """The reading, while its holder runs a handler: whoever takes it out has it. Empty while somebody reads."""
        self._holder = 0
        self._changing = allocate_lock()
        """Held for the few steps in which the members below change together."""
        self._busy = 0
        """Threads that run a handler and do not read."""
        self._waiting: list[Job] = []
        self._spare: list[Any] = []
        self.over = False
        """Nothing more is read."""
        self._ended = _closed_lock()
        self._serial = 0
        """Grows with each handler that is run by the thread that reads."""
        self._running = Pace()
        self._watching = False
        self._dozing = False
        self._alarm = _closed_lock()
        self._coroutines: Coroutines | None = None

    def run(self) -> None:
        """Read until the end of the input, on this thread first. Handlers may still be at work then."""
        if self._lead():
            self._ended.acquire()
            self._ended.release()

    def end(self) -> None:
        """Nothing more is read."""
        with self._changing:
            if self.over:
                return
            self.over = True
            self._ended.release()
            if self._dozing:
                self._dozing = False
                self._alarm.release()
            spare, self._spare = self._spare, []
        for lock in spare:
            lock.release()
        self._tell_ended()

    def settle(self, patience: float) -> bool:
        """Wait until no handler is at work, so long at most; then the loop of the coroutines ends too."""
        deadline = perf_counter() + patience
        while self._busy or self._waiting or (self._coroutines and self._coroutines.open):
            if perf_counter() > deadline:
                return False
            sleep(_TICK)
        if self._coroutines:
            self._coroutines.stop()
        return True

    def step_aside(self) -> None:
        """This thread is about to wait for the host: if the reading is its own, let another go on with it."""
        if self._holder == get_ident() and self._baton:
            self._take_over()

    def start_coroutine(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run one on the loop, which is there from the first one on."""
        with self._changing:
            if self._coroutines is None:
                from hilt_sdk.coroutines import Coroutines

                self._coroutines = Coroutines()
        self._coroutines.start(coroutine)

    # Reading

    def _lead(self) -> bool:
        """Read, and run what is asked, while the reading is this thread's. False at the end, True when it was taken."""
        me = self._holder = get_ident()
        baton = self._baton
        while not self.over:
            line = self._read()
            if line is None:
                self.end()
                return False
            job = self._receive(line)
            if job is None:
                continue
            pace = job.pace
            if pace.slow:
                if self._hand_on(job):
                    self._finish(job)
                    return True
                continue
            baton.append(me)
            self._serial += 1
            self._running = pace
            if self._dozing or not self._watching:
                self._rouse()
            began = perf_counter()
            job.work()
            pace.slow = perf_counter() - began > _SLOW
            try:
                baton.pop()
            except IndexError:  # another reads now
                self._finish(None)
                return True
        return False

    def _follow(self) -> None:
        """The life of a thread: read, lose the reading, wait for it."""
        while self._lead():
            lock = _closed_lock()
            with self._changing:
                if self.over or len(self._spare) >= _SPARE:
                    return
                self._spare.append(lock)
            lock.acquire()

    def _take_over(self) -> None:
        """Another thread shall read: the one that could runs a handler."""
        try:
            self._baton.pop()
        except IndexError:
            return  # the handler has just ended
        self._running.slow = True  # others of its kind need not wait for the watchman
        with self._changing:
            self._busy += 1
        self._another()

    def _hand_on(self, job: Job) -> bool:
        """Let another thread read, so that this one can run the job. False: it has to wait, too many are at work."""
        with self._changing:
            if self._busy >= _THREADS:
                self._waiting.append(job)
                return False
            self._busy += 1
        self._another()
        return True

    def _another(self) -> None:
        self._holder = 0
        with self._changing:
            spare = self._spare.pop() if self._spare else None
        if spare is not None:
            spare.release()
        else:
            start_new_thread(self._follow, ())

    def _finish(self, job: Job | None) -> None:
        """Run a job, if there is one left, and then those that wait."""
        while True:
            if job is not None:
                began = perf_counter()
                job.work()
                job.pace.slow = perf_counter() - began > _SLOW
            with self._changing:
                if not self._waiting:
                    self._busy -= 1
                    return
                job = self._waiting.pop(0)

    # Watching

    def _rouse(self) -> None:
        with self._changing:
            if not self._watching:
                self._watching = True
                start_new_thread(self._watch, ())
            elif self._dozing:
                self._dozing = False
                self._alarm.release()

    def _watch(self) -> None:
        """Take the reading away from a handler that keeps it too long."""
        seen, quiet = -1, 0
        while not self.over:
            sleep(_TICK)
            if self._serial != seen:
                seen, quiet = self._serial, 0
            elif self._baton:
                self._take_over()
            else:
                quiet += 1
            if quiet > _DROWSY:
                quiet = 0
                self._doze(seen)

    def _doze(self, seen: int) -> None:
        """Sleep until a handler is run; none may begin unseen in between."""
        self._dozing = True
        with self._changing:
            if self.over or (self._serial != seen and self._dozing):
                self._dozing = False
                return
        self._alarm.acquire()


def _closed_lock() -> Any:
    lock = allocate_lock()
    lock.acquire()
    return lock
