"""The view of a conversation: puts the rows that are in sight on the screen, and takes the mouse.

What is in sight, `Window` knows. Only rows that differ from those on the screen are drawn again.
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from hilt.frontends.tui.look import Look
from hilt.frontends.tui.transcript.blocks import Block
from hilt.frontends.tui.transcript.copying import selected_text, with_selection
from hilt.frontends.tui.transcript.window import GAP, Line, Place, Window

_WHEEL = 3
"""Rows for a notch of the wheel."""
_BESIDE = 2
"""Columns at the right: a space and the scroll bar."""
_LEAST = 8
"""Columns that rows are drawn for, also where there are fewer."""
_ROWS = 1 << 20
"""More than a block has. A row of the conversation is known to the screen by one number."""


class Transcript(Widget):
    """All that was said and done."""

    DEFAULT_CSS = "Transcript { height: 1fr; padding: 0 0 0 1; }"
    can_focus = False
    ALLOW_SELECT: ClassVar[bool] = True

    class Unready(Message):
        """Blocks came into sight that take long to lay out, or have pictures that nobody has made ready."""

        def __init__(self, blocks: Sequence[Block]) -> None:
            super().__init__()
            self.blocks = blocks

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._window = Window(look)
        self._lines: list[Line] = []
        self._strips: list[Strip] = []
        """What is on the screen, without what is selected."""
        self._base = Style.null()
        """What stands behind everything; also in the bar, so that no row is taken for the same in another one."""
        self._bar: list[Segment] = []
        self._sign = 0
        """Columns at the right of the last row that say how much is new."""
        self._dragging = False
        self._drawing = False

    # What is shown

    def show(self, blocks: Sequence[Block]) -> None:
        """Draw what has changed since. Blocks may be added to the list; for anything else it is another list."""
        self._window.show(blocks)
        self._place()

    def restyle(self, look: Look) -> None:
        self._look = look
        self._window.restyle(look)
        self._place()
        self.refresh()

    def fold_all(self, *, folded: bool) -> None:
        for index in range(len(self._window)):
            self._window[index].fold(folded=folded)
        self._place()

    def go_to(self, index: int) -> None:
        """Bring a block to the top."""
        self._window.go_to(index)
        self._place()

    @property
    def following(self) -> bool:
        """Whether the end stays in sight."""
        return self._window.following

    def follow(self) -> None:
        """Go to the end, and stay there."""
        self._window.following = True
        self._place()

    def scroll_rows(self, rows: int) -> None:
        self._window.scroll(rows)
        self._place()

    def page(self, direction: int) -> None:
        """One down, or one up: with two rows of what was in sight before."""
        self.scroll_rows(direction * max(1, self._window.height - 2))

    def to_start(self) -> None:
        self._window.to_start()
        self._place()

    # Placing

    def _place(self) -> None:
        """Find out what is in sight, and have drawn what differs from what is on the screen."""
        if not self.size:
            return
        before, strips = self._lines, self._strips
        self._lines = self._window.in_sight()
        self._strips = self._framed(before, strips)
        for y, height in _changed(strips, self._strips):
            self.refresh(Region(0, y, self.content_size.width, height))
        self._ask()

    def _framed(self, before: Sequence[Line], strips: Sequence[Strip]) -> list[Strip]:
        """The rows with the scroll bar, filled to the height of the view; those that stay are taken from before."""
        window, base = self._window, self.rich_style
        bar = _bar(window.extent, window.height, self._look, base)
        framed: list[Strip] = []
        usable = len(strips) - bool(self._sign)
        for y, edge in enumerate(bar):
            row = self._lines[y].strip if y < len(self._lines) else GAP
            old = before[y].strip if y < len(before) else GAP
            same = row is old and y < usable and self._bar[y] == edge
            framed.append(strips[y] if same else _filled(row, window.width, base, edge))
        self._base, self._bar, self._sign = base, bar, 0
        if (new := window.new) and framed:
            sign = f" ▼ {new} new line{'s' * (new > 1)} "
            self._sign = min(len(sign), window.width)
            kept = framed[-1].crop(0, window.width - self._sign)
            mark = Segment(sign[: self._sign], self._look.selected)
            framed[-1] = Strip([*kept, mark, bar[-1]], window.width + _BESIDE)
        return framed

    def _ask(self) -> None:
        blocks = [self._window[index] for index in {line.block: None for line in self._lines}]
        unready = [block for block in blocks if block.unready and not block.asked]
        pictured = [block for block in blocks if any(not picture.asked for picture in block.pictures)]
        for block in unready:
            block.asked = True
        for block in pictured:
            for picture in block.pictures:
                picture.asked = True
        if unready or pictured:
            self.post_message(self.Unready([*unready, *pictured]))

    def render_lines(self, crop: Region) -> list[Strip]:
        self._drawing = True
        try:
            return super().render_lines(crop)
        finally:
            self._drawing = False

    def render_line(self, y: int) -> Strip:
        if y >= len(self._strips):
            return Strip.blank(self.content_size.width, self.rich_style)
        strip = self._strips[y]
        if y >= len(self._lines):
            return strip
        line = self._lines[y]
        place = line.serial * _ROWS + line.row
        if not self._drawing:  # the screen wants to know what is under the mouse
            return strip.apply_offsets(0, place)
        selection = self.text_selection
        if selection is None or (span := selection.get_span(place)) is None:
            return strip
        chosen = self.screen.get_component_rich_style("screen--selection")
        return with_selection(strip, span, line.strip.cell_length, chosen)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self._strips and self.rich_style != self._base:
            self._place()

    def on_resize(self) -> None:
        width, height = self.content_size
        self._window.resize(max(width - _BESIDE, _LEAST), max(height, 1))
        self._strips = []
        self._place()
        self.refresh()

    # The mouse

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_rows(-_WHEEL)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_rows(_WHEEL)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if self._on_bar(event):
            event.stop()
            self.screen.clear_selection()  # or moving the bar would select text
            self._dragging = True
            self.capture_mouse()
            self._drag(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragging:
            self._drag(event)

    def on_mouse_up(self) -> None:
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    def _on_bar(self, event: events.MouseEvent) -> bool:
        return event.x == self.outer_size.width - 1

    def _drag(self, event: events.MouseEvent) -> None:
        height = self._window.height
        if event.y >= height - 1:
            self._window.following = True
        else:
            self._window.to_fraction(max(event.y, 0) / height)
        self._place()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if event.chain > 1:
            event.prevent_default()  # which is to select everything
            return
        if offset is None or self._on_bar(event):
            return
        x, y = offset
        if self._sign and y == self._window.height - 1 and x >= self._window.width - self._sign:
            self.follow()
        elif y < len(self._lines):
            self._clicked(self._lines[y])

    def _clicked(self, line: Line) -> None:
        """The heading folds and unfolds; of what is folded, the last row unfolds too."""
        block = self._window[line.block]
        if block.folded is None or not line.row:
            return
        if line.row == 1 or (block.folded and line.row == len(self._window.rows(line.block))):
            self._window.hold()
            block.fold(folded=not block.folded)
            self._place()

    # Selecting

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text of what is selected; what is out of sight and has no end is taken to end with what is in sight."""
        if not self._lines:
            return None
        first, last = self._lines[0], self._lines[-1]
        start = Place(first.serial, first.row, 0)
        end = Place(last.serial, last.row, last.strip.cell_length)
        if selection.start:
            start = Place(*divmod(selection.start.y, _ROWS), selection.start.x)
        if selection.end:
            end = Place(*divmod(selection.end.y, _ROWS), selection.end.x)
        return selected_text(self._window.between(start, end)), "\n"

    def selection_updated(self, _selection: Selection | None) -> None:
        self.refresh()


def _filled(strip: Strip, width: int, base: Style, edge: Segment) -> Strip:
    """A row on the background of the view, as wide as it, and what stands at its right."""
    segments = [Segment(text, base + style if style else base) for text, style, _ in strip]
    if (cells := strip.cell_length) < width:
        segments.append(Segment(" " * (width - cells), base))
    return Strip([*segments, edge], width + _BESIDE)


def _changed(before: Sequence[Strip], after: Sequence[Strip]) -> list[tuple[int, int]]:
    """Runs of rows that differ: where each begins, and how long it is."""
    runs: list[tuple[int, int]] = []
    for y, strip in enumerate(after):
        if y < len(before) and (before[y] is strip or before[y] == strip):
            continue
        if runs and sum(runs[-1]) == y:
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((y, 1))
    return runs


def _bar(extent: tuple[int, int], height: int, look: Look, base: Style) -> list[Segment]:
    """What stands at the right of each row: a space, and the scroll bar when there is more than fits."""
    above, total = extent
    if total <= height:
        return [Segment("  ", base)] * height
    size = max(1, height * height // total)
    first = round(min(above / max(total - height, 1), 1) * (height - size))
    rail, thumb = Segment(" │", base + look.gutter + Style(dim=True)), Segment(" ┃", base + look.accent)
    return [thumb if first <= y < first + size else rail for y in range(height)]
