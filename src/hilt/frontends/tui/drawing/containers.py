"""An item of a list or a quote that is too long to be parsed at once: what its lines look like from within.

Owns which lines belong to it. It is only entered where it grows too large; most are drawn as they are parsed.
"""

import re
from dataclasses import dataclass
from typing import TypeAlias

_MARKED = re.compile(r"(?P<lead> {0,3})(?P<mark>[-*+]|\d{1,9}[.)])(?P<gap> *)(?P<rest>.*)", re.DOTALL)
_QUOTED = re.compile(r" {0,3}> ?")


@dataclass(frozen=True, slots=True)
class Item:
    offset: int
    """The column at which its text begins."""

    def within(self, line: str) -> str | None:
        if not line.strip():
            return ""
        line = _spaced(line)
        return line[self.offset :] if not line[: self.offset].strip() else None

    def outside(self, line: str) -> str:
        return " " * self.offset + line


@dataclass(frozen=True, slots=True)
class Quote:
    def within(self, line: str) -> str | None:
        found = _QUOTED.match(line)
        return line[found.end() :] if found else None

    def outside(self, line: str) -> str:
        return "> " + line


Container: TypeAlias = Item | Quote


def item_at(line: str) -> tuple[Item, str] | None:
    """The item that a line begins, and the text behind its mark."""
    found = _MARKED.match(_spaced(line))
    if not found or (found["rest"] and not found["gap"]):
        return None
    mark, gap = found["mark"], len(found["gap"])
    taken = gap if 0 < gap < 5 and found["rest"] else 1  # with five it is one, and the rest indents a listing
    return Item(len(found["lead"]) + len(mark) + taken), " " * (gap - taken) + found["rest"]


def _spaced(line: str) -> str:
    """With spaces for its tabs, which may be part of the indentation."""
    return line.expandtabs(4) if "\t" in line else line
