"""A session in memory with a scripted model and real extensions, each a real process; every wait has a deadline.

async with extended(tmp_path, tool("t"), turns=[calls(("t", {})), says("x")]) as it:
    await it.ready("t")
    await it.say("go")
    assert it.result() == "ok"
"""

import asyncio
import json
import os
import py_compile
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hilt.agent.bookkeeping import Bookkeeping
from hilt.agent.budgets import Budgets
from hilt.agent.bus import Bus
from hilt.agent.conversing import Conversing
from hilt.agent.dialogs import Dialogs
from hilt.agent.guests import Guests
from hilt.agent.interception import GuardRules
from hilt.agent.minds import Minds
from hilt.agent.parts import ActiveModel, Parts
from hilt.agent.permissions import Permissions
from hilt.agent.questions import Questions
from hilt.agent.run import Outcome
from hilt.agent.session import Session
from hilt.agent.toolbox import Toolbox
from hilt.agent.topics import Topics
from hilt.extensions.agent import House, Keep, Opener, Places, Surroundings
from hilt.extensions.host import RunningExtensions
from hilt.extensions.memory import Memory
from hilt.frontends.encode import event_json, public
from hilt.model.content import text_of
from hilt.model.contributions import Contribution
from hilt.model.conversation import user_text
from hilt.model.events import Event, Noticed, ToolResultAdded
from hilt.model.extensions import Dialect, ExtensionState, ExtensionStatus
from hilt.packages.choices import NONE, Choices
from hilt.packages.finder import Finder
from hilt.packages.trust.screening import Gate
from hilt.packages.trust.store import TrustStore
from hilt.registry.registry import Registry
from hilt.registry.snapshot import Owner
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.records import NoteRecord, new_meta
from hilt.transport.process import started
from support.agent import MODEL, QUICK, Strict, Switch, no_switch, script
from support.facilities import World

CHAOS = Path(__file__).with_name("chaos.py")
SPOKEN: Dialect = "frames"
"""What chaos extensions speak that are not told otherwise; tests of both dialects set it by the fixture `dialect`."""
FRAMES_ONLY = pytest.mark.parametrize("dialect", ["frames"], indirect=True)
JSONRPC_ONLY = pytest.mark.parametrize("dialect", ["jsonrpc"], indirect=True)
DEADLINE = 45.0
"""No wait of a test is longer; a healthy one takes a fraction of a second."""


@dataclass
class Made:
    """An extension to be written to disk."""

    name: str
    manifest: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)
    dialect: Dialect = "frames"

    def write(self, folder: Path) -> Path:
        directory = folder / self.name
        directory.mkdir(parents=True, exist_ok=True)
        # What is JSON is YAML, too.
        file = "manifest.yaml" if self.dialect == "jsonrpc" else "extension.json"
        (directory / file).write_text(json.dumps({"name": self.name, **self.manifest}))
        for name, text in self.files.items():
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_text(text)
        return directory


def chaos(name: str, *items: Any, dialect: Dialect | None = None, **manifest: Any) -> Made:
    """The chaos extension with this script; see its docstring for the verbs. More keywords go into the manifest.

    It speaks `SPOKEN` unless told otherwise.
    """
    spoken = dialect or SPOKEN
    introduced = [f"hello:{name}" if item == "hello" else item for item in items]
    files = {"chaos.json": json.dumps(["jsonrpc", *introduced] if spoken == "jsonrpc" else introduced)}
    program = _compiled()
    if "permissions" in manifest:
        # In a sandbox it may see nothing but its own directory.
        program, files["chaos.py"] = "chaos.py", CHAOS.read_text()
    argv = [sys.executable, "-I", "-S", program, "@chaos.json"]
    if spoken == "frames":
        return Made(name, {"exec": argv[0], "args": argv[1:], **manifest}, files)
    # Here a manifest has no place for arguments.
    files["run.sh"] = f"exec {shlex.join(argv)}\n"
    return Made(name, {"runtime": "/bin/sh", "entry": "run.sh", "pipes": "fd", **manifest}, files, spoken)


@cache
def _compiled() -> str:
    """The chaos extension as what it is compiled to: it is started a thousand times, and half of a start is that."""
    compiled = py_compile.compile(str(CHAOS), doraise=True)
    assert compiled
    return compiled


def tool(name: str = "t", *items: Any, dialect: Dialect | None = None, **manifest: Any) -> Made:
    """An extension `name` with a tool of the same name, and this beside."""
    return chaos(name, "hello", f"register_tool:{name}", *items, "ready", dialect=dialect, **manifest)


@dataclass
class Extended:
    session: Session
    host: RunningExtensions
    provider: Strict
    folder: Path
    questions: Questions
    """What extensions ask the user."""
    events: list[Event] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def record(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    # Doing something

    async def say(self, text: str = "go") -> Outcome:
        async with asyncio.timeout(DEADLINE):
            return await (await self.session.prompt(user_text(text))).result()

    async def call(self, tool: str, /, **args: Any) -> tuple[str, bool]:
        """Call a tool as if another extension did: its text, and whether it is an error."""
        async with asyncio.timeout(DEADLINE):
            output = await self.session.call_tool(tool, args, "test")
        return text_of(output.content), output.is_error

    # Looking

    def status(self, name: str) -> ExtensionStatus:
        return next(status for status in self.host.statuses() if status.name == name)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def told(self) -> list[dict[str, Any]]:
        """The events as a client sees them."""
        return [event_json(event) for event in self.events if public(event)]

    def warnings(self) -> list[str]:
        return [event.message for event in self.of(Noticed)]

    def result(self, number: int = -1) -> str:
        """The text of a tool's result."""
        return text_of(self.of(ToolResultAdded)[number].content)

    def notes(self, kind: str) -> list[Any]:
        """What the session's file says of decisions."""
        log = self.session.parts.log
        records = [log.read(entry) for entry in log.entries()]
        return [record.data for record in records if isinstance(record, NoteRecord) and record.kind == kind]

    # Waiting

    async def until(self, happened: Callable[[], Any], what: str = "") -> Any:
        """Looks again at every event, and now and then besides."""
        try:
            async with asyncio.timeout(DEADLINE):
                while not (value := happened()):
                    self._changed.clear()
                    try:
                        async with asyncio.timeout(0.02):
                            await self._changed.wait()
                    except TimeoutError:
                        pass
                return value
        except TimeoutError:
            shown = [(status.name, status.state, status.reason) for status in self.host.statuses()]
            raise AssertionError(f"it never happened: {what or happened}; {shown}; {self.told()[-10:]}") from None

    async def state(self, name: str, state: ExtensionState) -> ExtensionStatus:
        await self.until(lambda: self.status(name).state == state, f"{name} becomes {state}")
        return self.status(name)

    async def ready(self, *names: str) -> None:
        for name in names or [status.name for status in self.host.statuses()]:
            await self.state(name, "ready")

    async def seen(self, kind: type[Any], **fields: Any) -> Any:
        """The first event of this kind with these fields."""

        def found() -> Any:
            return [e for e in self.of(kind) if all(getattr(e, name) == value for name, value in fields.items())]

        return (await self.until(found, f"{kind.__name__} {fields}"))[0]

    async def warned(self, *words: str) -> str:
        """A warning that has all these words."""

        def found() -> list[str]:
            return [message for message in self.warnings() if all(word in message for word in words)]

        return str((await self.until(found, f"a warning with {words}"))[0])

    def recorded(self, path: str) -> list[dict[str, Any]]:
        """What a chaos extension with `record:` has written to a file in this test's folder."""
        file = self.folder / path
        # What follows the last line is being written.
        return [json.loads(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []

    def frames(self, path: str) -> list[dict[str, Any]]:
        """The frames among that; of what came in the other dialect, what it amounts to."""
        return [row.get("frame") or json.loads(row["line"]) for row in self.recorded(path) if "line" in row]


@asynccontextmanager
async def extended(
    folder: Path,
    *made: Made,
    turns: list[dict[str, Any]] | None = None,
    offered: tuple[Contribution, ...] = (),
    permissions: Permissions | None = None,
    guards: GuardRules | None = None,
    log: SessionLog | None = None,
    attended: bool = True,
    opener: Opener = started,
    watch: bool = False,
    settling: float = 3.0,
    choices: dict[str, Choices] | None = None,
    one_shot: bool = False,
    keep: Keep | None = None,
) -> AsyncIterator[Extended]:
    """Starts them all and does not wait for any. `offered` is what built-ins offer.

    Without `keep`, what the user chooses is kept for as long as this lasts.
    """
    flags = [str(one.write(folder / "extensions")) for one in made]
    registry, bus, strict = Registry(), Bus(), Strict(script(folder, *(turns or [])))
    session = Session(
        Parts(
            registry=registry,
            journal=Journal(log or SessionLog.in_memory(new_meta(str(folder), MODEL.provider, MODEL.id))),
            active=ActiveModel(strict, MODEL),
            cwd=str(folder),
            system="be brief",
            permissions=permissions or Permissions("yolo"),
            jail=Switch(),
            undo=lambda: "nothing",
            switch=no_switch,
            retry=QUICK,
            guards=guards or GuardRules(),
            one_shot=one_shot,
        ),
        bus,
    )
    chosen = dict(choices or {})

    def choose(name: str, on: bool) -> None:
        chosen[name] = msgspec.structs.replace(chosen.get(name, NONE), enabled=on)

    questions, minds = Questions(bus), Minds(session, Budgets(lambda _: 1_000_000))
    facilities = msgspec.structs.replace(
        World().facilities(),
        tools=Toolbox(registry, session.activation),
        conversation=Conversing(session),
        sessions=Bookkeeping(session),
        minds=minds,
        dialogs=Dialogs(questions),
        topics=Topics(bus),
    )
    house = House(
        Guests(session),
        opener,
        Places(folder / "home", folder / "logs", folder / "data", folder / "outputs"),
        Surroundings("script", "script", str(folder)),
        lambda: session.parts.log.meta.id,
        attended,
        Memory(folder / "home" / "descriptions.json"),
        keep=keep or choose,
        facilities=facilities,
    )
    home = folder / "home"
    path = os.environ["PATH"]
    finder = Finder(
        flags=tuple(flags),
        user=folder / "user",
        projects=(folder / "project",),
        only_flags=False,
        path=path,
        cwd=folder,
        choices=chosen,
        lock=home / "extensions.lock",
        gate=Gate(TrustStore(home / "trust.json"), folder, home / "trusted", path, open=True),
    )
    host = RunningExtensions(finder, house, registry, settling=settling, watch=watch)
    it = Extended(session, host, strict, folder, questions)
    with registry.publish(Owner("hilt", builtin=True), offered), bus.subscribed(it.record), bus.subscribed(host):
        async with host.running():
            session.extensions = host
            async with minds.working(), session.running():
                yield it
