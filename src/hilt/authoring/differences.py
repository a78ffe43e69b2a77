"""Two JSON values, compared by structure: what is gone, what is new, what is another. Pure.

Whoever shows the differences decides how; `told` is the way that reads well in a terminal.
"""

import difflib
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from hilt.authoring.values import brief, clipped, same

_LINES = 20
"""Lines of a text that changed."""


class Difference(Struct, frozen=True, omit_defaults=True):
    path: str
    """Where: `content[0].text`; empty for the whole."""
    before: Any | UnsetType = UNSET
    """Unset where there was nothing."""
    after: Any | UnsetType = UNSET
    """Unset where there is nothing any more."""


def differences(before: Any, after: Any, path: str = "") -> list[Difference]:
    """In the order of the old one, then of the new one. Numbers are equal when they are as numbers."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [*before, *(key for key in after if key not in before)]
        pairs = [(f"{path}.{key}" if path else key, before.get(key, UNSET), after.get(key, UNSET)) for key in keys]
    elif isinstance(before, list) and isinstance(after, list):
        longest = range(max(len(before), len(after)))
        pairs = [(f"{path}[{index}]", _at(before, index), _at(after, index)) for index in longest]
    else:
        return [] if same(before, after) else [Difference(path, before, after)]
    return [one for where, old, new in pairs for one in differences(old, new, where)]


def _at(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else UNSET


def told(difference: Difference) -> list[str]:
    """Lines to be shown: `-` what was, `+` what is."""
    where, before, after = difference.path, difference.before, difference.after
    label = f"{where}: " if where else ""
    if isinstance(before, str) and isinstance(after, str) and ("\n" in before or "\n" in after):
        changed = list(difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=1))[2:]
        more = [f"… {len(changed) - _LINES} more lines"] if len(changed) > _LINES else []
        return [f"  {where}", *(f"  {clipped(line)}" for line in changed[:_LINES]), *more]
    return [f"{sign} {label}{brief(value)}" for sign, value in (("-", before), ("+", after)) if value is not UNSET]
