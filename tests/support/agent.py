"""A session in memory with a scripted model, and a record of everything it emitted."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hilt.agent.bus import Bus
from hilt.agent.deadlines import Deadlines
from hilt.agent.parts import ActiveModel, Parts
from hilt.agent.permissions import Permissions
from hilt.agent.retry import RetryPolicy
from hilt.agent.run import Outcome
from hilt.agent.session import Session
from hilt.errors import BadRequest, UsageError
from hilt.frontends.encode import public
from hilt.model.contributions import Contribution, Effect, Invocation, Tool, ToolOutput
from hilt.model.conversation import AssistantMessage, ToolMessage, tool_calls, user_text
from hilt.model.events import Event
from hilt.model.models import ModelInfo, Price
from hilt.model.ports import Provider
from hilt.model.stream import ModelRequest, StreamItem
from hilt.providers.script import Script
from hilt.registry.registry import Registry
from hilt.registry.snapshot import Owner
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.records import new_meta

MODEL = ModelInfo("script", "script", context_window=10_000, price=Price(1.0, 2.0))
QUICK = RetryPolicy(attempts=4, base=0.001)
PATIENT = Deadlines()
DEADLINE = 45


class Switch:
    on = False


class Strict:
    """Passes requests on, and refuses what a real API would: calls without results and the reverse."""

    def __init__(self, inner: Provider) -> None:
        self.name = inner.name
        self.requests: list[ModelRequest] = []
        self._inner = inner

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self.requests.append(request)
        check_pairs(request)
        async for item in self._inner.stream(request):
            yield item

    async def aclose(self) -> None:
        await self._inner.aclose()


def check_pairs(request: ModelRequest) -> None:
    messages = request.messages
    for position, message in enumerate(messages):
        following = messages[position + 1] if position + 1 < len(messages) else None
        if isinstance(message, AssistantMessage) and (calls := tool_calls(message)):
            if not isinstance(following, ToolMessage):
                raise BadRequest("tool calls without results")
            if [result.call_id for result in following.results] != [call.id for call in calls]:
                raise BadRequest("tool results do not match their calls")
        if isinstance(message, ToolMessage) and (position == 0 or not tool_calls(messages[position - 1])):
            raise BadRequest("tool results without calls")


@dataclass
class Harness:
    session: Session
    provider: Strict
    events: list[Event] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def record(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    async def say(self, text: str) -> Outcome:
        async with asyncio.timeout(DEADLINE):
            return await (await self.session.prompt(user_text(text))).result()

    async def seen(self, kind: type[Event], number: int = 1) -> Event:
        """Wait until so many events of a kind have come, and give the last of them."""
        async with asyncio.timeout(DEADLINE):
            while len(found := [event for event in self.events if isinstance(event, kind)]) < number:
                self._changed.clear()
                await self._changed.wait()
            return found[number - 1]

    def kinds(self) -> list[str]:
        """What a face is told, by type."""
        return [type(event).__struct_config__.tag for event in self.events if public(event)]  # type: ignore[misc]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def script(folder: Path, *turns: dict[str, Any]) -> Script:
    path = folder / "script.jsonl"
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    return Script(path)


def says(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


def calls(*named: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "tool_call", "name": name, "args": args} for name, args in named], **more}


def tool(
    name: str,
    run: Callable[[Invocation], Awaitable[ToolOutput]],
    *,
    parallel: bool = False,
    effect: Effect = Effect.READ,
    schema: dict[str, Any] | None = None,
) -> Tool:
    return Tool(name, name, schema or {"type": "object"}, run, effect, parallel)


async def echo(invocation: Invocation) -> ToolOutput:
    return ToolOutput.of(json.dumps(invocation.args))


def no_switch(model: str, _: ActiveModel) -> ActiveModel:
    raise UsageError(f'unknown model "{model}"')


@asynccontextmanager
async def running(
    provider: Provider,
    *offered: Contribution | tuple[str, Contribution],
    log: SessionLog | None = None,
    journal: Journal | None = None,
    permissions: Permissions | None = None,
    model: ModelInfo = MODEL,
    max_steps: int = 50,
    retry: RetryPolicy = QUICK,
    deadlines: Deadlines = PATIENT,
    compact_at: int = 0,
    switch: Callable[[str, ActiveModel], ActiveModel] = no_switch,
) -> AsyncIterator[Harness]:
    """What is offered is offered by `test`, or by whoever is named beside it, in this order."""
    registry, bus, strict = Registry(), Bus(), Strict(provider)
    session = Session(
        Parts(
            registry=registry,
            journal=journal or Journal(log or SessionLog.in_memory(new_meta("/project", model.provider, model.id))),
            active=ActiveModel(strict, model),
            cwd="/project",
            system="be brief",
            permissions=permissions or Permissions("yolo"),
            jail=Switch(),
            undo=lambda: "nothing",
            switch=switch,
            retry=retry,
            max_steps=max_steps,
            deadlines=deadlines,
            compact_at=compact_at,
        ),
        bus,
    )
    harness = Harness(session, strict)
    by_owner: dict[str, list[Contribution]] = {}
    for one in offered:
        owner, contribution = one if isinstance(one, tuple) else ("test", one)
        by_owner.setdefault(owner, []).append(contribution)
    with ExitStack() as published, bus.subscribed(harness.record):
        for place, (owner, contributions) in enumerate(by_owner.items()):
            published.enter_context(registry.publish(Owner(owner, order=place), tuple(contributions)))
        async with session.running():
            yield harness
