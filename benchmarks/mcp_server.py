"""A server of the Model Context Protocol with one tool, `echo`, on the low level of the official Python SDK."""

import asyncio
from typing import Any

from mcp import types  # type: ignore[import-not-found]  # it is installed where this runs
from mcp.server.lowlevel import Server  # type: ignore[import-not-found]  # the same
from mcp.server.stdio import stdio_server  # type: ignore[import-not-found]  # the same


async def list_tools(_context: Any, _params: Any) -> Any:
    return types.ListToolsResult(tools=[types.Tool(name="echo", description="echo", input_schema={"type": "object"})])


async def call_tool(_context: Any, params: Any) -> Any:
    return types.CallToolResult(content=[types.TextContent(type="text", text=params.arguments["text"])])


async def main() -> None:
    server = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
