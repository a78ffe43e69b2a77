"""Asking the user whether what came with a folder may run: every command line and all there is to know, whole.

Like a permission it is hilt's own question, with the mark and the deafness. Unless somebody says yes, it is a no.
"""

import shlex
from collections.abc import Iterator

from textual.strip import Strip

from hilt.agent.questions import Reply
from hilt.frontends.terminal import visible
from hilt.frontends.tui.dialogs.choosing import Choosing, Option
from hilt.frontends.tui.dialogs.dialog import DEAF
from hilt.frontends.tui.dialogs.listing import listing
from hilt.frontends.tui.drawing.wrapping import wrap
from hilt.frontends.tui.look import Look
from hilt.model.events import TrustAsked

_OPTIONS = (Option("No, run nothing of it", "n"), Option("Yes, run these, as they are now", "y"))
_ANSWERS = (Reply(approved=False), Reply(approved=True))


class Trust(Choosing[Reply]):
    def __init__(self, asked: TrustAsked, look: Look) -> None:
        super().__init__("Trust what came with this folder?", _OPTIONS, look, deaf=DEAF)
        self.own = True
        self._asked = asked

    def chosen(self, at: int, /) -> None:
        if not (_ANSWERS[at].approved and self.unreadable):
            self.close(_ANSWERS[at])

    def page(self, width: int, /) -> Iterator[Strip]:
        look, asked = self.look, self._asked
        yield from wrap([(visible(asked.folder), look.strong)], width)
        yield from wrap([("brings extensions along. They would run:", look.text)], width)
        for name, command in asked.commands:
            yield from wrap([(visible(name), look.badge)], width)
            yield from listing(shlex.join(command), width, look)
        yield Strip.blank(0)
        yield from listing(asked.text, width, look)
