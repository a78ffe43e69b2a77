"""What happens, told to one extension by method: one thing after the other, as fast as it takes them.

It is asked to deal with each and may answer with something to do. The next one waits for the answer, because programs
deal with several questions at once and would see them in any order, but not for long.
"""

import asyncio
from collections import deque
from typing import Any

from msgspec import Raw, Struct

from hilt.errors import ExtensionError, FrameError
from hilt.extensions.extension import Extension
from hilt.extensions.peer import Pending
from hilt.model.actions import Action
from hilt.wire import jsonrpc_types as wire
from hilt.wire.jsonrpc_actions import action
from hilt.wire.jsonrpc_reading import read

_WAITING = 1000
_BYTES = 8 * 1024 * 1024
"""Of what waits to be told: some events carry a whole conversation."""
_PATIENCE = 30.0
"""Seconds an answer may take and still have an effect."""
_NEXT = 2.0
"""Seconds after which the next one is told in any case."""
_UNDER_WAY = 32


class _Told(Struct, frozen=True):
    type: str
    data: Raw

    def __len__(self) -> int:
        return len(memoryview(self.data))


class Dispatch:
    def __init__(self, extension: Extension) -> None:
        self._extension = extension
        self._waiting: deque[_Told] = deque()
        self._bytes = 0
        self._under_way: set[Pending] = set()
        self._newest: Pending | None = None
        """What is being dealt with, and what the next one waits for."""
        self._alarm: asyncio.TimerHandle | None = None

    def tell(self, kind: str, data: Raw) -> None:
        """Returns at once. `data` is written already, for others are told the same."""
        told = _Told(kind, data)
        while self._waiting and (len(self._waiting) >= _WAITING or self._bytes + len(told) > _BYTES):
            self._drop()
        self._waiting.append(told)
        self._bytes += len(told)
        if self._newest is None:
            self._next()

    async def settled(self) -> None:
        """Wait until it has dealt with all that it was told."""
        while self._under_way:
            await asyncio.wait({pending.future for pending in self._under_way}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)  # so that the next one is on its way

    def stop(self) -> None:
        self._waiting.clear()
        if self._alarm:
            self._alarm.cancel()

    def _drop(self) -> None:
        """The oldest piece of an answer that is being written, which is whole later; or else the oldest."""
        piece = next((told for told in self._waiting if told.type == "EventStreamDelta"), self._waiting[0])
        self._waiting.remove(piece)
        self._bytes -= len(piece)
        self._extension.unsendable += 1
        self._extension.report("it does not deal with its events as fast as they come: the oldest are lost")

    def _next(self) -> None:
        if self._alarm:
            self._alarm.cancel()
        self._newest = self._alarm = None
        if not self._waiting or len(self._under_way) >= _UNDER_WAY:
            return
        told = self._waiting.popleft()
        self._bytes -= len(told)
        self._newest = pending = self._extension.ask_method("event/dispatch", told, told.type, _PATIENCE)
        self._under_way.add(pending)
        self._alarm = asyncio.get_running_loop().call_later(_NEXT, self._next)
        pending.future.add_done_callback(lambda future: self._answered(pending, told.type, future))

    def _answered(self, pending: Pending, kind: str, future: "asyncio.Future[Any]") -> None:
        self._under_way.discard(pending)
        if not future.cancelled() and (wanted := self._wanted(kind, future)):
            self._extension.do(wanted)
        if self._newest is pending or self._newest is None:
            self._next()

    def _wanted(self, kind: str, future: "asyncio.Future[Any]") -> Action | None:
        try:
            answer = self._extension.outcome(future.result())
            result = read(answer, wire.ActionResult)
            return action(result.action)
        except ExtensionError as error:
            if type(error) is ExtensionError:  # it is there, and was not told
                self._extension.unsendable += 1
                self._extension.report(f"it was not told of {kind}: {error.message}")
            else:
                self._extension.note(f"{kind}: {error.message}")
        except FrameError as error:
            self._extension.report(f"its answer to {kind} is unusable: {error.message}")
        return None
