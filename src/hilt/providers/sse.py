"""Server-sent events: bytes in, whole events out. Pure; it knows no HTTP, no JSON and no vendor.

The caller feeds chunks exactly as the network cut them, and any cut gives the same events.
"""

import re
from dataclasses import dataclass

MAX_EVENT = 16 * 1024 * 1024
"""An answer's largest event repeats the whole answer; nothing honest comes near this."""

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


class EventTooLarge(ValueError):
    """One event outgrew the cap; the stream cannot be followed any further."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    event: str
    data: str


class SseParser:
    def __init__(self, max_event: int = MAX_EVENT) -> None:
        self._max = max_event
        self._tail = bytearray()
        """The line that has not ended yet."""
        self._after_cr = False
        """The last chunk ended in a carriage return: a line feed that follows belongs to it."""
        self._first_line = True
        self._event = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events this chunk completes, in order."""
        if not chunk:
            return []
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r") if chunk else False
        first, *rest = _LINE_END.split(chunk)
        self._tail += first
        events: list[SseEvent] = []
        for part in rest:
            line = bytes(self._tail)
            self._tail = bytearray(part)
            if (event := self._line(line)) is not None:
                events.append(event)
        self._check(len(self._tail))
        return events

    def close(self) -> list[SseEvent]:
        """The stream ended: an event of whole lines still counts, even without its blank line."""
        event = self._dispatch()
        return [event] if event is not None else []

    def _line(self, line: bytes) -> SseEvent | None:
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        self._check(len(line))
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if name == b"data":
            self._data.append(text)
            self._size += len(line)
        elif name == b"event":
            self._event = text
        return None  # comments (an empty name), `id` and `retry` mean nothing here

    def _dispatch(self) -> SseEvent | None:
        event, data = self._event, "\n".join(self._data)
        self._event, self._size = "", 0
        self._data.clear()
        return SseEvent(event, data) if data else None

    def _check(self, more: int) -> None:
        if self._size + more > self._max:
            raise EventTooLarge(f"one event is larger than {self._max} bytes")
