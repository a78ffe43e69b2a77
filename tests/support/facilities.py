"""What an agent offers, in memory and to be looked at afterwards: for tests of what stands before it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from hilt.agent.bus import Bus
from hilt.agent.topics import Topics
from hilt.extensions.capabilities import Capabilities
from hilt.extensions.services.answering import Services
from hilt.extensions.services.asking import Asker, Backing
from hilt.extensions.services.ports import Facilities, Registered
from hilt.model.actions import Action
from hilt.model.content import Args
from hilt.model.contributions import Contribution, ToolOutput
from hilt.model.conversation import Message, Usage
from hilt.model.events import Event
from hilt.model.extensions import ExtensionStatus, PickerItem
from hilt.model.services import (
    AgentReport,
    AgentTask,
    ChatReply,
    ChatRequest,
    Compacted,
    Forked,
    LlmSnapshot,
    ModelListing,
    ModelOverride,
    SessionNode,
    SessionRow,
    SessionStats,
    ToolListing,
)
from hilt.packages.permissions import Permissions
from hilt.registry.registry import Registry
from hilt.registry.snapshot import Owner

WHEN = datetime(2026, 5, 1, 10, 0, 0, 250_000, UTC)


@dataclass
class World:
    """Every port in one, and what was done through it, in order."""

    done: list[tuple[Any, ...]] = field(default_factory=list)
    error: Exception | None = None
    """What is raised instead of doing anything."""
    hangs: asyncio.Event | None = None
    """What everything waits for."""
    tools: tuple[ToolListing, ...] = ()
    messages: tuple[Message, ...] = ()
    snapshot: LlmSnapshot = field(default_factory=lambda: LlmSnapshot("", (), ()))
    nodes: tuple[SessionNode, ...] = ()
    models: tuple[ModelListing, ...] = ()
    output: ToolOutput = field(default_factory=lambda: ToolOutput.of("ok"))
    report: AgentReport = field(default_factory=lambda: AgentReport("", 0, Usage()))
    picked: str | None = None
    statuses: tuple[ExtensionStatus, ...] = ()
    registered: Mapping[str, Registered] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    _published: ExitStack = field(default_factory=ExitStack)

    def offer(self, *contributions: Contribution, owner: str = "hilt") -> None:
        """Published for as long as the world is there."""
        self._published.enter_context(self.registry.publish(Owner(owner, builtin=owner == "hilt"), contributions))

    def did(self, *what: Any) -> None:
        if self.error:
            raise self.error
        self.done.append(what)

    async def do(self, *what: Any) -> None:
        self.did(*what)
        if self.hangs:
            await self.hangs.wait()

    def facilities(self) -> Facilities:
        return Facilities(
            tools=_Tools(self),
            conversation=_Conversation(self),
            sessions=_Sessions(self),
            models=_Models(self),
            minds=_Minds(self),
            dialogs=_Dialogs(self),
            undo=_Undo(self),
            topics=Topics(Bus()),
            settings=_Settings(self),
        )


class _Port:
    def __init__(self, world: World) -> None:
        self.world = world


class _Tools(_Port):
    def list(self) -> tuple[ToolListing, ...]:
        return self.world.tools

    def activate(self, name: str) -> bool:
        self.world.did("activate", name)
        return any(tool.name == name and tool.deferred for tool in self.world.tools)

    def narrow(self, names: tuple[str, ...], source: str) -> None:
        self.world.did("narrow", names, source)


class _Conversation(_Port):
    def messages(self) -> tuple[Message, ...]:
        return self.world.messages

    async def replace(self, messages: Sequence[Message], source: str) -> None:
        await self.world.do("replace", tuple(messages), source)

    def snapshot(self) -> LlmSnapshot:
        return self.world.snapshot

    async def idle(self) -> None:
        await self.world.do("idle")

    async def compact(self) -> Compacted:
        await self.world.do("compact")
        return Compacted(9, 3)

    def has_compactor(self) -> bool:
        return True

    async def toggle_step(self, source: str) -> bool:
        await self.world.do("toggle_step", source)
        return True


class _Sessions(_Port):
    async def list(self) -> tuple[SessionRow, ...]:
        await self.world.do("list sessions")
        return (SessionRow("s1", "A title", "/p", WHEN, "/s/s1.jsonl", "s0"),)

    async def load(self, path: str) -> None:
        await self.world.do("load", path)

    async def fork(self) -> Forked:
        await self.world.do("fork")
        return Forked("s1", 4)

    def title(self) -> str:
        self.world.did("title")
        return "A title"

    async def set_title(self, title: str) -> None:
        await self.world.do("set_title", title)

    def stats(self) -> SessionStats:
        return SessionStats(2, Usage(1, 2, 3, 4, 0.5), "p/m")

    def append_entry(self, kind: str, data: Any, source: str) -> None:
        self.world.did("append_entry", kind, data, source)

    async def append_message(self, role: str, text: str, source: str) -> None:
        await self.world.do("append_message", role, text, source)

    def set_label(self, target: str, label: str) -> None:
        self.world.did("set_label", target, label)

    async def branch(self, entry: str, summary: str, source: str) -> None:
        await self.world.do("branch", entry, summary, source)

    async def reset(self, source: str) -> None:
        await self.world.do("reset", source)

    def path(self) -> tuple[SessionNode, ...]:
        return self.world.nodes

    async def tree(self) -> tuple[SessionNode, ...]:
        await self.world.do("tree")
        return self.world.nodes


class _Models(_Port):
    def list(self) -> tuple[ModelListing, ...]:
        return self.world.models

    async def switch(self, model: str, source: str, *, keep: bool) -> None:
        await self.world.do("switch", model, source, keep)

    async def sync(self) -> int:
        await self.world.do("sync")
        return 7

    async def write(self, overrides: Mapping[str, ModelOverride]) -> int:
        await self.world.do("write", dict(overrides))
        return len(overrides)

    def provider(self, name: str) -> str:
        return {"gemini": "google"}.get(name.lower(), name.lower())

    def key(self, provider: str) -> str:
        self.world.did("key", provider)
        return f"key-of-{provider}"


class _Minds(_Port):
    async def chat(self, request: ChatRequest, source: str) -> ChatReply:
        await self.world.do("chat", request, source)
        return ChatReply("an answer", Usage(1, 2, 3))

    async def run(self, task: AgentTask, source: str) -> AgentReport:
        await self.world.do("run", task, source)
        return self.world.report

    async def start(self, prompt: str, source: str) -> None:
        await self.world.do("start", prompt, source)

    def cancel(self) -> None:
        self.world.did("cancel")

    def running(self) -> bool:
        return True

    def used(self, source: str) -> int:
        self.world.did("used", source)
        return 0


class _Dialogs(_Port):
    async def pick(self, title: str, items: tuple[PickerItem, ...], source: str) -> str | None:
        await self.world.do("pick", title, items, source)
        return self.world.picked

    async def ask(self, prompt: str, choices: tuple[str, ...], source: str) -> str | None:
        await self.world.do("ask", prompt, choices, source)
        return self.world.picked


class _Undo(_Port):
    def snapshots(self) -> Mapping[str, int]:
        return {"/p/a": 3}

    async def restore(self, path: str) -> bool:
        await self.world.do("restore", path)
        return path == "/p/a"


class _Settings(_Port):
    def get(self, keys: Sequence[str], source: str) -> dict[str, Any]:
        self.world.did("get", tuple(keys), source)
        return {key: f"value of {key}" for key in keys if key != "unset"}

    def read(self, name: str) -> str:
        self.world.did("read", name)
        return f"text of {name}"

    def directory(self) -> str:
        return "/home/ada/.hilt/extensions"


class _Agent(_Port):
    async def apply(self, actions: tuple[Action, ...], source: str) -> None:
        await self.world.do("apply", actions, source)

    async def slash(self, text: str, source: str) -> None:
        await self.world.do("slash", text, source)

    async def call_tool(self, name: str, args: Args, source: str, chain: tuple[str, ...]) -> ToolOutput:
        await self.world.do("call_tool", name, args, source, chain)
        return self.world.output

    async def tell(self, event: Event) -> None:
        await self.world.do("tell", event)


class _Neighbours(_Port):
    def statuses(self) -> tuple[ExtensionStatus, ...]:
        return self.world.statuses

    def registered(self, name: str) -> Registered:
        return self.world.registered.get(name, Registered())


class Served:
    """Services over a world, and one that asks."""

    def __init__(
        self,
        world: World | None = None,
        *,
        permissions: Permissions | None = None,
        chain: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self.world = world or World()
        backing = Backing(
            self.world.facilities(), _Agent(self.world), self.world.registry.snapshot, _Neighbours(self.world)
        )
        self.services = Services(backing)
        self.permissions = permissions or Permissions(consented=True)
        self.chain = chain
        self.ids = count(1)
        self.delivered: list[tuple[str, int, Any]] = []
        self.asker = self.another("t")

    def another(self, name: str) -> Asker:
        return Asker(
            name,
            Capabilities(self.permissions, name),
            deliver=lambda topic, id_, data: self.delivered.append((topic, id_, data)),
            new_id=lambda: next(self.ids),
            chain=self.chain,
        )

    async def ask(self, method: str, params: Any = UNSET, asker: Asker | None = None) -> Any:
        """The result as it would be read from the wire."""
        raw = UNSET if params is UNSET else Raw(msgspec.json.encode(params))
        result = await self.services.answer(f"host/{method}", raw, asker or self.asker)
        return msgspec.json.decode(msgspec.json.encode(result))
