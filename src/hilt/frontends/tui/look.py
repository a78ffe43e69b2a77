"""How things look, by what they are: the styles that everything is drawn with, made from a theme's few colours.

Colour is never the only sign: what matters is also bold, dim, reversed or marked, so that it reads without.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rich.style import Style


@dataclass(frozen=True)
class Palette:
    """The colours of a theme: `#rrggbb`, or the name of a terminal's own, such as `bright_black` or `default`."""

    dark: bool
    text: str
    dim: str
    accent: str
    surface: str
    """Behind code, panels and dialogs."""
    background: str
    error: str
    warn: str
    success: str
    info: str
    added: str
    """Behind lines of a diff that come."""
    removed: str
    """Behind lines of a diff that go."""
    keyword: str
    string: str
    number: str
    function: str
    comment: str


@dataclass(frozen=True)
class Look:
    palette: Palette
    text: Style
    dim: Style
    strong: Style
    emphasis: Style
    accent: Style
    user: Style
    """What the user said."""
    badge: Style
    """The name of the extension whose words or lines these are."""
    error: Style
    warn: Style
    success: Style
    info: Style
    heading: Style
    code: Style
    """A word of code in a sentence."""
    block: Style
    """A block of code."""
    link: Style
    quote: Style
    rule: Style
    added: Style
    removed: Style
    gutter: Style
    """Line numbers, and the lines that frame things."""
    selected: Style
    """The row of a list that Enter would take."""
    syntax: Mapping[str, Style]
    """By the beginning of a token's name, longest first: `Keyword`, `Literal.String`."""

    @classmethod
    def of(cls, palette: Palette) -> "Look":
        p = palette
        return cls(
            palette=p,
            text=Style(color=p.text),
            dim=Style(color=p.dim),
            strong=Style(color=p.text, bold=True),
            emphasis=Style(color=p.text, italic=True),
            accent=Style(color=p.accent),
            user=Style(color=p.accent, bold=True),
            badge=Style(color=p.info, bold=True),
            error=Style(color=p.error, bold=True),
            warn=Style(color=p.warn),
            success=Style(color=p.success),
            info=Style(color=p.info),
            heading=Style(color=p.accent, bold=True),
            code=Style(color=p.accent, bgcolor=p.surface),
            block=Style(color=p.text, bgcolor=p.surface),
            link=Style(color=p.info, underline=True),
            quote=Style(color=p.dim, italic=True),
            rule=Style(color=p.dim),
            added=Style(color=p.text, bgcolor=p.added),
            removed=Style(color=p.text, bgcolor=p.removed),
            gutter=Style(color=p.dim),
            selected=Style(color=p.accent, bold=True, reverse=True),
            syntax={
                "Comment": Style(color=p.comment, italic=True),
                "Keyword": Style(color=p.keyword, bold=True),
                "Literal.String": Style(color=p.string),
                "Literal.Number": Style(color=p.number),
                "Name.Function": Style(color=p.function),
                "Name.Class": Style(color=p.function),
                "Name.Decorator": Style(color=p.function),
                "Name.Tag": Style(color=p.keyword),
                "Operator.Word": Style(color=p.keyword, bold=True),
                "Generic.Heading": Style(color=p.accent, bold=True),
            },
        )


DARK = Palette(
    dark=True,
    text="#d6d8df",
    dim="#7d8491",
    accent="#e0af68",
    surface="#20232c",
    background="#15171e",
    error="#f7768e",
    warn="#e5c07b",
    success="#8fc27a",
    info="#7aa2f7",
    added="#1d3326",
    removed="#3b2028",
    keyword="#bb9af7",
    string="#9ece6a",
    number="#ff9e64",
    function="#7dcfff",
    comment="#6b7280",
)
LIGHT = Palette(
    dark=False,
    text="#24292f",
    dim="#6e7781",
    accent="#8a4b08",
    surface="#eef0f3",
    background="#fdfdfc",
    error="#b3261e",
    warn="#8a5a00",
    success="#1a6b32",
    info="#0b5cad",
    added="#d8f3dd",
    removed="#fbdfe0",
    keyword="#6f3cc3",
    string="#1a6b32",
    number="#a04100",
    function="#0b5cad",
    comment="#6e7781",
)
SYSTEM = Palette(
    dark=True,
    text="default",
    dim="bright_black",
    accent="yellow",
    surface="default",
    background="default",
    error="red",
    warn="yellow",
    success="green",
    info="blue",
    added="default",
    removed="default",
    keyword="magenta",
    string="green",
    number="yellow",
    function="cyan",
    comment="bright_black",
)
"""The terminal's own colours, whatever they are."""
