"""One stream of events, several listeners, one order."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import TypeAlias

from hilt.model.events import Event

Sink: TypeAlias = Callable[[Event], Awaitable[None]]
"""Takes one event. It may wait, which slows the agent down, but it must not raise."""

_EARLY = 1000


class Bus:
    def __init__(self) -> None:
        self._sinks: list[Sink] = []
        self._early: list[Event] | None = []
        """What was told before there was a face to show it; None once there has been one."""

    @contextmanager
    def subscribed(self, sink: Sink) -> Iterator[None]:
        self._sinks.append(sink)
        try:
            yield
        finally:
            self._sinks.remove(sink)

    @asynccontextmanager
    async def faced(self, *sinks: Sink) -> AsyncIterator[None]:
        """For the face of the session: it is also told what happened before it was there."""
        with ExitStack() as stack:
            early, self._early = self._early or [], None
            for sink in sinks:
                for event in early:
                    await sink(event)
                stack.enter_context(self.subscribed(sink))
            yield

    async def emit(self, event: Event) -> None:
        if self._early is not None and len(self._early) < _EARLY:
            self._early.append(event)
        for sink in tuple(self._sinks):
            await sink(event)
