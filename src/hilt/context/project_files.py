"""The files of a project, for completing a path as it is typed.

Owns what is known at the moment and when it is looked up anew. What is offered is `listing`'s business, and how paths
are found `fuzzy`'s. File names are strangers' text and are given as they are, with spaces, line breaks, control
characters and bytes that are no UTF-8 (as surrogates): a face must clean them before it shows them.
"""

import asyncio
import threading
from pathlib import Path

from hilt.context.fuzzy import Index
from hilt.context.listing import Listing, list_project


class ProjectFiles:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._index = Index(())
        self._top: list[str] = []
        self._one_by_one = asyncio.Lock()
        self.cut = False
        """There are more files than are known here."""

    def __len__(self) -> int:
        return len(self._index)

    async def refresh(self) -> None:
        """Look again what there is, off the loop; until then what was known is given. Takes seconds at most."""
        async with self._one_by_one:
            halt = threading.Event()
            try:
                found = await asyncio.to_thread(_survey, self._root, halt)
            finally:
                halt.set()  # or the thread would go on for somebody who has left
            self._index, self._top, self.cut = found

    def match(self, query: str, limit: int = 12) -> list[str]:
        """Paths that have the query's characters in order, the best first; folders end with a slash.

        Without a query, what is at the top: folders first. A query with a capital means its letters as they are.
        """
        return self._index.best(query, limit) if query else self._top[:limit]


def _survey(root: Path, halt: threading.Event) -> tuple[Index, list[str], bool]:
    listing = list_project(root, halt)
    return Index((*listing.folders, *listing.files)), _top(listing), listing.cut


def _top(listing: Listing) -> list[str]:
    folders = (path for path in listing.folders if path.count("/") == 1)
    files = (path for path in listing.files if "/" not in path)
    return [*sorted(folders, key=_by_name), *sorted(files, key=_by_name)]


def _by_name(path: str) -> tuple[bool, str]:
    """Hidden ones last."""
    return path.startswith("."), path.lower()
