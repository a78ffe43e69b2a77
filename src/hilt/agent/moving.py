"""Going on elsewhere: in another session, in a copy of this one, from another entry, or from nothing.

All of it happens between turns, so that no turn is in two places. What cannot be done leaves everything as it is.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from hilt.errors import SessionError
from hilt.model.conversation import Message, Usage, pair_calls
from hilt.model.events import Noticed
from hilt.model.services import Forked
from hilt.sessions.log import SessionLog
from hilt.sessions.records import LabelRecord, ModelRecord
from hilt.sessions.store import summarize

if TYPE_CHECKING:  # the session has these done when it is asked to
    from hilt.agent.session import Session


async def load(session: "Session", wanted: str) -> None:
    """By id or path, of those in hilt's own directory. Raises `SessionError`."""
    journal = session.parts.journal
    path = await asyncio.to_thread(journal.find, wanted)
    if await asyncio.to_thread(summarize, path) is None:
        raise SessionError(f"{path} holds no session", hint="see `/sessions`")

    async def move() -> None:
        if not journal.is_at(path):
            await _go_on(session, lambda: journal.open(path))

    await session.between_turns(f"/session open {path.stem}", move)


async def fork(session: "Session") -> Forked:
    """The copy is made when the turn that runs has ended, and holds all of it. Raises `SessionError`."""
    journal = session.parts.journal
    journal.require_store()  # there may be none, which is better known now
    forked = Forked(journal.log.meta.id, len(session.transcript.messages))

    async def move() -> None:
        await _go_on(session, lambda: journal.open(journal.fork()))

    await session.between_turns("/session fork", move)
    return forked


async def branch(session: "Session", entry: str, summary: str, by: str) -> None:
    """Go on from an entry of this session; the summary is kept with the branch that is left."""
    session.parts.log.place(entry)

    async def move() -> None:
        log = session.parts.log
        log.place(entry)  # this may be another session by now
        messages = await asyncio.to_thread(lambda: pair_calls(log.messages(entry)))
        log.move(entry, summary, by)
        await _settled(session, messages)

    await session.between_turns(f"/session branch {entry}", move)


async def reset(session: "Session", by: str) -> None:
    """Begin an empty conversation; the session keeps the old one."""

    async def move() -> None:
        session.parts.log.move("", extension=by)
        await _settled(session, [])

    await session.between_turns("/clear", move)


def set_label(session: "Session", entry: str, label: str) -> None:
    log = session.parts.log
    log.append(LabelRecord(log.place(entry), label))


async def _settled(session: "Session", messages: list[Message]) -> None:
    session.transcript.resume(messages)
    await session.transcript.settle()
    await session.notes.clear_all()
    await session.tell_moved()


async def _go_on(session: "Session", opening: Callable[[], SessionLog]) -> None:
    journal = session.parts.journal
    await session.transcript.settle()
    if trouble := journal.log.trouble:
        raise SessionError(f"this session is not left: {trouble}", hint="make room for it, or end hilt")
    log, messages, usage = await asyncio.to_thread(_read, opening)
    left = journal.turn_to(log)
    session.transcript.resume(messages, usage)
    await asyncio.to_thread(left.close)
    await _tell_differences(session, log)
    await session.notes.clear_all()
    await session.tell_moved()


def _read(opening: Callable[[], SessionLog]) -> tuple[SessionLog, list[Message], Usage]:
    """In a thread: a long one takes its time."""
    log = opening()
    try:
        return log, pair_calls(log.messages()), log.usage
    except SessionError:
        log.close()
        raise


async def _tell_differences(session: "Session", log: SessionLog) -> None:
    """What is not as it was when this session was left."""
    for found in log.recovered:
        await session.bus.emit(Noticed("warn", found))
    provider, model = log.model
    here = session.active.info
    if model and (provider, model) != (here.provider, here.id):
        what = f"this session was with {model} ({provider}); it goes on with {here.id} ({here.provider})"
        await session.bus.emit(Noticed("info", f"{what}: /model changes that"))
        log.append(ModelRecord(here.provider, here.id))
    if log.meta.cwd not in ("", session.parts.cwd):
        what = f"this session was begun in {log.meta.cwd}; tools work in {session.parts.cwd}"
        await session.bus.emit(Noticed("info", what))
