"""A directory somebody else filled, and may be changing right now: what is in it, as a value, and a copy of just that.

Everything is reached through descriptors of directories and no link is ever followed, so nothing outside the tree is
read whatever happens meanwhile; what is copied are the very bytes that were hashed. What paths a tree may hold is
`layout`'s business.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from hilt.errors import PackageError
from hilt.packages.layout import CAPS, LEFT_OUT, Caps, Layout, check_links, refuse
from hilt.packages.members import shown

if TYPE_CHECKING:
    from hashlib import _Hash

CHUNK = 1 << 18
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Should it have become a pipe or a terminal meanwhile, opening it so does nothing.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST_CLEARED, _DEEPEST_LOOKED = 64, 200
_MEANWHILE = "was changed while it was read"


class File(Struct, frozen=True, omit_defaults=True):
    sha256: str
    """Of its content; of a link, of its target."""
    size: int
    executable: bool = False
    link: str = ""
    """Where it leads, for a link."""


class Tree(Struct, frozen=True):
    files: Mapping[str, File]
    """By path, links too; directories follow from the paths, and empty ones do not count."""
    hash: str
    """One for all: of paths, contents, executable bits and links, and of nothing else."""
    size: int


class Changes(Struct, frozen=True):
    """Paths, each list sorted."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def read_tree(directory: Path, caps: Caps = CAPS) -> Tree:
    """What is in it. The directory itself must not be a link. Raises `PackageError`."""
    with _translated(directory), ExitStack() as stack:
        return _Walk(shown(directory), caps).run(opened(directory, stack), None)


def copy_tree(source: Path, destination: Path, caps: Caps = CAPS) -> Tree:
    """Make `destination`, which must not exist, of what is in `source`: all or nothing. Raises `PackageError`."""
    with _translated(source), ExitStack() as stack:
        read = opened(source, stack)
        destination.mkdir(mode=0o700)
        with ExitStack() as undo:
            undo.callback(remove_tree, destination)
            tree = _Walk(shown(source), caps).run(read, opened(destination, stack))
            undo.pop_all()
    return tree


def copy_file(file: Path, destination: Path, name: str) -> Tree:
    """Make `destination`, which must not exist, of this one file, under this name. Raises `PackageError`."""
    with _translated(file), ExitStack() as stack:
        read = opened(file.parent, stack)
        destination.mkdir(mode=0o700)
        with ExitStack() as undo:
            undo.callback(remove_tree, destination)
            tree = _Walk(shown(file), CAPS).one(file.name, name, read, opened(destination, stack))
            undo.pop_all()
    return tree


def changes(old: Mapping[str, File], new: Mapping[str, File]) -> Changes:
    return Changes(
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(sorted(path for path in old.keys() & new.keys() if old[path] != new[path])),
    )


def tree_of(files: Mapping[str, File]) -> Tree:
    from hashlib import sha256

    lines = (f"{_kind(file)}\0{path}\0{file.sha256}\n" for path, file in sorted(files.items()))
    # Paths hold neither NUL nor newline, so no two trees give the same text.
    return Tree(files, sha256("".join(lines).encode()).hexdigest(), sum(file.size for file in files.values()))


def remove_tree(path: Path) -> None:
    """Delete it with all it holds, through no link: a link is deleted as one. One that is not there is fine.

    Raises `OSError`.
    """
    with ExitStack() as stack:
        above = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, above)
        if _unlinked(path.name, above):
            return
        top = os.open(path.name, DIRECTORY, dir_fd=above)
        stack.callback(os.close, top)
        while names := _names(top):
            for name in names:
                _clear(name, top, top, 0)
        os.rmdir(path.name, dir_fd=above)


def discard(path: Path) -> None:
    """Remove what nobody needs any more, or what can be removed of it: the rest is in nobody's way."""
    try:
        remove_tree(path)
    except OSError:
        pass


def leaves(
    directory: int,
    skip: frozenset[str] = LEFT_OUT,
    unreadable: Callable[[OSError], None] | None = None,
    within: str = "",
) -> Iterator[tuple[str, "os.DirEntry[str]", int]]:
    """Every entry below that is not a directory, links too, with its path and its directory's descriptor.

    Nothing is judged, and the descriptor is open only until the next one is asked for. Raises `OSError`, unless
    somebody takes that of a directory that cannot be read.
    """
    with os.scandir(directory) as entries:
        found = list(entries)
    if within.count("/") > _DEEPEST_LOOKED:
        # Only somebody who wants to be in the way nests so deep.
        raise OSError(errno.ENAMETOOLONG, "nested too deeply", within)
    for entry in found:
        if entry.name in skip:
            continue
        path = f"{within}{entry.name}"
        if not entry.is_dir(follow_symlinks=False):
            yield path, entry, directory
            continue
        try:
            below = os.open(entry.name, DIRECTORY, dir_fd=directory)
        except OSError as error:
            if not unreadable:
                raise
            unreadable(error)
            continue
        try:
            yield from leaves(below, skip, unreadable, f"{path}/")
        finally:
            os.close(below)


class _Walk:
    def __init__(self, origin: str, caps: Caps) -> None:
        from hashlib import sha256  # loads a large library, and not every start of hilt needs it

        self._sha256 = sha256
        self._origin = origin
        self._layout = Layout(origin, caps)
        self._files: dict[str, File] = {}
        self._links: dict[str, str] = {}

    def run(self, read: int, write: int | None) -> Tree:
        self._directory("", read, write)
        check_links(self._origin, self._links, self._files)
        for path, target in self._links.items():
            if write is not None:
                # Nothing was a link till now, so every directory on the way is one of ours.
                os.symlink(target, path, dir_fd=write)
            digest = self._sha256(target.encode()).hexdigest()
            self._files[path] = File(digest, len(target.encode()), link=target)
        return tree_of(self._files)

    def one(self, name: str, renamed: str, read: int, write: int) -> Tree:
        self._layout.admit(renamed)
        self._file(renamed, name, read, write)
        return tree_of(self._files)

    def _directory(self, within: str, read: int, write: int | None) -> None:
        for name in _names(read, self._layout.rest):
            if name in LEFT_OUT:
                continue
            path = f"{within}{name}"
            self._layout.admit(path)
            mode = os.stat(name, dir_fd=read, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                self._subdirectory(path, name, read, write)
            elif stat.S_ISREG(mode):
                self._file(path, name, read, write)
            elif stat.S_ISLNK(mode):
                self._link(path, name, read)
            else:
                raise self._refusal(path, "is neither a file nor a folder nor a link")

    def _subdirectory(self, path: str, name: str, read: int, write: int | None) -> None:
        with ExitStack() as stack:
            below = os.open(name, DIRECTORY, dir_fd=read)
            stack.callback(os.close, below)
            made: int | None = None
            if write is not None:
                os.mkdir(name, 0o700, dir_fd=write)
                made = os.open(name, DIRECTORY, dir_fd=write)
                stack.callback(os.close, made)
            self._directory(f"{path}/", below, made)

    def _file(self, path: str, name: str, read: int, write: int | None) -> None:
        with ExitStack() as stack:
            fd = os.open(name, FILE, dir_fd=read)
            stack.callback(os.close, fd)
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                raise self._refusal(path, _MEANWHILE)
            executable = bool(mode & 0o111)
            made: int | None = None
            if write is not None:
                made = new_file(path.rpartition("/")[2], write, executable=executable)
                stack.callback(os.close, made)
            digest, size = self._sha256(), 0
            while chunk := os.read(fd, CHUNK):
                # Counted as it comes: a file may grow while it is read, or have no size at all.
                self._layout.weigh(len(chunk))
                size += len(chunk)
                self._take(chunk, digest, made)
        self._files[path] = File(digest.hexdigest(), size, executable)

    def _take(self, chunk: bytes, digest: "_Hash", made: int | None) -> None:
        digest.update(chunk)
        if made is not None:
            write_all(made, chunk)

    def _link(self, path: str, name: str, read: int) -> None:
        target = os.readlink(name, dir_fd=read)
        if not target.isprintable():
            raise self._refusal(path, "is a link to a name that cannot be shown, or is not UTF-8")
        self._layout.weigh(len(target.encode()))
        self._links[path] = target

    def _refusal(self, path: str, why: str) -> PackageError:
        return refuse(f"{self._origin}: {path}", why)


def new_file(name: str, directory: int, *, executable: bool) -> int:
    """A descriptor to write one that was not there. No other bits than these: no setuid, nobody else may write."""
    fd = os.open(name, _NEW, 0o600, dir_fd=directory)
    os.fchmod(fd, 0o755 if executable else 0o644)
    return fd


def write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _names(directory: int, most: int | None = None) -> list[str]:
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in islice(entries, most))


def _kind(file: File) -> str:
    return "link" if file.link else "program" if file.executable else "file"


def opened(directory: Path, stack: ExitStack) -> int:
    fd = os.open(directory, DIRECTORY)
    stack.callback(os.close, fd)
    return fd


@contextmanager
def _translated(directory: Path) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        name = shown(error.filename if isinstance(error.filename, str) else directory)
        raise PackageError(
            f"{shown(directory)} cannot be read: {name} is gone, or is no directory", hint="name a directory"
        ) from error
    except OSError as error:
        where = f" ({shown(error.filename)})" if isinstance(error.filename, str) else ""
        raise PackageError(
            f"{shown(directory)} cannot be read or copied{where}: {error.strerror or error}",
            hint="check the rights of what is in it, and that nobody changes it meanwhile",
        ) from error


def _unlinked(name: str, directory: int) -> bool:
    """Whether nothing of that name is left; only a directory stays."""
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return True
    except (IsADirectoryError, PermissionError):
        # Which of the two a directory is depends on the system.
        if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            return False
        raise
    return True


def _clear(name: str, above: int, top: int, depth: int) -> None:
    if _unlinked(name, above):
        return
    if depth == _DEEPEST_CLEARED:
        # However deep somebody nests, no more descriptors than this are used: the rest has its turn from the top.
        os.rename(name, f".{os.urandom(8).hex()}", src_dir_fd=above, dst_dir_fd=top)
        return
    fd = os.open(name, DIRECTORY, dir_fd=above)
    try:
        os.fchmod(fd, 0o700)  # what may not be written into cannot be emptied
        for inner in _names(fd):
            _clear(inner, fd, top, depth + 1)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=above)
