"""A text to be edited in a few rows: the drawing, moving, deleting and pasting that the input is made of.

What is seen as one thing is one thing here: an emoji with its joiners, and a chip. What is done with the text is up to
the editor, which this becomes a part of.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.document._document import EditResult, Location
from textual.strip import Strip
from textual.widgets._text_area import TextArea

from hilt.frontends.tui.drawing.cells import clusters_of
from hilt.frontends.tui.drawing.wrapping import clip, pad, wrap
from hilt.frontends.tui.editor.chips import Chips, is_long
from hilt.frontends.tui.editor.paste import cleaned, dropped
from hilt.frontends.tui.look import Look

_MARK = "› "
_SHELL = "! "
_BETWEEN = " · "
"""Between the parts of a hint. Those that there is no room for are left out whole."""
_AT_ONCE = 65_536
"""Characters of a paste that are made harmless at once, and not in a thread."""
_JOINERS = ("\u200c", "\u200d")
"""Not printable by themselves, but what emoji and some scripts are typed with."""


class Area(TextArea, inherit_bindings=False):
    DEFAULT_CSS = """
    Area {
        height: auto; min-height: 1; max-height: 10; border: none; padding: 0 1; background: transparent;
        scrollbar-size: 0 0;
        &:focus { border: none; }
        /* Textual's own rules for dark and for light themes are stronger, and have the colours swapped already. */
        & .text-area--cursor, & .text-area--selection {
            color: $foreground !important; background: $background !important; text-style: reverse !important;
        }
    }
    """

    def __init__(self, look: Look, hint: str) -> None:
        """`hint` is shown while there is nothing else."""
        self._look = look
        self._hint = hint
        self._chips = Chips()
        super().__init__(soft_wrap=True, highlight_cursor_line=False)
        self.cursor_blink = False  # a picture that stands still costs nothing
        self.match_cursor_bracket = False

    def restyle(self, look: Look) -> None:
        self._look = look
        self.notify_style_update()
        self.refresh()

    # Drawing

    @property
    def gutter_width(self) -> int:
        """The mark stands where line numbers would."""
        return len(_MARK)

    def render_line(self, y: int) -> Strip:
        base = self.rich_style
        shell = self.document.get_line(0).startswith("!")
        mark, style = (_SHELL, self._look.warn) if shell else (_MARK, self._look.accent)
        if self.scroll_offset.y + y:
            mark = " " * len(mark)
        body = super().render_line(y) if self.text or y else self._empty(base)
        return Strip.join([Strip([Segment(mark, base + style)], len(mark)), body])

    def _empty(self, base: Style) -> Strip:
        width = self.size.width - self.gutter_width
        cursor = self.get_component_rich_style("text-area--cursor")
        quiet = base + self._look.dim
        first = base + cursor if self.has_focus else quiet
        hint = self._hint
        while len(hint) > width and _BETWEEN in hint:
            hint = hint.rpartition(_BETWEEN)[0]
        row = wrap([(hint[:1], first), (hint[1:], quiet)], 1 << 30)[0]
        return pad(clip(row, width), width, base)

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        for start, end in self._chips.spans(line.plain):
            line.stylize(self._look.badge, start, end)
        return line

    # Moving

    def get_cursor_left_location(self) -> Location:
        row, column = self.cursor_location
        return self._edge(row, column - 1, forward=False) if column else super().get_cursor_left_location()

    def get_cursor_right_location(self) -> Location:
        row, column = self.cursor_location
        line = self.document.get_line(row)
        return self._edge(row, column + 1, forward=True) if column < len(line) else super().get_cursor_right_location()

    def _edge(self, row: int, column: int, *, forward: bool) -> Location:
        """The nearest place in a line that is not inside of something."""
        line = self.document.get_line(row) if row < self.document.line_count else ""
        for start, end in self._chips.spans(line):
            if start < column < end:
                return row, end if forward else start
        for start, end, _ in clusters_of(line) or ():
            if start < column < end:
                return row, end if forward else start
        return row, column

    # Changing

    def delete_rest_of_line(self) -> None:
        """From the cursor on; at the end of a line, the break behind it."""
        here, end = self.selection.end, self.get_cursor_line_end_location()
        self._delete_via_keyboard(here, end if here != end else self.get_cursor_right_location())

    def _replace_via_keyboard(self, insert: str, start: Location, end: Location) -> EditResult | None:
        return super()._replace_via_keyboard(insert, *self._whole(start, end))

    def _delete_via_keyboard(self, start: Location, end: Location) -> EditResult | None:
        return super()._delete_via_keyboard(*self._whole(start, end))

    def _whole(self, start: Location, end: Location) -> tuple[Location, Location]:
        """Nothing is changed in part that is one thing."""
        start, end = sorted((start, end))
        last = self._edge(*end, forward=True)
        return (last, last) if start == end else (self._edge(*start, forward=False), last)

    def put_in(self, text: str) -> None:
        """Where the cursor is, in place of what is selected."""
        if result := self._replace_via_keyboard(text, *self.selection):
            self.move_cursor(result.end_location)

    @property
    def keys(self) -> Iterable[str]:
        """Those that mean something here, beside those that write."""
        return _KEYS

    def takes(self, key: str) -> bool:
        """Do what a key stands for, if it stands for anything here."""
        if act := _KEYS.get(key):
            act(self)
        return act is not None

    async def _on_key(self, event: events.Key) -> None:
        taken = self.takes(event.key)
        if not taken and event.character in _JOINERS:
            self.put_in(event.character)
            taken = True
        if not taken:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()

    async def _on_paste(self, event: events.Paste) -> None:
        """What is pasted is put in, and never sent: also when it ends with a line feed."""
        event.stop()
        event.prevent_default()
        await self.paste(event.text)

    async def paste(self, text: str) -> None:
        text = cleaned(text) if len(text) < _AT_ONCE else await asyncio.to_thread(cleaned, text)
        paths = await asyncio.to_thread(dropped, text) if text.lstrip()[:1] in ("/", "~", "'", '"', "f") else []
        if paths:
            chips = [self._chips.path(path, directory=is_dir, beside=self.text) for path, is_dir in paths]
            text = " ".join(chips) + " "
        self._put_pasted(text)
        self.focus()

    def action_paste(self) -> None:
        """What was copied or cut here."""
        self._put_pasted(cleaned(self.app.clipboard))

    def _put_pasted(self, text: str) -> None:
        self.put_in(self._chips.text(text, beside=self.text) if is_long(text) else text)


# Here and not as bindings: those are looked up when the key has gone all the way up to the app, and keys that are typed
# quickly would overtake it.
_ACTS: Mapping[str, Callable[[Area], object]] = {
    "up": Area.action_cursor_up,
    "down": Area.action_cursor_down,
    "left ctrl+b": Area.action_cursor_left,
    "right ctrl+f": Area.action_cursor_right,
    "ctrl+left alt+left alt+b": Area.action_cursor_word_left,
    "ctrl+right alt+right alt+f": Area.action_cursor_word_right,
    "home ctrl+a": Area.action_cursor_line_start,
    "end ctrl+e": Area.action_cursor_line_end,
    "shift+up": partial(Area.action_cursor_up, select=True),
    "shift+down": partial(Area.action_cursor_down, select=True),
    "shift+left": partial(Area.action_cursor_left, select=True),
    "shift+right": partial(Area.action_cursor_right, select=True),
    "ctrl+shift+left": partial(Area.action_cursor_word_left, select=True),
    "ctrl+shift+right": partial(Area.action_cursor_word_right, select=True),
    "shift+home": partial(Area.action_cursor_line_start, select=True),
    "shift+end": partial(Area.action_cursor_line_end, select=True),
    "backspace ctrl+h shift+backspace": Area.action_delete_left,
    "delete": Area.action_delete_right,
    "ctrl+w ctrl+backspace alt+backspace": Area.action_delete_word_left,
    "alt+delete alt+d": Area.action_delete_word_right,
    "ctrl+k": Area.delete_rest_of_line,
    "ctrl+underscore ctrl+minus super+z": Area.action_undo,
    "ctrl+y super+y": Area.action_redo,
    "ctrl+v super+v": Area.action_paste,
    "super+x": Area.action_cut,
}
_KEYS = {key: act for keys, act in _ACTS.items() for key in keys.split()}
