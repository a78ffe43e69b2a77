"""The few operating system calls a session makes, behind a seam.

The log never calls `os` for its own file directly, so that a program can hand it another layer: the
tests fail each call in turn, and an embedder may add encryption or counting. `OS` is the real one.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

CHUNK = 1 << 20
PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


class Files(Protocol):
    """Every method raises `OSError` and nothing else."""

    def open(self, path: Path, flags: int) -> int: ...
    def close(self, fd: int) -> None: ...
    def pread(self, fd: int, size: int, offset: int) -> bytes: ...
    def write(self, fd: int, data: bytes | memoryview) -> int: ...
    def ftruncate(self, fd: int, size: int) -> None: ...
    def fsync(self, fd: int) -> None: ...
    def fdatasync(self, fd: int) -> None: ...
    def lock(self, fd: int) -> None: ...
    def stat(self, fd: int) -> os.stat_result: ...
    def fchmod(self, fd: int, mode: int) -> None: ...
    def mkdir(self, path: Path) -> None: ...
    def replace(self, source: Path, target: Path) -> None: ...
    def unlink(self, path: Path) -> None: ...


class OsFiles:
    """The operating system itself. Files are private, and no child process inherits one."""

    def open(self, path: Path, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)

    def close(self, fd: int) -> None:
        os.close(fd)

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        return os.pread(fd, size, offset)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        return os.write(fd, data)

    def ftruncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    def fdatasync(self, fd: int) -> None:
        getattr(os, "fdatasync", os.fsync)(fd)  # macOS has only the stronger one

    def lock(self, fd: int) -> None:
        """Exclusive, for the life of the descriptor; `BlockingIOError` when somebody else has it."""
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def stat(self, fd: int) -> os.stat_result:
        return os.fstat(fd)

    def fchmod(self, fd: int, mode: int) -> None:
        os.fchmod(fd, mode)

    def mkdir(self, path: Path) -> None:
        path.mkdir(mode=PRIVATE_FOLDER)

    def replace(self, source: Path, target: Path) -> None:
        source.replace(target)

    def unlink(self, path: Path) -> None:
        path.unlink()


OS: Files = OsFiles()


def write_all(files: Files, fd: int, data: bytes) -> None:
    """One `write` in the ordinary case; the rest after a short one."""
    view = memoryview(data)
    while view:
        count = files.write(fd, view)
        if count <= 0:
            raise OSError(errno.EIO, "nothing was written")
        view = view[count:]


def read_lines(files: Files, fd: int) -> Iterator[tuple[int, bytes, bool]]:
    """Each line's offset, its bytes without the end, and whether it had one. No line is too long."""
    parts: list[bytes] = []
    start = position = 0
    while chunk := files.pread(fd, CHUNK, position):
        position += len(chunk)
        first, *others = chunk.split(b"\n")
        parts.append(first)
        for following in others:
            line = b"".join(parts) if len(parts) > 1 else parts[0]
            yield start, line, True
            start += len(line) + 1
            parts = [following]
    if tail := b"".join(parts):
        yield start, tail, False


def make_folders(files: Files, folder: Path) -> list[Path]:
    """Create what is missing, private to the user; the answer lists the folders that gained an entry."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        try:
            files.mkdir(path)
        except FileExistsError:  # another process was quicker
            pass
    return [path.parent for path in missing]


def sync_folder(files: Files, folder: Path) -> None:
    fd = files.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        files.fsync(fd)
    finally:
        files.close(fd)


def write_new(files: Files, path: Path, data: bytes, *, force: bool = False, mode: int = PRIVATE_FILE) -> None:
    """A whole file or none: written beside its place, synced, then moved there."""
    if not force and path.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    folders = make_folders(files, path.parent)
    beside = path.with_name(f".hilt-{os.urandom(6).hex()}")
    fd = files.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            write_all(files, fd, data)
            if mode != PRIVATE_FILE:
                files.fchmod(fd, mode)
            files.fsync(fd)
        finally:
            files.close(fd)
        files.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    for folder in (*folders, path.parent):
        sync_folder(files, folder)


def lock_holder(stat: os.stat_result) -> int | None:
    """The process that holds a file's lock, where the system tells."""
    name = f"{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}:{stat.st_ino}"
    try:
        for row in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = row.split()
            if name in words and "FLOCK" in words and words[4].isdigit():
                return int(words[4])
    except OSError:
        pass
    return None
