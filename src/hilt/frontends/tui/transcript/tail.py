"""The end of what is being written, however much that is."""

from collections import deque

_KEPT = 64 * 1024
"""Characters: more than a screen shows."""


class Tail:
    """Keeps the last part of a text that comes in pieces; what it costs does not depend on how long the text is."""

    def __init__(self) -> None:
        self._pieces: deque[str] = deque()
        self._size = 0

    def add(self, text: str) -> None:
        if len(text) > _KEPT:
            text = text[-_KEPT:]
        self._pieces.append(text)
        self._size += len(text)
        while self._size - len(self._pieces[0]) >= _KEPT:
            self._size -= len(self._pieces.popleft())

    def __bool__(self) -> bool:
        return self._size > 0

    @property
    def text(self) -> str:
        """Of a line that was written over from its beginning, as progress bars are, what was written last."""
        if len(self._pieces) > 1:
            self._pieces = deque(["".join(self._pieces)[-_KEPT:]])
            self._size = len(self._pieces[0])
        text = self._pieces[0] if self._pieces else ""
        if "\r" not in text:
            return text
        return "\n".join([line.removesuffix("\r").rpartition("\r")[2] for line in text.split("\n")])
