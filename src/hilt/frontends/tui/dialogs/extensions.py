"""`/ext`: every extension as it is now, and what can be done about it.

Owns the two pages, all of them and one of them; who does what is asked for is up to whoever opened it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.style import Style
from textual.events import Key
from textual.strip import Strip

from hilt.frontends.terminal import one_line
from hilt.frontends.tui.dialogs.dialog import Dialog
from hilt.frontends.tui.drawing.plain import plain
from hilt.frontends.tui.drawing.wrapping import pad, wrap
from hilt.frontends.tui.look import Look
from hilt.model.extensions import ExtensionStatus

_REFRESH = 0.5
_MARKS = {
    "ready": "✓",
    "starting": "◌",
    "restarting": "↻",
    "failed": "✗",
    "disabled": "–",
    "stopped": "–",
    "untrusted": "?",
}


@dataclass(frozen=True)
class Wish:
    """What is to be done about an extension: `enable`, `disable`, `reload` or `log`."""

    what: str
    extension: str


class Extensions(Dialog[Wish]):
    """Closes with what is to be done."""

    def __init__(self, look: Look, statuses: Callable[[], Sequence[ExtensionStatus]], current: str = "") -> None:
        super().__init__("extensions", look)
        self._statuses = statuses
        self._current = current
        self._shown: tuple[ExtensionStatus, ...] = tuple(statuses())

    def on_mount(self) -> None:
        self.set_interval(_REFRESH, self._look_again)

    def _look_again(self) -> None:
        now = tuple(self._statuses())
        if now != self._shown:
            self._shown = now
            self.changed()

    # Keys

    def hint(self) -> str:
        if not self._shown:
            return "Esc close"
        turn = "e enable" if self._chosen.state == "disabled" else "d disable"
        return f"↑↓ move · {turn} · r reload · l log · Esc close"

    @property
    def _chosen(self) -> ExtensionStatus:
        return next((one for one in self._shown if one.name == self._current), self._shown[0])

    def pressed(self, key: Key, /) -> bool:
        wishes = {"e": "enable", "d": "disable", "r": "reload", "l": "log", "enter": "log"}
        if not self._shown:
            return False
        if key.key in ("up", "down"):
            self._move(-1 if key.key == "up" else 1)
        elif wish := wishes.get(key.key):
            self.close(Wish(wish, self._chosen.name))
        else:
            return False
        return True

    def clicked(self, part: str, at: int) -> None:
        if part == "head" and at < len(self._shown):
            self._current = self._shown[at].name
            self.changed()

    def _move(self, by: int) -> None:
        at = self._shown.index(self._chosen) + by
        self._current = self._shown[min(max(0, at), len(self._shown) - 1)].name
        self.changed()

    # Drawing

    def head(self, width: int, /) -> list[Strip]:
        if not self._shown:
            return wrap([("There are none. `hilt ext install`, or --ext DIR, brings one.", self.look.dim)], width)
        return [*(self._line(one, width) for one in self._shown), Strip.blank(0)]

    def page(self, width: int, /) -> list[Strip]:
        if not self._shown:
            return []
        rows: list[Strip] = []
        for name, told, style in self._facts(self._chosen):
            rows += wrap(
                [(f"{name:<10} ", self.look.dim), (one_line(told, 2000), style)], width, hanging=[(" " * 11, style)]
            )
        return rows

    def _line(self, one: ExtensionStatus, width: int) -> Strip:
        look, chosen = self.look, one.name == self._chosen.name
        style = look.selected if chosen else look.text
        state = f"{_MARKS[one.state]} {one.state}"
        front = f"{'›' if chosen else ' '} {one_line(one.name, 24):<24} {state:<13} "
        latency = f"{one.calls} calls  {one.mean_ms:.1f} ms" if one.calls else ""
        row = wrap([(f"{front}{latency}", style)], max(width, 1))[0]
        return pad(row, width, style) if chosen else row

    def _facts(self, one: ExtensionStatus) -> list[tuple[str, str, Style]]:
        look = self.look
        offers = [
            *one.tools,
            *(f"/{name}" for name in one.commands),
            *(f"guards {what}" for what in one.guards),
            *one.also,
        ]
        latency = f"{one.calls:,}, {one.mean_ms:.1f} ms on average, {one.worst_ms:.0f} ms at worst"
        cost = [
            *([f"{one.busy_ms / 1000:.1f} s waited for"] if one.calls else []),
            *([f"{one.tokens_used:,} tokens used"] if one.tokens_used else []),
            *([f"about {one.prompt_tokens:,} tokens in every request"] if one.prompt_tokens else []),
        ]
        troubles = [
            f"{count:,} {what}"
            for what, count in (
                ("events lost", one.events_lost),
                ("unusable lines", one.mistakes),
                ("verdicts missed", one.unchecked),
            )
            if count
        ]
        process = f"pid {one.pid}, " if one.pid else ""
        facts = [
            (
                "version",
                f"{one.version or '—'}  ({one.dialect}, {one.source or 'unknown'}, sandbox {one.sandbox})",
                look.text,
            ),
            (
                "state",
                f"{process}{one.restarts} restarts" + (f", ready after {one.start_ms} ms" if one.start_ms else ""),
                look.text,
            ),
            ("why", one.reason, look.error if one.state == "failed" else look.warn),
            ("offers", ", ".join(offers) or "nothing yet", look.text),
            ("calls", latency if one.calls else "none yet", look.text),
            ("cost", ", ".join(cost), look.text),
            ("trouble", ", ".join(troubles), look.warn),
            ("last error", one.last_error, look.error),
            ("in", one.directory, look.dim),
        ]
        return [fact for fact in facts if fact[1]]


class Log(Dialog[None]):
    """The end of an extension's log."""

    def __init__(self, look: Look, extension: str, text: str) -> None:
        super().__init__("log", look, owner=extension, keys="↑↓ PgUp PgDn scroll · Esc close")
        self._text = text

    def page(self, width: int, /) -> list[Strip]:
        return plain(self._text, width, self.look.text)

    def placed(self) -> None:
        self.scroll_by(1 << 30)
