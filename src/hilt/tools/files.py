"""Opening files that may be read, and replacing files whole.

Reading: a handle is taken on the file without opening it, so that devices and pipes are refused
untouched, and the jail judges the file behind the handle. What is then read is that very file,
whatever happens to its name meanwhile.

Writing: the folder is reached from the jail's root (or `/`) one step at a time without following
links, the content goes to a new file beside the target, and one rename puts it in place. A reader
sees the old file or the new one, never a half. Hard links to the old content keep the old content.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from hilt.errors import ToolError
from hilt.tools.background import Wanted
from hilt.tools.paths import absolute, directory_refused
from hilt.tools.temporary import clear_stale, new_name
from hilt.tools.workspace import Workspace

_HANDLES = hasattr(os, "O_PATH") and Path("/proc/self/fd").exists()
"""Linux. Elsewhere the name is checked before and after opening, which leaves a small gap."""
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1 << 20


@contextmanager
def opened(path: Path, permit: Callable[[Path], None]) -> Iterator[tuple[int, os.stat_result]]:
    """A regular file, open for reading, after `permit` agreed to where it really is."""
    permit(Path(os.path.realpath(path)))  # before anything about the file is told
    with _regular(path) as (fd, status, real):
        permit(real)
        yield fd, status


def read_whole(fd: int, limit: int) -> bytes:
    """Everything that is left, but at most `limit` bytes and one more to show that there is more."""
    pieces: list[bytes] = []
    left = limit + 1
    while left > 0 and (piece := os.read(fd, min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


class Target(Struct, frozen=True):
    """Where a change will land, and what was there when it was planned."""

    path: Path
    """As it was asked for."""
    real: Path
    """With every link followed; this is the file that changes."""
    start: Path
    """The folder from which `real` is reached without following links."""
    before: os.stat_result | None
    """None when there is no such file yet."""
    content: bytes
    """What it held, up to the limit it was surveyed with."""
    whole: bool
    """Whether `content` is everything."""

    @property
    def linked(self) -> bool:
        """Whether a link stands between the path that was asked for and the file that changes."""
        return os.path.normpath(self.path) != str(self.real)

    @property
    def name(self) -> str:
        """For people: what was asked for, and what it really is where that differs."""
        return f"{self.path} → {self.real}" if self.linked else str(self.path)


def survey(workspace: Workspace, name: str, limit: int) -> Target:
    """Find what a change of `name` would replace. Changes nothing."""
    path = absolute(name, workspace.cwd)
    real = Path(os.path.realpath(path))
    workspace.jail.check(real)
    if name.endswith(("/", "/.", "/..")) or real.is_dir():
        raise directory_refused(path)
    start = workspace.jail.root if workspace.jail.on else Path(real.anchor)
    try:
        with _folder(real.parent, start) as folder, _regular(real, folder) as (fd, status, _):
            content = read_whole(fd, limit)
    except FileNotFoundError:
        return Target(path, real, start, None, b"", whole=True)
    return Target(path, real, start, status, content[:limit], whole=len(content) <= limit)


def replace(target: Target, data: bytes, wanted: Wanted) -> None:
    """Put `data` where the target is, at once and durably, unless the file changed since the survey."""
    with _folder(target.real.parent, target.start, create=True) as folder:
        clear_stale(folder)
        temporary = new_name()
        mode = 0o644 if target.before is None else 0o600
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder)
        try:
            with os.fdopen(fd, "wb", buffering=0) as file:
                _write_all(fd, data, wanted)
                if target.before is not None:
                    _keep_owner_and_mode(fd, target.before)
                os.fsync(file)
            wanted.check()
            _check_unchanged(target, folder)
            os.replace(temporary, target.real.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            _discard(temporary, folder)
            raise
        _sync(folder)


def _discard(temporary: str, folder: int) -> None:
    try:
        os.unlink(temporary, dir_fd=folder)
    except OSError:
        pass  # the reason for being here matters more than this one


def _write_all(fd: int, data: bytes, wanted: Wanted) -> None:
    view = memoryview(data)
    while view:
        wanted.check()
        view = view[os.write(fd, view[:_PIECE]) :]


def _keep_owner_and_mode(fd: int, before: os.stat_result) -> None:
    try:
        os.fchown(fd, before.st_uid, before.st_gid)
    except PermissionError:
        pass  # only the superuser gives files away; the new owner is then who runs this
    os.fchmod(fd, stat.S_IMODE(before.st_mode) & 0o777)


def _check_unchanged(target: Target, folder: int) -> None:
    try:
        now: os.stat_result | None = os.stat(target.real.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        now = None
    if _identity(now) != _identity(target.before):
        raise ToolError(f"{target.path} was changed by something else meanwhile", hint="read it again, then retry")
    if now is not None and not os.access(target.real.name, os.W_OK, dir_fd=folder):
        raise ToolError(f"{target.path} is read-only", hint="make it writable with `chmod u+w` if it should change")


def _identity(status: os.stat_result | None) -> tuple[int, ...]:
    return () if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _sync(folder: int) -> None:
    """Make the rename durable, where the folder can be opened at all."""
    try:
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def _folder(directory: Path, start: Path, *, create: bool = False) -> Iterator[int]:
    """A descriptor of the directory, reached from `start` without following any link."""
    fd = os.open(start, _FOLDER)
    try:
        for part in directory.relative_to(start).parts:
            step = _step(part, fd, create=create)
            os.close(fd)
            fd = step
        yield fd
    finally:
        os.close(fd)


def _step(name: str, folder: int, *, create: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
    try:
        os.mkdir(name, 0o755, dir_fd=folder)
    except FileExistsError:
        pass  # someone else made it just now
    return os.open(name, _FOLDER, dir_fd=folder)


@contextmanager
def _regular(path: Path, folder: int | None = None) -> Iterator[tuple[int, os.stat_result, Path]]:
    """Open a regular file and tell where it really is.

    With a folder, it is the entry there of that name, and a link is not followed.
    """
    handle = _handle(path, None, 0) if folder is None else _handle(path, folder, os.O_NOFOLLOW)
    try:
        status = os.fstat(handle)
        real = Path(f"/proc/self/fd/{handle}").readlink() if _HANDLES else Path(os.path.realpath(path))
        if stat.S_ISDIR(status.st_mode):
            raise directory_refused(path)
        _refuse_special(status, path)
        fd = os.open(f"/proc/self/fd/{handle}", _READ) if _HANDLES else os.dup(handle)
    finally:
        os.close(handle)
    try:
        yield fd, status, real
    finally:
        os.close(fd)


def _handle(path: Path, folder: int | None, link: int) -> int:
    name = path if folder is None else path.name
    if _HANDLES:
        return os.open(name, os.O_PATH | os.O_CLOEXEC | link, dir_fd=folder)
    _refuse_special(os.stat(name, dir_fd=folder, follow_symlinks=not link), path)
    return os.open(name, _READ | link, dir_fd=folder)


def _refuse_special(status: os.stat_result, path: Path) -> None:
    mode = status.st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return
    kinds = ((stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISLNK, "a symbolic link"))
    kind = next((name for test, name in kinds if test(mode)), "a device")
    raise ToolError(f"{path} is {kind}, not a regular file", hint="use bash if you really mean it")
