"""Lines to and from the other end of two pipes, without ever blocking and without ever growing.

A channel has one reader and one writer, and neither waits for the other. Calls are written at once when
nothing waits before them; events always wait for the next turn of the loop, so that telling costs the teller
next to nothing. What cannot be written waits within caps: calls are refused beyond theirs, events give way to
newer ones and are counted. The channel knows nothing of processes: that one has exited and that nothing more
will be read are two facts, and this module knows only the second.
"""

import asyncio
from collections import deque
from typing import Protocol

from msgspec import Struct

from hilt.errors import ChannelClosed, LineTooLong
from hilt.transport.lines import LineSplitter, TooLong
from hilt.transport.outbox import Outbox
from hilt.transport.pipes import Sink, Source

_READ = 65536  # from 128 KiB on the allocator maps and unmaps memory for every read
_BATCH = 256 * 1024
_LINES = 256
_FLUSH = 0.5
_EARLY = 0.001
"""Timers may ring that much before their time, and clocks round."""
_PAUSED = 0.001


class Bounds(Struct, frozen=True):
    line: int = 4 * 1024 * 1024
    """Bytes of a line with its newline that the other end would still take; of one from there without it."""
    calls: int = 8 * 1024 * 1024
    events: int = 1024 * 1024
    stall: float = 5.0
    """Seconds without any progress after which a waiting writer counts as stalled."""


class Listener(Protocol):
    """Whom a channel tells. Called in the loop; must neither block nor raise."""

    def line(self, line: bytes) -> None:
        """A line, without its newline. Empty ones are skipped."""

    def overlong(self, line: TooLong) -> None:
        """A line over the limit was skipped; the next one is whole again."""

    def ended(self) -> None:
        """No more lines will come. All that came before have been told."""

    def broken(self) -> None:
        """Nobody reads what is sent any more; what waited is lost."""

    def stalled(self) -> None:
        """Nothing could be written for a while. Told again only after some progress."""


class Channel:
    def __init__(self, source: Source, sink: Sink, bounds: Bounds | None = None) -> None:
        self._source = source
        self._sink = sink
        bounds = bounds or Bounds()
        self._longest = bounds.line
        self._patience = bounds.stall
        self._outbox = Outbox(bounds.calls, bounds.events)
        self._splitter = LineSplitter(bounds.line)
        self._backlog: deque[bytes | TooLong] = deque()
        self._loop = asyncio.get_running_loop()
        self._listener: Listener | None = None
        self._paused = False
        self._at_end = False
        self._direct = True
        """Nothing waits that a call would have to wait behind, and nothing speaks against writing it at once."""
        self._delivering = False
        self._flushing = False
        self._finished = False
        self._too_long = 0
        self._stall: asyncio.TimerHandle | None = None
        self._progress = 0.0
        self._empty = asyncio.Event()
        self.ended = False
        """Nothing more will be told."""
        self.broken = False
        """Nobody reads what is sent any more."""

    @property
    def dropped(self) -> int:
        """Events that never left: they gave way to newer ones, or were longer than a line may be."""
        return self._outbox.dropped + self._too_long

    @property
    def waiting(self) -> int:
        """Bytes of memory that hold what could not be written yet."""
        return self._outbox.cost

    @property
    def stalled(self) -> bool:
        """Nothing could be written for a while, and nothing has been since."""
        return self._stall is not None and self._progress < 0

    # Writing

    def send(self, line: bytes) -> None:
        """A call: written now or in its turn, or refused with an error. Never dropped."""
        if len(line) >= self._longest:
            raise LineTooLong(
                f"a line of {len(line)} bytes is longer than the {self._longest - 1} the other end takes",
                hint="send less at once",
            )
        if not self._direct:
            self._enqueue(line)
            return
        data = line + b"\n"
        try:
            written = self._sink.write(data)
        except BlockingIOError:
            written = 0
        except OSError as error:
            self._break()
            raise _gone() from error
        if written < len(data):
            self._outbox.put_back(memoryview(data)[written:])
            self._flush()

    def _enqueue(self, line: bytes) -> None:
        if self._finished:
            raise _gone()
        self._outbox.call(line)
        self._flush_soon()

    def post(self, line: bytes) -> None:
        """An event: written in its turn, but never in this one. Dropped, and counted, when too much waits."""
        if self._finished:
            return
        if len(line) >= self._longest:
            self._too_long += 1
            return
        if not self._outbox.takes_event(line):
            self._flush()  # a burst within one turn of the loop: the reader may well keep up
        self._outbox.event(line)
        self._flush_soon()

    async def finish(self, deadline: float = _FLUSH) -> None:
        """Say that nothing more will be sent, after writing what waits or as much of it as the deadline allows."""
        self._finished = True
        self._direct = False
        if self._outbox:
            self._empty.clear()
            try:
                async with asyncio.timeout(deadline):
                    await self._empty.wait()
            except TimeoutError:
                pass
        self._close_writing()

    def _flush_soon(self) -> None:
        self._direct = False
        if not self._flushing and self._stall is None:
            self._flushing = True
            self._loop.call_soon(self._flush_turn)

    def _flush_turn(self) -> None:
        self._flushing = False
        self._flush()

    def _flush(self) -> None:
        """Write what waits, joined, until the pipe is full."""
        outbox = self._outbox
        while outbox:
            data = outbox.take(_BATCH)
            try:
                written = self._sink.write(data)
            except BlockingIOError:
                written = 0
            except OSError:
                self._break()
                return
            if written:
                self._progress = self._loop.time()
            if written < len(data):
                outbox.put_back(memoryview(data)[written:])
                if not self._sink.grow():
                    self._await_room()
                    return
        self._stop_awaiting_room()
        self._direct = not self._finished
        self._empty.set()

    def _await_room(self) -> None:
        self._direct = False
        if self._stall is None:
            self._progress = self._loop.time()
            self._stall = self._loop.call_later(self._patience, self._check_progress)
            self._sink.watch(self._flush)

    def _stop_awaiting_room(self) -> None:
        if self._stall:
            self._stall.cancel()
            self._stall = None
            self._sink.unwatch()

    def _check_progress(self) -> None:
        patience = self._patience
        idle = self._loop.time() - self._progress
        stalled = idle > patience - _EARLY
        # Once told, the next look comes a whole period later, and tells again only if there was progress in between.
        self._stall = self._loop.call_later(patience if stalled else patience - idle, self._check_progress)
        if stalled and self._progress >= 0:
            self._progress = float("-inf")
            if self._listener:
                self._listener.stalled()

    def _break(self) -> None:
        if not self.broken:
            self.broken = True
            self._close_writing()
            if self._listener:
                self._loop.call_soon(self._listener.broken)

    def _close_writing(self) -> None:
        self._finished = True
        self._direct = False
        self._stop_awaiting_room()
        self._outbox.clear()
        self._empty.set()
        self._sink.close()

    # Reading

    def listen(self, listener: Listener) -> None:
        """Start reading. What was written before waits in the pipe until then."""
        assert self._listener is None, "a channel has one reader"
        self._listener = listener
        if self.broken:
            self._loop.call_soon(listener.broken)
        self._source.watch(self._read)

    def pause(self) -> None:
        """Read nothing and tell nothing until `resume`; the other end notices when the pipe is full."""
        self._paused = True
        self._source.unwatch()

    def resume(self) -> None:
        self._paused = False
        if self._listener and not self.ended:
            self._deliver_soon()

    async def drain(self, deadline: float = _FLUSH) -> None:
        """After an exit: until what was written before it has been told, though others may hold the pipe open."""
        if self._listener is None:
            return
        try:
            async with asyncio.timeout(deadline):
                while not self.ended:
                    if self._paused:
                        await asyncio.sleep(_PAUSED)
                    elif self._backlog or self._read():
                        await asyncio.sleep(0)
                    else:
                        break
        except TimeoutError:
            pass

    def abort(self) -> None:
        """Close both directions now. Nothing is told afterwards. Any number of times."""
        self._paused = True
        self.ended = True
        self._backlog.clear()
        self._source.close()
        self._close_writing()

    def _read(self) -> bool:
        """One piece. False when nothing was there."""
        try:
            chunk = self._source.read(_READ)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""  # whatever broke it, nothing more will come
        if chunk:
            last = len(chunk) - 1
            if (
                chunk.find(b"\n") == last
                and not self._splitter.size
                and not self._backlog
                and chunk[last - 1 :] != b"\r\n"
                and last
            ):
                # One whole line is what a waiting caller gets, nearly always, so it takes the shortest way.
                self._listener.line(chunk[:last])  # type: ignore[union-attr]  # it is read for a listener only
                return True
            lines = self._splitter.feed(chunk)
            if len(chunk) == _READ:
                self._source.grow()
        else:
            lines = self._splitter.finish()
            self._at_end = True
            self._source.close()
        if len(lines) > 1:
            # Several answers at once mean several callers, about to send again: write those together.
            self._direct = False
        self._backlog.extend(filter(None, lines))
        self._deliver()
        return True

    def _deliver_soon(self) -> None:
        if not self._delivering:
            self._delivering = True
            self._loop.call_soon(self._deliver_turn)

    def _deliver_turn(self) -> None:
        self._delivering = False
        self._deliver()

    def _deliver(self) -> None:
        """Tell what was read, so many lines a turn; read on once all are told."""
        try:
            for _ in range(min(_LINES, len(self._backlog))):
                if self._paused:
                    return
                self._tell(self._backlog.popleft())
        finally:
            self._go_on()

    def _go_on(self) -> None:
        if self._paused or self.ended or not self._listener:
            return
        if self._backlog:
            self._source.unwatch()
            self._deliver_soon()
        elif self._at_end:
            self.ended = True
            self._listener.ended()
        else:
            self._source.watch(self._read)

    def _tell(self, line: bytes | TooLong) -> None:
        assert self._listener
        if isinstance(line, TooLong):
            self._listener.overlong(line)
        elif line:
            self._listener.line(line)


def _gone() -> ChannelClosed:
    return ChannelClosed("the program at the other end is gone", hint="it has to be started again")
