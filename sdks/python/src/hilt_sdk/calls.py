"""A tool call under way, as its handler sees it: progress, cancellation, calls of other tools on its behalf."""

from __future__ import annotations

from hilt_sdk.transport import log
from hilt_sdk.values import explained

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from hilt_sdk.host import Aio
    from hilt_sdk.link import Link
    from hilt_sdk.values import Result


class Call:
    """Given to a handler whose parameter has this type."""

    __slots__ = ("_cancelled", "_link", "_listeners", "_waiting", "id", "name")

    def __init__(self, link: Link, call_id: str, name: str) -> None:
        self._link = link
        self.id = call_id
        self.name = name
        """Of the tool."""
        self._cancelled = False
        self._listeners: list[Callable[[], object]] = []
        self._waiting: set[Any] = set()

    @property
    def cancelled(self) -> bool:
        """Nobody waits for the answer any more."""
        return self._cancelled

    def progress(self, text: str) -> None:
        """Show output while the tool still runs. A host that cannot leaves it out."""
        self._link.progress(self.id, text)

    def on_cancel(self, function: Callable[[], object]) -> Callable[[], object]:
        """Have it called when the call is cancelled; at once if it was already."""
        self._listeners.append(function)
        if self._cancelled:
            self.cancel()
        return function

    def wait(self, seconds: float) -> bool:
        """Sleep so long, or until the call is cancelled: then it is True."""
        from _thread import allocate_lock

        self._link.runner.step_aside()
        lock = allocate_lock()
        lock.acquire()
        self._waiting.add(lock)
        if not self._cancelled:
            lock.acquire(timeout=max(seconds, 0.0))
        self._waiting.discard(lock)
        return self._cancelled

    async def sleep(self, seconds: float) -> bool:
        """The same in a coroutine."""
        import asyncio

        loop, event = asyncio.get_running_loop(), asyncio.Event()
        self.on_cancel(lambda: loop.call_soon_threadsafe(event.set))
        await asyncio.wait([asyncio.ensure_future(event.wait())], timeout=seconds)  # noqa: TID251  # since 3.10
        return self._cancelled

    def call_tool(self, name: str, args: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Result:
        """Run another tool on behalf of this call. Raises `NotOffered`; that the tool failed is in the result."""
        return self._link.call_tool(name, dict(args or {}), self.id, timeout)

    @property
    def aio(self) -> Aio:
        """The same for coroutines: `await call.aio.call_tool(…)`."""
        from hilt_sdk.host import Aio

        return Aio(self)

    def cancel(self) -> None:
        """The host, or the end of the process, has given it up."""
        self._cancelled = True
        for lock in list(self._waiting):
            if lock.locked():
                lock.release()
        while self._listeners:
            listener = self._listeners.pop(0)
            try:
                listener()
            except Exception as error:  # noqa: BLE001  # the author's; one that fails must not keep the others from it
                log(f"{self.name}: on_cancel failed: {explained(error)}")
