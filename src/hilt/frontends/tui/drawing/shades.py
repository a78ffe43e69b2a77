"""SGR sequences as styles: the sixteen colours, the 256 and the true ones, bold, dim, italic, underline, reverse and
strike.

Owns what a sequence means. The text has been through `clean`, which leaves no other sequence in it.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from rich.color import Color
from rich.style import Style

from hilt.frontends.tui.drawing.wrapping import Span

Shade: TypeAlias = tuple[tuple[str, Color | bool], ...]
"""What is on, by the name `Style` has for it."""

_SGR = re.compile(r"\x1b\[([0-9;:]*)m")
_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike", 21: "underline"}
_OFF = {
    22: ("bold", "dim"),
    23: ("italic",),
    24: ("underline",),
    27: ("reverse",),
    29: ("strike",),
    39: ("color",),
    49: ("bgcolor",),
}
_COLOURS = {30: ("color", 0), 40: ("bgcolor", 0), 90: ("color", 8), 100: ("bgcolor", 8)}
"""The first of each eight."""
_EXTENDED = {38: "color", 48: "bgcolor", 58: ""}
"""What a colour by number or by its parts is for; nothing here draws coloured underlines."""


def shaded(line: str, base: Style) -> list[Span]:
    """The spans of one line."""
    parts = _SGR.split(line)
    shade: Shade = ()
    spans = [(parts[0], base)]
    for codes, text in zip(parts[1::2], parts[2::2], strict=True):
        shade = _changed(shade, codes)
        if text:
            spans.append((text, base + _style(shade) if shade else base))
    return spans


@lru_cache(256)
def _style(shade: Shade) -> Style:
    colours = {name: value for name, value in shade if isinstance(value, Color)}
    plain = Style(color=colours.get("color"), bgcolor=colours.get("bgcolor"))
    return Style.combine([plain, *(Style.parse(name) for name, _ in shade if name not in colours)])


@lru_cache(256)
def _changed(shade: Shade, codes: str) -> Shade:
    state = dict(shade)
    numbers = _numbers(codes)
    for code, sub in numbers:
        if code == 0:
            state.clear()
        elif code in _EXTENDED:
            colour = _extended(sub, numbers)
            if colour and (name := _EXTENDED[code]):
                state[name] = colour
        elif code == 4 and sub[:1] == [0]:
            state.pop("underline", None)
        elif code in _ON:
            state[_ON[code]] = True
        elif code in _OFF:
            for name in _OFF[code]:
                state.pop(name, None)
        elif (place := _COLOURS.get(code - code % 10)) and code % 10 < 8:
            state[place[0]] = Color.from_ansi(place[1] + code % 10)
    return tuple(sorted(state.items(), key=lambda item: item[0]))


def _numbers(codes: str) -> Iterator[tuple[int, list[int]]]:
    """Each code, with what follows it behind colons."""
    for code in codes.split(";"):
        first, *sub = [int(number[:9] or 0) for number in code.split(":")]
        yield first, sub


def _extended(sub: list[int], numbers: Iterator[tuple[int, list[int]]]) -> Color | None:
    """A colour as it follows 38 or 48: `5;n` or `2;r;g;b`, behind semicolons or behind colons."""
    if sub:
        kind, values = sub[0], sub[1:]
        values = values[-3:] if kind == 2 else values  # a colour space may come before red
    else:
        kind = next(numbers, (0, []))[0]
        values = [next(numbers, (-1, []))[0] for _ in range({5: 1, 2: 3}.get(kind, 0))]
    if len(values) != {5: 1, 2: 3}.get(kind) or not all(0 <= value < 256 for value in values):
        return None
    return Color.from_ansi(values[0]) if kind == 5 else Color.from_rgb(*values)
