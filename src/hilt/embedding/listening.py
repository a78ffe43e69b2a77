"""The program's own functions as listeners: told of everything, or of one call, and kept from doing harm by failing."""

import inspect
import logging
from collections.abc import Callable
from typing import TypeAlias

from hilt.agent.bus import Bus
from hilt.model.events import Decided, Event, Intercepted, ToolProgressed

log = logging.getLogger(__name__)

OnEvent: TypeAlias = Callable[[Event], object]
"""Told of everything that happens. It may be a coroutine function, which is awaited."""
Progress: TypeAlias = Callable[[str], object]
"""Given what a tool shows while it runs; as `OnEvent`."""


class Seen:
    """What happens with one call, passed on; progress and decisions are picked out."""

    def __init__(self, bus: Bus, call_id: str, progress: Progress | None) -> None:
        self._bus = bus
        self._call_id = call_id
        self._progress = progress
        self.decisions: tuple[Decided, ...] = ()

    async def __call__(self, event: Event) -> None:
        match event:
            case Intercepted(id=id_, decisions=decisions) if id_ == self._call_id:
                self.decisions = decisions
            case ToolProgressed(text=text) if self._progress:
                await tell(self._progress, text)
        await self._bus.emit(event)


class Listener:
    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event

    async def __call__(self, event: Event) -> None:
        await tell(self._on_event, event)


async def tell(listener: Callable[..., object], what: object) -> None:
    try:
        answer = listener(what)
        if inspect.isawaitable(answer):
            await answer
    except Exception:
        # It is the program's own, and is called where extensions are looked after: they must not end with it.
        log.exception("a listener failed")
