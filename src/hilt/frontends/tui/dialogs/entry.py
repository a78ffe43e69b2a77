"""One line to fill in: a title, a path, a key that is not shown."""

from rich.segment import Segment
from textual.events import Key
from textual.strip import Strip

from hilt.frontends.terminal import one_line
from hilt.frontends.tui.dialogs.dialog import Dialog
from hilt.frontends.tui.dialogs.field import Field
from hilt.frontends.tui.drawing.wrapping import wrap
from hilt.frontends.tui.look import Look


class Entry(Dialog[str]):
    """Closes with what was typed, without blanks around it; Esc closes it with nothing."""

    def __init__(self, title: str, look: Look, *, text: str = "", secret: bool = False, note: str = "") -> None:
        super().__init__(title, look, keys="Enter take · Esc close")
        self.own = secret  # whoever asks for a key must be hilt
        self._secret = secret
        self._note = note
        self._field = Field()
        self._field.add(text)

    def pressed(self, key: Key, /) -> bool:
        if key.key == "enter":
            self.close(self._field.text.strip())
            return True
        if self._field.pressed(key):
            self.changed()
            return True
        return False

    def pasted(self, text: str) -> None:
        self._field.add(text.strip())
        self.changed()

    def page(self, width: int, /) -> list[Strip]:
        rows = [*wrap([(one_line(self._note, 400), self.look.dim)], width)] if self._note else []
        if self._secret:
            return [*rows, Strip([Segment("> ", self.look.dim), Segment("•" * min(len(self._field.text), width - 4))])]
        return [*rows, self._field.row("> ", width, self.look.text, self.look.dim)]
