"""Messages among extensions, by topic, and what hilt itself says there: the lines of commands that run.

Owns who listens. Nothing is kept for those who come later, and nobody waits for anybody.
"""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeAlias

from hilt.agent.bus import Bus
from hilt.errors import UsageError
from hilt.model.events import Event, ToolCalled, ToolProgressed, ToolResultAdded

Deliver: TypeAlias = Callable[[Any], None]

TAIL = "bash.tail"
_BASH = "bash"
_LONGEST_TOPIC = 200
_SHOWN = 80
"""Characters of a line."""
_AT_ONCE = 500
"""Lines of one piece of output; of a flood only its end is a tail."""


class Topics:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._subscriptions: dict[str, dict[object, Deliver]] = {}
        self._following = ExitStack()
        self._loop = asyncio.get_running_loop()

    def publish(self, topic: str, data: Any) -> None:
        """To all who have subscribed by now, whoever publishes. Waits for none of them."""
        for token in tuple(self._subscriptions.get(_checked(topic), ())):
            # Each in a step of its own: one that fails costs no other, nor can they chase each other without end here.
            self._loop.call_soon(self._deliver, topic, token, data)

    def subscribe(self, topic: str, deliver: Deliver) -> Callable[[], None]:
        """From now on; what is returned ends it."""
        if _checked(topic) == TAIL and TAIL not in self._subscriptions:
            self._following.enter_context(self._bus.subscribed(_Tail(self)))
        token = object()
        self._subscriptions.setdefault(topic, {})[token] = deliver
        return lambda: self._end(topic, token)

    def _deliver(self, topic: str, token: object, data: Any) -> None:
        if deliver := self._subscriptions.get(topic, {}).get(token):  # it may have ended since
            deliver(data)

    def _end(self, topic: str, token: object) -> None:
        listening = self._subscriptions.get(topic, {})
        if listening.pop(token, None) and not listening:
            del self._subscriptions[topic]
            if topic == TAIL:
                self._following.close()


class _Tail:
    """A sink of the bus that makes lines of what commands print. There only while somebody listens."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._unfinished: dict[str, str] = {}
        """By call: the end of its last line so far."""

    async def __call__(self, event: Event) -> None:
        match event:
            case ToolCalled(id=id_, name=name) if name == _BASH:
                self._unfinished[id_] = ""
            case ToolProgressed(id=id_, text=text) if id_ in self._unfinished:
                *lines, rest = (self._unfinished[id_] + text).split("\n")
                self._unfinished[id_] = rest[-_SHOWN - 1 :]  # and a carriage return that may turn out to end it
                for line in lines[-_AT_ONCE:]:
                    self._say(id_, line)
            case ToolResultAdded(id=id_) if rest := self._unfinished.pop(id_, ""):
                self._say(id_, rest)

    def _say(self, call: str, line: str) -> None:
        shown = line.removesuffix("\r")[-_SHOWN:]
        self._topics.publish(TAIL, {"ToolCallID": call, "ToolName": _BASH, "Partial": shown})


def _checked(topic: str) -> str:
    if not 0 < len(topic) <= _LONGEST_TOPIC:
        raise UsageError(f"a topic has 1 to {_LONGEST_TOPIC} characters, not {len(topic):,}")
    return topic
