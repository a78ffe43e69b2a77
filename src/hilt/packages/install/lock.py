"""`extensions.lock`: what hilt itself put among the user's extensions, and exactly which bytes.

Owns its shape: JSON, replaced as a whole, and never over one that is damaged, for then what it listed could no longer
be told from what the user put there. Who changes it does so alone, inside `keeping.alone`; a reader needs no such
thing. What follows from an entry is decided elsewhere.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct, structs

from hilt.errors import ManifestError
from hilt.packages import keeping
from hilt.packages.manifest import is_name
from hilt.packages.members import shown
from hilt.packages.trees import Tree

Kind: TypeAlias = Literal["directory", "file", "archive", "git", "link"]

_FORMAT = 1
_LARGEST = 256 * 1024 * 1024
_NOTHING = Tree({}, "", 0)


class Entry(Struct, frozen=True, omit_defaults=True):
    kind: Kind
    source: str
    """As the user gave it."""
    installed: str
    """When, by RFC 3339; an update counts."""
    url: str = ""
    """What it was fetched from, or the absolute path of what was copied or linked."""
    ref: str = ""
    commit: str = ""
    version: str = ""
    command: tuple[str, ...] = ()
    """What it was said to run as."""
    permissions: tuple[str, ...] | None = None
    """What its manifest asked for when the user agreed."""
    tree: Tree = _NOTHING
    """Empty for a link: what it leads to is the user's own, and may change. Without what is the extension's state."""
    state: tuple[str, ...] = ()
    """Files and folders that the user left to the extension to change."""
    lived_in: bool = False
    """It was taken over from an agent where it kept things beside its code: data there is its state."""

    @property
    def origin(self) -> str:
        """Where it came from, so that it means something in another directory, too."""
        return f"{self.url}@{self.ref}" if self.ref else self.url


class Pending(Struct, frozen=True, omit_defaults=True):
    """A change that was begun: what is needed to end it or to undo it, should its process not come to that."""

    name: str
    aside: str = ""
    """Where what was there is kept meanwhile, beside the others; empty when nothing was."""
    entry: Entry | None = None
    """What the name stands for afterwards: nothing, when it is removed."""


class Lock(Struct, frozen=True, omit_defaults=True):
    format: int
    entries: Mapping[str, Entry] = {}
    pending: Pending | None = None

    @classmethod
    def load(cls, path: Path) -> "Lock":
        """An empty one when there is no file. Raises `ManifestError` when it cannot be read or trusted."""
        data = keeping.read(path, _LARGEST)
        if not data:
            return cls(_FORMAT)
        hint = f"restore it from a backup, or move it away: what it lists then counts as put there by yourself ({path})"
        try:
            lock = msgspec.json.decode(data, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ManifestError(f"{shown(path)} is damaged: {shown(str(error))}", hint=shown(hint)) from error
        if lock.format != _FORMAT:
            raise ManifestError(
                f"{shown(path)} has format {lock.format}, and only {_FORMAT} is known", hint="use a newer hilt"
            )
        if odd := lock._odd_names():
            raise ManifestError(f'{shown(path)} is damaged: "{shown(odd[0])}" is no name', hint=shown(hint))
        return lock

    def _odd_names(self) -> list[str]:
        """Names become parts of paths, which things are moved and removed by."""
        odd = [name for name in self.entries if not is_name(name)]
        if self.pending:
            name, aside = self.pending.name, self.pending.aside
            odd += [name] if not is_name(name) else []
            odd += [aside] if aside and not (aside.startswith(".") and is_name(aside[1:])) else []
        return odd

    def find(self, name: str) -> str | None:
        """The name as it is written here: no two may differ by case only."""
        return next((known for known in self.entries if known.lower() == name.lower()), None)

    def with_entry(self, name: str, entry: Entry) -> "Lock":
        return structs.replace(self, entries={**self.entries, name: entry})

    def without(self, name: str) -> "Lock":
        return structs.replace(self, entries={known: entry for known, entry in self.entries.items() if known != name})

    def with_pending(self, pending: Pending | None) -> "Lock":
        return structs.replace(self, pending=pending)

    def save(self, path: Path) -> None:
        """All of it or nothing, and on the disk when this returns. Raises `PackageError`."""
        keeping.replace(path, msgspec.json.format(msgspec.json.encode(self, order="sorted"), indent=1) + b"\n")
