"""What was sent before, in this session and in earlier ones, and going back and forth in it.

Owns the order and what is kept; the file is `history_file`'s. Until there is one, things are remembered in memory.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hilt.frontends.tui.editor.history_file import HistoryFile

KEPT = 1_000
"""Entries, in memory and in the file."""
_CHARACTERS = 50_000_000
"""Of all entries in memory; the last one is kept however long it is."""


class History:
    def __init__(self) -> None:
        self._entries: list[str] = []
        """Oldest first."""
        self._unwritten: list[str] = []
        self._file: HistoryFile | None = None

    def add(self, text: str) -> None:
        if not text.strip() or (self._entries and self._entries[-1] == text):
            return
        self._entries.append(text)
        self._make_room()
        if self._file:
            self._file.append(text)
        else:
            self._unwritten.append(text)
            del self._unwritten[:-KEPT]

    async def keep_in(self, file: "HistoryFile") -> None:
        """From now on there is a file: what is in it came before."""
        older = await asyncio.to_thread(file.read)
        self._entries[:0] = older
        self._make_room()
        self._file = file
        for text in self._unwritten:
            file.append(text)
        self._unwritten.clear()

    def _make_room(self) -> None:
        """The oldest go first."""
        room, kept = _CHARACTERS, 0
        while kept < min(KEPT, len(self._entries)) and (room := room - len(self._entries[-1 - kept])) >= 0:
            kept += 1
        self._entries = self._entries[len(self._entries) - max(kept, 1) :]

    @property
    def entries(self) -> Sequence[str]:
        """Oldest first."""
        return self._entries

    def walk(self, draft: str) -> "Walk":
        return Walk(self._entries, draft)


class Walk:
    """Back and forth. What is changed on the way stays changed until the end of it, and so does the draft."""

    def __init__(self, entries: Sequence[str], draft: str) -> None:
        self._texts = [*entries, draft]
        self._before = [*entries, ""]
        self._at = len(entries)

    @property
    def left(self) -> list[tuple[str, str]]:
        """What became of every text but the one here, and what it was before the walk: for the draft, nothing."""
        pairs = list(zip(self._texts, self._before, strict=True))
        return pairs[: self._at] + pairs[self._at + 1 :]

    def go(self, step: int, current: str) -> str | None:
        """The text so many places further, None where there is none. `current` is what became of the one here."""
        target = self._at + step
        if not 0 <= target < len(self._texts):
            return None
        self._texts[self._at] = current
        self._at = target
        return self._texts[target]
