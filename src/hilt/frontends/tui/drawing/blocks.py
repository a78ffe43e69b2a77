"""A parsed piece of text that can be laid out at any width: lines of parts, each with what stands before its rows.

Owns layout from roles. What the parts are is found by the parsers of Markdown, code and diffs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.cells import cell_len
from textual.strip import Strip

from hilt.frontends.tui.drawing.paint import Paint, Part, Role
from hilt.frontends.tui.drawing.wrapping import height, wrap

UNKNOWN = 1 << 20
"""Wider than any screen."""


class Block(Protocol):
    """Something between two blank rows."""

    def height(self, width: int) -> int:
        """As many rows as `draw` makes; much cheaper than drawing."""
        ...

    def widest(self) -> int:
        """The least width from which on its height is always the same; `UNKNOWN` when that takes measuring."""
        ...

    def draw(self, width: int, paint: Paint) -> list[Strip]: ...


@dataclass(frozen=True, slots=True)
class Line:
    parts: Sequence[Part]
    indent: Sequence[Part] = ()
    """Before its first row."""
    hanging: Sequence[Part] = ()
    """Before the others."""
    hard: bool = False
    """Broken wherever a row is full, not between words."""
    fill: Role = ()
    """To the end of the row."""

    def height(self, width: int) -> int:
        indent, hanging = cells_of(self.indent), cells_of(self.hanging)
        return height(text_of_parts(self.parts), width, indent=indent, hanging=hanging, hard=self.hard)

    def widest(self) -> int:
        text = text_of_parts(self.parts)
        if not (text.isascii() and text.isprintable()):
            return UNKNOWN
        return len(text) + max(cells_of(self.indent), cells_of(self.hanging))

    def draw(self, width: int, paint: Paint) -> list[Strip]:
        return wrap(
            paint.spans(self.parts),
            width,
            indent=paint.spans(self.indent),
            hanging=paint.spans(self.hanging),
            hard=self.hard,
            fill=paint.style(self.fill) if self.fill else None,
        )


@dataclass(frozen=True, slots=True)
class Lines:
    lines: Sequence[Line | Block]

    def height(self, width: int) -> int:
        return sum([line.height(width) for line in self.lines])

    def widest(self) -> int:
        return max([line.widest() for line in self.lines], default=0)

    def draw(self, width: int, paint: Paint) -> list[Strip]:
        return [strip for line in self.lines for strip in line.draw(width, paint)]


@dataclass(frozen=True, slots=True)
class Ruled:
    """A line across."""

    indent: Sequence[Part] = ()

    def height(self, width: int) -> int:  # noqa: ARG002 - as every block
        return 1

    def widest(self) -> int:
        return 0

    def draw(self, width: int, paint: Paint) -> list[Strip]:
        room = max(1, width - cells_of(self.indent))
        return wrap([("─" * room, paint.style(("rule",)))], width, indent=paint.spans(self.indent))[:1]


def cells_of(parts: Sequence[Part]) -> int:
    return sum([cell_len(text) for text, _ in parts]) if parts else 0


def text_of_parts(parts: Sequence[Part]) -> str:
    return parts[0][0] if len(parts) == 1 else "".join([text for text, _ in parts])
