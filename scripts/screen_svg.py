"""A screen as an SVG: rows of styled text become rectangles and text in one monospaced grid.

Owns the geometry and the markup, and asks nobody for fonts: each run of text is told how wide it is, so that any
monospaced font of whoever looks at it will do.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from hilt.frontends.tui.look import Palette

_CELL, _LINE, _BASE = 9, 18, 14
"""Pixels: the width of a cell, the height of a row, and where in it the letters stand."""
_MARGIN = 14
_FONTS = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"


@dataclass(frozen=True)
class _Run:
    """Neighbouring cells that look the same."""

    start: int
    text: str
    cells: int
    colour: str
    behind: str
    marks: str
    """What else is to be said of the letters, as CSS."""


def svg(rows: Sequence[Iterable[Segment]], columns: int, palette: Palette, title: str) -> str:
    """`title` is what somebody is told who does not see it."""
    runs = [(y, run) for y, row in enumerate(rows) for run in _runs(row, palette)]
    classes = {look: f"c{at}" for at, look in enumerate(dict.fromkeys((run.colour, run.marks) for _, run in runs))}
    width, height = columns * _CELL + 2 * _MARGIN, len(rows) * _LINE + 2 * _MARGIN
    styles = [f".{name} {{ fill: {colour};{marks} }}" for (colour, marks), name in classes.items()]
    behind = [_rectangle(y, run) for y, run in runs if run.behind != palette.background]
    text = [_text(y, run, classes[run.colour, run.marks]) for y, run in runs if run.text.strip()]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
            f"<title>{escape(title)}</title>",
            f"<style>text {{ font: 15px {_FONTS}; white-space: pre; }}",
            *styles,
            "</style>",
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="{palette.background}"'
            f' stroke="{palette.dim}"/>',
            f'<g transform="translate({_MARGIN} {_MARGIN})" xml:space="preserve">',
            '<g shape-rendering="crispEdges">',
            *behind,
            "</g>",
            *text,
            "</g>",
            "</svg>\n",
        ]
    )


def _runs(row: Iterable[Segment], palette: Palette) -> Iterator[_Run]:
    """Without the spaces at either end of a run, unless there is something behind them."""
    open_: _Run | None = None
    at = 0
    for segment in row:
        cells = cell_len(segment.text)
        colour, behind, marks = _worn(segment.style or Style.null(), palette)
        if open_ and (open_.colour, open_.behind, open_.marks) == (colour, behind, marks):
            open_ = _Run(open_.start, open_.text + segment.text, open_.cells + cells, colour, behind, marks)
        else:
            if open_:
                yield open_
            open_ = _Run(at, segment.text, cells, colour, behind, marks)
        at += cells
    if open_:
        yield open_


def _worn(style: Style, palette: Palette) -> tuple[str, str, str]:
    colour, behind = _hex(style.color, palette.text), _hex(style.bgcolor, palette.background)
    if style.reverse:
        colour, behind = behind, colour
    marks = [
        " font-weight: bold;" if style.bold else "",
        " font-style: italic;" if style.italic else "",
        " text-decoration: underline;" if style.underline else "",
        " text-decoration: line-through;" if style.strike else "",
        " opacity: 0.6;" if style.dim else "",
    ]
    return colour, behind, "".join(marks)


def _hex(colour: Color | None, otherwise: str) -> str:
    return otherwise if colour is None or colour.is_default else colour.get_truecolor().hex


def _rectangle(y: int, run: _Run) -> str:
    x, width = run.start * _CELL, run.cells * _CELL
    return f'<rect x="{x}" y="{y * _LINE}" width="{width}" height="{_LINE}" fill="{run.behind}"/>'


def _text(y: int, run: _Run, name: str) -> str:
    text = run.text.strip(" ")
    start = run.start + len(run.text) - len(run.text.lstrip(" "))
    return (
        f'<text class="{name}" x="{start * _CELL}" y="{y * _LINE + _BASE}" textLength="{cell_len(text) * _CELL}">'
        f"{escape(text, quote=False)}</text>"
    )
