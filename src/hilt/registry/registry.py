"""The live set of contributions. What is published is visible exactly as long as its block runs."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from hilt.model.contributions import Contribution
from hilt.registry.snapshot import Owner, Snapshot, freeze


class Registry:
    def __init__(self) -> None:
        self._published: list[tuple[Owner, tuple[Contribution, ...]]] = []
        self._snapshot: Snapshot | None = None

    @contextmanager
    def publish(self, owner: Owner, contributions: Iterable[Contribution]) -> Iterator[None]:
        """Offer these for the life of the block. Removal is by publication, never by name."""
        entry = (owner, tuple(contributions))
        self._published.append(entry)
        self._snapshot = None
        try:
            yield
        finally:
            # By identity: two equal publications are still two, and each ends with its own block.
            self._published[:] = [other for other in self._published if other is not entry]
            self._snapshot = None

    def snapshot(self) -> Snapshot:
        """The present view; the same object until something is published or withdrawn."""
        if self._snapshot is None:
            self._snapshot = freeze(self._published)
        return self._snapshot
