"""Asking an RPC client for permission: a `ui_request` out, its `ui_response` in."""

import asyncio
from collections.abc import Callable
from itertools import count

from hilt.agent.bus import Bus
from hilt.errors import UsageError
from hilt.frontends.rpc_requests import UiResponse
from hilt.model.events import Event, PermissionAsked, TrustAsked
from hilt.model.ports import PermissionAnswer, PermissionRequest

_GONE = PermissionAnswer(approved=False, reason="permission denied: the client that could have been asked is gone")


class RpcApprover:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._ids = count(1)
        self._open: dict[str, asyncio.Future[PermissionAnswer]] = {}
        self._closed = False

    async def ask(self, request: PermissionRequest) -> PermissionAnswer:
        """Wait for the person at the other end; cancelling the turn withdraws the question."""
        return await self._answered(lambda id_: PermissionAsked(id_, request))

    async def confirm(self, folder: str, commands: tuple[tuple[str, tuple[str, ...]], ...], text: str) -> bool:
        """Whether the extensions that came with a folder may run."""
        answer = await self._answered(lambda id_: TrustAsked(id_, folder, commands, text))
        return answer.approved

    def answer(self, response: UiResponse) -> None:
        future = self._open.get(response.id)
        if future is None or future.done():
            raise UsageError(f"no open request {response.id}")
        if response.cancelled:
            future.set_result(PermissionAnswer(approved=False, reason=response.reason or "the user dismissed it"))
        else:
            future.set_result(PermissionAnswer(response.approved, response.reason, response.scope))

    async def _answered(self, question: Callable[[str], Event]) -> PermissionAnswer:
        if self._closed:
            return _GONE
        id_ = f"ui-{next(self._ids)}"
        answer: asyncio.Future[PermissionAnswer] = asyncio.get_running_loop().create_future()
        self._open[id_] = answer
        try:
            await self._bus.emit(question(id_))
            return await answer
        finally:
            del self._open[id_]

    def close(self) -> None:
        """Nobody can answer any more: whatever is or will be asked is refused."""
        self._closed = True
        for future in self._open.values():
            if not future.done():
                future.set_result(_GONE)
