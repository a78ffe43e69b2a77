"""The panels of extensions: a box above the input with the one in front, whose keys go to its owner.

Owns which panel is in front and whether the keys go there. A panel gets them when it opens, but never from under the
hands of somebody who types: only an empty input gives them up, or another panel of the same owner. What panels there
are, and what they show, is kept by the agent.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.strip import Strip

from hilt.errors import UsageError
from hilt.frontends.terminal import one_line
from hilt.frontends.tui.drawing.plain import coloured_line
from hilt.frontends.tui.drawing.wrapping import clip, pad
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.scene import Part, Scene
from hilt.frontends.tui.surfaces.keys import panel_key
from hilt.frontends.tui.surfaces.sheet import Sheet
from hilt.frontends.tui.surfaces.surface import Surface

if TYPE_CHECKING:  # it is not on the way to the first frame
    from hilt.agent.panels import OpenPanel
    from hilt.frontends.tui.client import Client

Key: TypeAlias = tuple[str, str]

_SHARE = 0.6
"""Of the screen's rows, for the box."""
_FRAME = 3
"""Rows of the box that are not its lines: two of the frame, and the footer."""
_SIDES = 4
_WHEEL = 3
_CALM, _LONGEST = 5.0, 60.0
"""Seconds after the user closed or left a panel in which its owner's panels do not take the keys again. Whoever tries
all the same waits twice as long: what comes again and again must not hold the keys."""
_NAME, _TITLE, _REASON = 24, 60, 200
LIGHT, HEAVY = "┌─┐│└┘", "┏━┓┃┗┛"


class Panels(Surface):
    DEFAULT_CSS = "Panels { padding: 0; }"
    part = Part.PANELS
    can_focus = True

    def __init__(self, look: Look, client: "Client", free: Callable[[], bool], leave: Callable[[], object]) -> None:
        """`free` says whether nobody is typing elsewhere; `leave` gives the keys back to the input."""
        self._open: dict[Key, OpenPanel] = {}
        """In the order in which they were opened."""
        self._front: Key | None = None
        self._latest: Key | None = None
        """The one that the agent last had in front."""
        self._sheets: dict[Key, Sheet] = {}
        self._before: dict[Key, Key | None] = {}
        """Who had the keys when a panel took them; None for the input."""
        self._calm: dict[str, tuple[float, float]] = {}
        """Whose panels the user wanted out of the way: until when they stay there, and how long that is."""
        self._room = (0, 0)
        """Columns and rows for the lines of a panel."""
        self._told: dict[Key, tuple[int, int]] = {}
        """The room that each owner knows of."""
        self._tabs: list[tuple[int, Key]] = []
        """Where each panel's name ends in the first row."""
        self._free = free
        self._leave = leave
        super().__init__(look, client)

    # What there is

    def show(self, scene: Scene) -> None:
        now = {one.key: one for one in scene.panels}
        latest = next(reversed(now), None)
        if now == self._open and latest == self._latest:
            return
        before, self._open = self._open, {key: now[key] for key in [*filter(now.get, self._open), *now]}
        for key, one in now.items():
            self._sheets.setdefault(key, Sheet()).put(one.panel.lines)
        fell_back = self._latest not in now and latest in before
        moved, self._latest = latest != self._latest, latest
        if self._front and self._front not in now:
            self._go_back()
        self.redraw()
        if moved and latest and latest != self._front:
            if fell_back and self._front:
                self._choose(self._front)  # another one was closed, and nobody asked for this one
            else:
                self._offer(latest)
        for key in before.keys() - now.keys():
            for known in (self._sheets, self._told, self._before):
                known.pop(key, None)
        self.call_later(self._tell_sizes)

    @property
    def empty(self) -> bool:
        return not self._open

    @property
    def front(self) -> "OpenPanel | None":
        return self._open.get(self._front) if self._front else None

    @property
    def has_keys(self) -> bool:
        """Whether the keys go to the panel in front."""
        return self.screen.focused is self

    def _offer(self, key: Key) -> None:
        """Somebody wants its panel in front, with the keys."""
        owner, now = key[0], asyncio.get_running_loop().time()
        until, seconds = self._calm.get(owner, (now, 0.0))
        again = now < until
        if again:
            longer = min(2 * seconds, _LONGEST)
            self._calm[owner] = (now + longer, longer)
        if self.has_keys and self._front and (again or owner != self._front[0]):
            self._choose(self._front)
            return
        self._before[key] = self._front if self.has_keys else None
        self._front = key
        self.redraw()
        if not again and (self.has_keys or self._free()):
            self.screen.set_focus(self)

    def _go_back(self) -> None:
        """The panel in front is gone: who had the keys before it has them again."""
        assert self._front is not None
        before = self._before.get(self._front)
        if before in self._open:
            self._front = before
        else:
            self._front = next(reversed(self._open), None)
            if self.has_keys:
                self._leave()

    # What the user does

    def step(self) -> None:
        """The keys go to the next panel, and after the last to the input."""
        keys = list(self._open)
        if not keys:
            return
        at = keys.index(self._front) + 1 if self.has_keys and self._front else 0
        if at < len(keys):
            self._choose(keys[at])
            self.screen.set_focus(self)
        else:
            self._dismiss(*(owner for owner, _ in keys))
            self._leave()

    def _dismiss(self, *owners: str) -> None:
        self._calm |= dict.fromkeys(owners, (asyncio.get_running_loop().time() + _CALM, _CALM))

    def _choose(self, key: Key) -> None:
        self._front = self._latest = key
        if self.client:
            self.client.do(_focused(self.client, key), "a panel to the front")
        self.redraw()

    def close(self) -> None:
        """Close the one in front; its owner is told."""
        if self.client and (one := self.front):
            self._dismiss(one.owner)
            self.client.do(_closed(self.client, one), "closing a panel")

    async def _on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        if event.key in ("escape", "ctrl+c"):
            self.close()
        elif event.key in ("pageup", "pagedown") and not self._whole:
            self._scroll(-self._room[1] if event.key == "pageup" else self._room[1])
        else:
            self._send(*panel_key(event.key, event.character))

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        self._send("unknown")

    def _send(self, key: str, text: str = "") -> None:
        if self.client and (one := self.front):
            try:
                self.client.session.panels.key(one.panel.id, key, text, owner=one.owner)
            except UsageError:
                pass  # it has just been closed, or its owner is gone

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._scroll(_WHEEL)

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._scroll(-_WHEEL)

    def on_click(self, event: events.Click) -> None:
        if event.y == 0 and (clicked := next((key for end, key in self._tabs if event.x < end), None)):
            self._choose(clicked)

    def _on_focus(self, event: events.Focus) -> None:
        super()._on_focus(event)
        self.redraw()

    def _on_blur(self, event: events.Blur) -> None:
        super()._on_blur(event)
        self.redraw()

    # Room

    @property
    def _sheet(self) -> Sheet:
        return self._sheets[self._front] if self._front else Sheet()

    @property
    def _whole(self) -> bool:
        return self._sheet.whole(self._room[1])

    def _scroll(self, by: int) -> None:
        self._sheet.scroll(by, self._room[1])
        self.redraw()

    def _tell_sizes(self) -> None:
        if not self._open or self.size.width != self.app.size.width:
            return  # the screen has just changed, and the room is not known yet
        for key, one in self._open.items():
            if self._told.get(key, one.size) != self._room and self.client:
                self._told[key] = self._room
                try:
                    self.client.session.panels.resize(one.panel.id, *self._room, owner=one.owner)
                except UsageError:
                    pass  # it has just been closed

    # Drawing

    def rows(self, width: int) -> list[Strip]:
        room = (max(width - _SIDES, 1), max(min(int(self.app.size.height * _SHARE), self.room()) - _FRAME, 1))
        if room != self._room:
            self._room = room
            self.call_later(self._tell_sizes)
        one, sheet, look = self.front, self._sheet, self.look
        if one is None:
            return []
        if self.room() <= _FRAME:
            return [self._head(width)]
        lines = sheet.window(*room, look.dim if one.bereaved else look.text, grey=bool(one.bereaved))
        if one.bereaved:
            said = one_line(f"{one.owner} is gone: {one.bereaved}", _REASON)
            lines.append(clip(_text(said, look.warn), room[0]))
        elif one.panel.footer.strip():
            lines.append(coloured_line(one.panel.footer, room[0], look.dim))
        frame, edge = self._frame
        left, right = Strip([Segment(f"{frame[3]} ", edge)]), Strip([Segment(f" {frame[3]}", edge)])
        inside = [Strip.join([left, pad(line, room[0], look.text), right]) for line in lines]
        return [
            self._head(width),
            *inside,
            edged(self._hints(width - 6), frame[4], frame[1], frame[5], width, edge),
        ]

    @property
    def _frame(self) -> tuple[str, Style]:
        """It looks different when it has the keys, also without colours."""
        return (HEAVY, self.look.accent) if self.has_keys else (LIGHT, self.look.gutter)

    def _head(self, width: int) -> Strip:
        frame, edge = self._frame
        return edged(self._names(width - 4), frame[0], frame[1], frame[2], width, edge)

    def _names(self, width: int) -> Strip:
        """Whose panels there are: the one in front in full, and before it as many as there is room for."""
        names = {key: self._tab(key) for key in self._open}
        shown = list(names)
        while shown[0] != self._front and sum(names[key].cell_length for key in shown) > width:
            shown.pop(0)
        before = Strip([Segment("‹", self.look.dim)] if len(shown) < len(names) else [])
        self._tabs, end = [], 2 + before.cell_length
        for key in shown:
            end += names[key].cell_length
            self._tabs.append((end, key))
        row = Strip.join([before, *[names[key] for key in shown]])
        return row if row.cell_length <= width else Strip.join([clip(row, width - 1), _text("›", self.look.dim)])

    def _tab(self, key: Key) -> Strip:
        one, look = self._open[key], self.look
        front = key == self._front
        owner, title = one_line(one.owner, _NAME), one_line(one.panel.title, _TITLE)
        segments = [Segment(f" {owner}", look.badge if front else look.dim)]
        if title and title != owner:
            segments.append(Segment(f" {title}", look.strong if front else look.dim))
        return Strip([*segments, Segment(" ", look.dim)])

    def _hints(self, width: int) -> Strip:
        """What can be done, as far as there is room."""
        hints = ["esc closes", "f6 next" if len(self._open) > 1 else "f6 to the input"]
        hints = hints if self.has_keys else ["f6 to use it"]
        if not self._whole:
            first, end = self._sheet.in_sight(self._room[1])
            hints.append(f"{first + 1}-{end} of {len(self._sheet.lines)}")
            hints += ["pgup pgdn"] if self.has_keys else []
        while len(hints) > 1 and len(" · ".join(hints)) > width:
            hints.pop()
        return Strip([Segment(f" {' · '.join(hints)} ", self.look.dim)])


def edged(inside: Strip, left: str, line: str, right: str, width: int, style: Style) -> Strip:
    inside = clip(inside, max(width - 4, 0))
    rest = max(width - 3 - inside.cell_length, 0)
    return Strip.join([Strip([Segment(left + line, style)]), inside, Strip([Segment(line * rest + right, style)])])


def _text(text: str, style: Style) -> Strip:
    return Strip([Segment(text, style)])


async def _closed(client: "Client", one: "OpenPanel") -> None:
    try:
        await client.session.panels.close(one.panel.id, owner=one.owner)
    except UsageError:
        pass  # somebody else did


async def _focused(client: "Client", key: Key) -> None:
    try:
        await client.session.panels.focus(*key)
    except UsageError:
        pass  # it has just been closed
