"""Markdown that grows, cut into blocks as soon as they can change no more.

Owns where it is cut. Whatever comes, there is little that has not been cut off yet: listings and tables are cut every
few lines, lists at their items, and what is larger than `LARGE` is cut where it is. Where it is cut depends on the
text alone, not on the pieces in which it came.
"""

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice

from hilt.frontends.tui.drawing.blocks import Block, Line, Lines
from hilt.frontends.tui.drawing.code import PIECE, language, piece, tokens
from hilt.frontends.tui.drawing.containers import Container, Item, Quote, item_at
from hilt.frontends.tui.drawing.parsing import Before, Unit, build, cells, columns, fenced, gap, marker, units
from hilt.frontends.tui.drawing.tables import Cells, Columns, Table

LARGE = 4096
"""Characters that are parsed at once."""
MANY = 100
"""Lines that are parsed at once."""
_WINDOWS = (256, 1024, LARGE)
"""How many of them are tried: what stands behind a listing or a table is parsed again."""
LISTED = 1200
"""Characters of a listing that are highlighted at once."""
ROWS = 32
"""Of a table, drawn at once; the first of them make its columns."""
_DEEP = 8
"""Containers that are entered; each takes a mark off the same line, so there could be thousands."""
_CUT = ("fence", "table")
"""Kinds that are cut every few lines."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*$")


@dataclass(frozen=True, slots=True)
class Fence:
    """A listing that has not ended."""

    mark: str
    info: str
    indent: int
    opening: bool = True
    """Nothing of it was cut off yet."""

    def ends(self, line: str) -> bool:
        found = _FENCE.match(line)
        return found is not None and found[1].startswith(self.mark)

    def bare(self, line: str) -> str:
        return line[min(self.indent, len(line) - len(line.lstrip(" "))) :]


@dataclass(frozen=True, slots=True)
class Rows:
    """A table that has not ended."""

    head: tuple[str, str]
    headings: Cells
    aligned: Sequence[str]
    columns: Columns | None = None
    """None: nothing of it was cut off yet."""


class Cutter:
    def __init__(self) -> None:
        self._lines: list[str] = []
        """What has not been cut off yet."""
        self._inside: list[tuple[Container, Before]] = []
        """The containers that were entered, and what stands before what is outside of each."""
        self._within: Fence | Rows | None = None
        self._before = Before()
        self._previous = ""
        """The kind of the last block; empty where the next goes on with it."""
        self._blank = False
        """There was a blank line behind it."""

    def add(self, line: str) -> None:
        """A whole line, clean."""
        self._lines.append(line)

    @property
    def listing(self) -> bool:
        """Whether what comes next is a line of code."""
        return isinstance(self._within, Fence)

    def copy(self) -> "Cutter":
        other = copy(self)
        other._lines = list(self._lines)
        other._inside = list(self._inside)
        return other

    def step(self, *, final: bool) -> list[Block] | None:
        """Some blocks that are finished; None when there are no more. `final`: nothing comes any more."""
        if isinstance(self._within, Fence):
            return self._listed(self._within, final=final)
        if isinstance(self._within, Rows):
            return self._tabled(self._within, final=final)
        self._skip_blank()
        if not self._lines:
            return None
        if self._inside and self._bare(self._lines[0]) is None:
            self._leave()
            return []
        return self._parsed(final=final)

    def _skip_blank(self) -> None:
        found = next((at for at, line in enumerate(self._lines) if line.strip()), len(self._lines))
        if found:
            self._take(found)
            self._blank = True

    def _parsed(self, *, final: bool) -> list[Block] | None:
        for most in _WINDOWS:
            window, full = self._window(most)
            found = units(window)
            if not full or len(found) > 1 or found[0].kind in _CUT:
                break  # nothing that comes later can change the first
        whole = not full and (final or len(window) < len(self._lines))
        blocks: list[Block] = []
        for at, unit in enumerate(found):
            if unit.kind in _CUT:
                self._enter(unit, window)
                return blocks
            if _heavy(unit) and (inside := self._container(unit, window[unit.start])):
                return [*blocks, *self._entered(unit, window, inside)]
            if at == len(found) - 1 and not whole:
                if at == 0 and full:
                    return self._cut(unit, window)
                self._take(unit.start, window)
                return blocks if unit.start else None
            blocks += self._placed(unit.kind, build(unit, window, self._before), unit.start, window)
        self._take(len(window), window)
        return blocks

    def _listed(self, fence: Fence, *, final: bool) -> list[Block] | None:
        found: list[str] = []
        size = 0
        more = ended = False
        for line in self._lines:
            bare = self._bare(line)
            if bare is None or fence.ends(bare):
                ended = True
                break
            if len(found) == PIECE or size > LISTED:
                more = True
                break
            found.append(fence.bare(bare))
            size += len(bare) + 1
        if not (ended or more or final):
            return None
        parts = tokens(found, language(fence.info))
        count = piece(parts) if more else len(parts)
        block = fenced(parts[:count] or [()], fence.info if fence.opening else "", self._before)
        self._take(count)
        if ended and self._lines and self._bare(self._lines[0]) is not None:
            self._take(1)  # the line that ends it
        self._within = replace(fence, opening=False) if more else None
        return self._placed("fence", block) if fence.opening else self._continued(block if count else None)

    def _tabled(self, table: Rows, *, final: bool) -> list[Block] | None:
        window: list[str] = []
        for line in islice(self._lines, ROWS):
            bare = self._bare(line)
            if bare is None:
                break
            window.append(bare)
            if not bare.strip():
                break  # which no table goes on behind
        unit = next(iter(units([*table.head, *window])))
        count = max(0, unit.end - 2)
        over = count < len(window) or len(window) < min(ROWS, len(self._lines))
        if not (over or len(window) == ROWS or final):
            return None
        rows = [cells(line, len(table.headings)) for line in window[:count]]
        made = table.columns or Columns.of(table.headings, table.aligned, rows)
        before = self._before
        block = Table(made, rows, table.columns is None, before.first, before.others)
        self._within = replace(table, columns=made) if not over and len(window) == ROWS else None
        self._take(count)
        return self._placed("table", block) if table.columns is None else self._continued(block if rows else None)

    def _window(self, most: int) -> tuple[list[str], bool]:
        """The next lines, to the end of the container or so many characters, and whether there were as many."""
        window: list[str] = []
        size = 0
        for line in self._lines:
            bare = self._bare(line)
            if bare is None:
                break
            window.append(bare)
            size += len(bare) + 1
            if size >= most or len(window) == MANY:
                return window, True
        return window, False

    def _enter(self, unit: Unit, window: Sequence[str]) -> None:
        """From here on, cut a listing or a table every few lines."""
        head = unit.tokens[0]
        self._take(unit.start, window)
        if unit.kind == "fence":
            opener = window[unit.start]
            indent = len(opener) - len(opener.lstrip(" "))
            self._within = Fence(head.markup, head.info.strip(), indent)
            self._take(1)
        else:
            headings, aligned = columns(unit.tokens)
            self._within = Rows((window[unit.start], window[unit.start + 1]), headings, aligned)
            self._take(2)

    def _cut(self, unit: Unit, window: Sequence[str]) -> list[Block]:
        """What is too large to be parsed at once: entered if it has an inside, and cut otherwise."""
        if inside := self._container(unit, window[unit.start]):
            return self._entered(unit, window, inside)
        block = self._placed(unit.kind, build(unit, window, self._before), unit.start, window)
        self._take(len(window), window)
        self._previous = ""
        return block

    def _entered(self, unit: Unit, window: Sequence[str], inside: tuple[Container, str, Before]) -> list[Block]:
        """From here on, cut what is within an item or a quote as if it were alone."""
        container, rest, before = inside
        self._take(unit.start, window)
        spaced = [Line((), self._before.others)] if gap(self._previous, unit.kind, blank=self._blank) else []
        for outer, _ in reversed([*self._inside, (container, before)]):
            rest = outer.outside(rest)
        self._inside.append((container, self._before))
        self._lines[0], self._before = rest, before
        self._previous, self._blank = "", False
        return [Lines(spaced)] if spaced else []

    def _container(self, unit: Unit, line: str) -> tuple[Container, str, Before] | None:
        if len(self._inside) == _DEEP:
            return None
        if unit.kind == "quote" and (rest := Quote().within(line)) is not None:
            return Quote(), rest, self._before.quote()
        if unit.kind == "item" and (found := item_at(line)):
            return *found, self._before.item(marker(unit.tokens[0], self._before.depth))
        return None

    def _leave(self) -> None:
        container, before = self._inside.pop()
        self._before = before.later()
        self._previous = "item" if isinstance(container, Item) else "quote"

    def _bare(self, line: str) -> str | None:
        """A line from within the containers; None if it is not in them any more."""
        bare: str | None = line
        for container, _ in self._inside:
            bare = container.within(bare) if bare is not None else None
        return bare

    def _take(self, count: int, window: Sequence[str] = ()) -> None:
        if count:
            self._blank = bool(window) and not window[count - 1].strip()
            del self._lines[:count]

    def _placed(self, kind: str, block: Block, start: int = 0, window: Sequence[str] = ()) -> list[Block]:
        blank = not window[start - 1].strip() if start else self._blank
        spaced = gap(self._previous, kind, blank=blank)
        row = Line((), self._before.others)
        self._before, self._previous, self._blank = self._before.later(), kind, False
        return [Lines([row, block]) if spaced else block]

    def _continued(self, block: Block | None) -> list[Block]:
        self._blank = False
        return [block] if block else []


def _heavy(unit: Unit) -> bool:
    """Whether there is a listing in it that should be cut while it grows."""
    return unit.kind in ("item", "quote") and any(len(token.content) > LISTED for token in unit.tokens)
