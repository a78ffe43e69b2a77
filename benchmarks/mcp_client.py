"""A client of the Model Context Protocol, as its official Python SDK makes one. Runs where that is installed.

    python mcp_client.py SERVER [ARGUMENT…]

For each number on its stdin it makes so many calls of the tool `echo` and prints the median of their times in seconds.
"""

import asyncio
import sys
import time
from statistics import median

from mcp import ClientSession, StdioServerParameters, stdio_client  # type: ignore[import-not-found]  # elsewhere

TEXT = "x" * 60


async def main(command: str, *args: str) -> None:
    server = StdioServerParameters(command=command, args=list(args))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await session.list_tools()
        while order := sys.stdin.readline():  # blocks: nothing else is to run meanwhile
            taken = []
            for _ in range(int(order)):
                begun = time.perf_counter()
                result = await session.call_tool("echo", {"text": TEXT})
                taken.append(time.perf_counter() - begun)
                assert result.content[0].text == TEXT
            print(median(taken), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
