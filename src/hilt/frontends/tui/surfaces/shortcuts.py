"""Shortcuts of extensions: which key means which, and which mean nothing because they are hilt's own.

Owns the spelling and the clashes, each of which is told once. What a shortcut does is the agent's business.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from hilt.frontends.terminal import one_line
from hilt.frontends.tui.scene import Part, Scene
from hilt.frontends.tui.surfaces.keys import normal, ours

if TYPE_CHECKING:  # it is not on the way to the first frame
    from hilt.frontends.tui.client import Client
    from hilt.registry.snapshot import Snapshot

_KEY = 32
"""Characters of a key in a message."""


class Shortcuts:
    part = Part.STATUS
    """Which is drawn when an extension has come or gone."""

    def __init__(
        self, client: "Client", bound: Callable[[], Iterable[str]], tell: Callable[[str, str, str], object]
    ) -> None:
        """`bound` are the keys that mean something to hilt; `tell` shows a notice of a level, and whose it is about."""
        self._client = client
        self._bound = bound
        self._tell = tell
        self._snapshot: Snapshot | None = None
        self._keys: dict[str, str] = {}
        """The key as it is registered, by how it is spelt here."""
        self._clashes: set[tuple[str, str]] = set()

    def show(self, _: Scene) -> None:
        self._known()

    def press(self, key: str) -> bool:
        """Do what this key stands for with an extension; False when that is nothing."""
        if (registered := self._known().get(normal(key))) is None:
            return False
        self._client.do(self._client.session.press(registered), f"shortcut {registered[:_KEY]}")
        return True

    def _known(self) -> dict[str, str]:
        snapshot = self._client.session.parts.registry.snapshot()
        if snapshot is not self._snapshot:
            self._snapshot, self._keys = snapshot, {}
            bound = tuple(self._bound())
            for registered, owned in snapshot.shortcuts.items():
                if ours(registered, bound):
                    self._refuse(registered, owned.owner)
                else:
                    self._keys.setdefault(normal(registered), registered)
        return self._keys

    def _refuse(self, key: str, owner: str) -> None:
        if (key, owner) not in self._clashes:
            self._clashes.add((key, owner))
            self._tell("warn", f"its shortcut {one_line(key, _KEY)} does nothing: the key is one of hilt's own", owner)
