"""Two lines that an extension wrote at different times: what of them counts, and what is another now. Pure.

Ids of its own, times and the places it was told of differ each time and do not count. What a trace has hidden or cut
cannot be compared, so anything is taken for it.
"""

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from hilt.authoring.differences import Difference, differences
from hilt.authoring.exchange import role_of
from hilt.authoring.values import Value
from hilt.model.masking import MASK

_TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_TIMELY = re.compile(r"(?:^|_)(?:time|timestamp|elapsed|duration|uptime|ms|pid)$|(?:Time|Ms|Pid)$")
"""Names of members that say when something was, or how long it took."""
_PLACES = ("datadir", "configdir", "extensiondir", "cwd")
"""Where one directory was several of these, the last counts, but in the opening itself."""
_EMPTY: tuple[Any, ...] = (None, False, "", [], {})


class Places(Struct, frozen=True):
    """Directories as the trace has them, with those in their place."""

    moved: tuple[tuple[str, str], ...] = ()
    now: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def of(cls, recorded: Any, now: Mapping[str, str]) -> "Places":
        """`recorded` is what it was told at the opening; `now` has the present ones by name, in small letters."""
        inner = recorded.get("params", recorded) if isinstance(recorded, dict) else {}
        known = {_plain(key): value for key, value in inner.items()} if isinstance(inner, dict) else {}
        pairs = [(known[name], now[name]) for name in _PLACES if name in known and name in now]
        real = [(old, new) for old, new in pairs if isinstance(old, str) and len(old) > 1]
        return cls(tuple(real), now)

    def opening(self, frame: Value) -> Value:
        """What it is told first, where each has a name."""
        inner = frame.get("params")
        if isinstance(inner, dict):
            return {**frame, "params": self.opening(inner)}
        return {key: self.now.get(_plain(key), item) for key, item in frame.items()}

    def here(self, value: Any) -> Any:
        """The same with the present ones."""
        return _each_text(value, dict(self.moved))

    def there(self, value: Any) -> Any:
        """The same with those of the trace."""
        return _each_text(value, {new: old for old, new in self.moved})


def comparable(value: Value, ignored: Collection[str]) -> Value:
    """What counts of a line."""
    role = role_of(value)
    kept = {key: item for key, item in value.items() if item not in _EMPTY}
    if role.part == "question" or value.get("type") == "call_tool_cancel":
        kept.pop("id", None)  # its own, and as it pleases
    if value.get("method") == "$/cancelRequest":
        kept.pop("params", None)
    kept.pop("jsonrpc", None)
    for inner in ("params", "result"):
        if isinstance(kept.get(inner), dict):
            kept[inner] = {key: item for key, item in kept[inner].items() if item not in _EMPTY}
    pruned: Value = _timeless(kept, frozenset(ignored))
    return pruned


def changes(recorded: Value, now: Value) -> list[Difference]:
    """What differs between two comparable lines."""
    return [one for one in differences(recorded, now) if not _hidden(one)]


def _hidden(difference: Difference) -> bool:
    before, after = difference.before, difference.after
    if not (isinstance(before, str) and isinstance(after, str) and MASK in before):
        return False
    first, *middle, last = before.split(MASK)
    at = len(first)
    for part in middle:  # not by an expression: with many gaps it would try all ways to fill them
        found = after.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return after.startswith(first) and after.endswith(last) and at + len(last) <= len(after)


def _timeless(value: Any, ignored: frozenset[str]) -> Any:
    match value:
        case str():
            return _TIMES.sub("[time]", value)
        case dict():
            kept = ((key, item) for key, item in value.items() if key not in ignored and not _TIMELY.search(key))
            return {key: _timeless(item, ignored) for key, item in kept}
        case list():
            return [_timeless(item, ignored) for item in value]
    return value


def _each_text(value: Any, moved: Mapping[str, str]) -> Any:
    match value:
        case str() if moved:
            # All at once, the longest first: one may lie within another, and what was put in must stay.
            whole = "|".join(re.escape(old) for old in sorted(moved, key=len, reverse=True))
            return re.sub(rf"(?:{whole})(?![\w.-])", lambda found: moved[found[0]], value)
        case dict():
            return {key: _each_text(item, moved) for key, item in value.items()}
        case list():
            return [_each_text(item, moved) for item in value]
    return value


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
