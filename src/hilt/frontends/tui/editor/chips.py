"""What stands for something longer in the input: `[pasted text #1 +42 lines]`, `[file:1:notes.txt]`.

Owns what each label stands for, from when it is put in until everything is sent. A chip is the text of its label: it
can be cut, moved and copied like any other text, and whoever writes a label that is in use means that chip.
"""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from hilt.frontends.terminal import one_line

LINES = 10
CHARACTERS = 1_000
"""A pasted text with more than this of either is shown as a chip."""
_NAME = 40
"""Characters of a file's name in a label."""
_LABEL = r"\[(?:pasted text #\d+ (?:\+\d+ lines|\d+ chars)|(?:file|dir):\d+:[^\[\]\n]*)\]"


class Chips:
    def __init__(self) -> None:
        self._meant: dict[str, str] = {}

    def text(self, text: str, *, beside: str = "") -> str:
        """A label for a long text, which is not in what stands `beside` it by chance."""
        lines = _lines(text)
        size = f"+{lines} lines" if lines > LINES else f"{len(text)} chars"
        return self._new(lambda number: f"[pasted text #{number} {size}]", text, beside)

    def path(self, path: Path, *, directory: bool, beside: str = "") -> str:
        """A label for a file, which the model is told by its path."""
        name = one_line(path.name or str(path), _NAME).replace("[", "(").replace("]", ")")
        kind, name = ("dir", f"{name}/") if directory else ("file", name)
        return self._new(lambda number: f"[{kind}:{number}:{name}]", shlex.quote(str(path)), beside)

    def _new(self, label: Callable[[int], str], meant: str, beside: str) -> str:
        number = 1 + len(self._meant)
        while label(number) in beside:
            number += 1
        self._meant[label(number)] = meant
        return label(number)

    def expand(self, text: str) -> str:
        """With what the labels stand for. What that contains is not looked at again."""
        return re.sub(_LABEL, lambda found: self._meant.get(found[0], found[0]), text) if self._meant else text

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Where in a line chips begin and end."""
        if not self._meant:
            return []
        return [found.span() for found in re.finditer(_LABEL, line) if found[0] in self._meant]

    def clear(self) -> None:
        """Everything was sent."""
        self._meant.clear()


def is_long(text: str) -> bool:
    return len(text) > CHARACTERS or _lines(text) > LINES


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))
