"""What a conversation is made of on screen. A block draws itself at a width; `Window` keeps what it drew.

Whoever changes a block touches it, so that it is drawn again. Guessing a height must be quick: of a long conversation
only what is in sight is ever drawn.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.strip import Strip

from hilt.frontends.tui.look import Look

if TYPE_CHECKING:  # not needed for the first frame
    from hilt.frontends.tui.transcript.pictures import Picture


class Block(ABC):
    """One thing said or done."""

    version: int = 0
    """Another one after every change."""
    touched: Callable[["Block"], None] | None = None
    """Told of a change, while the block is in a window."""
    folded: bool | None = None
    """Whether less than all is shown; None where there is no difference."""
    pictures: "Sequence[Picture]" = ()
    unready: bool = False
    """Whether it takes long to lay out, and what is drawn until then only stands for it."""
    partial: bool = False
    """Whether what is drawn until then is the beginning of it."""
    asked: bool = False
    """Whether somebody is laying it out."""

    def touch(self) -> None:
        self.version += 1
        if self.touched:
            self.touched(self)

    @abstractmethod
    def rows(self, width: int, look: Look) -> Sequence[Strip]:
        """As it looks, the heading first; each row at most this wide. None when there is nothing to see."""

    @abstractmethod
    def guess(self, width: int) -> int:
        """About how many rows that is, without drawing."""

    def advance(self, _seconds: float) -> bool:
        """Get on with laying it out, for about so long; whether that is done."""
        return True

    def forget(self) -> None:  # noqa: B027 - most have nothing of the kind
        """Nobody looks at it now: what can be had again need not be kept."""

    def fold(self, *, folded: bool) -> None:
        """Show less or all of it, where there is a difference."""
        if self.folded is not None and self.folded != folded:
            self.folded = folded
            self.touch()

    @property
    def heading(self) -> str:
        """A line that stands for it in a list of places to go to; empty when it is no such place."""
        return ""


class Grown:
    """A text that comes in pieces. Adding one costs the same however long it has become."""

    def __init__(self, text: str = "") -> None:
        self._pieces = [text]
        self.length = len(text)
        self.lines = text.count("\n") + 1

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self.length += len(text)
        self.lines += text.count("\n")

    @property
    def text(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def rows(self, width: int) -> int:
        """About as many as it takes."""
        return self.lines + self.length // max(width, 1)


def guessed(text: str, width: int) -> int:
    """The rows of a text, roughly."""
    return text.count("\n") + 1 + len(text) // max(width, 1)
