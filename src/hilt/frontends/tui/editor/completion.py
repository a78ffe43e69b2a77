"""The list of completions: above the input, over whatever is there, and moving nothing.

Owns which choice is the highlighted one, and the drawing. What there is to choose from comes from the editor, and the
keys too.
"""

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from hilt.frontends.terminal import one_line
from hilt.frontends.tui.drawing.wrapping import Span, clip, pad, wrap
from hilt.frontends.tui.editor.offers import Choice, Offer
from hilt.frontends.tui.look import Look

ROWS = 10
_NAMES = 36
"""Characters that names and arguments may take before what explains them is no longer in a column."""
_OWNER = 20
_ABOUT = 200
_UNBROKEN = 1 << 30


class Completion(Widget):
    DEFAULT_CSS = """
    Completion { overlay: screen; offset: 0 -100%; display: none; height: 1; width: 100%; }
    """

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.picked: Callable[[Offer, Choice], None] = lambda _offer, _choice: None
        """Told what was clicked on."""
        self._offer: Offer | None = None
        self._at = 0
        self._top = 0
        """The first line in sight."""
        self._column = 0

    def restyle(self, look: Look) -> None:
        self._look = look
        self.refresh()

    def show(self, offer: Offer | None) -> None:
        """None takes it away, and so does an offer with nothing in it."""
        if offer == self._offer:
            return
        self._offer, self._at, self._top = offer, 0, 0
        self.display = self.open
        if self.open:
            self.styles.height = min(ROWS, len(self._lines()))
            heads = (f"{one.label} {one_line(one.usage, _NAMES)}" for one in (offer.choices if offer else ()))
            self._column = max(map(len, heads))
            self.refresh(layout=True)

    @property
    def open(self) -> bool:
        return bool(self._offer and self._offer.choices)

    @property
    def offer(self) -> Offer | None:
        return self._offer if self.open else None

    @property
    def chosen(self) -> Choice | None:
        """The highlighted one."""
        return self._offer.choices[self._at] if self._offer and self._offer.choices else None

    def on_click(self, event: events.Click) -> None:
        """Put in what was clicked on."""
        lines = self._lines()
        at = lines[self._top + event.y] if self._top + event.y < len(lines) else None
        if self._offer and at is not None:
            self.picked(self._offer, self._offer.choices[at])

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.move(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.move(-1)

    def move(self, step: int) -> None:
        """Highlight another; from the last to the first and back."""
        if not self._offer or not self._offer.choices:
            return
        self._at = (self._at + step) % len(self._offer.choices)
        lines = self._lines()
        line = lines.index(self._at)
        if line and lines[line - 1] is None:
            line -= 1  # with its heading
        self._top = min(self._top, line)
        self._top = max(self._top, lines.index(self._at) - ROWS + 1)
        self.refresh()

    def _lines(self) -> list[int | None]:
        """The choice on each line; None for the heading above those of extensions."""
        choices: Sequence[Choice] = self._offer.choices if self._offer else ()
        lines: list[int | None] = []
        for at, choice in enumerate(choices):
            if choice.owner and (not at or not choices[at - 1].owner):
                lines.append(None)
            lines.append(at)
        return lines

    # Drawing

    def render_line(self, y: int) -> Strip:
        lines, look, width = self._lines(), self._look, self.size.width
        ground = look.block
        if self._top + y >= len(lines) or not self._offer:
            return Strip.blank(width, ground)
        at = lines[self._top + y]
        if at is None:
            strip = Strip([Segment("   extensions ", ground + look.dim), Segment("─" * width, ground + look.rule)])
            return clip(strip, width)
        choice = self._offer.choices[at]
        if at == self._at:
            base = ground + look.selected
            spans = [(f" ▸ {''.join(text for text, _ in self._row(choice))}", base)]
        else:
            base = ground
            spans = [("   ", ground), *((text, ground + style) for text, style in self._row(choice))]
        return pad(clip(wrap(spans, _UNBROKEN)[0], width), width, base)

    def _row(self, choice: Choice) -> list[Span]:
        """Names in a column, and behind them what explains them, as much as there is room for."""
        column = min(self._column, _NAMES, self.size.width // 2)
        label = one_line(choice.label, _ABOUT)
        if self._offer and self._offer.kind == "file":
            return [(_ending(label, self.size.width - 4), self._look.text)]
        room = column - len(label) - 1
        usage = f" {one_line(choice.usage, room)}" if choice.usage and room > 1 else ""
        gap = " " * (max(0, column - len(label) - len(usage)) + 2)
        owner = f"{one_line(choice.owner, _OWNER)}  " if choice.owner else ""
        room = self.size.width - 3 - len(label) - len(usage) - len(gap) - len(owner)
        about = one_line(choice.description, room) if room > 1 else ""
        return [
            (label, self._look.text),
            (usage + gap, self._look.dim),
            (owner, self._look.badge),
            (about, self._look.dim),
        ]


def _ending(path: str, width: int) -> str:
    """As much of a path as fits: its end tells it from others."""
    while cell_len(path) > width > 1:
        path = "…" + path.lstrip("…")[max(1, (cell_len(path) - width) // 2) :]
    return path
