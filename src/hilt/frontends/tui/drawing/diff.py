"""Unified diffs: numbered lines, marked and coloured by what happens to them.

Owns the reading of the format. What is no diff is drawn as it is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textual.strip import Strip

from hilt.frontends.terminal import clean
from hilt.frontends.tui.drawing.blocks import Line
from hilt.frontends.tui.drawing.code import tokens
from hilt.frontends.tui.drawing.paint import Paint, Part, Role
from hilt.frontends.tui.look import Look

_HUNK = re.compile(r"@@ -(?P<old>\d{1,9})(?:,(?P<olds>\d{1,9}))? \+(?P<new>\d{1,9})(?:,(?P<news>\d{1,9}))? @@")
_BODY: dict[str, Role] = {"+": ("added",), "-": ("removed",), " ": ("text",)}
_MARK: dict[str, Role] = {"+": ("added", "success"), "-": ("removed", "error"), " ": ("gutter",)}


@dataclass(frozen=True, slots=True)
class _Changed:
    """A line of a hunk."""

    mark: str
    number: int
    """In the new file, or in the old one if it goes."""
    text: str


def diff(unified: str, width: int, look: Look, language: str = "") -> list[Strip]:
    """A diff as rows; its lines are highlighted if the language is known."""
    return list(flowing(unified, width, look, language))


def flowing(unified: str, width: int, look: Look, language: str = "") -> Iterator[Strip]:
    """The same, row by row: a long one can be drawn in pieces."""
    lines = clean(unified).removesuffix("\n").split("\n") if unified else []
    read = list(_read(lines))
    digits = max([len(str(row.number)) for row in read if isinstance(row, _Changed)], default=1)
    paint = Paint.of(look)
    for line in _drawn(read, digits, language):
        yield from line.draw(width, paint)


def _read(lines: Sequence[str]) -> Iterator[_Changed | str]:
    old = new = olds = news = 0
    for line in lines:
        mark = line[:1] or " "  # editors take away the space of an empty line
        if found := _HUNK.match(line):
            old, new = int(found["old"]), int(found["new"])
            olds, news = int(found["olds"] or 1), int(found["news"] or 1)
            yield line
        elif (olds > 0 or news > 0) and mark in _BODY:
            yield _Changed(mark, old if mark == "-" else new, line[1:])
            gone, came = mark != "+", mark != "-"
            old, olds, new, news = old + gone, olds - gone, new + came, news - came
        else:
            yield line


def _drawn(read: Sequence[_Changed | str], digits: int, language: str) -> Iterator[Line]:
    came = _lit([row for row in read if isinstance(row, _Changed) and row.mark != "-"], language)
    gone = _lit([row for row in read if isinstance(row, _Changed) and row.mark == "-"], language)
    for row in read:
        if isinstance(row, str):
            yield _heading(row)
            continue
        role = _BODY[row.mark]
        body = [(text, (*role, *kind[1:])) for text, kind in next(gone if row.mark == "-" else came)]
        number: Part = (f"{row.number:>{digits}} ", ("gutter",))
        mark: Part = (f"{row.mark} ", _MARK[row.mark])
        blank: Part = ("  ", _MARK[row.mark])
        fill = role if row.mark != " " else ()
        yield Line(body, (number, mark), ((" " * (digits + 1), ("gutter",)), blank), hard=True, fill=fill)


def _lit(rows: Sequence[_Changed], language: str) -> Iterator[Sequence[Part]]:
    """The parts of the lines of one side, which are highlighted together."""
    return iter(tokens([row.text for row in rows], language))


def _heading(line: str) -> Line:
    if _HUNK.match(line):
        return Line([(line, ("info",))])
    return Line([(line, ("strong",) if line.startswith(("--- ", "+++ ", "diff ")) else ("dim",))])
