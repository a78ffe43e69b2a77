"""A box at the bottom of the screen, on top of everything else, that has all the keys until it is closed.

Owns where it stands, its frame, its scrolling and when it listens. A subclass draws what is in it, row by row, and
says what its keys do: `head` and `foot` stay where they are, what is between them scrolls. What a stranger wrote must
be cleaned by whoever draws it.
"""

from collections.abc import Callable, Iterable
from time import monotonic
from typing import TypeVar

from rich.segment import Segment
from textual.events import Key, Paste, ScreenResume, ScreenSuspend
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from hilt.frontends.terminal import MARK, one_line
from hilt.frontends.tui.dialogs.sheet import Drawn, Placed, Sheet
from hilt.frontends.tui.drawing.wrapping import Spans, clip
from hilt.frontends.tui.look import Look

T = TypeVar("T")

DEAF = 0.3
"""Seconds after it has come into sight in which no key counts: it was meant for something else."""
_DEAF_YET = "what is typed now does not count…"
_SHARE = 0.7
"""Of the screen's height."""
_INSET = 2
"""Cells left free at either side."""
_TITLE = 200
_PAUSE = 0.01
"""Seconds after which more rows of something long are drawn."""


class Dialog(ModalScreen[T]):
    """Give it to `push_screen`. Esc and Ctrl-C close it with None."""

    DEFAULT_CSS = """
    Dialog { align: left bottom; overflow: hidden; }
    """

    def __init__(self, title: str, look: Look, *, owner: str = "", keys: str = "", deaf: float = 0.0) -> None:
        """`owner` is the extension whose dialog it is. `keys` says what can be pressed. With `deaf`, no key counts
        before there has been so long a pause since it came into sight."""
        super().__init__()
        self.styles.background = "transparent"  # the app's own rule for screens is stronger than a default
        self.look = look
        self.own = False
        """Whether hilt itself asks: then it has the mark that nobody else can draw."""
        self.covered: Callable[[], None] | None = None
        """Told when something else is put on top of it."""
        self._heading = one_line(title, _TITLE)
        self._owner = one_line(owner, _TITLE)
        self._keys = keys
        self._beside = ""
        self._deaf = deaf
        self._since: float | None = None if deaf else 0.0
        """When it came into sight, or when a key last came too early; None while it is out of sight."""
        self._gone = False
        self._result: T | None = None
        self._top = 0
        self._page: Drawn | None = None
        self._sheet = Sheet(self)

    # For a subclass

    def head(self, _width: int, /) -> list[Strip]:
        """Rows that stay above what scrolls."""
        return []

    def page(self, _width: int, /) -> Iterable[Strip]:
        """What scrolls, whole. It is drawn once for a width, until `changed` says otherwise; what is long row by row,
        so that nobody has to wait for the end of it."""
        return ()

    def height(self, width: int, /) -> int:
        """How many rows for what scrolls would do."""
        return self.length(width)

    def length(self, width: int, /) -> int:
        """Rows that scroll. With `row`, for those who would rather not draw them all."""
        return len(self._drawn(width))

    def row(self, at: int, width: int, /) -> Strip:
        return self._drawn(width)[at]

    def foot(self, _width: int, /) -> list[Strip]:
        """Rows that stay below what scrolls."""
        return []

    def pressed(self, _key: Key, /) -> bool:
        """A key. False: it means what it means in every dialog."""
        return False

    def pasted(self, text: str) -> None:
        """Text, by its beginning: what was typed comes as keys."""

    def clicked(self, part: str, at: int) -> None:
        """A row of the `head`, the `page` or the `foot`."""

    def hint(self) -> str:
        """What the last row says of the keys."""
        return self._keys or "Esc close"

    def placed(self) -> None:
        """It has a size now, or another one."""

    # For whoever has put it up

    def changed(self, *, redraw: bool = True) -> None:
        """Something in it is different now; without `redraw`, what scrolls is drawn as before."""
        if redraw:
            self._page = None
        self._sheet.redraw()

    def beside(self, text: str) -> None:
        """A word at the end of the title, such as how many wait."""
        if text != self._beside:
            self._beside = text
            self.changed(redraw=False)

    def restyle(self, look: Look) -> None:
        self.look = look
        self.changed()

    def close(self, result: T | None = None) -> None:
        """At once, or as soon as nothing is on top of it any more. Whatever it is given afterwards does not count."""
        if not self._gone:
            self._gone, self._result = True, result
            self._leave()

    @property
    def listening(self) -> bool:
        """Whether a key would count now."""
        return not self._gone and self._since is not None and monotonic() - self._since >= self._deaf

    # Scrolling

    def scroll_by(self, rows: int) -> None:
        self._scroll(self._top + rows)

    def reveal(self, at: int) -> None:
        """Scroll no further than it takes to have this row in sight."""
        self._scroll(min(max(self._top, at - self.window + 1), at))

    @property
    def window(self) -> int:
        """Rows in sight of those that scroll; none before it has a size."""
        width = self._width()
        return _scrolled(self._sheet.size.height - self._fixed(width), self.length(width)) if width else 0

    def _scroll(self, top: int) -> None:
        if width := self._width():
            self._top = min(max(0, top), max(0, self.length(width) - self.window))
            self.changed(redraw=False)

    # Keys

    def on_key(self, event: Key) -> None:
        event.stop()
        event.prevent_default()
        if not self.counts(event.time) or self.pressed(event):
            return
        match event.key:
            case "escape" | "ctrl+c":
                self.close()
            case "up" | "down":
                self.scroll_by(-1 if event.key == "up" else 1)
            case "pageup" | "pagedown":
                self.scroll_by((-1 if event.key == "pageup" else 1) * max(1, self.window - 1))
            case "home":
                self._scroll(0)
            case "end":
                self._scroll(1 << 30)

    def on_paste(self, event: Paste) -> None:
        event.stop()
        if self.counts(event.time):
            self.pasted(event.text)

    def counts(self, when: float) -> bool:
        """Whoever goes on typing has not read it: only a pause ends the deafness."""
        if self._gone or self._since is None:
            return False
        if when - self._since >= self._deaf:
            self._since = 0.0  # once it listens, it listens
            return True
        self._since = max(self._since, when)
        self._listen_later()
        return False

    def _listen_later(self) -> None:
        self.set_timer(self._deaf, self._show_listening)

    def _show_listening(self) -> None:
        if self.listening:
            self.changed(redraw=False)

    # Where it stands

    def compose(self) -> Iterable[Widget]:
        yield self._sheet

    def on_screen_resume(self, _: ScreenResume) -> None:
        if self._gone:
            self._leave()
        elif self._deaf:
            self.call_after_refresh(self._in_sight)

    def on_screen_suspend(self, _: ScreenSuspend) -> None:
        self._since = None if self._deaf else 0.0
        if self.covered and not self._gone and self.app.screen is not self:
            self.covered()

    def _in_sight(self) -> None:
        self._since = monotonic()
        self._listen_later()

    def _leave(self) -> None:
        if self.app.screen_stack[-1:] == [self]:  # there is none any more when the program ends
            self.dismiss(self._result)

    # Drawing

    def _drawn(self, width: int) -> list[Strip]:
        if self._page is None or self._page.width != width:
            self._page = Drawn(width, iter(self.page(width)))
            self._draw(self._page)
        return self._page.rows

    def _draw(self, page: Drawn) -> None:
        """As much as may be drawn at once, and the rest later."""
        if not page.drawn():
            self.set_timer(_PAUSE, lambda: self._draw_on(page))

    def _draw_on(self, page: Drawn) -> None:
        if page is self._page and not self._gone:
            self._draw(page)
            self._sheet.redraw()

    def _width(self) -> int:
        return max(0, self._sheet.size.width - 2 * _INSET)

    def _fixed(self, width: int) -> int:
        """Rows that are always there: the title and the keys, too."""
        return 2 + len(self.head(width)) + len(self.foot(width))

    def wanted(self, width: int, screen: Size) -> int:
        """Rows to take of the screen."""
        inner = max(1, width - 2 * _INSET)
        fixed = self._fixed(inner)
        most = max(int(screen.height * _SHARE), min(fixed + 3, screen.height))
        return min(fixed + self.height(inner), most)

    def rows(self, width: int, height: int) -> list[Placed]:
        """All of it, from the top."""
        inner = max(1, width - 2 * _INSET)
        head, foot, length = self.head(inner), self.foot(inner), self.length(inner)
        room = height - self._fixed(inner)
        window = _scrolled(room, length)
        top = min(self._top, length - window)
        placed: list[Placed] = [("", 0, self._title(width))]
        placed += [("head", at, row) for at, row in enumerate(head)]
        placed += [("page", at, self.row(at, inner)) for at in range(top, top + window)]
        if window < length:
            placed.append(("", 0, self._sign(top, length - top - window)))
        placed += [("", 0, Strip.blank(0))] * (room - length)
        placed += [("foot", at, row) for at, row in enumerate(foot)]
        hint = one_line(self.hint() if self.listening else _DEAF_YET, inner)
        placed.append(("", 0, Strip([Segment(hint, self.look.dim)])))
        kept = placed[1:][-max(1, height - 1) :]  # where there is no room for all, the answers matter most
        return placed[:1] + [(part, at, _inset(row, width)) for part, at, row in kept]

    def _title(self, width: int) -> Strip:
        look = self.look
        words: Spans = [
            ("─ ", look.rule),
            *([(f"{MARK} ", look.accent)] if self.own else []),
            *([(f"{self._owner} ", look.badge), ("› ", look.dim)] if self._owner else []),
            (f"{self._heading} ", look.strong),
        ]
        after = f" {self._beside} " if self._beside else ""
        row = clip(Strip([Segment(text, style) for text, style in words]), max(0, width - len(after) - 2))
        dashes = Segment("─" * max(0, width - row.cell_length - len(after) - 1), look.rule)
        return clip(Strip([*row, dashes, Segment(after, look.warn), Segment("─", look.rule)]), width)

    def _sign(self, above: int, below: int) -> Strip:
        words = [f"↑ {above:,} above"] if above else []
        least = "more than " if self._page and not self._page.done else ""
        words += [f"↓ {least}{below:,} more line{'s' if below > 1 else ''} below: PgDn"] if below else []
        return Strip([Segment(" · ".join(words), self.look.warn)])


def _scrolled(room: int, length: int) -> int:
    """How many rows of so many are in sight at once. One row goes to the sign that there are more."""
    return length if length <= room else max(0, room - 1)


def _inset(row: Strip, width: int) -> Strip:
    return clip(Strip([Segment(" " * _INSET), *row], row.cell_length + _INSET), width)
