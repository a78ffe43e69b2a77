"""Sessions as others may use them: those on the disk, and the tree of the present one. The port `Sessions`."""

import asyncio
from typing import Any

from hilt.agent import moving
from hilt.agent.session import Session
from hilt.errors import UsageError
from hilt.model.content import Text
from hilt.model.conversation import AssistantMessage, Usage, now, user_text
from hilt.model.events import AssistantMessageAdded, UserMessageAdded
from hilt.model.services import Forked, SessionNode, SessionRow, SessionStats
from hilt.sessions.outline import outline_of, path_of
from hilt.sessions.records import EntryRecord, TitleRecord


class Bookkeeping:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._journal = session.parts.journal

    # Which one

    async def list(self) -> tuple[SessionRow, ...]:
        found = await asyncio.to_thread(self._journal.require_store().list)
        return tuple(SessionRow(one.id, one.title, one.cwd, one.created, str(one.path), one.parent) for one in found)

    async def load(self, path: str) -> None:
        await moving.load(self._session, path)

    async def fork(self) -> Forked:
        return await moving.fork(self._session)

    def title(self) -> str:
        return self._journal.log.given_title

    async def set_title(self, title: str) -> None:
        self._journal.append(TitleRecord(title))
        await self._session.announce()

    def stats(self) -> SessionStats:
        answers = [one for one in self._session.transcript.messages if isinstance(one, AssistantMessage)]
        info = self._session.active.info
        return SessionStats(len(answers), sum((one.usage for one in answers), Usage()), f"{info.provider}/{info.id}")

    # What is in it

    def append_entry(self, kind: str, data: Any, source: str) -> None:
        if not kind.strip():
            raise UsageError("an entry needs a kind", hint="say what it is, as in `ext:bookmarks`")
        self._journal.append(EntryRecord(kind, data, source))

    async def append_message(self, role: str, text: str, source: str) -> None:
        if not text.strip():
            raise UsageError("a message needs a text")
        session = self._session
        if role == "assistant":
            active = session.active
            answer = AssistantMessage((Text(text),), now(), active.provider.name, active.info.id)
            session.transcript.add(answer)
            await session.transcript.settle()
            await session.bus.emit(AssistantMessageAdded(answer.content, answer.time))
        else:
            message = user_text(text, source)
            session.transcript.add(message)
            await session.transcript.settle()
            await session.bus.emit(UserMessageAdded(message.content, message.time, source))

    # Where in it

    def set_label(self, target: str, label: str) -> None:
        moving.set_label(self._session, target, label)

    async def branch(self, entry: str, summary: str, source: str) -> None:
        await moving.branch(self._session, entry, summary, source)

    async def reset(self, source: str) -> None:
        await moving.reset(self._session, source)

    def path(self) -> tuple[SessionNode, ...]:
        return path_of(self._journal.log)

    async def tree(self) -> tuple[SessionNode, ...]:
        return await asyncio.to_thread(outline_of, self._journal.log)
