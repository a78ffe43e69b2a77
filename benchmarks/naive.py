"""What one writes first: asyncio's streams and the standard library's JSON. Knows tool calls only."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hosts import Args
from programs import Program

_LONGEST = 8 * 1024 * 1024


class Naive:
    """One call at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._ids = itertools.count(1)

    async def ready(self) -> None:
        while (await self._read())["type"] != "ready":
            pass

    async def call(self, tool: str, args: Args) -> str:
        id = str(next(self._ids))  # noqa: A001  # what it is
        assert self._process.stdin
        frame = {"type": "tool_call", "id": id, "name": tool, "args": args}
        self._process.stdin.write(json.dumps(frame, separators=(",", ":")).encode() + b"\n")
        await self._process.stdin.drain()
        while (result := await self._read()).get("id") != id:
            pass
        return str(result["content"][0]["text"])

    async def _read(self) -> Args:
        assert self._process.stdout
        frame: Args = json.loads(await self._process.stdout.readline())
        return frame


@asynccontextmanager
async def opened(program: Program) -> AsyncIterator[Naive]:
    process = await asyncio.create_subprocess_exec(
        *program.argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=_LONGEST
    )
    try:
        naive = Naive(process)
        await naive.ready()
        yield naive
    finally:
        assert process.stdin
        process.stdin.close()
        await process.wait()
