"""Keys that arrive in pieces: what grows from event to event is masked as the text that it will be.

A delta whose end could be the beginning of a key is held back until more of its stream has come, or
until the stream has ended. Single lines are masked by whoever writes them.
"""

from typing import TypeAlias, TypeVar

import msgspec

from hilt.model.events import (
    AssistantMessageAdded,
    Done,
    Event,
    Failed,
    Retrying,
    ToolProgressed,
    ToolResultAdded,
    TurnEnded,
    UsageReported,
)
from hilt.model.masking import Mask
from hilt.model.stream import TextDelta, ThinkingDelta, ToolUseArgs, ToolUseEnd

_Piece: TypeAlias = TextDelta | ThinkingDelta | ToolUseArgs | ToolProgressed
_Stream: TypeAlias = tuple[type[_Piece], str]
"""What kind of text, and of which call."""


_Told = TypeVar("_Told", bound=msgspec.Struct)


def concealed(told: _Told, mask: Mask) -> _Told:
    """A whole event or message with the keys in it blanked, for whoever does not write it as a line."""
    if mask.empty:
        return told
    line = msgspec.json.encode(told)
    hidden = mask.line(line)
    return told if hidden == line else msgspec.json.decode(hidden, type=type(told))


class Masked:
    """The events as they may be shown, in their order."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._held: dict[_Stream, _Piece] = {}
        """The tails held back: never an empty one, each shorter than the longest secret."""

    def show(self, event: Event) -> list[Event]:
        if self._mask.empty:
            return [event]
        if isinstance(event, _Piece):
            return list(self._grown(event))
        return [*self._released(event), event]

    def _grown(self, piece: _Piece) -> list[_Piece]:
        stream = _stream(piece)
        before = self._held.pop(stream, None)
        text = _text(before) + _text(piece) if before else _text(piece)
        shown, tail = self._mask.cut(text, in_json=isinstance(piece, ToolUseArgs))
        if tail:
            self._held[stream] = _with(piece, tail)
        if shown == _text(piece):
            return [piece]
        return [_with(piece, shown)] if shown else []

    def _released(self, event: Event) -> list[_Piece]:
        """The tails of the streams that this event ends."""
        ended = [stream for stream in self._held if _ends(event, stream)]
        return [self._whole(self._held.pop(stream)) for stream in ended]

    def _whole(self, piece: _Piece) -> _Piece:
        # A short secret may be all of the tail, held back because a longer one begins with it.
        shown, _ = self._mask.cut(_text(piece), in_json=isinstance(piece, ToolUseArgs), ended=True)
        return _with(piece, shown)


def _ends(event: Event, stream: _Stream) -> bool:
    kind, id_ = stream
    match event:
        case ToolUseEnd():
            return kind is ToolUseArgs and id_ == event.id
        case ToolResultAdded():
            return kind is ToolProgressed and id_ == event.id
        case UsageReported() | AssistantMessageAdded() | Retrying() | TurnEnded() | Failed():
            return kind is not ToolProgressed
        case Done():
            return True
    return False


def _stream(piece: _Piece) -> _Stream:
    return type(piece), piece.id if isinstance(piece, ToolUseArgs | ToolProgressed) else ""


def _text(piece: _Piece) -> str:
    return piece.text if isinstance(piece, ToolProgressed) else piece.delta


def _with(piece: _Piece, text: str) -> _Piece:
    changed = {"text" if isinstance(piece, ToolProgressed) else "delta": text}
    return msgspec.structs.replace(piece, **changed)
