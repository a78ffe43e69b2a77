"""Notes that extensions leave for the user. They are gone with the user's next prompt and never reach the model.

Owns the last of them, and how often faces are told: of each note as long as there are few, and then of the last one
now and then, with the number of those that were left out. What faces were not told is in `shown`, as far as it is kept.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct, structs

from hilt.agent.bus import Bus
from hilt.agent.pacing import EVERY
from hilt.model.events import NotesCleared, Notified
from hilt.model.extensions import Note

_KEPT = 200
_LONGEST = 10_000
"""Characters: a note is read at a glance, and many are kept."""
_AT_ONCE = 200
"""Of one extension; after a rest, which gives one more every `EVERY` seconds."""


class Notes:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.shown: list[Note] = []
        """The newest last."""
        self._allowed: dict[str, _Allowance] = {}
        """One for each extension there ever was."""
        self._late: dict[str, _Late] = {}
        """By extension: nothing of one overtakes what waits, and nobody waits for the flood of another."""
        self._some = asyncio.Event()

    async def add(self, note: Note) -> None:
        if len(note.message) > _LONGEST:
            note = structs.replace(note, message=f"{note.message[:_LONGEST]}…")
        self.shown.append(note)
        del self.shown[:-_KEPT]
        if self._at_once(note.extension):
            await self._bus.emit(_told(note))
        else:
            self._wait(note.extension).add(note)

    async def clear(self, extension: str) -> None:
        self.shown = [note for note in self.shown if note.extension != extension]
        if self._at_once(extension):
            await self._bus.emit(NotesCleared(extension))
        else:
            self._wait(extension).clear()

    async def clear_all(self) -> None:
        for extension in dict.fromkeys(note.extension for note in self.shown):
            await self.clear(extension)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """For the life of the block, faces are also told what had to wait because there are too many."""
        async with asyncio.TaskGroup() as group:
            catching_up = group.create_task(self._catch_up(), name="notes")
            try:
                yield
            finally:
                catching_up.cancel()

    def _at_once(self, extension: str) -> bool:
        return extension not in self._late and self._allowance(extension).take()

    def _allowance(self, extension: str) -> "_Allowance":
        return self._allowed.setdefault(extension, _Allowance())

    def _wait(self, extension: str) -> "_Late":
        self._some.set()
        return self._late.setdefault(extension, _Late())

    async def _catch_up(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            while self._late:
                await asyncio.sleep(EVERY)  # whatever comes meanwhile is told with it
                for extension in tuple(self._late):
                    await self._tell_late(extension)

    async def _tell_late(self, extension: str) -> None:
        late, self._late[extension] = self._late[extension], _Late()  # what comes meanwhile waits behind it
        self._allowance(extension).take()  # as long as it goes on like this there is no rest
        if late.cleared:
            await self._bus.emit(NotesCleared(extension))
        if late.last:
            await self._bus.emit(_told(late.last, late.skipped))
        if self._late[extension] == _Late():
            del self._late[extension]


class _Allowance:
    """How much of one extension can be told at once."""

    def __init__(self) -> None:
        self._left = float(_AT_ONCE)
        self._as_of = asyncio.get_running_loop().time()

    def take(self) -> bool:
        now = asyncio.get_running_loop().time()
        self._left = min(_AT_ONCE, self._left + (now - self._as_of) / EVERY)
        self._as_of = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class _Late(Struct):
    """What is still to be told of one extension: that its notes were cleared, and then the last one since."""

    cleared: bool = False
    last: Note | None = None
    skipped: int = 0

    def add(self, note: Note) -> None:
        self.skipped += self.last is not None
        self.last = note

    def clear(self) -> None:
        self.cleared, self.last, self.skipped = True, None, 0


def _told(note: Note, skipped: int = 0) -> Notified:
    return Notified(note.extension, note.level, note.message, skipped)
