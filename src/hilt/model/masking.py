"""Keys never leave the process by accident: one value that knows them and blanks them.

Owns what counts as a key and where one begins and ends in a text, whole or still growing.
Which texts grow, and when they end, is known to whoever shows them.
"""

from collections.abc import Iterable, Sequence

import msgspec

MASK = "[key hidden]"
_SHORTEST = 8  # shorter strings are not keys and would blank ordinary words


class Mask:
    """Replaces every known secret. Cheap when there is none, which is the common case."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: list[str] = []
        self._escaped: list[str] = []
        self._in_json: list[str] = []
        self._cores: list[bytes] = []
        """Of each the longest part that stands the same however often it is escaped."""
        for secret in secrets:
            self.add(secret)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to hide. (Not truth itself: an empty mask is still worth keeping.)"""
        return not self._secrets

    def add(self, secret: str) -> None:
        if len(secret) >= _SHORTEST and secret not in self._secrets:
            self._secrets = _longest_first([*self._secrets, secret])
            self._escaped = _longest_first(map(_escaped, self._secrets))
            self._in_json = _longest_first({*self._secrets, *self._escaped})
            self._cores = list(map(_core, self._secrets))

    def may_be_in(self, line: bytes) -> bool:
        """Whether a secret could stand in an encoded line, also in JSON within JSON. A quick look, and mostly a no."""
        return any(core in line for core in self._cores)

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    def line(self, line: bytes) -> bytes:
        """The same for an encoded JSON line; in it, quotes and backslashes of a key stand escaped."""
        for secret in self._escaped:
            line = line.replace(secret.encode(), MASK.encode())
        return line

    def cut(self, text: str, *, in_json: bool = False, ended: bool = False) -> tuple[str, str]:
        """What may be shown of a text that still grows, and the tail that may be the beginning of a secret.

        The tail belongs before whatever comes next; when the text has `ended`, there is none.
        """
        secrets = self._in_json if in_json else self._secrets
        shown: list[str] = []
        position = 0
        while True:
            tail = len(text) if ended else _tail(text, secrets, position)
            start, end = _secret(text, secrets, position)
            if tail <= start:  # also when a whole secret begins there: it may become a longer one
                return "".join((*shown, text[position:tail])), text[tail:]
            shown += text[position:start], MASK
            position = end


def _longest_first(secrets: Iterable[str]) -> list[str]:
    return sorted(secrets, key=len, reverse=True)  # a key that contains another goes first


def _escaped(secret: str) -> str:
    """As it stands inside a JSON string."""
    whole = secret.encode("utf-8", "backslashreplace")  # bytes that are no text: no JSON can carry them as they are
    return msgspec.json.encode(whole.decode()).decode()[1:-1]


def _core(secret: str) -> bytes:
    """Its longest run of letters and digits; empty, which is in every line, when it has none."""
    plain = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in secret)
    return max(plain.split(), key=len, default="").encode()


def _secret(text: str, secrets: Sequence[str], position: int) -> tuple[int, int]:
    """Where the first whole secret stands, the longest of those that begin there; if none, after the end."""
    first = last = len(text)
    for secret in secrets:
        at = text.find(secret, position, first + len(secret) - 1)  # only what begins before the one found so far
        if at != -1:
            first, last = at, at + len(secret)
    return first, last


def _tail(text: str, secrets: Sequence[str], position: int) -> int:
    """Where the longest end of the text begins with which a secret could begin; if none, after the end."""
    tail = len(text)
    for secret in secrets:
        at = text.find(secret[0], max(position, len(text) - len(secret) + 1), tail)
        while at != -1 and not secret.startswith(text[at:]):
            at = text.find(secret[0], at + 1, tail)
        if at != -1:
            tail = at
    return tail
