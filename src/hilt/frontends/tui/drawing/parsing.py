"""Markdown's blocks: where the top-level ones of some lines begin and end, and what each is made of.

Owns the shape of blocks: the marks before items and quotes, and the blank rows between. What is within a paragraph is
found by `inline`, and how to parse a text that grows is up to `cutting`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hilt.frontends.tui.drawing.blocks import Block, Line, Lines, Ruled, cells_of
from hilt.frontends.tui.drawing.code import known, language, listing, tokens
from hilt.frontends.tui.drawing.inline import NESTED, inline, parser
from hilt.frontends.tui.drawing.paint import Part, Role
from hilt.frontends.tui.drawing.tables import Cells, Columns, Table

if TYPE_CHECKING:
    from markdown_it.token import Token

TEXT: Role = ("text",)
BAR: Part = ("│ ", ("gutter",))
_BULLETS = "•◦▪"
_BOX = re.compile(r"\[([ xX])\](?=\s)\s?")
_KINDS = {
    "paragraph_open": "paragraph",
    "heading_open": "heading",
    "fence": "fence",
    "code_block": "code",
    "table_open": "table",
    "blockquote_open": "quote",
    "bullet_list_open": "item",
    "ordered_list_open": "item",
    "hr": "rule",
}
_CLOSE = frozenset({"paragraph", "item"})
"""Kinds that stand below each other without a blank row, if they were written so."""


@dataclass(frozen=True, slots=True)
class Before:
    """What stands before the rows of a block within others."""

    first: tuple[Part, ...] = ()
    others: tuple[Part, ...] = ()
    depth: int = 0
    """In how many lists."""
    base: Role = TEXT
    """What all text is, such as a quote's."""

    def later(self) -> "Before":
        return Before(self.others, self.others, self.depth, self.base)

    def item(self, mark: str) -> "Before":
        blank = (" " * cells_of([(mark, ())]), TEXT)
        return Before((*self.first, (mark, ("accent",))), (*self.others, blank), self.depth + 1, self.base)

    def quote(self) -> "Before":
        return Before((*self.first, BAR), (*self.others, BAR), self.depth, (*self.base, "quote"))


@dataclass(frozen=True, slots=True)
class Unit:
    """A block at the top, or an item of a list there."""

    kind: str
    start: int
    end: int
    """The line behind it."""
    tokens: "Sequence[Token]"


def gap(previous: str, kind: str, *, blank: bool) -> bool:
    """Whether a blank row comes between two blocks; `blank`: there was a blank line."""
    if not previous or blank:
        return bool(previous)
    return not (kind in _CLOSE and (previous in _CLOSE or previous == "heading"))


def units(lines: Sequence[str]) -> list[Unit]:
    """The blocks of some lines, in order."""
    found: list[Token] = []
    md = parser()
    md.block.parse("\n".join(lines), md, {}, found)
    return [unit for block in _groups(found) for unit in _split(block, lines)]


def build(unit: Unit, lines: Sequence[str], before: Before) -> Block:
    """What a block is made of. `lines` are those it was found in."""
    if any(token.level >= NESTED - 4 for token in unit.tokens):
        return as_written(lines[unit.start : unit.end], before)
    return Lines(list(_drawn(unit.tokens, lines, before)))


def as_written(lines: Sequence[str], before: Before) -> Block:
    first = before.first
    made = []
    for line in lines:
        made.append(Line([(line, before.base)], first, before.others))
        first = before.others
    return Lines(made)


def marker(token: "Token", depth: int) -> str:
    """Before an item: its number as it was written, or a bullet."""
    return f"{token.info}{token.markup} " if token.info else f"{_BULLETS[depth % len(_BULLETS)]} "


def cells(row: str, count: int) -> Cells:
    """Of a row of a table. What is too much for the columns is in the last."""
    inner = row.strip()
    inner = inner.removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    parts = [part.strip().replace("\\|", "|") for part in re.split(r"(?<!\\)\|", inner)]
    if len(parts) > count:
        parts[count - 1 :] = [" | ".join(parts[count - 1 :])]
    parts += [""] * (count - len(parts))
    return [inline(part, TEXT) if part else [] for part in parts]


def columns(found: "Sequence[Token]") -> tuple[Cells, list[str]]:
    """The headings of a table, and how each column is aligned."""
    headings, aligned = [], []
    for at, token in enumerate(found):
        if token.type == "th_open":
            headings.append(inline(found[at + 1].content, (*TEXT, "strong")))
            aligned.append(str(token.attrGet("style") or "text-align:left").partition(":")[2])
        elif token.type == "thead_close":
            break
    return headings, aligned


def _groups(found: "Sequence[Token]") -> "Iterator[Sequence[Token]]":
    """The tokens of each block that is within no other of these."""
    start = nested = 0
    for at, token in enumerate(found):
        nested += token.nesting
        if not nested:
            yield found[start : at + 1]
            start = at + 1


def _split(block: "Sequence[Token]", lines: Sequence[str]) -> Iterator[Unit]:
    """A list by its items."""
    kind = _KINDS[block[0].type]
    for part in _groups(block[1:-1]) if kind == "item" else [block]:
        start, end = part[0].map or (0, 0)
        while end > start and not lines[end - 1].strip():
            end -= 1
        yield Unit(kind, start, end, part)


def _drawn(found: "Sequence[Token]", lines: Sequence[str], before: Before) -> Iterator[Line | Block]:
    """The blocks of a container, with blank rows between."""
    previous = ""
    for block in _groups(found):
        head = block[0]
        kind = _KINDS.get(head.type, "item")
        start = (head.map or (0, 0))[0]
        if gap(previous, kind, blank=start > 0 and not lines[start - 1].strip(" \t>")):
            yield Line((), before.others)
        yield from _block(kind, block, lines, before)
        previous, before = kind, before.later()


def _block(kind: str, block: "Sequence[Token]", lines: Sequence[str], before: Before) -> Iterator[Line | Block]:
    head = block[0]
    if kind == "paragraph":
        yield Line(inline(block[1].content, before.base), before.first, before.others)
    elif kind == "heading":
        level = {"h1": ("underline",), "h2": ()}.get(head.tag, ("emphasis",))
        yield Line(inline(block[1].content, (*before.base, "heading", *level)), before.first, before.others)
    elif kind in ("fence", "code"):
        code = head.content.removesuffix("\n").split("\n")
        yield fenced(tokens(code, language(head.info)), head.info.strip(), before)
    elif kind == "rule":
        yield Ruled(before.first)
    elif kind == "quote":
        yield from _drawn(block[1:-1], lines, before.quote())
    elif kind == "table":
        yield _table(block, lines, before)
    elif head.type == "list_item_open":
        yield from _item(block, lines, before)
    else:
        yield from _drawn(block[1:-1], lines, before)


def fenced(code: Sequence[Sequence[Part]], info: str, before: Before) -> Block:
    """A listing. What it says of itself is shown, unless that is the name of a language."""
    if not info or known(info):
        return listing(code, before.first, before.others)
    label = Line([(info, ("block", "dim"))], before.first, before.others, fill=("block",))
    return Lines([label, *listing(code, before.others, before.others).lines])


def _item(block: "Sequence[Token]", lines: Sequence[str], before: Before) -> Iterator[Line | Block]:
    mark, body = marker(block[0], before.depth), block[1:-1]
    if not body:
        yield Line((), before.item(mark).first)
        return
    text = body[1].content if body[0].type == "paragraph_open" else ""
    if box := _BOX.match(text):
        mark = "☐ " if box[1] == " " else "☑ "
        rest = inline(text[box.end() :], before.base)
        inside = before.item(mark)
        yield Line(rest, inside.first, inside.others)
        body, before = body[3:], before.later()
    yield from _drawn(body, lines, before.item(mark) if not box else inside.later())


def _table(block: "Sequence[Token]", lines: Sequence[str], before: Before) -> Block:
    headings, aligned = columns(block)
    start, end = block[0].map or (0, 0)
    # From the lines, for the parser drops what is too much for the columns.
    rows = [cells(line.lstrip(" \t>"), len(headings)) for line in lines[start + 2 : end] if line.strip(" \t>")]
    return Table(Columns.of(headings, aligned, rows), rows, True, before.first, before.others)  # noqa: FBT003
