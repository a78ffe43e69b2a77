"""Files that an extension begins with: copied from its own directory to where it keeps its data, once.

Owns which of them can be had, and the copying: what is there already stays as it is, and nothing leaves the data
directory, whatever a manifest or a link in the way says. Who asks for it does so after the user agreed.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from hilt.errors import PackageError
from hilt.packages.manifest import Default, Manifest
from hilt.packages.members import quoted, shown

SEEDS = "src is a file of the extension, dest a place in its data directory, both without .. and not absolute"

_HIDDEN = re.compile(r"[\x00-\x1f\x7f]")
_LONGEST = 1024
_INTO = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1024 * 1024


def unfit(manifest: Manifest, directory: Path) -> Iterator[str]:
    """What is wrong with each that must not be copied."""
    for number, default in enumerate(manifest.defaults, 1):
        if why := _unfit(default, manifest.name, directory):
            yield f"defaults, entry {number}, {why}"


def absent(manifest: Manifest, directory: Path) -> Iterator[str]:
    """Those that are not there to be copied: what others installed has often been left without them."""
    for number, default in enumerate(manifest.defaults, 1):
        if not _unfit(default, manifest.name, directory) and not (directory / default.src).is_file():
            yield f'defaults, entry {number}, has a src that is not there: "{quoted(default.src)}"'


def seeds(manifest: Manifest, directory: Path) -> tuple[tuple[str, str], ...]:
    """What would be copied, and to where within the data directory."""
    there = (one for one in manifest.defaults if (directory / one.src).is_file())
    return tuple((one.src, destination(one, manifest.name)) for one in there)


def check(manifest: Manifest, directory: Path) -> None:
    """Raises `PackageError` that names the first which must not be copied."""
    for wrong in unfit(manifest, directory):
        raise PackageError(f"{shown(manifest.name)}: {wrong}", hint=SEEDS)


def destination(default: Default, name: str) -> str:
    """Within the data directory. Other hosts keep every extension's data below one directory, by this name."""
    return os.path.normpath(default.dest.removeprefix(f"extensions/{name}/"))


def seed(manifest: Manifest, directory: Path, data: Path) -> tuple[str, ...]:
    """Copy what is not there yet into `data`, which is the extension's alone. Gives the paths in it that are new.

    Raises `PackageError`; what was copied before stays.
    """
    check(manifest, directory)
    made = []
    for source, within in seeds(manifest, directory):
        try:
            if _copy(directory / source, data, within):
                made.append(within)
        except OSError as error:
            raise PackageError(
                f"{shown(data)}/{shown(within)} cannot be made: {error.strerror or error}",
                hint="make room for it there; links on the way are not followed",
            ) from error
    return tuple(made)


def _unfit(default: Default, name: str, directory: Path) -> str:
    for field, path in (("src", default.src), ("dest", default.dest)):
        if not path:
            return f"has no {field}"
        if _HIDDEN.search(path) or len(path) > _LONGEST:
            return f'has a {field} that is no path: "{quoted(path)}"'
        if path.startswith(("/", "~")) or ".." in path.split("/"):
            return f'has a {field} that leaves its directory: "{quoted(path)}"'
    if destination(default, name) == ".":
        return f'has a dest that names no file: "{quoted(default.dest)}"'
    source = Path(os.path.realpath(directory / default.src))
    if not source.is_relative_to(os.path.realpath(directory)):
        return f'has a src that leads out of the extension: "{quoted(default.src)}"'
    return ""


def _copy(source: Path, data: Path, within: str) -> bool:
    """False if something is there. Every step is made from the one before, so no link can lead elsewhere."""
    *folders, name = within.split("/")
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as stack:

        def enter(path: str | Path, above: int | None = None) -> int:
            fd = os.open(path, _INTO, dir_fd=above)
            stack.callback(os.close, fd)
            return fd

        at = enter(data)
        for folder in folders:
            try:
                os.mkdir(folder, 0o700, dir_fd=at)
            except FileExistsError:
                pass  # entered only if it is a directory
            at = enter(folder, at)
        try:
            fd = os.open(name, _NEW, 0o600, dir_fd=at)
        except FileExistsError:
            return False
        try:
            _fill(source, fd)
        except BaseException:
            os.unlink(name, dir_fd=at)
            raise
        finally:
            os.close(fd)
    return True


def _fill(source: Path, fd: int) -> None:
    with os.fdopen(os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{shown(source)} is no file any more")
        while piece := file.read(_PIECE):
            while piece:
                piece = piece[os.write(fd, piece) :]
