"""The real file system, with a failure where a test wants one."""

import os
from pathlib import Path

from hilt.sessions.files import OsFiles


class FaultyFiles(OsFiles):
    """Counts every call and fails the chosen one, or that one and all after it.

    `short` lets a write through by half before it fails, as a full disk does.
    """

    def __init__(self, fail_at: int, error: int, *, forever: bool = False, short: bool = False) -> None:
        self.fail_at = fail_at
        self.error = error
        self.forever = forever
        self.short = short
        self.calls = 0
        self.failed: list[str] = []

    def _step(self, name: str) -> bool:
        self.calls += 1
        if self.calls == self.fail_at or (self.forever and self.calls > self.fail_at):
            self.failed.append(name)
            return True
        return False

    def _check(self, name: str) -> None:
        if self._step(name):
            raise OSError(self.error, os.strerror(self.error))

    def open(self, path: Path, flags: int) -> int:
        self._check("open")
        return super().open(path, flags)

    def close(self, fd: int) -> None:
        super().close(fd)  # a close that fails has closed all the same
        self._check("close")

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        self._check("pread")
        return super().pread(fd, size, offset)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if self._step("write"):
            if self.short:
                super().write(fd, data[: len(data) // 2])
            raise OSError(self.error, os.strerror(self.error))
        return super().write(fd, data)

    def ftruncate(self, fd: int, size: int) -> None:
        self._check("ftruncate")
        super().ftruncate(fd, size)

    def fsync(self, fd: int) -> None:
        self._check("fsync")
        super().fsync(fd)

    def fdatasync(self, fd: int) -> None:
        self._check("fdatasync")
        super().fdatasync(fd)

    def lock(self, fd: int) -> None:
        self._check("lock")
        super().lock(fd)

    def stat(self, fd: int) -> os.stat_result:
        self._check("stat")
        return super().stat(fd)

    def fchmod(self, fd: int, mode: int) -> None:
        self._check("fchmod")
        super().fchmod(fd, mode)

    def mkdir(self, path: Path) -> None:
        self._check("mkdir")
        super().mkdir(path)

    def replace(self, source: Path, target: Path) -> None:
        self._check("replace")
        super().replace(source, target)

    def unlink(self, path: Path) -> None:
        self._check("unlink")
        super().unlink(path)


class RecordingFiles(OsFiles):
    """Remembers the order of the calls that make data durable."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def write(self, fd: int, data: bytes | memoryview) -> int:
        self.order.append("write")
        return super().write(fd, data)

    def ftruncate(self, fd: int, size: int) -> None:
        self.order.append("ftruncate")
        super().ftruncate(fd, size)

    def fdatasync(self, fd: int) -> None:
        self.order.append("fdatasync")
        super().fdatasync(fd)

    def fsync(self, fd: int) -> None:
        self.order.append(f"fsync {os.readlink(f'/proc/self/fd/{fd}')}")
        super().fsync(fd)


class ShortWrites(OsFiles):
    """Takes a few bytes at a time, as a network file system may."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        return super().write(fd, data[:7])
