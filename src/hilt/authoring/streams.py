"""What comes from the other side, in its order, and how far a conversation has taken notice of it."""

import asyncio
from typing import Any, TypeAlias

from msgspec import Struct

from hilt.authoring.matching import Variables, matched, mismatches, nearness
from hilt.authoring.values import brief
from hilt.errors import Departure

_NEAREST = 3
"""Of what came instead, so many are shown."""
_MOST = 100_000
"""Things that may come in one conversation."""

Told: TypeAlias = dict[str, Any]


class Wanted(Struct, frozen=True):
    """A pattern, and how it is spoken of."""

    where: str
    """Such as `line 7`."""
    kind: str
    pattern: Any

    def __str__(self) -> str:
        return f"{self.where}: {self.kind} {brief(self.pattern, 400)}"


class Stream:
    def __init__(self, name: str) -> None:
        self._name = name
        """As in: a frame from `the host`."""
        self.came: list[Told] = []
        self.taken = 0
        self.settled: set[int] = set()
        """Questions that are answered, or that a step has taken and will answer."""
        self.banned: list[Wanted] = []
        """What must not come before the next thing that is waited for."""
        self.over = asyncio.Event()
        self._news = asyncio.Event()

    def put(self, told: Told) -> None:
        if len(self.came) < _MOST:
            self.came.append(told)
        self._news.set()

    def end(self) -> None:
        self.over.set()
        self._news.set()

    def look(self, wanted: Wanted, variables: Variables) -> dict[str, Any] | None:
        """Pass over what came until something contains the pattern: the variables as they are then, or None.

        Raises `Departure` for what must not come.
        """
        while self.taken < len(self.came):
            told = self.came[self.taken]
            self.taken += 1
            if (found := matched(told, wanted.pattern, variables)) is not None:
                self.settled.add(self.taken - 1)
                self.banned.clear()
                return found
            self._check(told)
        return None

    async def take(self, wanted: Wanted, variables: Variables, patience: float) -> dict[str, Any]:
        """The same, for something that may still come. Raises `Departure` when it does not come in time."""
        first = self.taken
        try:
            async with asyncio.timeout(patience):
                while (found := self.look(wanted, variables)) is None:
                    if self.over.is_set():
                        raise self.never(wanted, variables, first, "before its end")
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise self.never(wanted, variables, first, f"within {patience:g} s") from None
        return found

    def check_rest(self) -> None:
        """What nobody waits for any more must not be forbidden either. Raises `Departure`."""
        for told in self.came[self.taken :]:
            self._check(told)

    def _check(self, told: Told) -> None:
        for wanted in self.banned:
            if matched(told, wanted.pattern, {}) is not None:
                raise Departure(f"{wanted}, but it came from {self._name}: {brief(told, 400)}")

    def never(self, wanted: Wanted, variables: Variables, first: int, when: str) -> Departure:
        """What to say when it did not come: what came instead since then, the nearest first."""
        came = self.came[first:]
        lines = [f"{wanted} never came from {self._name} {when}"]
        nearest = sorted(came, key=lambda told: -nearness(told, wanted.pattern, variables))[:_NEAREST]
        for told in nearest:
            lines.append(f"  came: {brief(told, 400)}")
            lines += [f"    {line}" for line in mismatches(told, wanted.pattern, variables)]
        if len(came) > len(nearest):
            lines.append(f"  and {len(came) - len(nearest)} more")
        if not came:
            lines.append("  nothing came")
        return Departure("\n".join(lines))
