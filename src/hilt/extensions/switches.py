"""Which parts of an extension the user has switched off, and which of these it really has.

What is switched off is never published. A switch for something that is not there is most likely misspelt, and what it
was meant for is on: that is worth knowing.
"""

from hilt.packages.choices import Part

_ANY_CASE = ("command", "shortcut")


class Switches:
    def __init__(self, off: tuple[str, ...]) -> None:
        self._off = {_normal(part): part for part in off}
        """As they were written, by what they mean."""
        self._met: set[str] = set()

    def off(self, kind: Part, name: str) -> bool:
        """Whether this part, which the extension has, is switched off."""
        parts = self._off.keys() & {kind, _normal(f"{kind}:{name}")}
        self._met |= parts
        return bool(parts)

    @property
    def idle(self) -> tuple[str, ...]:
        """Those that nothing was found for so far."""
        return tuple(part for meaning, part in self._off.items() if meaning not in self._met)


def _normal(part: str) -> str:
    """Commands and keys are matched in any case, so they are switched in any case."""
    kind = part.partition(":")[0]
    return part.lower() if kind in _ANY_CASE else part
