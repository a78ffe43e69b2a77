"""What comes from the keyboard, as events. Textual's parser does the work; what it does not do is added here.

Alt and Enter are told from Escape and Enter. A paste, which the parser takes apart character by character, goes around
it: megabytes take no time, and one whose end never comes does not swallow the keys that follow.
"""

from collections.abc import Iterable
from enum import Enum
from time import monotonic
from typing import TYPE_CHECKING

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.events import Paste

if TYPE_CHECKING:
    from textual.message import Message

_STALLED = 2.0
"""Seconds without a character after which a paste is taken to be over."""


class _Added(Enum):
    ALT_ENTER = "alt+enter"


# The parser looks for the keys' `value`, and takes any that has one.
ANSI_SEQUENCES_KEYS["\x1b\r"] = (_Added.ALT_ENTER,)  # type: ignore[index]


class Keyboard(XTermParser):
    def __init__(self) -> None:
        super().__init__()
        self._pasted: list[str] | None = None
        """What has come of a paste; None between pastes."""
        self._before = ""
        """The last characters that came, with which the sign of a paste may have begun."""
        self._heard = 0.0

    def feed(self, data: str) -> "Iterable[Message]":
        if not data:
            yield from super().feed(data)
        while data:
            sign = BRACKETED_PASTE_START if self._pasted is None else BRACKETED_PASTE_END
            taken, found = _until(sign, self._before, data)
            piece, data = data[:taken], data[taken:]
            self._before = "" if found else (self._before + piece)[1 - len(sign) :]
            if self._pasted is None:
                yield from super().feed(piece)
                if found:
                    self._pasted = []
            else:
                self._pasted.append(piece)
                if found:
                    yield from self._ended(len(sign))
        self._heard = monotonic()

    def tick(self) -> "Iterable[Message]":
        if self._pasted is not None and monotonic() - self._heard > _STALLED:
            yield from self._ended(0)
        yield from super().tick()

    def _ended(self, sign: int) -> "Iterable[Message]":
        text = "".join(self._pasted or ())
        self._pasted, self._before = None, ""
        for event in super().feed(BRACKETED_PASTE_END):
            if not isinstance(event, Paste):  # it has seen an empty one
                yield event
        yield Paste(text[: len(text) - sign])


def _until(sign: str, before: str, data: str) -> tuple[int, bool]:
    """How many characters there are up to the end of a sign, and whether it is there. It may have begun before."""
    at = (before + data).find(sign)
    return (len(data), False) if at == -1 else (at + len(sign) - len(before), True)
