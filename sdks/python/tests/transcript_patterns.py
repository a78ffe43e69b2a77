"""The patterns of transcripts: what a message must contain, and what is sent in their place.

The rules are those of spec/transcripts/README.md.
"""

from typing import Any


def contains(value: Any, pattern: Any, variables: dict[str, Any]) -> bool:
    """Whether a value contains what the pattern says; variables take their values on the way."""
    if isinstance(pattern, str) and is_variable(pattern):
        if pattern not in variables:
            variables[pattern] = value
        return same(variables[pattern], value)
    if isinstance(pattern, dict):
        if "$contains" in pattern:
            return isinstance(value, str) and pattern["$contains"] in value
        if "$has" in pattern:
            return isinstance(value, list) and any(contains(one, pattern["$has"], variables) for one in value)
        return isinstance(value, dict) and all(_member(value, key, one, variables) for key, one in pattern.items())
    if isinstance(pattern, list):
        return (
            isinstance(value, list)
            and len(value) == len(pattern)
            and all(contains(one, part, variables) for one, part in zip(value, pattern))
        )
    return same(value, pattern)


def _member(value: dict[str, Any], key: str, pattern: Any, variables: dict[str, Any]) -> bool:
    if pattern == "$absent":
        return key not in value
    if pattern == "$any":
        return key in value
    if key not in value or value[key] is None:
        return pattern in (None, False, 0, "", [], {}) or pattern is None
    if pattern is None or pattern == {}:  # at its default
        return True
    return contains(value[key], pattern, variables)


def sendable(pattern: Any, variables: dict[str, Any]) -> Any:
    """What to send for a pattern: variables that have no value yet get one."""
    if isinstance(pattern, str) and is_variable(pattern):
        if pattern not in variables:
            number = 1000 + len(variables)
            variables[pattern] = number if pattern.startswith("$#") else f"{pattern[1:]}-{number}"
        return variables[pattern]
    if isinstance(pattern, dict):
        if "$contains" in pattern:
            return pattern["$contains"]
        if "$has" in pattern:
            return [sendable(pattern["$has"], variables)]
        left_out = ("$any", "$absent")
        return {key: sendable(one, variables) for key, one in pattern.items() if one not in left_out}
    if isinstance(pattern, list):
        return [sendable(one, variables) for one in pattern]
    return pattern


def is_variable(pattern: str) -> bool:
    return pattern.startswith("$") and not pattern.startswith("$/") and pattern not in ("$any", "$absent")


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same JSON type."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)
