"""The golden conversations as values: read strictly, as `spec/transcripts/README.md` says."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from hilt.authoring.matching import BadPattern, variables_in
from hilt.authoring.shipped import shipped
from hilt.errors import FixtureError
from hilt.model.extensions import Dialect

_HEAD = {"transcript": str, "about": str, "needs": list, "dialect": str, "extensions": list, "files": dict}
_OPTIONAL = {"dialect", "extensions", "files"}
_DIALECTS: tuple[Dialect, ...] = ("frames", "jsonrpc")
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
_TYPES = {dict: "object", list: "list", str: "string", bool: "true or false", int: "integer"}


class Step(Struct, frozen=True):
    line: int
    kind: str
    value: Any
    of: str
    """The extension it belongs to, if it belongs to one."""


class Conversation(Struct, frozen=True):
    name: str
    about: str
    dialect: Dialect
    needs: tuple[str, ...]
    extensions: tuple[str, ...]
    files: Mapping[str, str]
    steps: tuple[Step, ...]

    def model(self) -> list[dict[str, Any]]:
        """Everything the model says, in order."""
        return [turn for step in self.steps if step.kind == "do" for turn in step.value.get("model", ())]


def folder() -> Path:
    """Where they lie. Raises `PackageError`."""
    return shipped("spec") / "transcripts"


def paths() -> list[Path]:
    return sorted(folder().rglob("*.jsonl"))


def read(path: Path) -> Conversation:
    """Raises `FixtureError` for whatever the format does not know."""
    lines = path.read_bytes().decode().split("\n")
    if lines.pop():
        raise FixtureError(f"{path.name}: the last line has no end")
    values = [_parsed(line, f"{path.name}:{number}") for number, line in enumerate(lines, 1)]
    head, *steps = values or [{}]
    where = f"{path.name}:1"
    check_members(head, _HEAD, _HEAD.keys() - _OPTIONAL, where)
    if head["transcript"] != path.stem:
        raise FixtureError(f"{where}: it is called {head['transcript']}")
    if (dialect := head.get("dialect", _DIALECTS[0])) not in _DIALECTS:
        raise FixtureError(f"{where}: there is no dialect {dialect!r}")
    extensions = tuple(head.get("extensions", ["demo"]))
    found = tuple(_step(value, extensions, f"{path.name}:{number}", number) for number, value in enumerate(steps, 2))
    needs, files = tuple(head["needs"]), head.get("files", {})
    return Conversation(head["transcript"], head["about"], dialect, needs, extensions, files, found)


def _parsed(line: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise FixtureError(f"{where}: {error}") from error
    if not isinstance(value, dict) or json.dumps(value, ensure_ascii=False, separators=(",", ":")) != line:
        raise FixtureError(f"{where}: not an object in compact JSON")
    return value


def _step(value: dict[str, Any], extensions: tuple[str, ...], where: str, number: int) -> Step:
    kind = next(iter(value), "")
    sided = {"of": str} if kind in _SIDED and len(extensions) > 1 else {}
    if kind not in _STEPS:
        raise FixtureError(f"{where}: there is no step {kind!r}")
    check_members(value, {kind: _STEPS[kind], **sided}, {kind, *sided}, where)
    of = value.get("of", extensions[0]) if kind in _SIDED else ""
    if of and of not in extensions:
        raise FixtureError(f"{where}: there is no extension {of!r}")
    if kind == "do":
        _check_doing(value[kind], where)
    elif kind == "host_end" and value[kind] is not True:
        raise FixtureError(f"{where}: host_end is true or not there")
    elif kind in ("host", "host_not", "expect", "expect_not", "expect_response"):
        check_pattern(value[kind], kind, where)
    return Step(number, kind, value[kind], of)


def _check_doing(doing: dict[str, Any], where: str) -> None:
    verb = next(iter(doing), "")
    if verb not in _DO:
        raise FixtureError(f"{where}: nobody can do {verb!r}")
    check_members(doing, _DO[verb], {verb}, where)
    if verb in _INNER:
        check_members(doing[verb], _INNER[verb], _INNER[verb].keys() - _MAY_LACK, where)
    if _DO[verb][verb] is bool and doing[verb] is not True:
        raise FixtureError(f"{where}: {verb} is true or not there")


def check_members(
    value: Mapping[str, Any], known: Mapping[str, type], required: Collection[str], where: str, hint: str = ""
) -> None:
    """Whether an object has the members it may and must have, of the right type. Raises `FixtureError`."""
    if unknown := value.keys() - known.keys():
        raise FixtureError(f"{where}: unknown {', '.join(sorted(unknown))}", hint=hint)
    if missing := set(required) - value.keys():
        raise FixtureError(f"{where}: {', '.join(sorted(missing))} is missing", hint=hint)
    for name, member in value.items():
        if known[name] is not object and type(member) is not known[name]:
            raise FixtureError(f"{where}: {name} is no {_TYPES[known[name]]}", hint=hint)


def check_pattern(pattern: Any, kind: str, where: str) -> None:
    """Raises `FixtureError` for what is no pattern; what must not come has no variables."""
    try:
        for variable in variables_in(pattern):
            if kind.endswith("_not"):
                raise FixtureError(f"{where}: {kind} has no variables, but {variable}")
    except BadPattern as error:
        raise FixtureError(f"{where}: {error}") from error
