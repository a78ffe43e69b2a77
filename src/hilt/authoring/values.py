"""JSON values, as everything here takes them: what an object is, what is the same, how one reads on a line. Pure."""

import json
from typing import Any, TypeAlias

BRIEF = 160
"""Characters of a value on a line."""
DEEPEST = 100
"""Objects and lists within each other; of more, what is recursive here would not come back."""

Value: TypeAlias = dict[str, Any]
"""A frame, a message, or another object."""


def as_object(value: Any) -> Value:
    """The value, if it is an object; else one with nothing in it."""
    return value if isinstance(value, dict) else {}


def same(one: Any, other: Any) -> bool:
    """Equal and of the same JSON type, for which Python's `1 == True` is not enough."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
        case list(), list():
            return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def is_deeper(value: Any, levels: int) -> bool:
    """Whether there are more objects and lists within each other than that."""
    level = [value]
    for _ in range(levels):
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [part for parts in inner for part in parts]
    return any(isinstance(one, dict | list) for one in level)


def brief(value: Any, most: int = BRIEF) -> str:
    """As JSON, on one line; its beginning if that is long."""
    return clipped(json.dumps(value, ensure_ascii=False, separators=(",", ":")), most)


def clipped(text: str, most: int = BRIEF) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
