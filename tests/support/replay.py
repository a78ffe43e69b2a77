"""Replays a golden conversation against the real host, playing the extensions; every wait has a deadline.

    await replay(read(path), tmp_path, in_memory)

Each extension is a real process, a puppet whose pipes end here. The host is a session in memory, all of hilt but its
process, or `hilt rpc`.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeAlias

import msgspec

from hilt.agent.session import Session
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
from support.transcript import Conversation, Step, filled, filled_text, matched

PUPPET = Path(__file__).with_name("puppet.py")
PATIENCE = 20.0
"""Seconds that no wait for a single thing takes; a healthy one takes a fraction of one."""
_LONGEST_LINE = 4 * 1024 * 1024

Told: TypeAlias = dict[str, Any]


class Stream:
    """What came, in its order, and how far the conversation has taken notice of it."""

    def __init__(self, name: str) -> None:
        self._name = name
        """As in: a frame from `the host`."""
        self.came: list[Told] = []
        self.taken = 0
        self.settled: set[int] = set()
        """Questions that are answered, or that a step has taken and will answer."""
        self.banned: list[Step] = []
        """What must not come before the next thing that is waited for."""
        self.over = asyncio.Event()
        self._news = asyncio.Event()

    def put(self, told: Told) -> None:
        self.came.append(told)
        self._news.set()

    def end(self) -> None:
        self.over.set()
        self._news.set()

    async def take(self, step: Step, variables: dict[str, Any], patience: float) -> dict[str, Any]:
        """Pass over what comes until something contains the pattern. The variables as they are then."""
        first = self.taken
        try:
            async with asyncio.timeout(patience):
                return await self._search(step, variables)
        except TimeoutError:
            raise AssertionError(f"{_shown(step)} never came from {self._name}, but {self.came[first:]}") from None

    async def _search(self, step: Step, variables: dict[str, Any]) -> dict[str, Any]:
        while True:
            while self.taken < len(self.came):
                told = self.came[self.taken]
                self.taken += 1
                if (found := matched(told, step.value, variables)) is not None:
                    self.settled.add(self.taken - 1)
                    self.banned.clear()
                    return found
                self._check(told)
            assert not self.over.is_set(), f"{_shown(step)} never came from {self._name}, which has ended"
            self._news.clear()
            await self._news.wait()

    def check_rest(self) -> None:
        """What nobody waits for any more must not be forbidden either."""
        for told in self.came[self.taken :]:
            self._check(told)

    def _check(self, told: Told) -> None:
        for step in self.banned:
            assert matched(told, step.value, {}) is None, f"{_shown(step)}, but it came from {self._name}: {told}"


class Host(Protocol):
    """A host under test, spoken to in the words of `hilt rpc`."""

    def send(self, command: Told) -> None:
        """Have something done, and do not wait for it. The response has the command's id."""

    def stop(self) -> None:
        """Begin to end it."""


Opener: TypeAlias = Callable[
    [Path, Conversation, list[Made], Callable[[Told], None]], AbstractAsyncContextManager[Host]
]
"""Starts a host in a folder, which tells the last argument every event and response from the first on. Its end is
awaited."""


class Piglet(Made):
    """An extension of the jsonrpc dialect, to be written to disk."""

    def write(self, folder: Path) -> Path:
        directory = folder / self.name
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "manifest.yaml").write_text(json.dumps({"name": self.name, **self.manifest}))  # which is YAML, too
        for name, text in self.files.items():
            (directory / name).write_text(text)
        return directory


class Actor:
    """The far end of one extension's pipes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.frames = Stream(f"the host, to {name}")
        self.lines: list[bytes] = []
        self._writer: asyncio.StreamWriter | None = None
        self._here = asyncio.Event()
        self._news: Callable[[], None] = lambda: None

    @asynccontextmanager
    async def playing(self, socket: Path, news: Callable[[], None]) -> AsyncIterator[None]:
        """Wait for the process to come, and leave it when the block ends."""
        self._news = news
        server = await asyncio.start_unix_server(self._meet, socket, limit=_LONGEST_LINE)
        try:
            yield
        finally:
            self.leave()
            server.close()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._writer is None, f"{self.name} was started twice"
        self._writer = writer
        self._here.set()
        while line := await reader.readline():
            self.lines.append(line)
            self.frames.put(json.loads(line))
            self._news()
        self.frames.end()

    async def say(self, text: bytes, patience: float) -> None:
        try:
            async with asyncio.timeout(patience):
                await self._here.wait()
                assert self._writer
                self._writer.write(text)
                await self._writer.drain()
        except TimeoutError:
            raise AssertionError(f"{self.name} was not started") from None

    async def heard_all(self, patience: float) -> None:
        """Wait until the host has closed the pipe."""
        try:
            async with asyncio.timeout(patience):
                await self.frames.over.wait()
        except TimeoutError:
            raise AssertionError(f"the pipe to {self.name} was not closed") from None
        self.frames.check_rest()

    def answer(self, answer: Told) -> None:
        assert self._writer
        self._writer.write(_line(answer))

    def leave(self) -> None:
        if self._writer:
            self._writer.close()


class Player:
    def __init__(self, conversation: Conversation, actors: dict[str, Actor], patience: float) -> None:
        self._conversation = conversation
        self._actors = actors
        self._patience = patience
        self._events = Stream("the host")
        self._responses: dict[str, asyncio.Future[Told]] = {}
        self._variables: dict[str, Any] = {}
        self._at = 0
        self._asked = ""

    def heard(self, told: Told) -> None:
        """The host has emitted an event, or answered."""
        if told["type"] != "response":
            self._events.put(told)
        elif not (response := self._responses[told["id"]]).done():
            response.set_result(told)

    async def play(self, host: Host) -> None:
        for step in self._conversation.steps:
            await self._take(step, host)
            self._at += 1
            self.allow_unasked()
        host.stop()
        for actor in self._actors.values():
            await actor.heard_all(self._patience)
            actor.leave()
        self._events.check_rest()
        self._check_health()

    def _check_health(self) -> None:
        """Nothing crashed, and the host has nothing to complain about unless that is what it is about."""
        trouble: list[Told] = [{"type": "ext_status", "state": "restarting"}]
        if "failing" not in self._conversation.needs:
            trouble.append({"type": "ext_status", "state": "failed"})
        if "raw" not in self._conversation.needs:
            trouble.append({"type": "notice", "level": "warn"})
        for event in self._events.came:
            assert all(matched(event, pattern, {}) is None for pattern in trouble), event

    async def _take(self, step: Step, host: Host) -> None:
        actor = self._actors.get(step.of)
        match step.kind:
            case "ext" | "ext_raw" if actor:
                raw = step.kind == "ext_raw"
                variables = self._variables
                said = filled_text(step.value, variables).encode() if raw else _line(filled(step.value, variables))
                await actor.say(said, self._patience)
            case "host" if actor:
                self._variables = await actor.frames.take(step, self._variables, self._patience)
            case "host_not" if actor:
                actor.frames.banned.append(step)
            case "host_end" if actor:
                await actor.heard_all(self._patience)
            case "do":
                self._do(step, host)
            case "expect":
                self._variables = await self._events.take(step, self._variables, self._patience)
            case "expect_not":
                self._events.banned.append(step)
            case "expect_response":
                await self._response(step)
            case _:
                raise AssertionError(f"line {step.line}: nobody plays {step.kind}")

    def _do(self, step: Step, host: Host) -> None:
        if command := _command(filled(step.value, self._variables)):
            command.setdefault("id", str(step.line))  # an answer has the id of its question
            self._asked = command["id"]
            self._responses[self._asked] = asyncio.get_running_loop().create_future()
            host.send(command)
        elif "stop" in step.value:
            host.stop()

    async def _response(self, step: Step) -> None:
        try:
            async with asyncio.timeout(self._patience):
                response = await asyncio.shield(self._responses[self._asked])
        except TimeoutError:
            raise AssertionError(f"{_shown(step)} never came") from None
        found = matched(response, step.value, self._variables)
        assert found is not None, f"line {step.line}: {step.value} is not in {response}"
        self._variables = found

    def allow_unasked(self) -> None:
        """Answer the questions that the conversation has no interest in."""
        for actor in self._actors.values():
            ahead = [
                step for step in self._conversation.steps[self._at :] if (step.kind, step.of) == ("host", actor.name)
            ]
            for index, frame in enumerate(actor.frames.came):
                if index not in actor.frames.settled and (answer := _harmless(frame)):
                    wanted = index >= actor.frames.taken and self._wanted(frame, ahead)
                    if not wanted:
                        actor.frames.settled.add(index)
                        actor.answer(answer)

    def _wanted(self, frame: Told, ahead: Iterable[Step]) -> bool:
        return any(matched(frame, step.value, self._variables) is not None for step in ahead)


async def replay(
    conversation: Conversation, folder: Path, open_host: Opener, patience: float = PATIENCE, pipes: str = "fd"
) -> list[bytes]:
    """Play it to its end. Every line that the host wrote to an extension. `pipes` are those of the jsonrpc dialect."""
    try:
        return await _replay(conversation, folder, open_host, patience, pipes)
    except BaseExceptionGroup as group:
        raise _first(group) from None


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


async def _replay(
    conversation: Conversation, folder: Path, open_host: Opener, patience: float, pipes: str
) -> list[bytes]:
    actors = {name: Actor(name) for name in conversation.extensions}
    player = Player(conversation, actors, patience)
    async with asyncio.timeout(2 * PATIENCE), AsyncExitStack() as stack:
        sockets = stack.enter_context(TemporaryDirectory(prefix="puppets-"))  # a socket's path must be short
        for actor in actors.values():
            await stack.enter_async_context(actor.playing(Path(sockets, actor.name), player.allow_unasked))
        made = [_puppet(name, Path(sockets, name), conversation.dialect, pipes) for name in conversation.extensions]
        async with open_host(folder, conversation, made, player.heard) as host:
            try:
                await player.play(host)
            finally:
                host.stop()
                for actor in actors.values():
                    actor.leave()
        assert not running_with(sockets), "a process outlived its host"
    return [line for actor in actors.values() for line in actor.lines]


def _puppet(name: str, socket: Path, dialect: str, pipes: str) -> Made:
    if dialect == "frames":
        return Made(name, {"version": "1.0.0", "exec": sys.executable, "args": ["-I", "-S", str(PUPPET), str(socket)]})
    entry = socket.with_suffix(".py")  # a program of this dialect has no arguments, but a name
    entry.symlink_to(PUPPET)
    manifest = {"version": "1.0.0", "runtime": sys.executable, "entry": str(entry), "pipes": pipes}
    return Piglet(name, manifest)


def _harmless(frame: Told) -> Told | None:
    """What an extension says that has no objection, if it is asked for one."""
    match frame:
        case {"type": "event_intercept", "id": id_}:
            return {"type": "event_intercept_response", "id": id_}
        case {"type": "ext_request", "id": id_, "method": method, "params": params} if method in _HARMLESS:
            return {"type": "ext_response", "id": id_, "result": _HARMLESS[method](params)}
        case {"id": id_, "method": method, "params": params} if method in _HARMLESS:
            return {"jsonrpc": "2.0", "id": id_, "result": _HARMLESS[method](params)}
    return None


_HARMLESS: dict[str, Callable[[Told], Told]] = {
    "event/dispatch": lambda _: {"action": None},
    "interceptor/before": lambda _: {"allow": True},
    "interceptor/after": lambda params: {"details": params.get("details")},
    "interceptor/event": lambda _: {},
}


def _shown(step: Step) -> str:
    return f"line {step.line}: {step.kind} {step.value}"


def _line(frame: Told) -> bytes:
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _command(doing: Told) -> Told | None:
    """What happens, as a client of `hilt rpc` says it."""
    match doing:
        case {"prompt": message}:
            return {"type": "prompt", "message": message}
        case {"command": name}:
            return {"type": "command", "name": name, "args": doing.get("args", "")}
        case {"input": text}:
            return {"type": "input", "text": text}
        case {"shortcut": key}:
            return {"type": "shortcut", "key": key}
        case {"abort": True} | {"compact": True}:
            return {"type": next(iter(doing))}
        case {"host": method}:
            return {"type": "host", "method": method, "params": doing.get("params", {})}
        case {"ui_response": fields} | {"panel_key": fields} | {"panel_close": fields} | {"panel_resize": fields}:
            return {"type": next(iter(doing)), **fields}
    return None


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
        self.request: Any = msgspec.json.decode(_line(command), type=self._command.fields)

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
    folder: Path, conversation: Conversation, made: list[Made], tell: Callable[[Told], None]
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
            extended(folder, *made, turns=conversation.model(), offered=builtin_tools(workspace, shell)) as it,
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
    folder: Path, conversation: Conversation, made: list[Made], tell: Callable[[Told], None]
) -> AsyncIterator[Host]:
    """All of hilt, put together as `hilt rpc` does it, with a home of its own, but in this process."""
    hilt = Hilt(folder)
    _write_files(hilt.project, conversation)
    flags = [word for one in made for word in ("--ext", str(one.write(folder / "extensions")))]
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


class _Process:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin
        self._input = process.stdin

    def send(self, command: Told) -> None:
        self._input.write(_line(command))

    def stop(self) -> None:
        self._input.close()


@asynccontextmanager
async def as_process(
    folder: Path, conversation: Conversation, made: list[Made], tell: Callable[[Told], None]
) -> AsyncIterator[Host]:
    """The real `hilt rpc`."""
    hilt = Hilt(folder)
    _write_files(hilt.project, conversation)
    flags = [word for one in made for word in ("--ext", str(one.write(folder / "extensions")))]
    errors = folder / "stderr"
    with errors.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *hilt.command("rpc", *hilt.script(*conversation.model()), *flags),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            cwd=hilt.project,
            env=hilt.environment,
            limit=_LONGEST_LINE,
        )

    async def listen() -> None:
        assert process.stdout
        while line := await process.stdout.readline():
            tell(json.loads(line))

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(listen())
            yield _Process(process)
            code = await process.wait()
        said = errors.read_text()
        assert code == 0 and "Traceback" not in said, f"hilt left with {code}: {said}"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _write_files(folder: Path, conversation: Conversation) -> None:
    for name, text in conversation.files.items():
        (folder / name).write_text(text)
