"""What text is, before it is known how that looks: the roles of its parts, and the styles a `Look` gives them.

Owns the mapping. A text that is laid out anew for another width or another look need not be parsed again.
"""

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from rich.style import Style

from hilt.frontends.tui.drawing.wrapping import Span
from hilt.frontends.tui.look import Look

Role: TypeAlias = tuple[str, ...]
"""Names of a look's styles, each on top of the one before. With a capital: of a token of code, such as `Keyword`."""
Part: TypeAlias = tuple[str, Role]
"""A text and what it is."""

_OWN = {"strike": Style(strike=True), "underline": Style(underline=True)}
"""What a look has no style for."""


class Paint:
    """The styles of one look, by role."""

    _latest: "ClassVar[Paint | None]" = None

    @classmethod
    def of(cls, look: Look) -> "Paint":
        """The same for all that is drawn with this look, as long as there is no other."""
        if cls._latest is None or cls._latest.look is not look:
            cls._latest = cls(look)
        return cls._latest

    def __init__(self, look: Look) -> None:
        self.look = look
        self._styles: dict[Role, Style] = {}

    def spans(self, parts: Sequence[Part]) -> list[Span]:
        return [(text, self.style(role)) for text, role in parts]

    def style(self, role: Role) -> Style:
        style = self._styles.get(role)
        if style is None:
            style = Style.combine([self._named(name) for name in role])
            self._styles[role] = style
        return style

    def _named(self, name: str) -> Style:
        if not name[:1].isupper():
            found = _OWN.get(name) or getattr(self.look, name)
            assert isinstance(found, Style)
            return found
        while name and name not in self.look.syntax:
            name = name.rpartition(".")[0]
        return self.look.syntax.get(name, Style.null())
