"""What an embedded host is put together of, as the embedding program wants it."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from hilt.agent.activation import Activation
from hilt.agent.bus import Bus
from hilt.agent.interception import Bench, GuardRules
from hilt.agent.permissions import Permissions
from hilt.embedding.services import Chat, facilities
from hilt.extensions.agent import Agent, House, Places, Surroundings
from hilt.extensions.memory import Memory
from hilt.home import Home
from hilt.model.ports import PermissionAnswer, PermissionRequest
from hilt.model.verdicts import Question
from hilt.packages.choices import Choices
from hilt.providers.vendors import KEYS
from hilt.registry.registry import Registry
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.records import Meta, Record, new_meta
from hilt.transport.process import started

Approve: TypeAlias = Callable[[PermissionRequest], Awaitable[bool]]
"""Whether a tool that writes or executes may run; the request shows exactly what would."""


class Setting(Struct, frozen=True):
    home: Home
    cwd: Path
    choices: Mapping[str, Choices]
    meta: Meta
    """Who asks: a session's id, a provider and a model, for extensions that want to know."""
    guards: GuardRules
    approve: Approve | None
    chat: Chat | None

    @classmethod
    def of(
        cls,
        home: Home,
        cwd: Path,
        choices: Mapping[str, Choices],
        model: str,
        guards: GuardRules,
        approve: Approve | None,
        chat: Chat | None,
    ) -> "Setting":
        """`model` as `provider/id`."""
        provider, _, id_ = model.rpartition("/")
        return cls(home, cwd, choices, new_meta(str(cwd), provider, id_), guards, approve, chat)

    def bench(self, bus: Bus) -> Bench:
        permissions = Permissions("ask", _Approver(self.approve)) if self.approve else Permissions("yolo")
        return Bench(self.guards, _Unkept(SessionLog.in_memory(self.meta)), bus.emit, permissions)

    def house(self, agent: Agent, registry: Registry, activation: Activation, bus: Bus) -> House:
        home = self.home
        return House(
            agent=agent,
            open=started,
            places=Places(home.root, home.logs, home.data, home.outputs, home.environments),
            surroundings=Surroundings(self.meta.provider, self.meta.model, str(self.cwd)),
            session_id=lambda: self.meta.id,
            attended=False,
            memory=Memory(home.descriptions),
            keys=KEYS,
            facilities=facilities(registry, activation, bus, home, self.choices, self.chat),
        )

    def start_question(self, system: str) -> Question:
        meta = self.meta
        return Question(
            "before_agent_start",
            system_prompt=system,
            session_id=meta.id,
            run_id=meta.id,
            cwd=str(self.cwd),
            provider=meta.provider,
            model=meta.model,
        )


class _Unkept(Journal):
    """There is no session: what would be on record is told as events, and a host may run for weeks."""

    def append(self, record: Record) -> str:  # noqa: ARG002
        return ""


class _Approver:
    def __init__(self, approve: Approve) -> None:
        self._approve = approve

    async def ask(self, request: PermissionRequest) -> PermissionAnswer:
        approved = await self._approve(request)
        return PermissionAnswer(approved, "" if approved else "permission denied")
