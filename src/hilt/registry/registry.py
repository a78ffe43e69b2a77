"""The live set of contributions. What is published is visible exactly as long as its block runs."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from hilt.model.contributions import Contribution
from hilt.registry.snapshot import Owner, Snapshot, freeze


class Publication:
    """What one owner offers at present. Only its owner holds it."""

    def __init__(self, registry: "Registry", owner: Owner, contributions: tuple[Contribution, ...]) -> None:
        self._registry = registry
        self.owner = owner
        self.contributions = contributions

    def update(self, contributions: Iterable[Contribution]) -> None:
        """Offer these from now on, in place of what was offered before. Frozen views keep what they have."""
        self.contributions = tuple(contributions)
        self._registry.changed()


class Registry:
    def __init__(self) -> None:
        self._published: list[Publication] = []
        self._snapshot: Snapshot | None = None

    @contextmanager
    def publish(self, owner: Owner, contributions: Iterable[Contribution] = ()) -> Iterator[Publication]:
        """Offer these for the life of the block. Removal is by publication, never by name."""
        publication = Publication(self, owner, tuple(contributions))
        self._published.append(publication)
        self.changed()
        try:
            yield publication
        finally:
            self._published.remove(publication)
            self.changed()

    def changed(self) -> None:
        self._snapshot = None

    def snapshot(self) -> Snapshot:
        """The present view; the same object until something is published, changed or withdrawn."""
        if self._snapshot is None:
            self._snapshot = freeze((publication.owner, publication.contributions) for publication in self._published)
        return self._snapshot
