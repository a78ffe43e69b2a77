"""What there is to say of an extension's conduct: how often it was asked, how long that took, what went wrong last.

One for each extension of a host, whatever becomes of its processes. Its peer adds to it, which is on the way of every
call; what the figures mean to people is said where they are shown.
"""

from msgspec import structs

from hilt.model.extensions import ExtensionStatus, Mishap

_LONGEST = 500
"""Characters of a mistake that are kept: some of them are a stranger's."""


class Account:
    __slots__ = ("_error", "busy", "calls", "seconds", "worst")

    def __init__(self) -> None:
        self.calls = 0
        """Questions that it answered."""
        self.seconds = 0.0
        """What these took, added up: some were under way at the same time."""
        self.worst = 0.0
        """The longest of them."""
        self.busy = 0.0
        """Seconds in which at least one question was under way, answered or not, until there was none left."""
        self._error: Mishap | None = None

    def on(self, status: ExtensionStatus, busy: float = 0.0) -> ExtensionStatus:
        """The same with what is to its account; `busy` are the seconds for which it has been asked something now."""
        return structs.replace(
            status,
            calls=self.calls,
            mean_ms=_ms(self.seconds / self.calls) if self.calls else 0.0,
            worst_ms=_ms(self.worst),
            busy_ms=_ms(self.busy + busy),
            last_error=str(self._error) if self._error else "",
        )

    def erred(self, what: str) -> None:
        """Something went wrong. Cheap, for it may happen with every line."""
        self._error = Mishap(what if len(what) <= _LONGEST else f"{what[:_LONGEST]}…")


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
