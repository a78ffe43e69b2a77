"""Golden conversations against the real host: a session in memory, all of hilt but its process, or `hilt rpc`.

    await replay(read(path), tmp_path, in_memory)

Each extension is a real process, a puppet whose pipes end here: see `hilt.authoring.player`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from hilt.agent.session import Session
from hilt.authoring import player
from hilt.authoring.hosts import by_command
from hilt.authoring.player import PATIENCE, Host, Opener
from hilt.authoring.puppets import json_line as line_of
from hilt.authoring.streams import Told
from hilt.authoring.transcripts import Conversation
from hilt.cli.flags import parse
from hilt.cli.serving import Client
from hilt.cli.wiring import assemble
from hilt.errors import HiltError
from hilt.frontends.encode import event_json, json_line, public
from hilt.frontends.rpc_commands import COMMANDS, Later, RpcParts, Services, taken
from hilt.model.actions import Action
from hilt.model.events import Event
from hilt.tools import builtin_tools
from hilt.tools.jail import Jail
from hilt.tools.shell import Shell
from hilt.tools.workspace import Workspace
from support.extending import Made, extended
from support.hilt_process import Hilt, living_in, running_with


class Piglet(Made):
    """An extension of the jsonrpc dialect, to be written to disk."""

    def write(self, folder: Path) -> Path:
        directory = folder / self.name
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "manifest.yaml").write_text(json.dumps({"name": self.name, **self.manifest}))  # which is YAML, too
        for name, text in self.files.items():
            (directory / name).write_text(text)
        return directory


class _Written(Made):
    """One that is on disk already."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory.name, {})
        self._directory = directory

    def write(self, folder: Path) -> Path:
        return self._directory


async def replay(
    conversation: Conversation, folder: Path, open_host: Opener, patience: float = PATIENCE, pipes: str = "fd"
) -> list[bytes]:
    """Play it to its end, after which nothing is left. Every line that the host wrote to an extension."""
    with TemporaryDirectory(prefix="puppets-") as sockets:
        lines = await player.play(conversation, folder, open_host, Path(sockets), patience=patience, pipes=pipes)
        assert not running_with(sockets), "a process outlived its host"
    return lines


# Hosts


class _Memory:
    def __init__(
        self, session: Session, group: asyncio.TaskGroup, tell: Callable[[Told], None], parts: RpcParts | None = None
    ) -> None:
        self._session = session
        self._group = group
        self._tell = tell
        self._parts = parts
        self.stopping = asyncio.Event()

    def send(self, command: Told) -> None:
        self._group.create_task(_Call(self._session, command, self._tell, self._parts).answer())

    def stop(self) -> None:
        self.stopping.set()


class _Call:
    """A command in memory, done by what does it for `hilt rpc`."""

    parts: RpcParts
    services: Services

    def __init__(
        self, session: Session, command: Told, tell: Callable[[Told], None], parts: RpcParts | None = None
    ) -> None:
        self.session = session
        if parts:
            self.parts = parts
            if parts.serve:
                self.services = parts.serve(lambda *_: None)
        self._command = COMMANDS[command["type"]]
        self._id = command["id"]
        self._tell = tell
        self.request: Any = msgspec.json.decode(line_of(command), type=self._command.fields)

    async def answer(self) -> None:
        try:
            data = await self._command.do(self)
        except HiltError as error:
            await self.fail(error.message)
        else:
            if not isinstance(data, Later):
                self._respond(success=True, data=data)

    def authenticate(self, token: str) -> None:
        raise AssertionError("nobody asked for a token")

    async def started(self) -> None:
        self._respond(success=True, data={"started": True})

    async def withdrawn(self) -> None:
        await self.fail("taken back before it started")

    async def ran(self, actions: tuple[Action, ...]) -> None:
        self._respond(success=True, data=taken(actions))

    async def failed(self, error: HiltError) -> None:
        await self.fail(error.message)

    async def fail(self, error: str) -> None:
        self._respond(success=False, error=error)

    def _respond(self, **fields: Any) -> None:
        self._tell(json.loads(json_line({"type": "response", "id": self._id, **fields})))


@asynccontextmanager
async def in_memory(
    folder: Path, conversation: Conversation, directories: list[Path], tell: Callable[[Told], None]
) -> AsyncIterator[Host]:
    """A session without a process of its own, with the built-in tools."""
    begun: asyncio.Future[_Memory] = asyncio.get_running_loop().create_future()

    async def show(event: Event) -> None:
        if public(event):
            tell(json.loads(json_line(event_json(event))))

    async def live() -> None:
        _write_files(folder, conversation)
        workspace = Workspace(folder, Jail(folder), folder / "outputs")
        async with (
            Shell() as shell,
            extended(
                folder, *map(_Written, directories), turns=conversation.model(), offered=builtin_tools(workspace, shell)
            ) as it,
            it.session.bus.faced(show),
            asyncio.TaskGroup() as group,
        ):
            host = _Memory(it.session, group, tell)
            begun.set_result(host)
            await host.stopping.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(live())
        yield await begun


@asynccontextmanager
async def in_process(
    folder: Path, conversation: Conversation, directories: list[Path], tell: Callable[[Told], None]
) -> AsyncIterator[Host]:
    """All of hilt, put together as `hilt rpc` does it, with a home of its own, but in this process."""
    hilt = Hilt(folder)
    _write_files(hilt.project, conversation)
    flags = [word for one in directories for word in ("--ext", str(one))]
    begun: asyncio.Future[_Memory] = asyncio.get_running_loop().create_future()

    async def show(event: Event) -> None:
        if public(event):
            tell(json.loads(json_line(event_json(event))))

    async def live() -> None:
        options = parse(["rpc", *hilt.script(*conversation.model()), *flags])
        async with (
            assemble(options, can_ask=True) as app,
            app.session.bus.faced(show),
            asyncio.TaskGroup() as group,
        ):
            serve = partial(Client, app.services) if app.services else None
            parts = RpcParts(app.session, app.questions, app.models, app.store, app.mask, serve=serve)
            host = _Memory(app.session, group, tell, parts)
            begun.set_result(host)
            await host.stopping.wait()
            app.questions.close()

    with living_in(hilt):
        async with asyncio.TaskGroup() as group:
            group.create_task(live())
            yield await begun


as_process = by_command("hilt rpc --provider script --script {script} --ext {ext}")
"""The real `hilt rpc`."""


def _write_files(folder: Path, conversation: Conversation) -> None:
    for name, text in conversation.files.items():
        (folder / name).write_text(text)
