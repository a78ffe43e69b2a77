"""What extensions may ask of a session, through their host."""

from hilt.agent.session import Session
from hilt.model.actions import Action
from hilt.model.content import Args
from hilt.model.contributions import ToolOutput
from hilt.model.events import Event


class Guests:
    """`source` is always the name of the extension that asks."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def apply(self, actions: tuple[Action, ...], source: str) -> None:
        await self._session.apply(actions, source)

    async def slash(self, text: str, source: str) -> None:
        """Run a slash command as if it had been typed."""
        name, *args = text.removeprefix("/").split(maxsplit=1) or [""]
        await self._session.command(name, *args, by=source)

    async def call_tool(self, name: str, args: Args, source: str, chain: tuple[str, ...]) -> ToolOutput:
        return await self._session.call_tool(name, args, source, chain)

    async def tell(self, event: Event) -> None:
        await self._session.bus.emit(event)
