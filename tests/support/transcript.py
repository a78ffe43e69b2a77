"""The golden conversations as values: read strictly, matched and filled in as `spec/transcripts/README.md` says."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

FOLDER = Path(__file__).parents[2] / "spec" / "transcripts"

Variables: TypeAlias = Mapping[str, Any]

_HEAD = {"transcript": str, "about": str, "needs": list, "dialect": str, "extensions": list, "files": dict}
_OPTIONAL = {"dialect", "extensions", "files"}
_DIALECTS = ("frames", "jsonrpc")
_VARIABLE = re.compile(r"\$#?\w+")
_RESERVED = ("$any", "$absent")
_SIDED = {"ext": dict, "ext_raw": str, "host": dict, "host_not": dict, "host_end": bool}
"""Steps that belong to one extension."""
_STEPS = {**_SIDED, "do": dict, "expect": dict, "expect_not": dict, "expect_response": dict}
_DO: dict[str, dict[str, type]] = {
    "prompt": {"prompt": str, "model": list},
    "command": {"command": str, "args": str, "model": list},
    "input": {"input": str, "model": list},
    "shortcut": {"shortcut": str},
    "abort": {"abort": bool},
    "compact": {"compact": bool, "model": list},
    "host": {"host": str, "params": dict, "model": list},
    "ui_response": {"ui_response": dict},
    "panel_key": {"panel_key": dict},
    "panel_close": {"panel_close": dict},
    "panel_resize": {"panel_resize": dict},
    "stop": {"stop": bool},
    "model": {"model": list},
}
_INNER: dict[str, dict[str, type]] = {
    "panel_key": {"panel_id": str, "key": str, "text": str},
    "panel_close": {"panel_id": str},
    "panel_resize": {"panel_id": str, "width": int, "height": int},
    "ui_response": {"id": str, "selected": str, "cancelled": bool, "approved": bool},
}
_MAY_LACK = {"text", "selected", "cancelled", "approved"}


class BadTranscript(Exception):
    """What is wrong with it, and where."""


@dataclass(frozen=True)
class Step:
    line: int
    kind: str
    value: Any
    of: str
    """The extension it belongs to, if it belongs to one."""


@dataclass(frozen=True)
class Conversation:
    name: str
    about: str
    dialect: str
    needs: tuple[str, ...]
    extensions: tuple[str, ...]
    files: Mapping[str, str]
    steps: tuple[Step, ...]

    def model(self) -> list[dict[str, Any]]:
        """Everything the model says, in order."""
        return [turn for step in self.steps if step.kind == "do" for turn in step.value.get("model", ())]


def paths() -> list[Path]:
    return sorted(FOLDER.rglob("*.jsonl"))


# Reading


def read(path: Path) -> Conversation:
    """Raises `BadTranscript` for whatever the format does not know."""
    lines = path.read_bytes().decode().split("\n")
    if lines.pop():
        raise BadTranscript(f"{path.name}: the last line has no end")
    values = [_parsed(line, f"{path.name}:{number}") for number, line in enumerate(lines, 1)]
    head, *steps = values or [{}]
    where = f"{path.name}:1"
    _check(head, _HEAD, _HEAD.keys() - _OPTIONAL, where)
    if head["transcript"] != path.stem:
        raise BadTranscript(f"{where}: it is called {head['transcript']}")
    if (dialect := head.get("dialect", _DIALECTS[0])) not in _DIALECTS:
        raise BadTranscript(f"{where}: there is no dialect {dialect!r}")
    extensions = tuple(head.get("extensions", ["demo"]))
    found = tuple(_step(value, extensions, f"{path.name}:{number}", number) for number, value in enumerate(steps, 2))
    needs, files = tuple(head["needs"]), head.get("files", {})
    return Conversation(head["transcript"], head["about"], dialect, needs, extensions, files, found)


def _parsed(line: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise BadTranscript(f"{where}: {error}") from error
    if not isinstance(value, dict) or json.dumps(value, ensure_ascii=False, separators=(",", ":")) != line:
        raise BadTranscript(f"{where}: not an object in compact JSON")
    return value


def _step(value: dict[str, Any], extensions: tuple[str, ...], where: str, number: int) -> Step:
    kind = next(iter(value), "")
    sided = {"of": str} if kind in _SIDED and len(extensions) > 1 else {}
    if kind not in _STEPS:
        raise BadTranscript(f"{where}: there is no step {kind!r}")
    _check(value, {kind: _STEPS[kind], **sided}, {kind, *sided}, where)
    of = value.get("of", extensions[0]) if kind in _SIDED else ""
    if of and of not in extensions:
        raise BadTranscript(f"{where}: there is no extension {of!r}")
    if kind == "do":
        _check_doing(value[kind], where)
    elif kind == "host_end" and value[kind] is not True:
        raise BadTranscript(f"{where}: host_end is true or not there")
    elif kind in ("host", "host_not", "expect", "expect_not", "expect_response"):
        for pattern in _patterns(value[kind], where):
            if kind.endswith("_not") and _is_variable(pattern):
                raise BadTranscript(f"{where}: {kind} has no variables, but {pattern}")
    return Step(number, kind, value[kind], of)


def _check_doing(doing: dict[str, Any], where: str) -> None:
    verb = next(iter(doing), "")
    if verb not in _DO:
        raise BadTranscript(f"{where}: nobody can do {verb!r}")
    _check(doing, _DO[verb], {verb}, where)
    if verb in _INNER:
        _check(doing[verb], _INNER[verb], _INNER[verb].keys() - _MAY_LACK, where)
    if _DO[verb][verb] is bool and doing[verb] is not True:
        raise BadTranscript(f"{where}: {verb} is true or not there")


def _check(value: dict[str, Any], known: Mapping[str, type], required: Any, where: str) -> None:
    if unknown := value.keys() - known.keys():
        raise BadTranscript(f"{where}: unknown {', '.join(sorted(unknown))}")
    if missing := set(required) - value.keys():
        raise BadTranscript(f"{where}: {', '.join(sorted(missing))} is missing")
    for name, member in value.items():
        if type(member) is not known[name]:
            raise BadTranscript(f"{where}: {name} is no {known[name].__name__}")


def _patterns(pattern: Any, where: str) -> Iterator[str]:
    """Every string in it that stands for something else."""
    match pattern:
        case dict() if "$contains" in pattern:
            if len(pattern) > 1 or not isinstance(pattern["$contains"], str):
                raise BadTranscript(f"{where}: $contains has a text and nothing beside it")
        case {"$has": part}:
            if len(pattern) > 1:
                raise BadTranscript(f"{where}: $has has nothing beside it")
            yield from _patterns(part, where)
        case dict():
            for part in pattern.values():
                yield from _patterns(part, where)
        case list():
            if "$absent" in pattern:
                raise BadTranscript(f"{where}: only keys can be $absent")
            for part in pattern:
                yield from _patterns(part, where)
        case str() if _VARIABLE.fullmatch(pattern):
            yield pattern


# Matching


def matched(value: Any, pattern: Any, variables: Variables) -> dict[str, Any] | None:
    """The variables as they are afterwards, or None when the value does not contain the pattern."""
    found = dict(variables)
    return found if _contains(value, pattern, found) else None


def _contains(value: Any, pattern: Any, variables: dict[str, Any]) -> bool:
    match pattern:
        case {"$contains": text}:
            return isinstance(value, str) and text in value
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
        case str() if _is_variable(pattern):
            return _same(variables.setdefault(pattern, value), value)
        case _:
            return _same(pattern, value)


def _found(value: Any, pattern: Any, variables: dict[str, Any]) -> bool:
    """The variables keep what they took only if it matches as a whole."""
    found = matched(value, pattern, variables)
    variables.update(found or {})
    return found is not None


def _is_variable(pattern: str) -> bool:
    return bool(_VARIABLE.fullmatch(pattern)) and pattern not in _RESERVED


def _same(one: Any, other: Any) -> bool:
    """Equal and of the same JSON type, for which Python's `1 == True` is not enough."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
        case list(), list():
            return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


# Saying


def filled(value: Any, variables: Variables) -> Any:
    """What is sent, with the variables' values. A `KeyError` names the one that has none."""
    match value:
        case dict():
            return {key: filled(part, variables) for key, part in value.items()}
        case list():
            return [filled(part, variables) for part in value]
        case str() if _is_variable(value):
            return variables[value]
    return value


def filled_text(text: str, variables: Variables) -> str:
    return re.sub(r"\$\{(#?\w+)\}", lambda found: str(variables[f"${found[1]}"]), text)


def example(pattern: Any) -> Any:
    """A value that contains the pattern, and little else."""
    match pattern:
        case {"$contains": text}:
            return text
        case {"$has": part}:
            return [example(part)]
        case dict():
            return {key: example(part) for key, part in pattern.items() if part not in _RESERVED}
        case list():
            return [example(part) for part in pattern]
        case str() if _is_variable(pattern):
            return 7 if pattern.startswith("$#") else "made-up"
    return pattern
