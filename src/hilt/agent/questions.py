"""What whoever is at the other end has been asked and has not answered yet, of every kind.

Owns the open requests: their ids, the answers, and what happens when either side no longer wants one. What an answer
means is left to whoever asks.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from hilt.agent.bus import Bus
from hilt.errors import UsageError
from hilt.model.events import Event, RequestWithdrawn
from hilt.model.ports import Scope

_Answer = TypeVar("_Answer")


class Reply(Struct, frozen=True):
    """An answer as it comes; which of it counts depends on what was asked."""

    approved: bool | None = None
    selected: str | None = None
    cancelled: bool = False
    reason: str = ""
    scope: Scope = "once"


class _Open(Struct, frozen=True):
    answer: "asyncio.Future[Any]"
    read: Callable[[Reply], Any]
    unanswered: Any


class Questions:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._open: dict[str, _Open] = {}
        self._closed = False

    async def ask(
        self, question: Callable[[str], Event], read: Callable[[Reply], _Answer], unanswered: _Answer
    ) -> _Answer:
        """Wait for an answer as long as it takes; cancelling this withdraws the question.

        `question` is given its id. `read` makes of a reply what it means, and raises `UsageError` for one that is no
        answer to this: then the question stays open. `unanswered` is what it amounts to that nobody is there.
        """
        if self._closed:
            return unanswered
        id_ = f"ui-{os.urandom(8).hex()}"  # what an extension knows of one question tells nothing about another
        answer: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        self._open[id_] = _Open(answer, read, unanswered)
        try:
            await self._bus.emit(question(id_))
            return await answer
        except asyncio.CancelledError:
            self._open.pop(id_)
            await self._bus.emit(RequestWithdrawn(id_))
            raise
        finally:
            self._open.pop(id_, None)

    def answer(self, id_: str, reply: Reply) -> None:
        asked = self._open.get(id_)
        if asked is None or asked.answer.done():
            raise UsageError(f"no open request {id_}")
        asked.answer.set_result(asked.read(reply))

    def close(self) -> None:
        """Nobody can answer any more, neither what is open nor what will be asked."""
        self._closed = True
        for asked in self._open.values():
            if not asked.answer.done():
                asked.answer.set_result(asked.unanswered)
