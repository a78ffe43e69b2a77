"""A fresh tree out of pieces whose names a stranger chose: the one place where such names become files.

Owns the writing. What paths and sizes are fit is `layout`'s business; where the pieces come from, an archive or a
repository, is their readers'.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from hilt.packages.layout import CAPS, Caps, Layout, check_links, refuse
from hilt.packages.trees import DIRECTORY, new_file, remove_tree, write_all


class Building:
    """Fills a directory that it makes itself; leaving the block by an exception removes it again.

    There is no link in it before the end of the block, so no piece can be written through one.
    """

    def __init__(self, directory: Path, origin: str, caps: Caps = CAPS) -> None:
        self._directory = directory
        self._origin = origin
        self._layout = Layout(origin, caps)
        self._folders: set[str] = set()
        self._files: dict[str, None] = {}
        self._links: dict[str, str] = {}
        self._fd = -1

    def __enter__(self) -> "Building":
        self._directory.mkdir(mode=0o700)
        self._fd = os.open(self._directory, DIRECTORY)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        whole = False
        try:
            if error is None:
                self._make_links()
                whole = True
        finally:
            os.close(self._fd)
            if not whole:
                remove_tree(self._directory)

    def expect(self, size: int) -> None:
        """Refuse what already says that it will be too much."""
        expected = Layout(self._origin, self._layout.caps)
        expected.weigh(size)

    def folder(self, path: str) -> None:
        """One may be named more than once, unlike a file."""
        if path in self._folders:
            return
        self._above(path)
        self._layout.admit(path)
        os.mkdir(path, 0o700, dir_fd=self._fd)
        self._folders.add(path)

    def file(self, path: str, chunks: Iterable[bytes], *, executable: bool) -> None:
        self._above(path)
        self._layout.admit(path)
        self._files[path] = None
        fd = new_file(path, self._fd, executable=executable)
        try:
            for chunk in chunks:
                self._layout.weigh(len(chunk))
                write_all(fd, chunk)
        finally:
            os.close(fd)

    def link(self, path: str, target: str) -> None:
        self._above(path)
        self._layout.admit(path)
        self._layout.weigh(len(target))
        if not target.isprintable() or not target:
            raise refuse(f"{self._origin}: {path}", "is a link to a name that cannot be shown, or is not UTF-8")
        self._links[path] = target

    def _above(self, path: str) -> None:
        above = path.rpartition("/")[0]
        if not above or above in self._folders:
            return
        if above in self._files or above in self._links:
            raise refuse(f"{self._origin}: {path}", f'lies in "{above}", which is no folder')
        self.folder(above)

    def _make_links(self) -> None:
        check_links(self._origin, self._links, self._files)
        for path, target in self._links.items():
            os.symlink(target, path, dir_fd=self._fd)
