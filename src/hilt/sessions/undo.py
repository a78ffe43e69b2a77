"""Files as they were before tools changed them, and putting them back.

Contents go to the blobs, the facts into the log, so undo works after a restart. One undo takes back
what was changed since the last user message that still has something to take back; the next goes
further. A single file can be put back too, one change at a time. What undo overwrites is kept among
the blobs first: nothing is ever lost by it.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Literal

from msgspec import Struct

from hilt.errors import SessionError
from hilt.sessions.blobs import Blobs
from hilt.sessions.files import OS, write_new
from hilt.sessions.journal import Journal
from hilt.sessions.records import Replaced, RestoredRecord, SnapshotRecord

LARGEST_SNAPSHOT = 16 << 20


class FileOutcome(Struct, frozen=True):
    path: Path
    action: Literal["restored", "removed", "unchanged", "failed"]
    note: str = ""
    """Why it failed, or where its last content is kept."""


class FileHistory:
    def __init__(self, journal: Journal, blobs_dir: Path | None = None) -> None:
        """The blobs are the log's unless another folder is named; a log in memory needs one."""
        log = journal.log
        folder = blobs_dir or (log.blobs.folder if log.blobs else None)
        if folder is None:
            raise SessionError("a session in memory has no place for snapshots", hint="name a folder for them")
        self._journal = journal
        self._blobs = Blobs(folder)

    def remember(self, call_id: str, path: Path) -> str:
        """Keep a file as it is before a tool changes it; the answer says why it cannot be, or is empty."""
        real = Path(os.path.realpath(path))
        try:
            content, mode = _content(real)
            blob = "" if content is None else self._blobs.put(content)
        except OSError as error:
            return f"{path} cannot be undone: {error.strerror or error}"
        self._journal.append(SnapshotRecord(call_id, str(real), blob, content is not None, mode))
        return ""

    def undo(self) -> list[FileOutcome]:
        """Put back the files of the last change; empty when there is nothing left to undo."""
        group = self._last_group()
        earliest: dict[str, SnapshotRecord] = {}
        for snapshot in group:
            earliest.setdefault(snapshot.path, snapshot)
        replaced: list[Replaced] = []
        outcomes = [self._restore(snapshot, replaced) for snapshot in earliest.values()]
        failed = {str(outcome.path) for outcome in outcomes if outcome.action == "failed"}
        unfinished = {snapshot.call_id for snapshot in group if snapshot.path in failed}
        done = dict.fromkeys(snapshot.call_id for snapshot in group if snapshot.call_id not in unfinished)
        if done:
            self._journal.append(RestoredRecord(tuple(done), tuple(replaced)))
        return outcomes

    # One file

    def latest(self) -> dict[str, SnapshotRecord]:
        """Each file that can be put back, as it was before its last change."""
        groups = self._groups()
        return {snapshot.path: snapshot for turn in sorted(groups) for snapshot in groups[turn]}

    def before(self, path: str) -> SnapshotRecord | None:
        """One file as it was before its last change, if that is known."""
        return None if "\0" in path else self.latest().get(os.path.realpath(path))

    def size(self, snapshot: SnapshotRecord) -> int:
        """How large the file was; 0 when there was none, or its copy is lost."""
        try:
            return (self._blobs.folder / snapshot.blob).stat().st_size if snapshot.blob else 0
        except OSError:
            return 0

    def put_back(self, snapshot: SnapshotRecord) -> tuple[FileOutcome, RestoredRecord]:
        """Put one file back; what is to be recorded then, unless it failed. May be called in a thread."""
        replaced: list[Replaced] = []
        outcome = self._restore(snapshot, replaced)
        return outcome, RestoredRecord((snapshot.call_id,), tuple(replaced), (snapshot.path,))

    def _last_group(self) -> list[SnapshotRecord]:
        """The snapshots since the last user message that has any left to restore, oldest first."""
        groups = self._groups()
        return next((groups[turn] for turn in sorted(groups, reverse=True) if groups[turn]), [])

    def _groups(self) -> dict[int, list[SnapshotRecord]]:
        """What is left to restore, by the number of user messages before it; oldest first."""
        turn_of = self._turns()
        log = self._journal.log
        groups: dict[int, list[SnapshotRecord]] = {}
        for entry in log.entries():
            if entry.type == SnapshotRecord.TYPE and entry.parent in turn_of:
                record = log.read(entry)
                if isinstance(record, SnapshotRecord):
                    groups.setdefault(turn_of[entry.parent], []).append(record)
            elif entry.type == RestoredRecord.TYPE:
                restored = log.read(entry)
                # Only what came before it: some providers use the same call ids again.
                if isinstance(restored, RestoredRecord):
                    for turn, group in groups.items():
                        groups[turn] = [one for one in group if not _undone(one, restored)]
        return groups

    def _turns(self) -> dict[str, int]:
        """For each entry of the current path, the number of user messages up to it."""
        log = self._journal.log
        turns: dict[str, int] = {"": 0} if not log.head else {}
        count = 0
        for entry in log.branch():
            count += entry.role == "user"
            turns[entry.id] = count
        return turns

    def _restore(self, snapshot: SnapshotRecord, replaced: list[Replaced]) -> FileOutcome:
        path = Path(snapshot.path)
        wanted = self._blobs.get(snapshot.blob) if snapshot.existed else None
        if snapshot.existed and wanted is None:
            return FileOutcome(path, "failed", "the kept copy is missing or damaged")
        try:
            current, mode = _content(path)
            if current == wanted and (current is None or mode == snapshot.mode):
                return FileOutcome(path, "unchanged")
            kept = "" if current is None else self._blobs.put(current)
            if wanted is None:
                path.unlink()
            else:
                _put_back(path, wanted, snapshot.mode)
        except OSError as error:
            return FileOutcome(path, "failed", error.strerror or str(error))
        replaced.append(Replaced(snapshot.path, kept))
        note = f"its last content is kept in {self._blobs.folder / kept}" if kept else ""
        return FileOutcome(path, "removed" if wanted is None else "restored", note)


def _undone(snapshot: SnapshotRecord, restored: RestoredRecord) -> bool:
    return snapshot.call_id in restored.call_ids and (not restored.paths or snapshot.path in restored.paths)


def _content(path: Path) -> tuple[bytes | None, int]:
    """A file's bytes and permissions; None when there is no file."""
    try:
        fd = OS.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None, 0
    try:
        facts = OS.stat(fd)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if facts.st_size > LARGEST_SNAPSHOT:
            raise OSError(errno.EFBIG, f"it is larger than {LARGEST_SNAPSHOT >> 20} MiB")
        parts: list[bytes] = []
        while part := OS.pread(fd, LARGEST_SNAPSHOT, sum(map(len, parts))):
            parts.append(part)
        return b"".join(parts), stat.S_IMODE(facts.st_mode)
    finally:
        OS.close(fd)


def _put_back(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)  # the user's folder, so with the usual permissions
    write_new(OS, path, content, force=True, mode=mode)
