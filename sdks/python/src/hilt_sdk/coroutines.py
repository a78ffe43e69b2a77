"""The loop on which coroutines run, in a thread of its own. `asyncio` is imported with the first one."""

from __future__ import annotations

from _thread import start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine
    from typing import Any


class Coroutines:
    def __init__(self) -> None:
        import asyncio

        self._asyncio = asyncio
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._coroutines: set[Coroutine[Any, Any, None]] = set()
        start_new_thread(self._run, ())

    @property
    def open(self) -> int:
        """How many have begun, or are about to, and have not ended."""
        return len(self._coroutines)

    def start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """From any thread."""
        self._coroutines.add(coroutine)
        self._loop.call_soon_threadsafe(self._begin, coroutine)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self) -> None:
        self._asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(lambda ended: self._done(ended, coroutine))

    def _done(self, task: asyncio.Task[None], coroutine: Coroutine[Any, Any, None]) -> None:
        self._tasks.discard(task)
        self._coroutines.discard(coroutine)
