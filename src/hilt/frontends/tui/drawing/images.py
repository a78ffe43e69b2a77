"""Pictures in a terminal: where it can show them, from their pixels; elsewhere in words.

Owns the ways to draw one, and what may be sent to a terminal for it: nothing but a PNG whose structure was checked, as
base64 in kitty's graphics commands. The cells of a picture are text like any other then, so it scrolls and is drawn
over as text is. Decoding is `png`'s.
"""

from base64 import standard_b64encode
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from hilt.frontends.tui.drawing.png import Pixels

Mode: TypeAlias = Literal["kitty", "blocks", "words"]

COLUMNS, ROWS = 40, 15
"""The most that a picture takes."""
SENT = 4 * 1024 * 1024
"""Bytes of a picture that is sent to a terminal, at most."""
_CHUNK = 4096
_CELL = "\U0010eeee"
# In place of numbers: rows and columns of a picture are counted with these marks above a cell.
_MARKS = [
    *"\u0305\u030d\u030e\u0310\u0312\u033d\u033e\u033f\u0346\u034a\u034b\u034c\u0350\u0351\u0352\u0357\u035b\u0363",
    *"\u0364\u0365\u0366\u0367\u0368\u0369\u036a\u036b\u036c\u036d\u036e\u036f\u0483\u0484\u0485\u0486\u0487\u0592",
    *"\u0593\u0594\u0595\u0597",
]


def mode_of(env: Mapping[str, str]) -> Mode:
    """What the terminal can do, by what it says of itself."""
    if "NO_COLOR" in env or env.get("TERM", "") in ("", "dumb", "linux"):
        return "words"
    if "TMUX" in env or env.get("TERM", "").startswith(("screen", "tmux")):
        return "blocks"  # what is sent would end there
    able = ("xterm-kitty", "xterm-ghostty")
    if env.get("TERM") in able or "KITTY_WINDOW_ID" in env or env.get("TERM_PROGRAM", "").lower() == "ghostty":
        return "kitty"
    return "blocks" if env.get("COLORTERM", "") in ("truecolor", "24bit") else "words"


def fitted(width: int, height: int, columns: int = COLUMNS) -> tuple[int, int]:
    """The cells for a picture of so many pixels: at most so many columns, and a cell is twice as high as wide."""
    columns = max(1, min(columns, COLUMNS))
    scale = min(columns / width, 2 * ROWS / height, 1.0)
    return max(1, round(width * scale)), max(1, round(height * scale / 2))


def in_words(kind: str, size: tuple[int, int] | None, data: int) -> str:
    """`kind` as in `image/png`, the size in pixels if it is known, and the number of bytes."""
    pixels = f", {size[0]} x {size[1]}" if size else ""
    return f"[image: {kind.rpartition('/')[2]}{pixels}, {_bytes(data)}]"


def half_blocks(pixels: Pixels) -> list[Strip]:
    """Two pixels a cell, one above the other."""
    strips = []
    for y in range(0, pixels.height, 2):
        lower = min(y + 1, pixels.height - 1)
        pairs = [(pixels.at(x, y), pixels.at(x, lower)) for x in range(pixels.width)]
        strips.append(Strip([Segment("▀", _two(*pair)) for pair in pairs], pixels.width))
    return strips


def _two(upper: tuple[int, int, int], lower: tuple[int, int, int]) -> Style:
    return Style(color=Color.from_rgb(*upper), bgcolor=Color.from_rgb(*lower))


# What kitty and ghostty understand


def transmission(number: int, png: bytes, columns: int, rows: int) -> Iterator[str]:
    """Makes a picture known to the terminal by a number, to be shown wherever its cells are; no answer comes."""
    text = standard_b64encode(png).decode()
    for at in range(0, len(text), _CHUNK):
        last = at + _CHUNK >= len(text)
        first = f"a=T,U=1,f=100,t=d,i={number},c={columns},r={rows},q=2," if not at else "q=2,"
        yield f"\x1b_G{first}m={int(not last)};{text[at : at + _CHUNK]}\x1b\\"


def removal(number: int) -> str:
    return f"\x1b_Ga=d,d=I,i={number},q=2\x1b\\"


def placeholders(number: int, columns: int, rows: int) -> list[Strip]:
    """The cells of a picture. Their colour is its number."""
    style = Style(color=Color.from_rgb(number >> 16 & 255, number >> 8 & 255, number & 255))
    strips = []
    for row in range(rows):
        cells = "".join([_CELL + _MARKS[row] + _MARKS[column] for column in range(columns)])
        strips.append(Strip([Segment(cells, style)], columns))
    return strips


def _bytes(number: int) -> str:
    if number < 1024:
        return f"{number} bytes"
    return f"{number // 1024} KB" if number < 1024 * 1024 else f"{number / 1024 / 1024:.1f} MB"
