"""Styled text laid out in rows of a given width, measured as terminals do: by the cells that each character takes.

Owns where rows break. No cluster of characters that is drawn as one (an emoji with its joiners, a letter with its
accents) is ever split, and no row is ever wider than it may be. Cleaning the text is up to the caller, and measuring
its clusters to `cells`.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from hilt.frontends.tui.drawing.cells import Cluster, clusters_of, narrowed

Span: TypeAlias = tuple[str, Style]
Spans: TypeAlias = Sequence[Span]
Row: TypeAlias = tuple[int, int, int]
"""Where it begins and ends in the text, and its cells."""

TAB = 4
"""Cells from one tab stop to the next."""
_NULL = Style.null()


def wrap(
    spans: Spans,
    width: int,
    *,
    indent: Spans = (),
    hanging: Spans = (),
    hard: bool = False,
    fill: Style | None = None,
) -> list[Strip]:
    """Rows of at most `width` cells, the first behind `indent` and the others behind `hanging`; at least one.

    Rows break at spaces, which are left out there; `hard` breaks wherever the row is full, and keeps them. Line feeds
    are kept. With `fill`, rows are filled up with that style.
    """
    width = max(1, width)
    first, others = _prefix(indent, width), _prefix(hanging, width)
    strips: list[Strip] = []
    for line in _lines(spans):
        line, text, clusters = _measured(line, width - max(first[1], others[1]))
        rows = _rows(text, clusters, width - (others if strips else first)[1], width - others[1], hard=hard)
        for (_, _, cells), row in zip(rows, _cut(line, text, clusters, rows), strict=True):
            front, taken = others if strips else first
            strips.append(_strip([*front, *row] if front else row, taken + cells, width, fill))
    return strips


def height(text: str, width: int, *, indent: int = 0, hanging: int = 0, hard: bool = False) -> int:
    """How many rows `wrap` makes of this text, behind prefixes of so many cells."""
    if len(text) + indent < width // 2 and text.isascii() and text.isprintable():
        return 1  # most lines: of a long text thousands are measured before a frame can be drawn
    width = max(1, width)
    most = _most(width)
    first, others = width - min(indent, most), width - min(hanging, most)
    count = 0
    for line in text.split("\n"):
        if "\t" in line:
            line = _Tabs().expanded(line)
        line, clusters = _fitting(line, min(first, others))
        count += len(_rows(line, clusters, others if count else first, others, hard=hard))
    return count


def clip(strip: Strip, width: int) -> Strip:
    """The beginning of a row. Half a wide character becomes a space."""
    return strip if strip.cell_length <= width else strip.crop(0, max(0, width))


def pad(strip: Strip, width: int, style: Style) -> Strip:
    """A row that is at least so wide."""
    return strip.extend_cell_length(width, style)


def _most(width: int) -> int:
    """Of a row, for what stands before the text: half of it, and always room for a wide character."""
    return max(0, min(width // 2, width - 2))


def _prefix(spans: Spans, width: int) -> tuple[list[Segment], int]:
    if not spans:
        return [], 0
    segments = [Segment(text, style) for text, style in spans]
    cells = sum([cell_len(text) for text, _ in spans])
    if cells <= _most(width):
        return segments, cells
    strip = clip(Strip(segments, cells), _most(width))
    return list(strip), strip.cell_length


def _strip(segments: list[Segment], cells: int, width: int, fill: Style | None) -> Strip:
    if fill is not None and cells < width:
        segments.append(Segment(" " * (width - cells), fill))
        cells = width
    return Strip(segments, cells)


def _lines(spans: Spans) -> list[Spans]:
    """Without line feeds and tabs. A line has at least one span."""
    if not any("\n" in text or "\t" in text for text, _ in spans):
        return [spans or [("", _NULL)]]
    lines: list[list[Span]] = [[]]
    tabs = _Tabs()
    for text, style in spans:
        for at, part in enumerate(text.split("\n")):
            if at:
                lines.append([])
                tabs = _Tabs()
            lines[-1].append((tabs.expanded(part), style))
    return [*lines]


class _Tabs:
    """A line that comes in parts. It is measured as a whole: where a part ends may be in the middle of a cluster."""

    def __init__(self) -> None:
        self._column = 0
        """Where the last tab led to."""
        self._since = ""
        """What came after it."""

    def expanded(self, part: str) -> str:
        pieces = part.split("\t")
        for at, piece in enumerate(pieces[:-1]):
            column = self._column + cell_len(self._since + piece)
            gap = TAB - column % TAB
            pieces[at] += " " * gap
            self._column, self._since = column + gap, ""
        self._since += pieces[-1]
        return "".join(pieces)


def _measured(line: Spans, room: int) -> tuple[Spans, str, Sequence[Cluster] | None]:
    text = line[0][0] if len(line) == 1 else "".join([part for part, _ in line])
    fitting, clusters = _fitting(text, room)
    return (line if fitting is text else [(fitting, line[0][1])]), fitting, clusters


def _fitting(text: str, room: int) -> tuple[str, Sequence[Cluster] | None]:
    clusters = clusters_of(text)
    if clusters is None or all(cells <= room for _, _, cells in clusters):
        return text, clusters
    narrow = narrowed(text, clusters, room)
    return narrow, clusters_of(narrow)


def _rows(text: str, clusters: Sequence[Cluster] | None, first: int, others: int, *, hard: bool) -> list[Row]:
    if clusters is not None:
        return list(_by_clusters(text, clusters, first, others, hard=hard))
    if len(text) <= first:
        return [(0, len(text), len(text))]
    return list(_chopped(len(text), first, others) if hard else _worded(text, first, others))


def _chopped(length: int, room: int, others: int) -> Iterator[Row]:
    start = 0
    while length - start > room:
        yield start, start + room, room
        start, room = start + room, others
    yield start, length, length - start


def _worded(text: str, room: int, others: int) -> Iterator[Row]:
    start, length = 0, len(text)
    while length - start > room:
        gap = text.rfind(" ", start, start + room + 1)
        end = gap
        while end > start and text[end - 1] == " ":
            end -= 1
        if end <= start:  # one long word, or nothing but spaces
            end = gap = start + room
        yield start, end, end - start
        start, room = gap, others
        while start < length and text[start] == " ":
            start += 1
    if start < length:
        yield start, length, length - start


def _by_clusters(text: str, clusters: Sequence[Cluster], room: int, others: int, *, hard: bool) -> Iterator[Row]:
    """The same for any text. A row may also end beside a wide character: its scripts are written without spaces."""
    at, count = 0, len(clusters)
    while at < count:
        begin = at
        at = _full(text, clusters, begin, room, hard=hard)
        end = at
        while not hard and at < count and end > begin and text[clusters[end - 1][0]] == " ":
            end -= 1
        if end == begin:  # nothing but spaces
            end = at
        yield clusters[begin][0], clusters[end - 1][1], sum([cells for _, _, cells in clusters[begin:end]])
        while not hard and at < count and text[clusters[at][0]] == " ":
            at += 1
        room = others


def _full(text: str, clusters: Sequence[Cluster], begin: int, room: int, *, hard: bool) -> int:
    """The first cluster that belongs to the next row."""
    at, cells, chance, word = begin, 0, 0, False
    while at < len(clusters):
        start, _, wide = clusters[at]
        blank = text[start] == " "
        if word and (blank or wide > 1 or clusters[at - 1][2] > 1):
            chance = at
        if cells + wide > room:
            return max(at if hard or not chance else chance, begin + 1)
        word = word or not blank
        cells += wide
        at += 1
    return at


def _cut(line: Spans, text: str, clusters: Sequence[Cluster] | None, rows: list[Row]) -> Iterator[list[Segment]]:
    """The segments of each row."""
    if len(line) == 1:
        style = line[0][1]
        for start, end, _ in rows:
            yield [Segment(text[start:end], style)] if start < end else []
        return
    if clusters is None and rows[0][1] == len(text):  # all in one row, as most lines of code
        yield [Segment(part, style) for part, style in line if part]
        return
    bounds = _bounds(line, clusters)
    at = 0
    for start, end, _ in rows:
        while at < len(bounds) - 1 and bounds[at][0] <= start:
            at += 1
        segments = []
        here = start
        for until, style in bounds[at:]:
            if here >= end:
                break
            if until > here:
                segments.append(Segment(text[here : min(until, end)], style))
                here = until
        yield segments


def _bounds(line: Spans, clusters: Sequence[Cluster] | None) -> list[tuple[int, Style]]:
    """Where each span ends: never inside of a cluster, which would then be measured as two."""
    bounds: list[tuple[int, Style]] = []
    at = 0
    for part, style in line:
        at += len(part)
        bounds.append((at, style))
    if clusters is not None:
        edges = iter([end for _, end, _ in clusters])
        edge = 0
        for index, (until, style) in enumerate(bounds):
            while edge < until:
                edge = next(edges)
            bounds[index] = (max(edge, until), style)
    return bounds
