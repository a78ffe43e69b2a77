"""Taking back changes to single files, for others. The port `Undo`; all that one prompt changed is `/undo`."""

import asyncio

from hilt.errors import SessionError
from hilt.sessions.journal import Journal
from hilt.sessions.undo import FileHistory


class Undoing:
    def __init__(self, history: FileHistory, journal: Journal) -> None:
        self._history = history
        self._journal = journal

    def snapshots(self) -> dict[str, int]:
        return {path: self._history.size(snapshot) for path, snapshot in self._history.latest().items()}

    async def restore(self, path: str) -> bool:
        log = self._journal.log
        snapshot = self._history.before(path)
        if snapshot is None:
            return False
        outcome, record = await asyncio.to_thread(self._history.put_back, snapshot)
        if outcome.action == "failed":
            why = f"{path!r:.200} cannot be put back: {outcome.note}"
            raise SessionError(why, hint="check the file and its folder")
        if self._journal.log is log:  # the change is not part of any other
            log.append(record)
        return True
