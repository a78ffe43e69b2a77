"""What is selected with the mouse: how it is marked, and as text without what only decorates it.

A part of a row whose style says that it is decoration (bars, marks, line numbers) is left out of what is copied.
"""

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

DECORATION = Style(meta={"decoration": True})
"""On top of the style of what is no text."""


def selected_text(rows: Iterable[tuple[Strip, int, int | None]]) -> str:
    """The characters of each row from one column up to another, or to its end."""
    return "\n".join([_text(strip, left, right) for strip, left, right in rows])


def _text(strip: Strip, left: int, right: int | None) -> str:
    parts = []
    at = 0
    for text, style, _ in strip:
        if not (style and style.meta.get("decoration")):
            parts.append(text[max(left - at, 0) : None if right is None else max(right - at, 0)])
        at += len(text)
    return "".join(parts).rstrip()


def with_selection(strip: Strip, span: tuple[int, int], cells: int, chosen: Style) -> Strip:
    """A row with some of its characters marked; `-1` is the end of its text, which takes so many cells."""
    start, end = span
    segments: list[Segment] = []
    at = used = 0
    for segment in strip:
        text, style, _ = segment
        until = len(text) if end == -1 else end - at
        until = until if used < cells else 0
        left, right = max(0, min(start - at, len(text))), max(0, min(until, len(text)))
        if left < right:
            marked = style + chosen if style else chosen
            pieces = ((text[:left], style), (text[left:right], marked), (text[right:], style))
            segments += [Segment(part, kind) for part, kind in pieces if part]
        else:
            segments.append(segment)
        at += len(text)
        used += segment.cell_length
    return Strip(segments, strip.cell_length)
