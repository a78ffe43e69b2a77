"""The line that says what runs: what it is, for how long, what it wrote so far, and for whom everybody waits.

Owns the only timer of the screen's ornaments, which runs as long as something else does.
"""

import asyncio

from textual.strip import Strip
from textual.timer import Timer

from hilt.frontends.terminal import one_line
from hilt.frontends.tui.drawing.wrapping import Span, clip, wrap
from hilt.frontends.tui.scene import Part, Scene
from hilt.frontends.tui.surfaces.surface import Surface

_EVERY = 1 / 8
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_NAME, _WORDS = 24, 40
_HURRIED = 4
"""Of those that are waited for, how many are named."""


class Activity(Surface):
    part = Part.ACTIVITY

    _scene: Scene | None = None
    _timer: Timer | None = None
    _frame = 0

    def show(self, scene: Scene) -> None:
        self._scene = scene
        if self._runs and self._timer is None and self.is_attached:
            self._timer = self.set_interval(_EVERY, self._turn)
        elif not self._runs and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.redraw()

    @property
    def _runs(self) -> bool:
        return bool(self._scene and (self._scene.activity.since or self._scene.waits))

    @property
    def empty(self) -> bool:
        return False  # an empty row, rather than one that comes and goes and moves everything else

    def _turn(self) -> None:
        self._frame = (self._frame + 1) % len(_FRAMES)
        self.redraw()

    def rows(self, width: int) -> list[Strip]:
        if self._scene is None:
            return [Strip.blank(0)]
        spans: list[Span] = []
        if self._runs:
            spans = [(f"{_FRAMES[self._frame]} ", self.look.accent), *(self._waits() or self._work())]
        if self._scene.hint:
            spans = [(f"{self._scene.hint}  ", self.look.warn), *spans]
        return [clip(wrap(spans, 1 << 20)[0], width)]

    def _work(self) -> list[Span]:
        assert self._scene is not None
        activity = self._scene.activity
        now = asyncio.get_running_loop().time()
        said = [elapsed(now - activity.since)]
        if activity.tokens:
            said.append(f"↓ {activity.tokens / 1000:.1f}k tokens" if activity.tokens > 999 else f"↓ {activity.tokens}")
        doing = one_line(activity.doing or "working", _WORDS)
        return [(f"{doing} ", self.look.text), (" · ".join([*said, "esc to cancel"]), self.look.dim)]

    def _waits(self) -> list[Span]:
        """Those that hold everything up."""
        assert self._scene is not None
        spans: list[Span] = []
        waits = self._scene.waits
        for wait in waits[:_HURRIED]:
            spans += [
                (one_line(wait.owner, _NAME), self.look.badge),
                (f" ({one_line(wait.what, _WORDS)}): {wait.seconds:.1f} s… ", self.look.warn),
            ]
        if more := len(waits) - _HURRIED:
            spans += [(f"+{more} more ", self.look.warn)] if more > 0 else []
        return [*spans, ("(esc to stop waiting)", self.look.dim)] if spans else []


def elapsed(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"
