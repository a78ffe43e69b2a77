"""The status line: who answers, what it cost, how full the conversation is, what is allowed, where, with whom."""

from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from hilt.frontends.terminal import one_line
from hilt.frontends.tui.drawing.wrapping import clip, wrap
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.scene import Facts, Scene

_GAP = "  "
_FULL, _ALMOST = 0.9, 0.7
"""Of the model's window."""
_MODES = {"ask": "asks first", "accept-edits": "edits freely", "yolo": "runs freely"}
_NARROW = 60


class Status(Widget):
    """Two rows: the conversation, and where it takes place."""

    DEFAULT_CSS = "Status { height: 2; padding: 0 1; }"

    class Selected(Message):
        """The user wants to know more about the extensions."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._scene: Scene | None = None

    def show(self, scene: Scene) -> None:
        self._scene = scene
        self.refresh()

    def restyle(self, look: Look) -> None:
        self._look = look
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(self.Selected())

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        if self._scene is None:
            row = [("starting…", self._look.dim)] if y == 0 else []
        elif y == 0:
            row = conversation(self._scene.facts, width, self._look)
        else:
            row = surroundings(self._scene, width, self._look)
        strips = wrap(row, max(width, 1)) if row else []
        return clip(strips[0], width) if strips else Strip.blank(width)


def conversation(facts: Facts, width: int, look: Look) -> list[tuple[str, Style]]:
    """The model and what it took, the most important first: what does not fit is left out from the end."""
    mode = "asks at each step" if facts.step else _MODES[facts.mode]
    parts = [
        (one_line(facts.model, 40), look.strong),
        (mode if width >= _NARROW else facts.mode, look.warn if facts.mode == "yolo" else look.success),
        *_fullness(facts, look),
        *_spent(facts, look),
        *([("jailed", look.success)] if facts.jail else []),
    ]
    return _fitted(parts, width)


def surroundings(scene: Scene, width: int, look: Look) -> list[tuple[str, Style]]:
    """How the extensions are, where the tools work, and what extensions have to say."""
    facts = scene.facts
    place = one_line(home_relative(facts.cwd), max(width // 2, 10))
    parts = [
        *_extensions(facts, look),
        (place + (f" ({one_line(facts.branch, 30)})" if facts.branch else ""), look.dim),
        *((f"{one_line(word.extension, 20)}: {one_line(word.text, 40)}", look.info) for word in scene.statuses),
    ]
    return _fitted(parts, width)


def home_relative(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path


def _fitted(parts: Sequence[tuple[str, Style]], width: int) -> list[tuple[str, Style]]:
    row: list[tuple[str, Style]] = []
    room = width
    for text, style in parts:
        needed = cell_len(text) + (len(_GAP) if row else 0)
        if needed > room and row:
            break
        row += [(_GAP, style)] if row else []
        row.append((text, style))
        room -= needed
    return row


def _fullness(facts: Facts, look: Look) -> list[tuple[str, Style]]:
    if not facts.window:
        return [(f"{_thousands(facts.context)} tokens", look.dim)] if facts.context else []
    share = facts.context / facts.window
    style = look.error if share > _FULL else look.warn if share > _ALMOST else look.dim
    return [(f"{share:.0%} of {_thousands(facts.window)}", style)]


def _spent(facts: Facts, look: Look) -> list[tuple[str, Style]]:
    usage = facts.usage
    if usage is None or not (usage.input or usage.output):
        return []
    tokens = f"↑{_thousands(usage.input + usage.cache_read + usage.cache_write)} ↓{_thousands(usage.output)}"
    return [(tokens, look.dim), (f"${usage.cost_usd:.2f}", look.dim)]


def _extensions(facts: Facts, look: Look) -> list[tuple[str, Style]]:
    """All are well, some are starting, or which one is not."""
    counted = [one for one in facts.extensions if one.state not in ("disabled", "stopped")]
    for state, style, mark in (
        ("failed", look.error, "✗"),
        ("untrusted", look.warn, "?"),
        ("restarting", look.warn, "↻"),
    ):
        if found := [one.name for one in counted if one.state == state]:
            more = f" +{len(found) - 1}" if len(found) > 1 else ""
            return [(f"{mark} {one_line(found[0], 24)} {state}{more} (/ext)", style)]
    if starting := sum(one.state == "starting" for one in counted):
        return [(f"◌ {starting} of {len(counted)} extensions starting", look.dim)]
    if not counted:
        return []
    return [(f"✓ {len(counted)} extension{'s' * (len(counted) > 1)}", look.dim)]


def _thousands(number: int) -> str:
    if number < 1000:
        return str(number)
    if number < 10**6:
        return f"{number / 1000:.{int(number < 10**5)}f}k"
    return f"{number / 10**6:.1f}M"
