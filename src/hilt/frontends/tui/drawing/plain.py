"""Text that is no Markdown: as it is, or with the colours that its author gave it.

Owns how such text is laid out. What commands a terminal is taken out by `clean`, but for the sequences that `shades`
turns into styles. Each line stands for itself, and colours end with it.
"""

from rich.style import Style
from textual.strip import Strip

from hilt.frontends.terminal import clean
from hilt.frontends.tui.drawing.shades import shaded
from hilt.frontends.tui.drawing.wrapping import clip, wrap

_UNBROKEN = 1 << 30


def plain(text: str, width: int, style: Style) -> list[Strip]:
    """The lines of a text, wrapped; none for an empty text."""
    return wrap([(clean(text).removesuffix("\n"), style)], width) if text else []


def coloured(text: str, width: int, style: Style) -> list[Strip]:
    """The same with the author's colours on top of the style."""
    if not text:
        return []
    lines = clean(text, colour=True).removesuffix("\n").split("\n")
    return [strip for line in lines for strip in wrap(shaded(line, style), width)]


def coloured_line(text: str, width: int, style: Style) -> Strip:
    """One row, clipped; a line feed is drawn as a space."""
    # More than this is not seen in any case, and would be measured for nothing. Cut first: a sequence that this cuts
    # in two is taken out like any other that is none.
    seen = text[: 32 * max(0, width) + 1024].replace("\n", " ")
    return clip(wrap(shaded(clean(seen, colour=True), style), _UNBROKEN)[0], width)
