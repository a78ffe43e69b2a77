"""Notes that extensions leave for the user. They are gone with the user's next prompt and never reach the model."""

from msgspec import structs

from hilt.agent.bus import Bus
from hilt.model.events import NotesCleared, Notified
from hilt.model.extensions import Note

_KEPT = 200
_LONGEST = 10_000
"""Characters: a note is read at a glance, and many are kept."""


class Notes:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.shown: list[Note] = []
        """The newest last."""

    async def add(self, note: Note) -> None:
        if len(note.message) > _LONGEST:
            note = structs.replace(note, message=f"{note.message[:_LONGEST]}…")
        self.shown.append(note)
        del self.shown[:-_KEPT]
        await self._bus.emit(Notified(note.extension, note.level, note.message))

    async def clear(self, extension: str) -> None:
        self.shown = [note for note in self.shown if note.extension != extension]
        await self._bus.emit(NotesCleared(extension))

    async def clear_all(self) -> None:
        for extension in dict.fromkeys(note.extension for note in self.shown):
            await self.clear(extension)
