"""The shell: runs commands and owns every process they leave, until it is closed.

A command's caller gets its answer when the command itself exits, or leaves at once when cancelled.
What still runs then belongs to the shell. Background processes live on until they end by themselves
or the shell closes; after that nothing of a command is left.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

from hilt.errors import ToolError
from hilt.tools.job import TICK, Command, Ending, Job, Limits, pause
from hilt.tools.output import Follower, Shown, discard

_SETTLE = 0.5  # how long an ended command may take to die before the answer no longer waits for it


class Finished(Struct, frozen=True):
    ending: Ending
    exit_code: int | None
    """None when the command was ended rather than ending."""
    output: Path
    """Everything it wrote. The receiver removes it when it has no use for it."""
    shown: Shown
    background: bool
    """Whether a process it started still has the output open."""
    seconds: float


class Shell:
    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._closing = asyncio.Event()
        self._jobs: asyncio.TaskGroup | None = None

    async def __aenter__(self) -> Self:
        self._jobs = await asyncio.TaskGroup().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._jobs is not None
        self._closing.set()
        # The block's own exception is not passed on: it would cancel the jobs, which now end by themselves
        # within the closing grace. Being cancelled here ends them at once.
        await self._jobs.__aexit__(None, None, None)

    async def run(self, command: Command, progress: Callable[[str], Awaitable[None]]) -> Finished:
        """Run a command, showing its output as it comes. `OSError` or `ValueError` when it cannot be started."""
        if self._jobs is None or self._closing.is_set():
            raise ToolError("the shell is closed")
        start = time.monotonic()
        job = Job(command, self._limits, self._closing)
        self._jobs.create_task(job.live())
        follower = Follower(job.output)
        try:
            while not job.over.is_set():
                await pause(job.over, TICK)
                if text := follower.next():
                    await progress(text)
            if job.failure is not None:
                raise job.failure
            if job.ending != "exit":
                await pause(job.gone, _SETTLE)
            if text := follower.next(final=True):
                await progress(text)
            seconds = time.monotonic() - start
            shown = await asyncio.to_thread(follower.shown)
            return Finished(job.ending, job.exit_code, job.output, shown, follower.is_held(), seconds)
        except BaseException:
            discard(job.output)
            raise
        finally:
            job.leave()
            follower.close()
