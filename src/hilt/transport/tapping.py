"""A channel on which somebody listens in.

It is chosen when a program is started, so that one that nobody watches is talked to as if this did not exist.
"""

from typing import TYPE_CHECKING, Protocol

from hilt.transport.channels import Bounds, Channel, Listener
from hilt.transport.lines import TooLong
from hilt.transport.pipes import Sink, Source

if TYPE_CHECKING:
    from hilt.transport.process import Exit


class Tap(Protocol):
    """Who watches one program. Called in the loop; must neither block nor raise."""

    def started(self, pid: int) -> None: ...

    def sent(self, line: bytes) -> None:
        """A line that was written or waits to be; an event that waits may still give way to newer ones."""

    def received(self, line: bytes) -> None: ...

    def skipped(self, line: TooLong) -> None:
        """A line from there that was too long to be read."""

    def exited(self, exit_: "Exit", lost: int) -> None:
        """It has ended; so many events never reached it. What it wrote last may still be on its way."""


class TappedChannel(Channel):
    def __init__(self, source: Source, sink: Sink, bounds: Bounds, tap: Tap) -> None:
        super().__init__(source, sink, bounds)
        self._tap = tap

    def send(self, line: bytes) -> None:
        super().send(line)
        self._tap.sent(line)

    def post(self, line: bytes) -> None:
        taken = not self._finished and len(line) < self._longest
        super().post(line)
        if taken:
            self._tap.sent(line)

    def listen(self, listener: Listener) -> None:
        super().listen(_Overheard(listener, self._tap))


class _Overheard:
    def __init__(self, listener: Listener, tap: Tap) -> None:
        self._listener = listener
        self._tap = tap
        self.ended = listener.ended
        self.broken = listener.broken
        self.stalled = listener.stalled

    def line(self, line: bytes) -> None:
        self._tap.received(line)
        self._listener.line(line)

    def overlong(self, line: TooLong) -> None:
        self._tap.skipped(line)
        self._listener.overlong(line)
