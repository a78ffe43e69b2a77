"""A session's file: created late, locked for life, only ever appended to.

Owns the descriptor, the lock, the repair of an unfinished end, the queue of records a disk would not
take, and durability. Knows nothing of what the lines say. Writing never raises: what could not be
saved stays queued, in order, and `trouble` says so until it is.
"""

import errno
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from hilt.errors import SessionError
from hilt.sessions.files import PRIVATE_FILE, Files, lock_holder, make_folders, read_lines, sync_folder, write_all
from hilt.sessions.index import Entry
from hilt.sessions.records import Meta

Durability: TypeAlias = Literal["full", "turn", "os"]
"""When records are forced to the disk: each at once, when `sync` is called, or when the system likes."""

_LOCK_PATIENCE = 0.5
_NOT_OURS_TO_WRITE = {errno.EROFS, errno.EACCES, errno.EPERM}
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}


class Disk:
    def __init__(self, path: Path, files: Files, durability: Durability) -> None:
        self.path = path
        self.notes: list[str] = []
        self._files = files
        self._durability = durability
        self._fd = -1
        self._length = 0
        """How much of the file is good."""
        self._torn = b""
        """An unfinished record after that, to be moved aside before anything is written."""
        self._unended = False
        """The last good line lacks its end."""
        self._ragged = False
        """A failed write may have left bytes after the good ones."""
        self._pending: deque[Entry] = deque()
        self._unsynced_folders: list[Path] = []
        self._unsynced = False
        self._write_trouble = ""
        self._sync_trouble = ""
        self._writable = True
        self._refused = ""
        """Why an existing file may only be read, though it was to be written."""
        self._closed = False
        self._state = threading.Lock()
        # Held while the disk is forced, so that appending goes on meanwhile but closing waits.
        self._forcing = threading.Lock()

    # Opening and reading

    def open(self, *, writable: bool) -> None:
        """Open what exists, and hold it against other writers. Raises `SessionError`."""
        self._writable = writable
        try:
            self._fd = self._open(writable=writable)
            if not stat.S_ISREG(self._files.stat(self._fd).st_mode):
                raise SessionError(f"{self.path} is not a regular file", hint="name a session file")
            if writable:
                self._hold()
        except OSError as error:
            self.abandon()
            raise self._refusal(error) from error
        except SessionError:
            self.abandon()
            raise

    def _open(self, *, writable: bool) -> int:
        # Non-blocking, so that a pipe or a device under this name is refused rather than waited for.
        if writable:
            try:
                return self._files.open(self.path, os.O_RDWR | os.O_APPEND | os.O_NONBLOCK)
            except OSError as error:
                if error.errno not in _NOT_OURS_TO_WRITE:
                    raise
                self._refused = error.strerror or str(error)  # it can still be gone on with, unsaved and loudly so
        return self._files.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    def lines(self) -> Iterator[tuple[int, bytes, bool]]:
        try:
            yield from read_lines(self._files, self._fd)
        except OSError as error:
            raise SessionError(
                f"{self.path} cannot be read: {error.strerror}", hint="check the disk, or use another session"
            ) from error

    def read(self, entry: Entry) -> bytes:
        if line := entry.line:  # taken once: a thread that syncs may write it meanwhile
            return line.rstrip(b"\n")
        parts: list[bytes] = []
        at, end = entry.at, entry.at + entry.size
        try:
            while at < end and (part := self._files.pread(self._fd, end - at, at)):
                parts.append(part)
                at += len(part)
        except OSError as error:
            raise SessionError(f"{self.path} cannot be read: {error.strerror}", hint="check the disk") from error
        return b"".join(parts).rstrip(b"\n")

    def found(self, length: int, torn: bytes, *, unended: bool) -> None:
        """What reading the file showed: how much is good, and what is wrong with its end."""
        self._length, self._torn, self._unended = length, torn, unended
        if torn and not self._writable:
            self.notes.append(f"an unfinished record ({len(torn)} bytes) at the end was left out")
        if self._writable and not self._refused and self._files.stat(self._fd).st_mode & 0o077:
            self._files.fchmod(self._fd, PRIVATE_FILE)

    @property
    def modified(self) -> float:
        return self._files.stat(self._fd).st_mtime

    # Writing

    @property
    def trouble(self) -> str:
        return "; ".join(text for text in (self._write_trouble, self._sync_trouble) if text)

    def add(self, entry: Entry) -> None:
        """Write one entry's line after all that came before it."""
        with self._state:
            self._pending.append(entry)
        self.flush()
        if self._durability == "full":
            self.sync()

    def flush(self) -> None:
        """Write what is queued. The file appears with the first record that is not its meta line."""
        if not self._writable or self._closed:
            return
        if self._refused:
            self._write_trouble = self._unsaved(self._refused) if self._pending else ""
            return
        with self._state:
            worth_a_file = any(entry.type != Meta.TYPE for entry in self._pending)
            try:
                if self._fd < 0 and worth_a_file:
                    self._create()
                if self._fd >= 0:
                    self._mend()
                while worth_a_file and self._pending:
                    self._write_next()
            except OSError as error:
                self._write_trouble = self._unsaved(error.strerror or str(error))
            except SessionError as error:
                self._write_trouble = self._unsaved(error.message)
            else:
                self._write_trouble = ""

    def sync(self) -> None:
        """Force everything to the disk. May run in a thread, beside appends."""
        self.flush()
        if self._durability == "os":
            return
        with self._forcing:
            with self._state:
                if self._fd < 0 or not self._unsynced:
                    return
                self._unsynced = False
                folders, self._unsynced_folders = self._unsynced_folders, []
            try:
                if self._files.stat(self._fd).st_nlink == 0:
                    self._sync_trouble = f"{self.path} was deleted while in use: nothing of this session will be left"
                    return
                self._files.fdatasync(self._fd)
                for folder in folders:
                    sync_folder(self._files, folder)
            except OSError as error:
                # For good: after one failure the system may forget the pages and call the next try a success.
                self._sync_trouble = f"{self.path} may not survive a power loss: {error.strerror}"
                with self._state:
                    self._unsynced = True
                    self._unsynced_folders.extend(folders)

    def close(self) -> None:
        if self._closed:
            return
        self.sync()
        with self._forcing, self._state:
            self._closed = True
            self.abandon()

    def abandon(self) -> None:
        """Let go of the file as it is."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            try:
                self._files.close(fd)
            except OSError as error:
                self._sync_trouble = f"{self.path} may not survive a power loss: {error.strerror}"

    # Steps, all under the state lock

    def _create(self) -> None:
        made = [*make_folders(self._files, self.path.parent), self.path.parent]
        self._unsynced_folders += [folder for folder in made if folder not in self._unsynced_folders]
        self._fd = self._files.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            self._hold()
            if self._files.stat(self._fd).st_size:
                raise SessionError(f"{self.path} was created by another hilt meanwhile", hint="start a new session")
        except (OSError, SessionError):
            self.abandon()
            raise

    def _hold(self) -> None:
        try:
            self._lock()
        except BlockingIOError as error:
            pid = lock_holder(self._files.stat(self._fd))
            where = f" (pid {pid})" if pid else ""
            raise SessionError(
                f"{self.path} is open in another hilt{where}",
                hint="close it there, continue in a fork, or use --no-session",
            ) from error
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            self.notes.append("this file system has no locks: do not open the session twice")
        if self._files.stat(self._fd).st_nlink == 0:
            raise SessionError(f"{self.path} was deleted a moment ago", hint="start a new session")

    def _lock(self) -> None:
        """Wait a moment for it: a child that a killed hilt was just starting holds it for some milliseconds."""
        deadline = time.monotonic() + _LOCK_PATIENCE
        while True:
            try:
                return self._files.lock(self._fd)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.01)

    def _mend(self) -> None:
        """Make the end of the file a good place to append to."""
        if self._torn:
            self._set_aside(self._torn)
            self._ragged = True
            self._torn = b""
        if self._ragged:
            self._files.ftruncate(self._fd, self._length)
            self._ragged = False
            self._unsynced = True
        if self._unended:
            self._ragged = True
            write_all(self._files, self._fd, b"\n")
            self._length += 1
            self._ragged = self._unended = False

    def _set_aside(self, torn: bytes) -> None:
        beside = self.path.with_name(self.path.name + ".torn")
        fd = self._files.open(beside, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            write_all(self._files, fd, torn + b"\n")
            if self._durability != "os":
                self._files.fsync(fd)
        finally:
            self._files.close(fd)
        self.notes.append(f"an unfinished record ({len(torn)} bytes) was moved to {beside}")

    def _write_next(self) -> None:
        # The meta line goes with the record that follows it: no file ever holds a meta line alone.
        first = self._pending[0]
        batch = [first, self._pending[1]] if first.type == Meta.TYPE and len(self._pending) > 1 else [first]
        # Whatever interrupts this, even between two bytecodes, the next try cuts the file back first.
        self._ragged = True
        try:
            write_all(self._files, self._fd, b"".join(entry.line for entry in batch))
        except OSError:
            self._cut_back()
            raise
        for entry in batch:
            entry.at, entry.size, entry.line = self._length, len(entry.line), b""
            self._length += entry.size
            self._pending.popleft()
        self._ragged = False
        self._unsynced = True

    def _cut_back(self) -> None:
        try:
            self._files.ftruncate(self._fd, self._length)
        except OSError:
            return  # still ragged: tried again before the next write, and at the next opening
        self._ragged = False

    def _unsaved(self, reason: str) -> str:
        if not self._pending:
            return f"{self.path} cannot be written: {reason}"
        count = len(self._pending)
        return f"{count} record{'s' if count > 1 else ''} not saved to {self.path}: {reason}"

    def _refusal(self, error: OSError) -> SessionError:
        reason = error.strerror or str(error)
        if isinstance(error, FileNotFoundError):
            return SessionError(f"there is no session file {self.path}", hint="see `hilt sessions list`")
        if error.errno == errno.ELOOP:
            return SessionError(f"{self.path} is a symbolic link", hint="name the file it points to")
        return SessionError(
            f"{self.path} cannot be opened: {reason}",
            hint="check its permissions, continue in a fork, or use --no-session",
        )
