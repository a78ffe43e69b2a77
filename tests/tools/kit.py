"""A workspace in a temporary folder with the built-in tools, and ways to look at processes."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hilt.context.skills import Skill
from hilt.errors import ToolError
from hilt.model.content import Text
from hilt.model.contributions import Invocation, ToolOutput
from hilt.tools import builtin_tools
from hilt.tools.jail import Jail
from hilt.tools.shell import Shell
from hilt.tools.workspace import Workspace


class Bench:
    def __init__(self, folder: Path, shell: Shell | None = None, skills: tuple[Skill, ...] = ()) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self.progress: list[str] = []
        self.remembered: list[tuple[str, Path, bytes | None]] = []
        self.workspace = Workspace(self.root, Jail(self.root), folder / "outputs", self._remember, {"COLOUR": "green"})
        self.tools = {tool.name: tool for tool in builtin_tools(self.workspace, shell or Shell(), skills)}

    def _remember(self, call_id: str, path: Path) -> None:
        self.remembered.append((call_id, path, path.read_bytes() if path.exists() else None))

    async def _show(self, text: str) -> None:
        self.progress.append(text)

    async def call(self, tool: str, /, **args: Any) -> ToolOutput:
        return await self.tools[tool].invoke(Invocation("call-1", args, self._show))

    async def text(self, tool: str, /, **args: Any) -> str:
        block = (await self.call(tool, **args)).content[0]
        assert isinstance(block, Text)
        return block.text

    async def refusal(self, tool: str, /, **args: Any) -> str:
        try:
            output = await self.call(tool, **args)
        except ToolError as error:
            return error.message
        raise AssertionError(f"it was not refused: {output}")

    async def preview(self, tool: str, /, **args: Any) -> str:
        make = self.tools[tool].preview
        assert make is not None
        return (await make(args)).text


async def until(condition: Callable[[], object], seconds: float = 45) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def runs(pid: int) -> bool:
    """Whether the process is there and more than a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def zombies() -> list[int]:
    """Dead children of this process that nobody has reaped."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] == "Z" and int(fields[1]) == os.getpid():
            found.append(int(entry.name))
    return found


def pid_in(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
