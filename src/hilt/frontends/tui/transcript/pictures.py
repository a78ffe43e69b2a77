"""A picture in the conversation: in words until it is made ready, and whenever it cannot be shown."""

from textual.strip import Strip

from hilt.frontends.terminal import one_line
from hilt.frontends.tui.drawing.images import in_words
from hilt.frontends.tui.drawing.wrapping import wrap
from hilt.frontends.tui.look import Look
from hilt.model.content import Image
from hilt.tools.images import Picture as Examined
from hilt.tools.images import examine


class Picture:
    def __init__(self, image: Image) -> None:
        self.image = image
        self.asked = False
        """Whether somebody was asked to make it ready."""
        self.shown: list[Strip] | None = None
        """Its cells, when it is ready."""
        self._words = ""

    def examined(self) -> Examined | None:
        """What it really is; None when it is nothing that can be shown."""
        found = examine(self.image.data)
        return found if isinstance(found, Examined) else None

    def rows(self, width: int, look: Look) -> list[Strip]:
        if not self._words:
            found = self.examined()
            kind = found.mime_type if found else one_line(self.image.mime_type, 40)
            self._words = in_words(kind, (found.width, found.height) if found else None, len(self.image.data))
        words = wrap([(self._words, look.dim)], width)
        fits = self.shown and all(row.cell_length <= width for row in self.shown)
        return [*words, *self.shown] if self.shown and fits else words
