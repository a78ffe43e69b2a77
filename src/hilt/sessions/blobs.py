"""Contents too large for a line, or not JSON at all: one private file per content, named by SHA-256.

Owns the folder of side files and the moving of long strings out of a record and back. Contents are
shared between sessions, and a damaged one is never taken for the real one.
"""

import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from hilt.sessions.envelope import Moved
from hilt.sessions.files import OS, Files, write_new

LONGEST_RECORD = 4 << 20
_LONG_STRING = 64 << 10  # a shorter one is not worth a file
_LOST = "[This content was kept in a side file of the session, which is missing or damaged.]"
_STORE_FOLDER = re.compile(r"[0-9a-f]{16}")
_NAME = re.compile(r"[0-9a-f]{64}")


def blobs_folder(session: Path) -> Path:
    """Where a session's side files are: shared under the store's root, else beside the file."""
    folder = session.absolute().parent
    return (folder.parent if _STORE_FOLDER.fullmatch(folder.name) else folder) / "blobs"


class Blobs:
    def __init__(self, folder: Path, files: Files = OS) -> None:
        self.folder = folder
        self._files = files

    def put(self, content: bytes) -> str:
        """Keep a content, on disk for good before its name is returned. Raises `OSError`."""
        from hashlib import sha256  # 4 ms, for something most sessions never do

        name = sha256(content).hexdigest()
        if self.get(name) is None:
            write_new(self._files, self.folder / name, content, force=True)
        else:
            (self.folder / name).touch()  # in use again: see `SessionStore.delete`
        return name

    def get(self, name: str) -> bytes | None:
        """The content, or None when it is missing or not what its name says."""
        from hashlib import sha256  # 4 ms

        if not _NAME.fullmatch(name):
            return None
        try:
            content = (self.folder / name).read_bytes()
        except OSError:
            return None
        return content if sha256(content).hexdigest() == name else None


def move_out(data: bytes, blobs: Blobs) -> tuple[bytes, tuple[Moved, ...]]:
    """Move the longest strings of a record that is too large into side files. Raises `OSError`."""
    if len(data) <= LONGEST_RECORD:
        return data, ()
    value = msgspec.json.decode(data)
    excess = len(data) - LONGEST_RECORD
    moved: list[Moved] = []
    for at, text in sorted(_long_strings(value, ()), key=lambda found: -len(found[1])):
        if excess <= 0:
            break
        moved.append(Moved(at, blobs.put(text.encode())))
        _set(value, at, "")
        excess -= len(msgspec.json.encode(text))
    return msgspec.json.encode(value), tuple(moved)


def move_in(data: Raw | bytes, moved: tuple[Moved, ...], blobs: Blobs) -> bytes:
    """The record's data with every string back in its place."""
    if not moved:
        return bytes(data)
    value = msgspec.json.decode(data)
    for one in moved:
        content = blobs.get(one.blob)
        # An image's data must stay valid base64, so a lost one is empty.
        lost = "" if one.at[-1:] == ("data",) else _LOST
        try:
            _set(value, one.at, lost if content is None else content.decode())
        except (LookupError, TypeError, ValueError):
            continue  # the list of moved strings does not fit the record: leave the record as it is
    return msgspec.json.encode(value)


def _long_strings(value: Any, at: tuple[str | int, ...]) -> list[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        return [(at, value)] if len(value) >= _LONG_STRING else []
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in _long_strings(item, (*at, key))]
    if isinstance(value, list):
        return [found for key, item in enumerate(value) for found in _long_strings(item, (*at, key))]
    return []


def _set(value: Any, at: tuple[str | int, ...], text: str) -> None:
    for key in at[:-1]:
        value = value[key]
    if not isinstance(value[at[-1]], str):
        raise TypeError("only a string can be moved")
    value[at[-1]] = text
