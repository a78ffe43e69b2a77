"""Something to read, with Markdown in it."""

from textual.strip import Strip

from hilt.frontends.tui.dialogs.dialog import Dialog
from hilt.frontends.tui.drawing.markdown import markdown
from hilt.frontends.tui.look import Look


class Page(Dialog[None]):
    def __init__(self, title: str, text: str, look: Look, *, owner: str = "") -> None:
        super().__init__(title, look, owner=owner, keys="↑↓ PgUp PgDn scroll · Esc close")
        self._text = text

    def page(self, width: int, /) -> list[Strip]:
        return markdown(self._text, width, self.look)
