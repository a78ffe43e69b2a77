"""Finding the few that cause a problem among many, by trying ever smaller sets of them. Pure: trying is up to others.

Delta debugging: halves first; when neither half shows the problem, it takes members of both, and finer parts are tried.
What is left shows the problem, and does so no longer when any one of them is taken away.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Literal, TypeAlias

from msgspec import Struct

Outcome: TypeAlias = Literal["good", "bad", "skip"]
Names: TypeAlias = tuple[str, ...]
Try: TypeAlias = Callable[[Names], Outcome]
"""Whether the problem shows with these alone."""
Verdict: TypeAlias = Literal["found", "together", "not_bad", "always_bad", "unclear"]


class Run(Struct, frozen=True):
    names: Names
    outcome: Outcome


class Bisected(Struct, frozen=True):
    verdict: Verdict
    """`found`: one causes it. `together`: it takes all of the culprits. `not_bad`: it does not show with all of them.
    `always_bad`: it shows without any. `unclear`: with all, or with none, it could not be told."""
    culprits: Names
    runs: tuple[Run, ...]

    @property
    def skipped(self) -> bool:
        """Something could not be tried, so there may be fewer culprits."""
        return any(run.outcome == "skip" for run in self.runs)


def bisect(names: Names, attempt: Try) -> Bisected:
    """Try them until it is known which of them it takes."""
    tries = _Tries(names, attempt)
    if (whole := tries(names)) != "bad":
        return Bisected("not_bad" if whole == "good" else "unclear", (), tries.runs)
    if (empty := tries(())) != "good":
        return Bisected("always_bad" if empty == "bad" else "unclear", (), tries.runs)
    culprits = _minimal(names, tries)
    return Bisected("found" if len(culprits) == 1 else "together", culprits, tries.runs)


class _Tries:
    """Each set once."""

    def __init__(self, names: Names, attempt: Try) -> None:
        self._order = {name: place for place, name in enumerate(names)}
        self._attempt = attempt
        self._known: dict[Names, Outcome] = {}

    def __call__(self, names: Names) -> Outcome:
        if names not in self._known:
            self._known[names] = self._attempt(names)
        return self._known[names]

    def without(self, whole: Names, part: Names) -> Names:
        return tuple(sorted(set(whole) - set(part), key=self._order.__getitem__))

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(Run(names, outcome) for names, outcome in self._known.items())


def _minimal(names: Names, tries: _Tries) -> Names:
    count = 2
    while len(names) > 1:
        parts = _parts(names, min(count, len(names)))
        rests = [tries.without(names, part) for part in parts] if len(parts) > 2 else []
        if smaller := next((part for part in parts if tries(part) == "bad"), None):
            names, count = smaller, 2
        elif smaller := next((rest for rest in rests if tries(rest) == "bad"), None):
            names, count = smaller, max(len(parts) - 1, 2)
        elif len(parts) < len(names):
            count = len(parts) * 2
        else:
            break
    return names


def _parts(names: Names, count: int) -> list[Names]:
    """So many, of about the same size."""
    edges = [len(names) * place // count for place in range(count + 1)]
    return [names[start:end] for start, end in pairwise(edges)]
