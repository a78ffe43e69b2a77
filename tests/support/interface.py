"""The terminal interface around a real session with a scripted model and real extensions, without a terminal.

async with interface(tmp_path, tool("t"), turns=[calls(("t", {})), says("done")]) as face:
    face.say("go")
    await face.shows("Allow t?")
    await face.answer("y")
    await face.shows("done")
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from textual.events import Key
from textual.pilot import Pilot

from hilt.agent.permissions import Permissions
from hilt.frontends.approver import UserApprover
from hilt.frontends.tui.app import HiltApp
from hilt.frontends.tui.client import Client
from hilt.frontends.tui.dialogs.dialog import Dialog
from hilt.frontends.tui.presenter import Presenter
from hilt.model.actions import PermissionMode
from hilt.model.ports import PermissionAnswer, PermissionRequest
from hilt.tools import builtin_tools
from hilt.tools.jail import Jail
from hilt.tools.shell import Shell
from hilt.tools.workspace import Workspace
from support.extending import Extended, Made, extended

DEADLINE = 45.0


@dataclass
class Window:
    """What a person sees and presses."""

    app: HiltApp
    pilot: Pilot[None]
    _began: WeakKeyDictionary[Dialog[Any], float] = field(init=False, default_factory=WeakKeyDictionary)

    # What a person does

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def answer(self, *keys: str) -> None:
        """Once whoever asks listens."""
        await self.until(lambda: isinstance(self.app.screen, Dialog) and self.app.screen.listening, "it listens")
        await self.pilot.press(*keys)

    async def typed(self, name: str, after: float) -> None:
        """A key, so long after the dialog on top came into sight, however slow this machine is."""
        dialog = self.dialog
        assert dialog
        await self.until(lambda: dialog._since is not None)
        key = Key(name, name if len(name) == 1 else None)
        key.time = self._began.setdefault(dialog, dialog._since or 0.0) + after
        self.app.post_message(key)
        await self.pilot.pause()

    # What a person sees

    @property
    def dialog(self) -> Dialog[Any] | None:
        return self.app.screen if isinstance(self.app.screen, Dialog) else None

    @property
    def rows(self) -> list[str]:
        """Of whatever is on top."""
        shown = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in row).rstrip() for row in shown]

    @property
    def text(self) -> str:
        return "\n".join(self.rows)

    async def until(self, holds: Callable[[], Any], what: str = "") -> Any:
        try:
            async with asyncio.timeout(DEADLINE):
                while not (value := holds()):
                    await self.pilot.pause(0.01)
                return value
        except TimeoutError:
            raise AssertionError(f"it never happened: {what or holds}; the screen:\n{self.text}") from None

    async def shows(self, *texts: str) -> str:
        await self.until(lambda: all(text in self.text for text in texts), f"{texts} on the screen")
        return self.text

    async def shows_no(self, text: str) -> None:
        await self.until(lambda: text not in self.text, f"no {text} on the screen")


@dataclass
class Face(Window):
    client: Client
    it: Extended

    def say(self, text: str = "go") -> None:
        self.client.submit(text)


class _Later:
    """An approver for a session that must exist before there is anybody to ask."""

    approver: UserApprover

    async def ask(self, request: PermissionRequest) -> PermissionAnswer:
        return await self.approver.ask(request)


@asynccontextmanager
async def interface(
    folder: Path,
    *made: Made,
    turns: list[dict[str, Any]] | None = None,
    mode: PermissionMode = "ask",
    size: tuple[int, int] = (80, 24),
    **more: Any,
) -> AsyncIterator[Face]:
    """With the built-in tools. All extensions are ready when it begins. `more` is what `extended` takes."""
    asked, app, clock = _Later(), HiltApp(), asyncio.get_running_loop().time
    async with Shell() as shell:
        tools = builtin_tools(Workspace(folder, Jail(folder), folder / "outputs"), shell)
        permissions = Permissions(mode, asked)
        async with extended(folder, *made, turns=turns, offered=tools, permissions=permissions, **more) as it:
            asked.approver = UserApprover(it.questions)
            await it.ready(*(one.name for one in made))
            async with app.run_test(size=size) as pilot, Client(it.session, it.questions, app.complain) as client:
                presenter = Presenter(
                    it.session, app.scene, ask=app.ask, withdraw=app.withdraw, leave=app.leave, clock=clock
                )
                app.attach(client, presenter)
                async with it.session.bus.faced(presenter):
                    yield Face(app, pilot, client, it)
                it.session.abort()
