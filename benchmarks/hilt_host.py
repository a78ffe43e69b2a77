"""The host of hilt, put in the place where its baselines stand: everything of it but the agent around it."""

import itertools
import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from hosts import Args
from programs import Program, write_manifest

from hilt.agent.interception import Bench, GuardRules, consult
from hilt.agent.permissions import Permissions
from hilt.agent.schema import problems
from hilt.extensions.agent import House, Places, Surroundings
from hilt.extensions.host import RunningExtensions
from hilt.extensions.memory import Memory
from hilt.model.actions import Action
from hilt.model.content import Text, text_of
from hilt.model.contributions import Invocation, ToolOutput
from hilt.model.conversation import user_text
from hilt.model.events import Event, TurnStarted
from hilt.model.models import ModelInfo
from hilt.model.stream import Completed, ModelRequest
from hilt.model.verdicts import Question
from hilt.packages.finder import Finder
from hilt.packages.trust.screening import Gate
from hilt.packages.trust.store import TrustStore
from hilt.registry.registry import Registry
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.records import new_meta
from hilt.transport.process import started


class Nobody:
    """An agent of whom nothing is ever asked, and who shows nothing to anybody."""

    async def apply(self, actions: tuple[Action, ...], source: str) -> None: ...

    async def slash(self, text: str, source: str) -> None: ...

    async def call_tool(self, name: str, args: Args, source: str, chain: tuple[str, ...]) -> ToolOutput:
        raise AssertionError(f"{source} called {name} {args} {chain}")

    async def tell(self, event: Event) -> None: ...


class Hilt:
    def __init__(self, host: RunningExtensions, registry: Registry, bench: Bench) -> None:
        self._host = host
        self._snapshot = registry.snapshot()
        self._bench = bench
        self._ids = itertools.count()

    async def call(self, tool: str, args: Args) -> str:
        found = self._snapshot.tools[tool].tool
        assert not problems(found.schema, args)
        output = await found.invoke(Invocation("1", args, _shown))
        block = output.content[0]
        assert isinstance(block, Text)
        return block.text

    async def intercept(self, args: Args) -> Args:
        question = Question("tool_call", tool_id=str(next(self._ids)), tool_name="echo", tool_args=args)
        ruling = await consult(self._snapshot.guards("tool_call"), question, self._bench)
        return ruling.question.tool_args

    async def stream(self, api: str) -> str:
        """Have the provider of this API answer; the text of its message."""
        request = ModelRequest(ModelInfo("m", "p"), "", (user_text("go"),))
        async for item in self._snapshot.sources[api].offer.stream(request):
            if isinstance(item, Completed):
                return text_of(item.content)
        raise AssertionError("no end")

    async def emit(self, step: int) -> None:
        await self._host(TurnStarted(step))

    def lost(self) -> int:
        return sum(status.events_lost for status in self._host.statuses())


def opened(programs: Sequence[Program]) -> AbstractAsyncContextManager[Hilt]:
    """All that is on disk before a host starts is written here, so that it takes no time of the host's."""
    scratch = tempfile.TemporaryDirectory()
    home = Path(scratch.name)
    flags = [str(write_manifest(program, home)) for program in programs]
    log = SessionLog.create(home / ".session", new_meta("/", "demo", "demo"), durability="os")
    return _running(home, flags, log, scratch)


@asynccontextmanager
async def _running(
    home: Path, flags: list[str], log: SessionLog, scratch: "tempfile.TemporaryDirectory[str]"
) -> AsyncIterator[Hilt]:
    path = os.environ["PATH"]
    gate = Gate(TrustStore(home / ".trust"), home, home / ".trusted", path)
    finder = Finder(
        tuple(flags), home, (), only_flags=True, path=path, cwd=home, choices={}, lock=home / ".lock", gate=gate
    )
    agent = Nobody()
    places = Places(home, home / ".logs", home / ".data", home / ".outputs")
    memory = Memory(home / ".descriptions")
    house = House(agent, started, places, Surroundings("", "", "/"), lambda: "benchmark", attended=False, memory=memory)
    registry = Registry()
    with scratch, log:
        async with RunningExtensions(finder, house, registry).running() as host:
            await host.settled()
            waiting = [status for status in host.statuses() if status.state != "ready"]
            assert not waiting, waiting
            yield Hilt(host, registry, Bench(GuardRules(), Journal(log), agent.tell, Permissions("yolo")))


async def _shown(text: str) -> None: ...
