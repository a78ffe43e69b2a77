"""Which of many texts fit what was typed, the best first. Case and punctuation make no difference."""

from collections.abc import Sequence
from dataclasses import dataclass

_NOWHERE = 5


@dataclass(frozen=True)
class Matched:
    """A text as it is searched."""

    text: str
    """Its letters and digits, without anything between them."""
    words: tuple[int, ...]
    """Where its words begin."""
    more: str
    """What also counts, but less."""

    @classmethod
    def of(cls, text: str, more: str = "") -> "Matched":
        words = _words(text)
        begins, length = [], 0
        for word in words:
            begins.append(length)
            length += len(word)
        return cls("".join(words), tuple(begins), "".join(_words(more)))


def matches(typed: str, texts: Sequence[Matched]) -> list[int]:
    """The places of those that have every word that was typed; among equals, the order stays."""
    words = ["".join(_words(word)) for word in typed.split()]
    ranked = [(max((_rank(word, text) for word in words if word), default=0), at) for at, text in enumerate(texts)]
    return [at for rank, at in sorted(ranked) if rank < _NOWHERE]


def _rank(word: str, text: Matched) -> int:
    """From the beginning of the text, over that of a word and anywhere, to letters that are only in this order."""
    if text.text.startswith(word):
        return 0
    if any(text.text.startswith(word, begin) for begin in text.words):
        return 1
    if word in text.text:
        return 2
    if word in text.more:
        return 3
    rest = iter(text.text)
    return 4 if all(letter in rest for letter in word) else _NOWHERE


def _words(text: str) -> list[str]:
    return "".join([letter if letter.isalnum() else " " for letter in text.casefold()]).split()
