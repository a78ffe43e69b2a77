"""What is not part of the conversation but belongs where it stands: notices, errors, what commands show."""

from collections.abc import Sequence

from textual.strip import Strip

from hilt.frontends.terminal import clean
from hilt.frontends.tui.drawing.markdown import markdown
from hilt.frontends.tui.drawing.plain import coloured, plain
from hilt.frontends.tui.drawing.wrapping import wrap
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.transcript.blocks import Block, Grown
from hilt.frontends.tui.transcript.copying import DECORATION
from hilt.frontends.tui.transcript.excerpt import MOST, beginning, behind, more

_RAIL = "▏ "
_MARKS = {"info": "·", "success": "✓", "warn": "!", "error": "✗"}


class Told(Block):
    def __init__(self, level: str, text: str, owner: str = "", hint: str = "") -> None:
        """`level` is that of a notice, or `shown` for what a command displays; `hint` says what to do about it."""
        self.level = level
        self.owner = owner if owner != "hilt" else ""
        self._grown = Grown(text)
        self._hint = hint

    @property
    def text(self) -> str:
        return self._grown.text

    def rows(self, width: int, look: Look) -> Sequence[Strip]:
        badge = wrap([(f"[{clean(self.owner)}]", look.badge)], width) if self.owner else []
        if self.level == "shown":
            # Every row of an extension's: its name may have scrolled away, and what it draws could look like ours.
            rail = _RAIL if self.owner else ""
            text, hidden = beginning(self.text, max(width - len(rail), 1), look.text, MOST, coloured)
            rows = behind(rail, text, look.badge) if rail else text
            return [*badge, *rows, *more(hidden, width, look, folded=False)]
        styles = {"success": look.success, "warn": look.warn, "error": look.error}
        style, mark = styles.get(self.level, look.dim), _MARKS.get(self.level, "·")
        room = max(width - 2, 1)
        text, hidden = beginning(self.text, room, style, MOST, plain)
        rows = [*behind(f"{mark} ", text[:1], style), *behind("  ", text[1:], style)]
        if self._hint:
            rows += behind("  ", wrap([("→ ", look.dim + DECORATION), (clean(self._hint), look.dim)], room), look.dim)
        return [*badge, *rows, *more(hidden, width, look, folded=False)]

    def guess(self, width: int) -> int:
        return min(self._grown.rows(width), MOST) + bool(self.owner) + bool(self._hint)


class Condensed(Block):
    """A summary that stands for what was said before."""

    def __init__(self, summary: str) -> None:
        self._summary = Grown(summary)
        self.folded = True

    def rows(self, width: int, look: Look) -> list[Strip]:
        mark = "▸" if self.folded else "▾"
        rows = wrap([(f"{mark} the conversation so far, in short", look.dim + DECORATION)], width)[:1]
        room = max(width - 2, 1)
        return rows if self.folded else rows + behind("  ", markdown(self._summary.text, room, look), look.dim)

    def guess(self, width: int) -> int:
        return 1 if self.folded else 1 + self._summary.rows(width)
