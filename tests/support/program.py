"""All of `hilt` as it is in a terminal, with a home of its own, but in this process and without the terminal.

async with program(hilt, *hilt.script(says("hello"))) as window:
    window.say("hi")
    await window.shows("hello")
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from textual.events import Paste
from textual.pilot import Pilot

from hilt.agent.session import Session
from hilt.cli.faces import Interrupts
from hilt.cli.flags import parse
from hilt.cli.terminal import show
from hilt.frontends.tui import app as apps
from support.hilt_process import Hilt, living_in
from support.interface import DEADLINE, Window


@dataclass
class Program(Window):
    running: "asyncio.Task[int]"
    opened: list[apps.HiltApp]

    @property
    def session(self) -> Session:
        assert self.app.client
        return self.app.client.session

    def say(self, text: str) -> None:
        """As if it was typed into the input."""
        assert self.app.client
        self.app.client.submit(text)

    async def type(self, text: str, *keys: str) -> None:
        """Words into a dialog, and the keys after them."""
        dialog = await self.until(lambda: self.dialog, "there is a dialog")
        dialog.post_message(Paste(text))  # at once: keys that are pressed one by one take their time
        await self.press(*keys)

    async def reopened(self) -> "Program":
        """The same in another directory, once it has begun again."""
        return await _begun(self.opened, self.running, 1)

    async def ended(self) -> int:
        """The exit code."""
        await asyncio.wait({self.running}, timeout=DEADLINE)
        assert self.running.done(), "it goes on"
        return self.running.result()


@asynccontextmanager
async def program(hilt: Hilt, *arguments: str, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Program]:
    """From when there is a session, until it ends by itself or with the block."""
    opened: list[apps.HiltApp] = []
    failed: AssertionError | None = None

    class Unseen(apps.HiltApp):
        """Without a terminal to draw on."""

        async def run_async(self, **_: Any) -> None:
            opened.append(self)
            await super().run_async(headless=True, size=size)

    with living_in(hilt), mock.patch.object(apps, "HiltApp", Unseen):
        async with asyncio.TaskGroup() as group:
            running = group.create_task(show(parse(list(arguments)), Interrupts(), lambda: None))
            window = await _begun(opened, running)
            try:
                with window.app.on_stage():
                    yield window
            except AssertionError as error:
                failed = error  # told by itself, and not as one of a group
            if not running.done():
                opened[-1].exit()
    if failed:
        raise failed


async def _begun(opened: list[apps.HiltApp], running: "asyncio.Task[int]", number: int = 0) -> Program:
    async with asyncio.timeout(DEADLINE):
        while not running.done() and not (len(opened) > number and opened[number].client):
            await asyncio.sleep(0.01)
    return Program(opened[number], Pilot(opened[number]), running, opened)
