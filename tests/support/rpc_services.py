"""`hilt rpc` with services that do what a test wants, in place of those that stand behind extensions' requests.

A program that a test starts instead of hilt. What a method does is in `Puppet.answer`.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec

from hilt.agent.dialogs import Dialogs
from hilt.agent.session import Session
from hilt.agent.topics import Topics
from hilt.cli.flags import parse
from hilt.cli.wiring import App, assemble
from hilt.errors import ServiceFault
from hilt.frontends.rpc import RpcServer
from hilt.frontends.rpc_commands import Deliver, RpcParts
from hilt.model.actions import Action, Display
from hilt.model.contributions import Command
from hilt.model.extensions import PickerItem
from hilt.registry.snapshot import Owner
from hilt.transport.stdio import LineWriter

OWNER = "puppet"


class Puppet:
    """Each service waits for `/go` where it waits at all; `/busy` says how many do."""

    def __init__(self, app: App, deliver: Deliver, gate: "Gate") -> None:
        self._session = app.session
        self._deliver = deliver
        self._gate = gate
        self._dialogs = Dialogs(app.questions)
        self._topics = Topics(app.session.bus)
        self._ends: list[Any] = []

    async def answer(self, method: str, params: msgspec.Raw) -> Any:
        given = msgspec.json.decode(params)
        match method:
            case "echo":
                return {"given": given}
            case "fail":
                raise ServiceFault(-32604, "no such thing", hint="look elsewhere")
            case "wait":
                await self._gate.passed(Path("cancelled"))
                return {}
            case "pick":
                items = tuple(PickerItem(id_, id_.upper()) for id_ in given["items"])
                return {"selected": await self._dialogs.pick("Which?", items, OWNER)}
            case "pick_until_go":
                return await self._give_up()
            case "subscribe":
                number = len(self._ends) + 1
                ended = self._topics.subscribe(given, lambda data: self._deliver(given, number, data))
                self._ends.append(ended)
                return {"subscription": number}
            case "publish":
                for number in range(given["times"]):
                    self._topics.publish(given["topic"], number)
                return {}
            case "do":
                actions = msgspec.convert(given["actions"], tuple[Action, ...])
                for _ in range(given.get("times", 1)):
                    await self._session.apply(actions, OWNER)
                return {}
        raise ServiceFault(-32601, f"method not found: {method}")

    def leave(self) -> None:
        Path("left").touch()
        for end in self._ends:
            end()

    async def _give_up(self) -> Any:
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(self._dialogs.pick("Which?", (PickerItem("a", "A"),), OWNER))
            await self._gate.passed(Path("cancelled"))
            asking.cancel()
        return {"cancelled": asking.cancelled()}


class Gate:
    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.waiting = 0

    async def passed(self, cancelled: Path) -> None:
        self.waiting += 1
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            cancelled.touch()
            raise
        finally:
            self.waiting -= 1

    def commands(self) -> tuple[Command, ...]:
        async def go(_: str) -> tuple[Action, ...]:
            self.open.set()
            return ()

        async def busy(_: str) -> tuple[Action, ...]:
            return (Display(str(self.waiting)),)

        return Command("go", "go on", go), Command("busy", "who waits", busy)


def offered(session: Session, gate: Gate) -> Any:
    return session.parts.registry.publish(Owner("test"), gate.commands())


async def main() -> None:
    async with assemble(parse(sys.argv[1:]), can_ask=True) as app:
        gate = Gate()
        with offered(app.session, gate):
            parts = RpcParts(
                app.session,
                app.questions,
                app.models,
                app.store,
                app.mask,
                serve=lambda deliver: Puppet(app, deliver, gate),
            )
            await RpcServer(parts, LineWriter(1)).serve()


if __name__ == "__main__":
    asyncio.run(main())
