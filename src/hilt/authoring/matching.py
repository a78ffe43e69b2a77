"""Patterns of JSON: what contains them, what is said of them, and why something does not contain one.

The language of transcripts and of fixtures alike; `spec/transcripts/README.md` tells it. Pure: nothing is read or
written here, and variables are passed in and out.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from hilt.authoring import searching
from hilt.authoring.values import brief, same

Variables: TypeAlias = Mapping[str, Any]

_VARIABLE = re.compile(r"\$#?\w+")
_RESERVED = ("$any", "$absent")


class BadPattern(Exception):
    """What is wrong with a pattern; who reads it knows where it stands."""


# Reading


def variables_in(pattern: Any) -> Iterator[str]:
    """Every variable in it. Raises `BadPattern` for what no pattern can be."""
    match pattern:
        case dict() if len(pattern) > 1 and (word := _operator(pattern)):
            raise BadPattern(f"{word} has nothing beside it")
        case {"$contains": text} if not isinstance(text, str):
            raise BadPattern("$contains has a text")
        case {"$regex": text}:
            _check_expression(text)
        case {"$contains": str()}:
            return
        case {"$has": part}:
            yield from variables_in(part)
        case dict():
            for part in pattern.values():
                yield from variables_in(part)
        case list():
            if "$absent" in pattern:
                raise BadPattern("only keys can be $absent")
            for part in pattern:
                yield from variables_in(part)
        case str() if is_variable(pattern):
            yield pattern


def _operator(pattern: Mapping[str, Any]) -> str:
    return next((word for word in ("$contains", "$regex", "$has") if word in pattern), "")


def _check_expression(text: Any) -> None:
    if not isinstance(text, str):
        raise BadPattern("$regex has a text")
    try:
        searching.compiled(text)
    except re.error as error:
        raise BadPattern(f"$regex {text!r} is no regular expression: {error}") from error


def is_variable(pattern: str) -> bool:
    return bool(_VARIABLE.fullmatch(pattern)) and pattern not in _RESERVED


def is_text(pattern: Any) -> bool:
    """Whether it is about what a person reads; a variable may stand for anything, and is taken for that."""
    if isinstance(pattern, str):
        return pattern not in _RESERVED
    return isinstance(pattern, dict) and not {"$contains", "$regex"}.isdisjoint(pattern)


# Matching


def matched(value: Any, pattern: Any, variables: Variables) -> dict[str, Any] | None:
    """The variables as they are afterwards, or None when the value does not contain the pattern.

    Raises `Departure` for a regular expression that comes to no end.
    """
    found = dict(variables)
    return found if _contains(value, pattern, found) else None


def _contains(value: Any, pattern: Any, variables: dict[str, Any]) -> bool:
    match pattern:
        case {"$contains": text}:
            return isinstance(value, str) and text in value
        case {"$regex": text}:
            return isinstance(value, str) and searching.found(text, value)
        case {"$has": part}:
            return isinstance(value, list) and any(_found(one, part, variables) for one in value)
        case dict():
            return isinstance(value, dict) and all(
                key not in value if part == "$absent" else key in value and _contains(value[key], part, variables)
                for key, part in pattern.items()
            )
        case list():
            return (
                isinstance(value, list)
                and len(value) == len(pattern)
                and all(_contains(one, part, variables) for one, part in zip(value, pattern, strict=True))
            )
        case "$any":
            return True
        case str() if is_variable(pattern):
            return same(variables.setdefault(pattern, value), value)
        case _:
            return same(pattern, value)


def _found(value: Any, pattern: Any, variables: dict[str, Any]) -> bool:
    """The variables keep what they took only if it matches as a whole."""
    found = matched(value, pattern, variables)
    variables.update(found or {})
    return found is not None


# Saying


def filled(value: Any, variables: Variables) -> Any:
    """What is sent, with the variables' values. A `KeyError` names the one that has none."""
    match value:
        case dict():
            return {key: filled(part, variables) for key, part in value.items()}
        case list():
            return [filled(part, variables) for part in value]
        case str() if is_variable(value):
            return variables[value]
    return value


def filled_text(text: str, variables: Variables) -> str:
    return re.sub(r"\$\{(#?\w+)\}", lambda found: str(variables[f"${found[1]}"]), text)


def example(pattern: Any) -> Any:
    """A value that contains the pattern, and little else. Of a regular expression, only what it is called."""
    match pattern:
        case {"$contains": text} | {"$regex": text}:
            return text
        case {"$has": part}:
            return [example(part)]
        case dict():
            return {key: example(part) for key, part in pattern.items() if part not in _RESERVED}
        case list():
            return [example(part) for part in pattern]
        case str() if is_variable(pattern):
            return 7 if pattern.startswith("$#") else "made-up"
    return pattern


# Telling what is amiss


def mismatches(value: Any, pattern: Any, variables: Variables, at: str = "") -> list[str]:
    """Where and why the value does not contain the pattern; none if it does."""
    if matched(value, pattern, variables) is not None:
        return []
    match pattern, value:
        case {"$contains": _} | {"$regex": _} | {"$has": _}, _:
            return [_mismatch(at, pattern, value)]
        case dict(), dict():
            return [
                line
                for key, part in pattern.items()
                for line in _of_key(value, key, part, variables, f"{at}.{key}" if at else key)
            ]
        case list(), list() if len(pattern) == len(value):
            pairs = zip(value, pattern, strict=True)
            return [
                line
                for index, (one, part) in enumerate(pairs)
                for line in mismatches(one, part, variables, f"{at}[{index}]")
            ]
        case str(), _ if is_variable(pattern):
            return [_mismatch(at, variables.get(pattern, pattern), value)]
    return [_mismatch(at, pattern, value)]


def _of_key(value: Mapping[str, Any], key: str, pattern: Any, variables: Variables, at: str) -> list[str]:
    if pattern == "$absent":
        return [f"{at}: expected nothing, got {brief(value[key])}"] if key in value else []
    if key not in value:
        return [f"{at}: expected {brief(pattern)}, got nothing"]
    return mismatches(value[key], pattern, variables, at)


def _mismatch(at: str, pattern: Any, value: Any) -> str:
    return f"{at or 'the whole'}: expected {brief(pattern)}, got {brief(value)}"


def nearness(value: Any, pattern: Any, variables: Variables) -> float:
    """How much of the pattern the value contains, from 0 to 1: for finding what was meant."""
    match pattern, value:
        case dict(), dict() if pattern and not _operator(pattern):
            parts = [_near_key(value, key, part, variables) for key, part in pattern.items()]
            return sum(parts) / len(parts)
    return 0.0 if matched(value, pattern, variables) is None else 1.0


def _near_key(value: Mapping[str, Any], key: str, pattern: Any, variables: Variables) -> float:
    if pattern == "$absent":
        return float(key not in value)
    return nearness(value[key], pattern, variables) if key in value else 0.0
