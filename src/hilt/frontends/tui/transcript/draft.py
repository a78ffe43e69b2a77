"""The arguments of a call while the model is still writing them: what can be read of JSON that has no end yet."""

import re

import msgspec

from hilt.frontends.tui.transcript.blocks import Grown
from hilt.model.content import Args

_MATTERS = re.compile(r'["\\{}\[\],]')
_IN_STRING = re.compile(r'["\\]')
_FIRST = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}")
"""The first of a pair of escapes, which mean nothing without each other."""
_HALF = re.compile(rf"\\(?:u[0-9a-fA-F]{{0,3}})?|{_FIRST.pattern}")
"""An escape without its end."""
_CLOSE = {"{": "}", "[": "]"}


class Draft:
    """Each character is looked at once, whenever it comes; reading is done when somebody looks."""

    def __init__(self) -> None:
        self._json = Grown()
        self._open: list[str] = []
        self._in_string = False
        self._escaped = False
        self._escape = 0
        """Where the last escape begins."""
        self._sound = 0, ""
        """Up to where it makes sense, whatever comes behind, and what is then to be closed."""

    def __bool__(self) -> bool:
        return self._json.length > 0

    @property
    def text(self) -> str:
        return self._json.text

    def add(self, piece: str) -> None:
        start = self._json.length
        self._json.add(piece)
        at = 0
        while at < len(piece):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            found = (_IN_STRING if self._in_string else _MATTERS).search(piece, at)
            if found is None:
                return
            at = found.end()
            self._met(found[0], start + at)

    def _met(self, letter: str, end: int) -> None:
        if letter == "\\":
            self._escaped = self._in_string
            self._escape = end - 1
        elif letter == '"':
            self._in_string = not self._in_string
        elif letter in _CLOSE:
            self._open.append(letter)
            self._sound = end, self._closing()
        elif letter == ",":
            self._sound = end - 1, self._closing()
        elif self._open:
            self._open.pop()

    def _closing(self) -> str:
        return "".join([_CLOSE[letter] for letter in reversed(self._open)])

    @property
    def args(self) -> Args:
        """As far as they can be told."""
        text = self._json.text
        whole = text[: self._whole()] + '"' if self._in_string else text
        at, closing = self._sound
        for attempt in (whole + self._closing(), text[:at] + closing):
            try:
                return msgspec.json.decode(attempt, type=dict)
            except (msgspec.DecodeError, ValueError):
                continue
        return {}

    def _whole(self) -> int:
        """How much of it there is without an escape at its end that goes on."""
        text, at = self._json.text, self._escape
        if not _HALF.fullmatch(text, at):
            return len(text)
        return at - 6 if at >= 6 and _FIRST.fullmatch(text, at - 6, at) else at
