"""Who had a say in a tool call: extensions that rewrote it, refused it or gave no verdict, and the user."""

import msgspec
from rich.style import Style
from textual.strip import Strip

from hilt.frontends.terminal import clean, one_line
from hilt.frontends.tui.drawing.wrapping import wrap
from hilt.frontends.tui.look import Look
from hilt.frontends.tui.transcript.copying import DECORATION
from hilt.model.events import Decided, Intercepted
from hilt.tools.diff import compare, context_diff

_CHANGES = 6
"""Rows of a rewrite that is folded."""
_MOST = 200
_INSTEAD = {"allow": "it ran unchecked", "ask": "so you were asked", "block": "so it was refused"}


class Consulted:
    def __init__(self) -> None:
        self._heard: list[tuple[Decided, str]] = []
        """What each of them did, and how that changed the arguments."""
        self._refusal: str | None = None

    def intercepted(self, told: Intercepted, args: object) -> None:
        """`args` are as they were before anybody was asked."""
        before = args
        for one in told.decisions:
            changes = ""
            if one.decision == "rewrite" and told.event == "tool_call":
                changes, before = _changes(before, one.changed), one.changed
            if one.decision in ("rewrite", "block", "fail"):
                self._heard.append((one, changes))

    def refused(self, reason: str) -> None:
        """By the user."""
        self._refusal = reason

    @property
    def blocked(self) -> bool:
        """Whether it is already said here why it did not run."""
        return self._refusal is not None or any(one.decision == "block" for one, _ in self._heard)

    def rows(self, width: int, look: Look, *, folded: bool) -> list[Strip]:
        rows: list[Strip] = []
        for one, changes in self._heard:
            rows += _told(one, width, look)
            rows += _drawn(changes, width, look, _CHANGES if folded else _MOST)
        if self._refusal is not None:
            why = f": {clean(self._refusal)}" if self._refusal else ""
            rows += wrap([("⊘ you refused it", look.warn), (why, look.text)], width, hanging=[("  ", look.text)])
        return rows


def _told(one: Decided, width: int, look: Look) -> list[Strip]:
    badge, reason = (f"[{clean(one.extension)}]", look.badge), clean(one.reason)
    match one.decision:
        case "rewrite":
            mark, said, style = "✎", "rewrote the arguments" + (f": {reason}" if reason else ""), look.warn
        case "block":
            mark, said, style = "⊘", f"refused it: {reason}" if reason else "refused it", look.warn
        case _:
            instead = _INSTEAD.get(one.applied, "")
            why = f" ({reason})" if reason else ""
            mark, said, style = "!", f"gave no verdict{why}" + (f": {instead}" if instead else ""), look.warn
    return wrap([(f"{mark} ", style), badge, (f" {said}", style)], width, hanging=[("  ", style)])


def _changes(before: object, after: object) -> str:
    old, new = _lines(before), _lines(after)
    return context_diff(old, new, compare(old, new))


def _lines(value: object) -> list[str]:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return [line + "\n" for line in text.split("\n")]


def _drawn(changes: str, width: int, look: Look, most: int) -> list[Strip]:
    """Only what came and went: around it there is nothing but the rest of a short list."""
    styles = {"-": look.removed, "+": look.added}
    lines = [line for line in changes.split("\n") if line[:1] in styles]
    rows: list[Strip] = []
    for line in lines[:most]:
        style: Style = styles[line[0]]
        mark = (f"  {line[0]} ", style + DECORATION)
        rows += wrap([(one_line(line[1:], 2_000), style)], width, indent=[mark], hanging=[("    ", style)])
    if len(rows) > most or len(lines) > most:
        rows = [*rows[:most], *wrap([("  …", look.gutter + DECORATION)], width)]
    return rows
