"""What an extension asks the host for by method: side by side, so many at once, and given up when it says so."""

import asyncio
from math import inf
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType

from hilt.errors import FrameError, ServiceFault
from hilt.extensions.extension import Extension
from hilt.extensions.peer import Id
from hilt.extensions.services.answering import Services
from hilt.extensions.services.asking import Asker
from hilt.wire.faults import INTERNAL, METHOD_NOT_FOUND
from hilt.wire.jsonrpc_reading import read

_SHOWN = 128
_MOMENT = 5.0
"""Seconds."""
_DIALOGS = ("host/askUser", "host/showPicker")
_BYTES = 32 * 1024 * 1024
"""Of what it may have asked for that has not been answered yet."""


class _Cancelled(Struct, frozen=True):
    id: Any = None
    """As its dialect numbers what it asks."""


class Serving:
    def __init__(self, extension: Extension) -> None:
        self._extension = extension
        self._asked: dict[Id, tuple[str, int]] = {}
        """The methods under way and the size of what came with them, by the number the extension gave its question."""
        self._bytes = 0
        self._loop = asyncio.get_running_loop()
        self._answered = -inf
        """When the user last answered it."""
        self._asker = Asker(
            extension.name,
            extension.capabilities,
            deliver=self._deliver,
            new_id=extension.new_number,
            chain=self._chain,
            denied=extension.report,
        )

    def take(self, id_: Id, method: str, params: Raw | UnsetType) -> None:
        if id_ in self._asked:
            self._extension.peer.mistakes += 1
            self._extension.report(f"it asks {method[:_SHOWN]!r} under a number that is still in use")
            return
        services = self._extension.house.services
        if services is None or not services.knows(method):
            self._extension.refuse(id_, METHOD_NOT_FOUND, f"method not found: {method[:_SHOWN]}{_told_only(method)}")
            return
        size = 0 if params is UNSET else len(memoryview(params))
        if self._bytes + size > _BYTES or not self._begin(services, id_, method, params):
            self._extension.refuse(id_, INTERNAL, f"{method}: too much is under way for this extension")
            return
        self._asked[id_] = (method, size)
        self._bytes += size

    def cancel(self, raw: Raw | UnsetType) -> None:
        """Answered here: what is cancelled before its first step never gets to do it itself."""
        try:
            id_ = read(raw, _Cancelled).id
        except FrameError:
            return
        if isinstance(id_, str | int) and (asked := self._asked.get(id_)) is not None:
            self._extension.requests.cancel(f"{id_}")
            if self._over(id_):
                self._extension.refuse(id_, INTERNAL, f"{asked[0]}: cancelled")

    @property
    def asks_user(self) -> bool:
        """Whether something it asked for waits for the user's answer, or has only just had it: it must have the time to
        make something of that."""
        recently = self._loop.time() < self._answered + _MOMENT
        return recently or any(method in _DIALOGS for method, _ in self._asked.values())

    def stop(self) -> None:
        """It is gone: what it subscribed to ends. What is under way ends with its errands."""
        self._asker.leave()
        self._asked.clear()

    def _begin(self, services: Services, id_: Id, method: str, params: Raw | UnsetType) -> bool:
        return self._extension.requests.run(f"{id_}", self._answer(services, id_, method, params))

    async def _answer(self, services: Services, id_: Id, method: str, params: Raw | UnsetType) -> None:
        try:
            result = await services.answer(method, params, self._asker)
        except ServiceFault as fault:
            hint = f" ({fault.hint})" if fault.hint else ""
            if self._over(id_):
                self._extension.refuse(id_, fault.code, fault.message + hint)
            return
        if not self._over(id_):
            return
        try:
            self._extension.reply(id_, result)
        except FrameError as error:
            self._extension.refuse(id_, INTERNAL, f"{method}: {error.message}")

    def _over(self, id_: Id) -> bool:
        """False when it was answered before."""
        method, size = self._asked.pop(id_, ("", 0))
        self._bytes -= size
        if method in _DIALOGS:
            self._answered = self._loop.time()
        return bool(method)

    def _deliver(self, topic: str, subscription: int, data: Any) -> None:
        self._extension.post_method("eventBus/event", {"topic": topic, "subscriptionId": subscription, "data": data})

    def _chain(self) -> tuple[str, ...]:
        """How deep it is in calls already. It does not say which of them this one is part of: the deepest counts, and
        no name in it, for it may well be part of none."""
        peer = self._extension.peer
        calls = max((len(call.chain) + 1 for call in peer.calls), default=0)
        own = self._extension.name
        # One that calls tools in order to judge calls is asked about those as well.
        judging = [pending.question[0] for pending in peer.verdicts if pending.question]
        verdicts = 1 + sum(question.origin == own for question in judging) if judging else 0
        return tuple(f"{own}#{depth + 1}" for depth in range(max(calls, verdicts)))


def _told_only(method: str) -> str:
    # They take a while to be defined, and hardly anyone asks for such a thing.
    from hilt.wire.jsonrpc_methods import METHODS

    known = METHODS.get(method)
    return " (it is a notification: nobody answers it)" if known and known.kind == "notice" else ""
