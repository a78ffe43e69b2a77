"""The panel that is open, if one is: who owns it, what it shows, who is told when it changes hands."""

from collections.abc import Callable

from msgspec import Struct, structs

from hilt.agent.bus import Bus
from hilt.errors import UsageError
from hilt.model.events import PanelClosed, PanelShown
from hilt.model.extensions import Panel
from hilt.model.ports import Extensions


class OpenPanel(Struct, frozen=True):
    owner: str
    panel: Panel


class Panels:
    """At most one is open. Opening another closes it, and its owner is told."""

    def __init__(self, bus: Bus, extensions: Callable[[], Extensions]) -> None:
        self._bus = bus
        self._extensions = extensions
        self.open: OpenPanel | None = None
        self._size: tuple[int, int] | None = None

    @property
    def shown(self) -> PanelShown | None:
        return PanelShown.of(self.open.owner, self.open.panel) if self.open else None

    # What extensions do

    async def show(self, owner: str, panel: Panel) -> None:
        """Open it, in place of any other."""
        previous, self.open = self.open, OpenPanel(owner, panel)
        if previous and (previous.owner, previous.panel.id) != (owner, panel.id):
            self._extensions().panel_closed(previous.owner, previous.panel.id)
            await self._closed(previous, f"replaced by a panel of {owner}")
        await self._bus.emit(PanelShown.of(owner, panel))
        if self._size:
            self._extensions().panel_resize(owner, panel.id, *self._size)

    async def render(self, owner: str, panel: Panel) -> None:
        """Draw it anew, if it is the one that is open; it may just have been closed."""
        if self.open and (self.open.owner, self.open.panel.id) == (owner, panel.id):
            shown = panel if panel.title else structs.replace(panel, title=self.open.panel.title)
            self.open = OpenPanel(owner, shown)
            await self._bus.emit(PanelShown.of(owner, shown))

    async def close_own(self, owner: str, panel_id: str) -> None:
        if self.open and (self.open.owner, self.open.panel.id) == (owner, panel_id):
            closed, self.open = self.open, None
            await self._closed(closed)

    async def bereave(self, owner: str, reason: str) -> None:
        """The owner is gone: nobody would hear the keys."""
        if self.open and self.open.owner == owner:
            closed, self.open = self.open, None
            await self._closed(closed, reason)

    # What the user does

    def key(self, panel_id: str, key: str, text: str = "") -> None:
        self._extensions().panel_key(self._opened(panel_id).owner, panel_id, key, text)

    def resize(self, panel_id: str, width: int, height: int) -> None:
        owner = self._opened(panel_id).owner
        self._size = (width, height)
        self._extensions().panel_resize(owner, panel_id, width, height)

    async def close(self, panel_id: str) -> None:
        closed = self._opened(panel_id)
        self.open = None
        self._extensions().panel_closed(closed.owner, panel_id)
        await self._closed(closed)

    def _opened(self, panel_id: str) -> OpenPanel:
        if self.open is None or self.open.panel.id != panel_id:
            there = f'"{self.open.panel.id}" is' if self.open else "none is"
            raise UsageError(f'no panel "{panel_id}" is open; {there}')
        return self.open

    async def _closed(self, closed: OpenPanel, reason: str = "") -> None:
        await self._bus.emit(PanelClosed(closed.owner, closed.panel.id, reason))
