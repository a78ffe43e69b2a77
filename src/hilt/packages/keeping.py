"""Small private files of hilt's own, replaced as a whole: a crash leaves the old one or the new one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hilt.errors import PackageError
from hilt.packages.members import read_file

_PATIENCE = 10.0
_LOOK_AGAIN = 0.005
"""Seconds."""


def read(path: Path, largest: int) -> bytes:
    """All of it; empty when there is none. Raises `ManifestError` for what is not a file, or too large."""
    return read_file(path, largest, "one that hilt wrote") if os.path.lexists(path) else b""


def replace(path: Path, data: bytes) -> None:
    """0600 in 0700, whatever stood there before; a link in its place is not followed."""
    import tempfile  # 5 ms, and most runs change nothing

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # 0600, exclusive
        temporary = Path(name)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(fd)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _settle(path.parent)
    except OSError as error:
        raise PackageError(
            f"{path} cannot be written: {error.strerror or error}",
            hint="check the disk and the rights of its directory",
        ) from error


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """One at a time among all processes that change this file."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(path.with_name(f".{path.name}.busy"), flags, 0o600)
    except OSError as error:
        raise PackageError(
            f"{path} cannot be changed: {error.strerror or error}", hint="check the rights of its directory"
        ) from error
    try:
        _lock(fd, path)
        yield
    finally:
        os.close(fd)


def _lock(fd: int, path: Path) -> None:
    """Not with a blocking call: whoever holds it may be stopped, and then nothing could end the wait."""
    import fcntl
    import time

    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                hint = "another hilt is at it, or was stopped in the middle of it: end that one, and try again"
                raise PackageError(f"{path} has been in use for {_PATIENCE:g} seconds", hint=hint) from None
            time.sleep(_LOOK_AGAIN)
        else:
            return


def _settle(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
