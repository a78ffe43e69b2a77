"""Who changed what the model asked for, before it runs: remembered as it happens, and written down as small diffs."""

from dataclasses import dataclass
from typing import Any

import msgspec

from hilt.model.content import Args
from hilt.model.events import Event, Intercepted, ToolCalled
from hilt.tools.diff import compare, context_diff, split_lines

_CALLS = 64
"""Whose arguments are remembered: those that run at the same time are few."""


@dataclass(frozen=True)
class Rewrite:
    """What one extension did to the arguments."""

    extension: str
    before: Args
    after: Args

    def text(self) -> str:
        """Each argument that differs, by its lines."""
        old, new = self.before, self.after
        names = [name for name in {**old, **new} if _shown(old, name) != _shown(new, name)]
        return "\n".join(f"{name}:\n{_difference(old, new, name)}" for name in names)


class Rewriting:
    """Takes every event, and keeps what is needed of it."""

    def __init__(self) -> None:
        self._asked: dict[str, Args] = {}
        self._done: dict[str, tuple[Rewrite, ...]] = {}

    def heard(self, event: Event) -> None:
        match event:
            case ToolCalled(id=id_, args=args):
                self._asked[id_] = args
                _keep_few(self._asked)
            case Intercepted(id=id_, outcome="changed") if id_ in self._asked:
                self._done[id_] = _rewrites(self._asked[id_], event)
                _keep_few(self._done)
            case _:
                pass

    def of(self, call: str) -> tuple[Rewrite, ...]:
        return self._done.get(call, ())


def _keep_few(kept: dict[str, Any]) -> None:
    """The latest."""
    while len(kept) > _CALLS:
        del kept[next(iter(kept))]


def _rewrites(args: Args, told: Intercepted) -> tuple[Rewrite, ...]:
    found = []
    for one in told.decisions:
        if one.decision == "rewrite" and isinstance(one.changed, dict):
            found.append(Rewrite(one.extension, args, one.changed))
            args = one.changed
    return tuple(found)


def _shown(args: Args, name: str) -> str | None:
    if name not in args:
        return None
    value = args[name]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _difference(before: Args, after: Args, name: str) -> str:
    old, new = split_lines(_shown(before, name) or ""), split_lines(_shown(after, name) or "")
    rows = context_diff(old, new, compare(old, new)).split("\n")
    return "\n".join(row for row in rows if not row.startswith("\\"))
