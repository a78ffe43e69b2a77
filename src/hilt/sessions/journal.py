"""The session that is gone on with: its log, which other one it may become, and where new ones go.

Whoever records or reads asks the journal each time and keeps no log of its own, so that after a change all of them
are in the same file. When the change is made is not decided here.
"""

import os
from pathlib import Path

from hilt.errors import SessionError
from hilt.model.masking import Mask
from hilt.sessions import portable
from hilt.sessions.disk import Durability
from hilt.sessions.log import SessionLog
from hilt.sessions.records import Record
from hilt.sessions.store import SessionStore


class Journal:
    def __init__(
        self,
        log: SessionLog,
        store: SessionStore | None = None,
        mask: Mask | None = None,
        durability: Durability = "turn",
    ) -> None:
        self.log = log
        self._store = store
        self._mask = mask
        self._durability = durability

    def append(self, record: Record) -> str:
        return self.log.append(record)

    def turn_to(self, log: SessionLog) -> SessionLog:
        """Go on in this one. The answer is the one that was left, for the caller to close."""
        left, self.log = self.log, log
        return left

    def close(self) -> None:
        self.log.close()

    def require_store(self) -> SessionStore:
        """Where the sessions are. Raises `SessionError` when this one is not kept there."""
        if self._store is None or self.log.path is None:
            raise SessionError("no active session: this conversation is not kept", hint="begin without --no-session")
        return self._store

    def find(self, wanted: str) -> Path:
        """The session of that id or path. Only those in hilt's own directory are opened, wherever a link leads."""
        store = self.require_store()
        found = Path(os.path.realpath(store.find(wanted)))
        root = Path(os.path.realpath(store.root))
        if found.parent.parent != root or found.suffix != ".jsonl":
            raise SessionError(
                f"{wanted!r:.200} is not among hilt's own sessions in {store.root}",
                hint="bring it in first, with `hilt sessions import`",
            )
        return found

    def is_at(self, path: Path) -> bool:
        """Whether this is the session that is gone on with already."""
        return self.log.path is not None and Path(os.path.realpath(self.log.path)) == path

    def open(self, path: Path) -> SessionLog:
        """Held for writing, as at the start. Raises `SessionError`."""
        return SessionLog.open(path, mask=self._mask, durability=self._durability)

    def fork(self) -> Path:
        """A new session with the conversation up to now."""
        return portable.fork(self.log, self.require_store())
