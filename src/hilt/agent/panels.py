"""The panels of extensions: whose they are, what they show, which one has the focus, and who is told of it.

Owns them also while their owner is gone: such a panel is bereaved, takes no keys, and is its owner's again when that
comes back. Faces are told at the pace of `pacing`, that is, not of every step: how things stand is in `all`.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager

from msgspec import Struct, structs

from hilt.agent.bus import Bus
from hilt.agent.pacing import Pacing
from hilt.errors import HiltError, UsageError
from hilt.model.events import PanelClosed, PanelShown
from hilt.model.extensions import Panel
from hilt.model.ports import Extensions

_OF_ONE, _IN_ALL = 8, 32
_NAMED = 80
"""Characters of an id in a message."""


class OpenPanel(Struct, frozen=True):
    owner: str
    panel: Panel
    bereaved: str = ""
    """Why its owner is gone; empty as long as it is there."""
    size: tuple[int, int] | None = None
    """How much room it has, once that is known."""

    @property
    def key(self) -> tuple[str, str]:
        return (self.owner, self.panel.id)


class Panels:
    def __init__(self, bus: Bus, extensions: Callable[[], Extensions]) -> None:
        self._pacing = Pacing(bus.emit)
        self._extensions = extensions
        self._kept: dict[tuple[str, str], OpenPanel] = {}
        """In the order in which they had the focus; who has it comes last."""
        self._size: tuple[int, int] | None = None
        """What the last one was given: the next one will have as much."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """For the life of the block, faces are also told what had to wait because it changes too often."""
        return self._pacing.running()

    @property
    def all(self) -> tuple[OpenPanel, ...]:
        """Those whose owner is gone among them. In the order in which they last had the focus: who has it is last."""
        return tuple(self._kept.values())

    @property
    def open(self) -> OpenPanel | None:
        """The one with the focus. Its owner may be gone."""
        return next(reversed(self._kept.values()), None)

    @property
    def shown(self) -> PanelShown | None:
        """What hears the keys, if anything does."""
        return PanelShown.of(one.owner, one.panel) if (one := self.open) and not one.bereaved else None

    # What extensions do

    async def show(self, owner: str, panel: Panel) -> None:
        """Open it and give it the focus; one of the same owner and id is replaced. Raises `HiltError`."""
        before = self._kept.get((owner, panel.id))
        if before is None:
            self._make_room(owner)
        opened = OpenPanel(owner, panel, size=before.size if before else self._size)
        self._put_last(opened)
        await self._tell(opened)
        if before is None or before.bereaved:
            self._tell_size(opened)

    async def render(self, owner: str, panel: Panel) -> None:
        """Draw it anew, if it is open; it may just have been closed."""
        if before := self._kept.get((owner, panel.id)):
            drawn = panel if panel.title else structs.replace(panel, title=before.panel.title)
            self._kept[before.key] = now = structs.replace(before, panel=drawn)
            await self._tell(now)

    async def close_own(self, owner: str, panel_id: str) -> None:
        if closed := self._kept.get((owner, panel_id)):
            await self._remove(closed)

    async def bereave(self, owner: str, reason: str) -> None:
        """The owner is gone: nobody would hear the keys."""
        why = reason or f"extension {owner} is gone"
        left = [structs.replace(one, bereaved=why) for one in self._of(owner) if not one.bereaved]
        self._kept.update((one.key, one) for one in left)
        for one in left:
            if self._holds(one):  # faces may take their time
                await self._tell_closed(one, gone=False)  # it is still there to be closed, or to come back

    async def revive(self, owner: str) -> None:
        """The owner is there again, in a process that knows nothing of its panels: it is told their size."""
        for one in self._of(owner):
            self._tell_size(one)
        back = [structs.replace(one, bereaved="") for one in self._of(owner) if one.bereaved]
        self._kept.update((one.key, one) for one in back)
        for one in back:
            await self._tell(one)

    # What the user does. Without an owner it is whose panel of that id last had the focus.

    def key(self, panel_id: str, key: str, text: str = "", *, owner: str = "") -> None:
        one = self._found(owner, panel_id)
        if one.bereaved:
            said = f'the keys of panel "{panel_id[:_NAMED]}" go nowhere: {one.bereaved}'
            raise UsageError(said, hint="it comes back with its extension; until then it can only be closed")
        self._extensions().panel_key(one.owner, panel_id, key, text)

    def resize(self, panel_id: str, width: int, height: int, *, owner: str = "") -> None:
        one = self._found(owner, panel_id)
        self._size = (width, height)
        self._kept[one.key] = resized = structs.replace(one, size=self._size)
        if not one.bereaved:
            self._tell_size(resized)

    async def focus(self, owner: str, panel_id: str) -> None:
        one = self._found(owner, panel_id)
        if one is not self.open:
            self._put_last(one)
            await self._tell(one)

    async def close(self, panel_id: str, *, owner: str = "") -> None:
        closed = self._found(owner, panel_id)
        if not closed.bereaved:
            self._extensions().panel_closed(closed.owner, panel_id)
        await self._remove(closed)

    # Keeping

    def _of(self, owner: str) -> list[OpenPanel]:
        return [one for one in self._kept.values() if one.owner == owner]

    def _holds(self, one: OpenPanel) -> bool:
        return self._kept.get(one.key) is one

    def _found(self, owner: str, panel_id: str) -> OpenPanel:
        found = [one for one in self._kept.values() if one.panel.id == panel_id and owner in ("", one.owner)]
        if not found:
            whose = f" of {owner[:_NAMED]}" if owner else ""
            raise UsageError(f'no panel "{panel_id[:_NAMED]}"{whose} is open; {_named(self._kept.values())}')
        living = [one for one in found if not one.bereaved]
        return (living or found)[-1]

    def _make_room(self, owner: str) -> None:
        if len(self._of(owner)) >= _OF_ONE:
            raise HiltError(f"{owner} has {_OF_ONE} panels open already", hint="close one first, or use its id again")
        if len(self._kept) >= _IN_ALL:
            said = f"{owner} cannot open a panel: {_IN_ALL} are open already"
            raise HiltError(said, hint="close some of them first")

    def _put_last(self, one: OpenPanel) -> None:
        self._kept.pop(one.key, None)
        self._kept[one.key] = one

    async def _remove(self, closed: OpenPanel) -> None:
        had_focus = closed is self.open
        del self._kept[closed.key]
        await self._tell_closed(closed, gone=True)
        if had_focus and (following := self.open):
            await self._tell(following)

    # Telling

    async def _tell(self, one: OpenPanel) -> None:
        if self._holds(one) and not one.bereaved:  # to faces such a one is closed
            shown = PanelShown.of(one.owner, one.panel, focused=one is self.open)
            await self._pacing.tell(("panel", *one.key), shown, gone=False)

    async def _tell_closed(self, one: OpenPanel, *, gone: bool) -> None:
        closed = PanelClosed(one.owner, one.panel.id, "" if gone else one.bereaved)
        await self._pacing.tell(("panel", *one.key), closed, gone=gone)

    def _tell_size(self, one: OpenPanel) -> None:
        if one.size:
            self._extensions().panel_resize(one.owner, one.panel.id, *one.size)


def _named(panels: Iterable[OpenPanel]) -> str:
    names = [f'"{one.panel.id[:_NAMED]}"' for one in panels]
    return f"{', '.join(names) or 'none'} {'are' if len(names) > 1 else 'is'}"
