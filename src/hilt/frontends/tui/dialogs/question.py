"""A question of an extension's, with the answers that it offers; its name stands in front."""

from textual.strip import Strip

from hilt.frontends.tui.dialogs.choosing import Choosing, Option
from hilt.frontends.tui.dialogs.dialog import DEAF
from hilt.frontends.tui.drawing.plain import plain
from hilt.frontends.tui.look import Look
from hilt.model.events import QuestionAsked


class Question(Choosing[str]):
    """Closes with the answer that was chosen."""

    def __init__(self, asked: QuestionAsked, look: Look) -> None:
        options = [Option(choice) for choice in asked.choices]
        super().__init__("asks you", options, look, owner=asked.extension, escape="dismiss", deaf=DEAF)
        self._asked = asked

    def chosen(self, at: int, /) -> None:
        self.close(self._asked.choices[at])

    def page(self, width: int, /) -> list[Strip]:
        return plain(self._asked.prompt, width, self.look.text)
