"""Something to read, and a few answers below it: by number, by letter, or with the arrows and Enter.

The answers stay in sight however long the text is. What they mean is up to the subclass.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.events import Key
from textual.strip import Strip

from hilt.frontends.terminal import one_line
from hilt.frontends.tui.dialogs.dialog import Dialog, T
from hilt.frontends.tui.drawing.wrapping import wrap
from hilt.frontends.tui.look import Look

_IN_SIGHT = 6
_REST = 6
"""Rows of a small screen that are left for everything else."""
_ROWS = 3
"""Of one answer, however long it is."""
_FRONT = 7
"""Cells before an answer."""


@dataclass(frozen=True)
class Option:
    label: str
    letter: str = ""
    """A key that takes it at once."""


class Choosing(Dialog[T]):
    def __init__(
        self,
        title: str,
        options: Sequence[Option],
        look: Look,
        *,
        owner: str = "",
        escape: str = "no",
        at: int = 0,
        deaf: float = 0.0,
    ) -> None:
        """`escape` says what Esc means. `at` is the one that Enter takes when nothing else is pressed."""
        keys = f"Esc {escape} · ↑↓ Enter, number or letter · PgUp PgDn read"
        super().__init__(title, look, owner=owner, keys=keys, deaf=deaf)
        self._options = tuple(options)
        self._at = at

    def chosen(self, at: int, /) -> None:
        """One was taken."""
        raise NotImplementedError

    @property
    def unreadable(self) -> bool:
        """Whether the screen is too small for anything of the text: nobody can agree to what they cannot see."""
        if self.window:
            return False
        self.beside("make the window larger")
        return True

    # Keys

    def pressed(self, key: Key, /) -> bool:
        match key.key:
            case "up" | "ctrl+p":
                self._move(-1)
            case "down" | "ctrl+n" | "tab":
                self._move(1)
            case "enter":
                self.chosen(self._at)
            case name:
                at = self._named(name)
                if at is not None:
                    self.chosen(at)
                return at is not None
        return True

    def clicked(self, part: str, at: int) -> None:
        if part == "foot" and (option := self._places[at]) is not None:
            self.chosen(option)

    def _named(self, key: str) -> int | None:
        for at, option in enumerate(self._options):
            if key in (str(at + 1), option.letter):
                return at
        return None

    def _move(self, by: int) -> None:
        self._at = min(max(0, self._at + by), len(self._options) - 1)
        self.changed(redraw=False)

    # Drawing

    def foot(self, width: int, /) -> list[Strip]:
        count = len(self._options)
        many = min(_IN_SIGHT, max(2, self.app.size.height - _REST))
        first = min(max(0, self._at - many // 2), max(0, count - many))
        last = min(first + many, count)
        apart = f"answers {first + 1} to {last} of {count}" if last - first < count else ""
        rows, self._places = wrap([(apart, self.look.dim)], width)[:1], [None]
        for at in range(first, last):
            answer = self._answer(at, width)
            rows += answer
            self._places += [at] * len(answer)
        return rows

    _places: list[int | None]
    """For each row of the foot, the answer that it is of."""

    def _answer(self, at: int, width: int) -> list[Strip]:
        option, selected = self._options[at], at == self._at
        style = self.look.dim if not self.listening else self.look.selected if selected else self.look.text
        front = f"{'›' if selected else ' '}{at + 1:>2} {option.letter:1}  "
        label = one_line(option.label, max(1, (width - _FRONT) * _ROWS))
        fill = style if selected else None
        return wrap([(label, style)], width, indent=[(front, style)], hanging=[(" " * _FRONT, style)], fill=fill)
