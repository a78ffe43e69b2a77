"""Which extensions a run asks for, and where they are looked for."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from hilt.home import Home

if TYPE_CHECKING:
    from hilt.packages.choices import Choices
    from hilt.packages.finder import Finder

PROJECT_PLACES = (".hilt/extensions", ".zot/extensions", ".piglet/extensions")


class Wanted(Struct, frozen=True):
    flags: tuple[str, ...]
    only_flags: bool
    home: Home
    cwd: Path
    choices: Mapping[str, "Choices"]
    watch: bool
    one_shot: bool
    trust: bool
    """What comes with the project may run, whatever it is, for this once."""

    def any(self) -> bool:
        """Whether there could be some. Most runs end here: what runs extensions takes 20 ms to import."""
        places = (self.home.extensions, *(self.cwd / place for place in PROJECT_PLACES))
        # Unlike Path.is_dir, this says no of what one may not even look at.
        there = any(os.path.isdir(place) for place in places)  # noqa: PTH112
        return bool(self.flags) or (not self.only_flags and there)

    def finder(self) -> "Finder":
        from hilt.packages.finder import ONLY, Finder
        from hilt.packages.trust.screening import Gate
        from hilt.packages.trust.store import TrustStore

        path = os.environ.get("PATH", os.defpath)
        return Finder(
            flags=self.flags,
            user=self.home.extensions,
            projects=tuple(self.cwd / place for place in PROJECT_PLACES),
            only_flags=self.only_flags,
            path=path,
            cwd=self.cwd,
            choices=self.choices,
            lock=self.home.lock,
            gate=Gate(TrustStore(self.home.trust), self.cwd, self.home.trusted, path, self.trust),
            only=_names(os.environ[ONLY]) if ONLY in os.environ else None,
        )


def _names(text: str) -> frozenset[str]:
    return frozenset(name for each in text.split(",") if (name := each.strip()))
