"""Keys never leave the process by accident: one value that knows them and blanks them."""

from collections.abc import Iterable

MASK = "[key hidden]"
_SHORTEST = 8  # shorter strings are not keys and would blank ordinary words


class Mask:
    """Replaces every known secret. Cheap when there is none, which is the common case."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: list[str] = []
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        if len(secret) >= _SHORTEST and secret not in self._secrets:
            self._secrets.append(secret)
            self._secrets.sort(key=len, reverse=True)  # a key that contains another goes first

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    def line(self, line: bytes) -> bytes:
        """The same for an encoded JSON line; in it, quotes and backslashes of a key stand escaped."""
        for secret in self._secrets:
            escaped = secret.replace("\\", "\\\\").replace('"', '\\"')
            line = line.replace(escaped.encode(), MASK.encode())
        return line
