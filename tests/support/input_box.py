"""The input by itself, in an app that has nothing else but a text above it, and what was sent with it.

async with input_box(commands=[...], files=[...]) as box:
    await box.press("/", "h", "tab")
    assert box.text == "/help "
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from textual.app import App
from textual.pilot import Pilot
from textual.widget import Widget

from hilt.frontends.tui.editor.completion import Completion
from hilt.frontends.tui.editor.editor import Editor
from hilt.frontends.tui.editor.surroundings import Surroundings
from hilt.frontends.tui.look import DARK, Look
from hilt.model.actions import Action
from hilt.model.contributions import Command
from hilt.registry.snapshot import OwnedCommand

LOOK = Look.of(DARK)
DEADLINE = 45.0


class Above(Widget):
    DEFAULT_CSS = "Above { height: 1fr; }"

    def render(self) -> str:
        return "\n".join(f"line {number} of the conversation" for number in range(50))


class Box(App[None]):
    ENABLE_COMMAND_PALETTE = False
    CSS = "Screen { layout: vertical; }"

    def __init__(self, typed: str) -> None:
        super().__init__()
        self.sent: list[str] = []
        self._typed = typed

    def compose(self) -> Iterable[Widget]:
        popup = Completion(LOOK)
        yield Above()
        yield popup
        yield Editor(LOOK, popup, self._typed)

    def on_mount(self) -> None:
        self.query_one(Editor).focus()

    def on_editor_submitted(self, message: Editor.Submitted) -> None:
        self.sent.append(message.text)


class Listed:
    """Files that are known once they were looked for."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.looked = 0

    async def refresh(self) -> None:
        self.looked += 1

    def match(self, query: str, limit: int = 12) -> list[str]:
        return [name for name in self._names if query in name][:limit] if self.looked else []


@dataclass
class Typing:
    app: Box
    pilot: Pilot[None]
    editor: Editor
    files: Listed
    waiting: list[str] = field(default_factory=list)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def write(self, text: str) -> None:
        """Key by key."""
        await self.pilot.press(*("space" if letter == " " else letter for letter in text))

    @property
    def text(self) -> str:
        return self.editor.text

    @property
    def sent(self) -> list[str]:
        return self.app.sent

    @property
    def rows(self) -> list[str]:
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def screen(self) -> str:
        return "\n".join(self.rows)

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(DEADLINE):
            while not holds():
                await self.pilot.pause(0.01)


def command(name: str, usage: str = "", description: str = "", owner: str = "hilt") -> OwnedCommand:
    async def run(_: str) -> tuple[Action, ...]:
        return ()

    return OwnedCommand(owner, Command(name, description, run, usage))


@asynccontextmanager
async def input_box(
    *,
    commands: Sequence[OwnedCommand] = (),
    files: Sequence[str] = (),
    waiting: Sequence[str] = (),
    typed: str = "",
    size: tuple[int, int] = (80, 24),
) -> AsyncIterator[Typing]:
    app, listed, queue = Box(typed), Listed(files), list(waiting)

    async def take_back() -> list[str]:
        taken = list(queue)
        queue.clear()
        return taken

    async with app.run_test(size=size) as pilot, asyncio.TaskGroup() as group:

        def do(work: Coroutine[Any, Any, object], what: str) -> object:
            async def done() -> None:
                await work

            return group.create_task(done(), name=what)

        back: Callable[[], Awaitable[list[str]]] = take_back
        editor = app.query_one(Editor)
        editor.attach(Surroundings(lambda: commands, listed, lambda: bool(queue), back, do))
        yield Typing(app, pilot, editor, listed, queue)
