"""One stream of events, several listeners, one order."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from hilt.model.events import Event

Sink: TypeAlias = Callable[[Event], Awaitable[None]]
"""Takes one event. It may wait, which slows the agent down, but it must not raise."""


class Bus:
    def __init__(self) -> None:
        self._sinks: list[Sink] = []

    @contextmanager
    def subscribed(self, sink: Sink) -> Iterator[None]:
        self._sinks.append(sink)
        try:
            yield
        finally:
            self._sinks.remove(sink)

    async def emit(self, event: Event) -> None:
        for sink in tuple(self._sinks):
            await sink(event)
