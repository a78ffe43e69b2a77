"""Notices that what an extension was started from has changed, once nobody writes it any more.

Owns which files count and what a change is. It polls, for that works on every file system, and reads files only where
the file system says that something happened to them. What to do about a change is the host's business.
"""

import asyncio
import os
import stat
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from hilt.packages.discovery import Found
from hilt.packages.manifest import MANIFESTS

_SUFFIXES = (".py", ".js", ".mjs", ".cjs", ".ts", ".go", ".sh", ".rb", ".lua")
"""Of programs. Data that an extension writes while it runs must not make it start anew."""
_NOT_ENTERED = frozenset(("node_modules", "__pycache__"))
_MOST_FILES = 500
_MOST_ENTRIES = 10_000
_LARGEST_READ = 64 * 1024 * 1024
_CHUNK = 1024 * 1024

_Look: TypeAlias = tuple[int, ...]
"""What the file system says about a file, without its being read; the mode and the size come first."""
_Content: TypeAlias = tuple[int, bytes]
"""What makes a difference to whoever runs it: who may execute it, and a digest."""
_UNKNOWN: _Content = (-1, b"")


class Watch:
    """Counts the manifest, the program and the arguments that are files in the directory, and the sources there.

    Of a program without a manifest, only itself: what else lies beside it is anybody's.
    """

    def __init__(self, found: Found, *, interval: float = 0.5, stable: float = 0.5) -> None:
        self._interval = interval
        self._stable = stable
        self._root = None if found.file else found.where
        self._named = [found.file] if found.file else _started_from(found)
        self._looks: Mapping[Path, _Look] = self._look()
        self._contents: Mapping[Path, _Content] | None = None
        """As they were when `_looks` was taken; read when first needed, for it takes a while."""

    async def changed(self) -> None:
        """Return when it differs from what it was at first, or when this last returned, and is still again.

        A change that comes while nobody waits is not missed, nor is one whose wait was cancelled.
        """
        if self._contents is None:
            self._contents = await self._read_first()
        while True:
            looks = await asyncio.to_thread(self._look)
            if looks != self._looks:
                looks = await self._still(looks)
                contents = await self._read(looks, self._contents)
                differs = contents != self._contents
                self._looks, self._contents = looks, contents
                if differs:
                    return
            await asyncio.sleep(self._interval)

    async def _still(self, looks: Mapping[Path, _Look]) -> Mapping[Path, _Look]:
        """Wait until nothing has moved for a while: half a file is worse than the old one."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        while (left := since + self._stable - loop.time()) > 0:
            await asyncio.sleep(min(left, self._interval))
            latest = await asyncio.to_thread(self._look)
            if latest != looks:
                looks, since = latest, loop.time()
        return looks

    def _look(self) -> Mapping[Path, _Look]:
        """All regular files that count. Blocks for some milliseconds."""
        paths = [*self._named, *(_sources(self._root) if self._root else ())]
        return {path: look for path in paths if (look := _look_at(path))}

    async def _read_first(self) -> dict[Path, _Content]:
        # One at a time, here and below, so that who leaves does not leave a thread with much to do.
        return {path: await asyncio.to_thread(_first_content, path, look) for path, look in self._looks.items()}

    async def _read(self, looks: Mapping[Path, _Look], known: Mapping[Path, _Content]) -> dict[Path, _Content]:
        contents = {}
        for path, look in looks.items():
            if path in known and self._looks.get(path) == look:
                contents[path] = known[path]
            else:
                contents[path] = await asyncio.to_thread(_content, path, look)
        return contents


def _started_from(found: Found) -> list[Path]:
    """The manifest, and whatever the command line names in the directory; that it names no file does not matter.

    Of one that runs from a copy, what the copy was made of.
    """
    directory = Path(os.path.normpath(found.directory))
    words = (Path(os.path.normpath(directory / word)) for word in found.argv[:_MOST_FILES])
    named = [path.relative_to(directory) for path in words if path.is_relative_to(directory)]
    return [found.where / path for path in (*map(Path, MANIFESTS), *named)]


def _sources(root: Path) -> Iterator[Path]:
    """Those nearest to the top first, so that a limit costs the least important ones."""
    folders, entries, files = [root], _MOST_ENTRIES, _MOST_FILES
    for folder in folders:  # grows as it is gone through
        listed = _listing(folder, entries)
        entries -= len(listed)
        names = [name for name, is_folder in listed if not is_folder and name.endswith(_SUFFIXES)][:files]
        files -= len(names)
        yield from (folder / name for name in names)
        folders += [folder / name for name, is_folder in listed if is_folder and _entered(name)]


def _entered(name: str) -> bool:
    return not name.startswith(".") and name not in _NOT_ENTERED


def _listing(folder: Path, most: int) -> list[tuple[str, bool]]:
    """Names, and whether each is a folder; a link to one is none, so there are no rounds. Sorted, to be the same
    each time."""
    try:
        with os.scandir(folder) as entries:
            return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, most))
    except OSError:
        return []


def _look_at(path: Path) -> _Look | None:
    try:
        status = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    # The time of the last change of any kind, for one can be made that keeps size and modification time (cp -p).
    return status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _first_content(path: Path, look: _Look) -> _Content:
    """What it was when it looked so; whatever it is by now counts as changed if that cannot be told any more."""
    content = _content(path, look)
    return content if _look_at(path) == look else _UNKNOWN


def _content(path: Path, look: _Look) -> _Content:
    """Blocks while it reads."""
    mode, size = look[:2]
    executable = mode & 0o111
    if size > _LARGEST_READ:
        return executable, repr(look).encode()  # too much to read: any touch counts
    import hashlib  # 3 ms, and only who watches needs it

    digest = hashlib.sha256()
    try:
        # Should it have become a pipe meanwhile, reading it so returns at once.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb") as file:
            left = _LARGEST_READ
            while left > 0 and (chunk := file.read(_CHUNK)):
                digest.update(chunk)
                left -= len(chunk)
    except OSError:
        pass  # unreadable or gone; if that changes, so does the digest
    return executable, digest.digest()
