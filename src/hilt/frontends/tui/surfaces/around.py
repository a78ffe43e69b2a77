"""All that stands around the input, put in its place, and the keys that concern it.

Owns nothing of what is shown: each surface has its own file, and is drawn when its part of the scene has changed.
"""

from collections.abc import Callable, Iterable

from textual.geometry import Size
from textual.screen import Screen
from textual.timer import Timer

from hilt.frontends.tui.client import Client
from hilt.frontends.tui.editor.completion import Completion
from hilt.frontends.tui.editor.editor import Editor
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.scene import Part, Scene
from hilt.frontends.tui.status import Status
from hilt.frontends.tui.surfaces.activity import Activity
from hilt.frontends.tui.surfaces.notes import Notes
from hilt.frontends.tui.surfaces.overlay import Overlays
from hilt.frontends.tui.surfaces.panel import Panels
from hilt.frontends.tui.surfaces.queue import Queue
from hilt.frontends.tui.surfaces.shortcuts import Shortcuts
from hilt.frontends.tui.surfaces.surface import Surface
from hilt.frontends.tui.surfaces.widgets import Widgets

_CONVERSATION = 1
"""Rows of the conversation that are always in sight."""
_WRITTEN = 1_000_000
"""Characters that extensions can put into the input until it is empty again."""


class Around:
    def __init__(
        self,
        screen: Screen[object],
        client: Client,
        look: Callable[[], Look],
        tell: Callable[[str, str, str], object],
    ) -> None:
        """`tell` shows a notice: its level, its text, and which extension it is about."""
        self._editor = screen.query_one(Editor)
        self._written = 0
        """Characters that extensions have put into the input since it was empty."""
        self._pause: Timer | None = None
        """Until the user has stopped typing."""
        self.notes = Notes(look(), client)
        self.panels = Panels(look(), client, free=self._free, leave=self._leave)
        self.overlays = Overlays(look, client, screen, self._above_input)
        self.shortcuts = Shortcuts(client, self._bound, tell)
        queue = Queue(look(), client)
        above, below = Widgets(look(), "above-input"), Widgets(look(), "below-status")
        activity, status = screen.query_one(Activity), screen.query_one(Status)
        self._parts = (self.notes, self.panels, self.overlays, self.shortcuts, queue, above, below)
        screen.mount(self.notes, self.panels, above, before=activity)
        screen.mount(queue, before=screen.query_one(Completion))
        screen.mount(below, after=status)
        self._status, self._activity = status, activity
        self._share(queue, self.panels, self.notes, above, below)
        screen.screen_layout_refresh_signal.subscribe(self._editor, lambda _: self._fit())

    def _share(self, *surfaces: Surface) -> None:
        """The rows that nothing else needs go to these, the first ones first."""
        for place, one in enumerate(surfaces):
            before = surfaces[:place]
            one.room = lambda before=before: self._spare() - sum([other.taken for other in before])  # type: ignore[misc]
        self._sharing = surfaces

    def _spare(self) -> int:
        """Rows that neither the input nor the status line needs, nor the end of the conversation."""
        needed = self._editor.outer_size.height + self._status.outer_size.height + self._activity.outer_size.height
        return self._editor.app.size.height - needed - _CONVERSATION

    def _fit(self) -> None:
        """Something has become larger or smaller: what gives way to it, and what stands above it, follows."""
        for one in self._sharing:
            one.fit()
        self.overlays.place()

    def draw(self, scene: Scene, dirty: Part) -> None:
        for one in self._parts:
            if one.part & dirty:
                one.show(scene)
        if scene.written:
            self._write_in(scene)

    def escape(self) -> bool:
        """Close what Esc closes; False when it is to do more."""
        return self.overlays.close() or self.notes.dismiss()

    def _write_in(self, scene: Scene) -> None:
        """What an extension puts into the input: not from under the hands of somebody who types."""
        if self._pause is None and self._editor.typing:
            self._pause = self._editor.set_timer(self._editor.typing, lambda: self._paused(scene))
        elif self._pause is None and (written := scene.written):
            scene.written = None
            before = self._written if self._editor.text and not written.replace else 0
            text = written.text[: _WRITTEN - before]
            self._written = before + len(text)
            self._editor.dictate(text, replace=written.replace)

    def _paused(self, scene: Scene) -> None:
        self._pause = None
        self._write_in(scene)

    def _free(self) -> bool:
        return self._editor.has_focus and not self._editor.text

    def _above_input(self) -> Size:
        screen = self._editor.screen.size
        return Size(screen.width, max(min(self._editor.region.y, screen.height) - 1, screen.height // 2))

    def _leave(self) -> None:
        self._editor.screen.set_focus(self._editor)

    def _bound(self) -> Iterable[str]:
        return [*self._editor.app._bindings.key_to_bindings, *self._editor.keys]
