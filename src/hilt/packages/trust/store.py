"""Which extensions of which folders may run, as they were when the user allowed it: `trust.json` in hilt's home.

Owns the file. Nothing in a project can write it or add to it; what is asked, and by whom, is up to the faces.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from hilt.errors import ManifestError, PackageError
from hilt.packages import keeping
from hilt.packages.members import shown
from hilt.packages.trees import File

_LARGEST = 64 * 1024 * 1024
_HINT = "correct it, or move it away and trust your folders again; hilt has left it as it is"


class Trusted(Struct, frozen=True):
    """One extension as it was shown."""

    tree: str
    """The hash over all its files."""
    files: dict[str, File]
    """So that a change can be named."""
    permissions: tuple[str, ...] | None = None
    """What it asked for."""
    grants: tuple[str, ...] = ()
    """What it was given beyond that, or of that by name; gone once it changes."""
    time: str = ""


Folder = Mapping[str, Trusted]
"""By the path of the extension within the folder."""


class _File(Struct):
    version: Literal[1] = 1
    """One that a later hilt wrote may mean something else."""
    folders: dict[str, dict[str, Trusted]] = {}


class TrustStore:
    """Reads the file each time it is asked: another hilt may have changed it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, folder: Path) -> Folder:
        """Raises `ManifestError` when the file cannot be read: then nothing is trusted, and nothing overwritten."""
        return self._read().folders.get(_key(folder), {})

    def add(self, folder: Path, entries: Folder) -> None:
        """These too, in place of what was known of the same."""
        with keeping.alone(self._path):
            file = self._read()
            file.folders[_key(folder)] = {**file.folders.get(_key(folder), {}), **entries}
            self._write(file)

    def forget(self, folder: Path) -> bool:
        """Whether there was anything to forget."""
        if _key(folder) not in self._read().folders:
            return False  # and not even the lock is taken
        with keeping.alone(self._path):
            file = self._read()
            known = file.folders.pop(_key(folder), None) is not None
            if known:
                self._write(file)
            return known

    def trees(self) -> frozenset[str]:
        """The hashes of everything trusted anywhere."""
        return frozenset(entry.tree for folder in self._read().folders.values() for entry in folder.values())

    def _read(self) -> _File:
        data = keeping.read(self._path, _LARGEST)
        if not data:
            return _File()
        try:
            return msgspec.json.decode(data, type=_File)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ManifestError(f"{self._path}: {shown(str(error))}", hint=_HINT) from error

    def _write(self, file: _File) -> None:
        data = msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"
        if len(data) > _LARGEST:
            raise PackageError(
                f"{self._path} would hold more than {_LARGEST} bytes",
                hint="`hilt ext untrust`, in folders that you do not need any more, makes room",
            )
        keeping.replace(self._path, data)


def _key(folder: Path) -> str:
    """Links resolved: another way to the same place is the same place."""
    return str(folder.resolve())
