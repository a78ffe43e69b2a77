"""A file that somebody else adds to, a log or a trace: its lines, each shown once it is whole."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

_LOOK = 0.1
"""Seconds between two looks."""


class Growing:
    """Nothing is shown twice, also when the file is begun anew; it need not be there yet."""

    def __init__(self, path: Path, show: Callable[[str], None], most: int, *, from_now: bool = False) -> None:
        """`most`: bytes that are shown at one look; of more, the end. `from_now`: what it has already is left out."""
        self._path = path
        self._show = show
        self._most = most
        self._at = path.stat().st_size if from_now and path.exists() else 0

    async def follow(self) -> None:
        """Until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(_LOOK)

    def look(self) -> None:
        """Show what has come since the last time."""
        try:
            with self._path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < self._at:  # it was begun anew
                    self._at = 0
                start = max(self._at, size - self._most)
                file.seek(start)
                whole, newline, _ = file.read(self._most).rpartition(b"\n")
        except FileNotFoundError:
            return
        # What stands behind the last newline is looked at again: its end may still come.
        self._at = start + len(whole) + len(newline)
        for line in whole.decode("utf-8", "replace").split("\n") if newline else ():
            self._show(line)
