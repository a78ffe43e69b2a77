"""What an extension, or its user, has put beside its code: carried over when the code is replaced.

State goes where it was. What would get into the way of the new version, or could be run though nobody agreed to it, is
kept too, but out of the way: as a plain file in a folder of its own. Nothing is taken from the old directory, so that
it can be gone back to.
"""

import os
import stat
from collections.abc import Collection
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from hilt.packages.install.lock import Entry
from hilt.packages.install.verifying import verify
from hilt.packages.trees import CHUNK, FILE, Tree, leaves, new_file, opened, write_all

_CACHE = frozenset(("__pycache__",))
_KEPT = ".kept"
_COLLECTED = "before-update"


def carry(old: Path, entry: Entry, new: Path, tree: Tree, state: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Bring what is not of `entry` from `old` to `new`, where `tree` lies. What was kept out of the way: its paths.

    `state` are files in `new` to begin with, which give way to what became of them. Raises `OSError`.
    """
    aside: list[str] = []
    found = verify(entry, old)
    suspect = {*found.changed, *found.added}
    with ExitStack() as stack:
        source, target = opened(old, stack), opened(new, stack)
        collected = _free(old, new)
        there = tree.files.keys() | state
        for path, leaf, within in leaves(source, _CACHE):
            if path in entry.tree.files and path not in suspect:
                continue
            if path not in suspect and (path in state or not _meets(path, there)):
                if path in state:
                    os.unlink(path, dir_fd=target)
                _bring(leaf.name, within, path, target)
            elif _copy(leaf.name, within, f"{collected}/{path}{_KEPT}", target):
                aside.append(path)
    return tuple(sorted(aside))


def _free(old: Path, new: Path) -> str:
    """A name that nothing has: what was kept once is state the next time."""
    names = (f"{_COLLECTED}-{number}" for number in count(1))
    return next(name for name in names if not os.path.lexists(old / name) and not os.path.lexists(new / name))


def _meets(path: str, there: Collection[str]) -> bool:
    """Whether the new tree has something there: a file, a folder, or a file where it needs a folder."""
    above = path
    while above:
        if above in there:
            return True
        above = above.rpartition("/")[0]
    return any(known.startswith(f"{path}/") for known in there)


def _bring(name: str, within: int, path: str, target: int) -> None:
    _folder(path.rpartition("/")[0], target)
    try:
        # The very same file: whoever is writing to it meanwhile writes to it afterwards.
        os.link(name, path, src_dir_fd=within, dst_dir_fd=target, follow_symlinks=False)
    except OSError:
        # Not every file system can do that.
        if stat.S_ISLNK(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode):
            os.symlink(os.readlink(name, dir_fd=within), path, dir_fd=target)
        else:
            _copy(name, within, path, target)


def _copy(name: str, within: int, path: str, target: int) -> bool:
    """Whether it is a regular file: nothing else holds anything to keep."""
    if not stat.S_ISREG(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode):
        return False
    _folder(path.rpartition("/")[0], target)
    with ExitStack() as stack:
        fd = os.open(name, FILE, dir_fd=within)
        stack.callback(os.close, fd)
        made = new_file(path, target, executable=False)
        stack.callback(os.close, made)
        while chunk := os.read(fd, CHUNK):
            write_all(made, chunk)
    return True


def _folder(path: str, target: int) -> None:
    """Every part on the way to it. None is a link: those the new tree has are in its list, and were asked for."""
    if not path:
        return
    try:
        os.mkdir(path, 0o700, dir_fd=target)
    except FileExistsError:
        pass
    except FileNotFoundError:
        _folder(path.rpartition("/")[0], target)
        os.mkdir(path, 0o700, dir_fd=target)
