"""The files and folders of a project: as git knows them, or else by looking through all folders.

Owns which of them are offered and how many. Links are not followed into folders, and one that leads out of the project
is left out; so is what ignore files name. Everything here blocks: it is made for a thread, which ends soon after its
patience does.
"""

import os
import stat
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct, field

from hilt.context.git_files import git_files
from hilt.context.ignoring import OWN_NAMES, Chain, below, ignored

MOST = 50_000
"""Files, and as many folders."""
_SECONDS = 5.0
_GIT_SECONDS = 3.0
_DEEPEST = 64
"""Folders within folders. Nobody looks for a file down there, and long paths make ignore files costly."""
_SKIPPED = (".git", "node_modules", "__pycache__", ".venv")


class Listing(Struct):
    """Paths from the root on, in no order; those of folders end with a slash."""

    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    cut: bool = False
    """There are more, or there was no time to look."""

    @property
    def full(self) -> bool:
        return len(self.files) >= MOST or len(self.folders) >= MOST

    def add(self, path: str, mode: int) -> None:
        if stat.S_ISREG(mode):
            self.files.append(path)
        elif stat.S_ISDIR(mode):
            self.folders.append(f"{path}/")


class Patience:
    """How long something may take; it ends at once when `halt` is set."""

    def __init__(self, seconds: float, halt: threading.Event) -> None:
        self._end = time.monotonic() + seconds
        self._halt = halt

    @property
    def over(self) -> bool:
        return self._halt.is_set() or time.monotonic() > self._end


def list_project(root: Path, halt: threading.Event) -> Listing:
    """What there is below a folder; nothing when it cannot be read."""
    known = git_files(root, _SKIPPED, MOST, Patience(_GIT_SECONDS, halt))
    if known is None or not known.paths:  # none: the project itself is ignored by a repository around it
        return walk(root, Patience(_SECONDS, halt))
    listing = _Known(root).listing(known.paths, Patience(_SECONDS, halt))
    listing.cut = listing.cut or known.cut
    return listing


def walk(root: Path, patience: Patience) -> Listing:
    """Level by level, so that what is cut off is the deepest."""
    listing, real = Listing(), _real(root)
    waiting: deque[tuple[str, Chain]] = deque([("", ())])
    while waiting:
        folder, chain = waiting.popleft()
        chain = below(chain, root, folder)
        for entry in _entries(f"{real}/{folder}"):
            if patience.over or listing.full:
                listing.cut = True
                return listing
            path, is_folder = folder + entry.name, entry.is_dir(follow_symlinks=False)
            if entry.name in _SKIPPED or ignored(chain, f"{path}/" if is_folder else path):
                continue
            listing.add(path, _mode(entry.path, real))
            if is_folder and folder.count("/") < _DEEPEST:
                waiting.append((f"{path}/", chain))
            elif is_folder:
                listing.cut = True
    return listing


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return  # one that cannot be read has nothing to offer


class _Known:
    """Looks at what git has in its index: that need not be there, and may be anything in a hostile one."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._real = _real(root)
        self._chains: dict[str, Chain | None] = {"": below((), root, "", OWN_NAMES)}
        """The rules that hold in each folder; None for one that is not to be offered."""

    def listing(self, paths: Iterable[str], patience: Patience) -> Listing:
        listing, offered = Listing(), {""}
        for path in dict.fromkeys(path.rstrip("/") for path in paths):
            if patience.over or listing.full:
                listing.cut = True
                break
            folder, name = _split(path)
            if name in ("", ".", "..", *_SKIPPED) or folder.count("/") > _DEEPEST:
                continue
            chain = self._chain(folder)
            if chain is None or ignored(chain, path):
                continue
            listing.add(path, _mode(f"{self._real}/{path}", self._real))
            while folder not in offered:
                offered.add(folder)
                listing.folders.append(folder)
                folder = _split(folder[:-1])[0]
        return listing

    def _chain(self, folder: str) -> Chain | None:
        if folder in self._chains:
            return self._chains[folder]
        around, name = _split(folder[:-1])
        chain = self._chain(around)
        if chain is not None:
            usable = name not in ("", ".", "..", *_SKIPPED) and not ignored(chain, folder)
            is_there = usable and stat.S_ISDIR(_own_mode(f"{self._real}/{folder[:-1]}"))
            chain = below(chain, self._root, folder, OWN_NAMES) if is_there else None
        self._chains[folder] = chain
        return chain


def _split(path: str) -> tuple[str, str]:
    """The folder with its slash, and the name."""
    at = path.rfind("/") + 1
    return path[:at], path[at:]


def _real(root: Path) -> str:
    return os.path.realpath(root).rstrip("/")


def _own_mode(path: str) -> int:
    """What it is itself; 0 when it is gone."""
    try:
        return os.lstat(path).st_mode
    except (OSError, ValueError):
        return 0


def _mode(path: str, real: str) -> int:
    """What it is, or what it leads to within the root; 0 for what is gone or leads out of it."""
    mode = _own_mode(path)
    if not stat.S_ISLNK(mode):
        return mode
    try:
        target = os.path.realpath(path, strict=True)
    except OSError:
        return 0
    return _own_mode(target) if target.startswith(f"{real}/") else 0
