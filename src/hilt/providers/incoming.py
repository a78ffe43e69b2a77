"""An answer while it arrives: deltas to pass on, and at the end the message they add up to."""

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from hilt.model.content import Args, AssistantBlock, Text, Thinking, ToolCall
from hilt.model.conversation import StopReason, Usage
from hilt.model.stream import Completed, StreamItem, TextDelta, ThinkingDelta, ToolUseArgs, ToolUseEnd, ToolUseStart
from hilt.providers.outgoing import ToolNames

_Kind: TypeAlias = Literal["text", "thinking", "call"]


@dataclass(slots=True)
class _Piece:
    kind: _Kind
    parts: list[str] = field(default_factory=list)
    id: str = ""
    name: str = ""
    state: str = ""
    redacted: bool = False
    started: bool = False
    ended: bool = False

    @property
    def text(self) -> str:
        return "".join(self.parts)


class Answer:
    """Blocks in the order they began. A vendor's own numbering is the key; each kind counts for itself."""

    def __init__(self, provider: str, names: ToolNames) -> None:
        self._provider = provider
        self._names = names
        self._pieces: dict[tuple[_Kind, Hashable], _Piece] = {}

    def text(self, key: Hashable, delta: str | None) -> list[StreamItem]:
        if not delta:
            return []
        self._piece("text", key).parts.append(delta)
        return [TextDelta(delta)]

    def thinking(self, key: Hashable, delta: str | None) -> list[StreamItem]:
        if not delta:
            return []
        self._piece("thinking", key).parts.append(delta)
        return [ThinkingDelta(delta)]

    def sign(self, key: Hashable, state: str | None, *, id: str = "", redacted: bool = False) -> None:  # noqa: A002
        """Attach what the vendor wants back with this thought."""
        piece = self._piece("thinking", key)
        piece.state = state or piece.state
        piece.id = id or piece.id
        piece.redacted = redacted or piece.redacted

    def call(self, key: Hashable, id: str | None, name: str | None, *, state: str = "") -> list[StreamItem]:  # noqa: A002
        """A call begins, or more is known of it. It is announced once it has a name."""
        piece = self._piece("call", key)
        piece.state = state or piece.state
        if not piece.id and (id or name):
            piece.id = self._own_id(id)
        if piece.started or not name:
            return []
        piece.name = self._names.real(name)
        piece.started = True
        early = piece.text
        return [ToolUseStart(piece.id, piece.name), *([ToolUseArgs(piece.id, early)] if early else [])]

    def args(self, key: Hashable, delta: str | None) -> list[StreamItem]:
        if not delta:
            return []
        piece = self._piece("call", key)
        piece.parts.append(delta)
        return [ToolUseArgs(piece.id, delta)] if piece.started else []

    def end_call(self, key: Hashable) -> list[StreamItem]:
        piece = self._pieces.get(("call", key))
        return self._end(piece) if piece is not None else []

    def received(self, kind: _Kind, key: Hashable) -> str:
        piece = self._pieces.get((kind, key))
        return piece.text if piece is not None else ""

    def finish(self, stop: StopReason, usage: Usage) -> list[StreamItem]:
        """Close what is open and state the whole. Calls decide between `end` and `tool_use`, not the vendor."""
        ends = [item for piece in self._pieces.values() if piece.kind == "call" for item in self._end(piece)]
        content = tuple(block for piece in self._pieces.values() if (block := self._block(piece)) is not None)
        if stop in ("end", "tool_use"):
            stop = "tool_use" if any(isinstance(block, ToolCall) for block in content) else "end"
        return [*ends, Completed(content, stop, usage)]

    def _piece(self, kind: _Kind, key: Hashable) -> _Piece:
        return self._pieces.setdefault((kind, key), _Piece(kind))

    def _own_id(self, wanted: str | None) -> str:
        """The vendor's id, unless it has none to give or gives one twice."""
        taken = wanted and any(piece.id == wanted for piece in self._pieces.values() if piece.kind == "call")
        return wanted if wanted and not taken else f"call_{os.urandom(8).hex()}"

    def _end(self, piece: _Piece) -> list[StreamItem]:
        if piece.ended or not piece.started:
            return []
        piece.ended = True
        return [ToolUseEnd(piece.id)]

    def _block(self, piece: _Piece) -> AssistantBlock | None:
        match piece.kind:
            case "text":
                return Text(piece.text) if piece.parts else None
            case "thinking":
                known = piece.parts or piece.state
                return Thinking(piece.text, piece.state, piece.id, piece.redacted, self._provider) if known else None
            case "call":
                args, invalid = parse_args(piece.text)
                return ToolCall(piece.id or self._own_id(None), piece.name, args, invalid, piece.state)


def parse_args(raw: str) -> tuple[Args, str]:
    """The arguments, or none and the text that was no JSON object."""
    if not raw.strip():
        return {}, ""
    try:
        args = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return {}, raw
    return (args, "") if isinstance(args, dict) else ({}, raw)


def count(usage: Mapping[str, Any] | None, *path: str) -> int:
    """A token count somewhere in a usage object; 0 for anything that is not one."""
    value: object = usage
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return max(0, int(value)) if isinstance(value, int | float) and not isinstance(value, bool) else 0
