"""All the sessions of a user: where they are, which there are, and which one is meant.

`<root>/<16 hex of the folder's SHA-256>/<YYYYMMDD-HHMMSS>-<first 8 of the id>.jsonl`, and the side files
of all of them in `<root>/blobs`. Lists without opening: one pass over the bytes, no message decoded
but the first prompt, and a broken file costs only itself.
"""

import os
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from hilt.errors import SessionError
from hilt.model.conversation import now
from hilt.sessions.disk import Disk
from hilt.sessions.envelope import PADDING, parse
from hilt.sessions.files import OS, read_lines
from hilt.sessions.index import Index

_MESSAGE = b'{"type":"message"'
_FACTS = (b'{"type":"meta"', b'{"type":"title"', b'{"type":"model"')
_BLOB_NAME = re.compile(rb'"([0-9a-f]{64})"')
_MOST_CANDIDATES = 5
_JUST_NOW = 3600  # seconds: a side file this young may belong to a record that is being written


class SessionSummary(Struct, frozen=True):
    id: str
    title: str
    cwd: str
    updated: datetime
    created: datetime
    path: Path
    messages: int
    """Messages of the user and the model in the whole file, on every branch."""
    provider: str
    model: str
    parent: str
    """The session it was forked from; empty when it was not."""


class SessionStore:
    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def blobs(self) -> Path:
        return self.root / "blobs"

    def folder(self, cwd: str | Path) -> Path:
        from hashlib import sha256  # 4 ms

        return self.root / sha256(os.fsencode(cwd)).hexdigest()[:16]

    def new_path(self, cwd: str | Path, session_id: str) -> Path:
        """Where a new session of this folder goes; nothing is created."""
        return self.folder(cwd) / f"{now():%Y%m%d-%H%M%S}-{session_id[:8]}.jsonl"

    def list(self, cwd: str | Path | None = None) -> list[SessionSummary]:
        """The sessions of one folder, or all, newest first."""
        found = (summarize(path) for path in self._paths(cwd))
        return sorted((summary for summary in found if summary), key=lambda one: (one.updated, one.path), reverse=True)

    def latest(self, cwd: str | Path) -> Path | None:
        newest = sorted(self._paths(cwd), key=lambda path: (_modified(path), path), reverse=True)
        return next((path for path in newest if summarize(path)), None)

    def find(self, wanted: str | Path) -> Path:
        """The session of that path, id, or beginning of an id. Raises `SessionError`."""
        if str(wanted) and os.path.isfile(wanted):  # noqa: PTH113 - the other raises for a name that no file can have
            return Path(wanted)
        text = str(wanted)
        named = [(_id_of(path), path) for path in self._paths(None)] if text else []
        exact = [path for name, path in named if text in (name, path.stem)]
        matching = exact or [path for name, path in named if name.startswith(text) or path.stem.startswith(text)]
        if len(matching) == 1:
            return matching[0]
        if not matching:
            raise SessionError(f"no session matches {text!r:.200}", hint="see `hilt sessions list`")
        candidates = ", ".join(sorted(_id_of(path) for path in matching)[:_MOST_CANDIDATES])
        more = f" and {len(matching) - _MOST_CANDIDATES} more" if len(matching) > _MOST_CANDIDATES else ""
        raise SessionError(
            f"{len(matching)} sessions match {text!r}: {candidates}{more}",
            hint="give more of the id, or the file's path",
        )

    def delete(self, path: Path) -> None:
        """Remove a session, what was set aside of it, and the side files only it used.

        Raises `SessionError` when it is in use.
        """
        disk = Disk(path, OS, "os")
        disk.open(writable=True)
        try:
            blobs = {name for name in _named_blobs(path) if (self.blobs / name).exists()}
            path.unlink()
            path.with_name(path.name + ".torn").unlink(missing_ok=True)
            self._forget(blobs)
        except OSError as error:
            raise SessionError(
                f"{path} cannot be deleted: {error.strerror}", hint="check the permissions of its folder"
            ) from error
        finally:
            disk.abandon()

    def _forget(self, blobs: set[str]) -> None:
        for other in self._paths(None) if blobs else ():
            blobs -= _named_blobs(other)
        for name in blobs:
            if time.time() - _modified(self.blobs / name) > _JUST_NOW:
                (self.blobs / name).unlink(missing_ok=True)

    def _paths(self, cwd: str | Path | None) -> Iterator[Path]:
        if cwd is not None:
            yield from self.folder(cwd).glob("*.jsonl")
        else:
            yield from self.root.glob("*/*.jsonl")


def summarize(path: Path) -> SessionSummary | None:
    """One session in a line, or None when the file holds none."""
    index = Index()
    messages = 0
    try:
        fd = OS.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        updated = datetime.fromtimestamp(OS.stat(fd).st_mtime, UTC)
        for _, raw, _ in read_lines(OS, fd):
            line = raw.strip(PADDING)
            is_message = line.startswith(_MESSAGE)
            messages += is_message
            if (line.startswith(_FACTS) or (is_message and not index.first_prompt)) and (head := parse(line)):
                index.add(head, line)
    except OSError:
        return None
    finally:
        OS.close(fd)
    if not index.entries:
        return None
    meta = index.meta
    provider, model = index.model
    return SessionSummary(
        meta.id if meta else path.stem.rpartition("-")[2],
        index.title or index.first_prompt,
        meta.cwd if meta else "",
        updated,
        meta.created if meta else updated,
        path,
        messages,
        provider,
        model,
        meta.parent if meta else "",
    )


def _id_of(path: Path) -> str:
    """The id its first line gives, else the one in its name."""
    fallback = path.stem.rpartition("-")[2]
    try:
        with path.open("rb") as file:
            line = file.readline().strip(PADDING + b"\n")
    except OSError:
        return fallback
    index = Index()
    if line.startswith(_FACTS[0]) and (head := parse(line)):
        index.add(head, line)
    return index.meta.id if index.meta else fallback


def _named_blobs(path: Path) -> set[str]:
    """Every side file a session may refer to; a name too many does no harm."""
    try:
        fd = OS.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return set()
    try:
        return {name.decode() for _, line, _ in read_lines(OS, fd) for name in _BLOB_NAME.findall(line)}
    finally:
        OS.close(fd)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
