"""Fixtures as values: what a scripted host does to an extension and expects of it, read strictly.

`docs/reference/fixtures.md` tells the format; this module is what holds it. Whatever the format does not know is an
error that names the file and the line and says what there is: a step that is misspelt must not pass for one that holds.
"""

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, get_args

from msgspec import Struct

from hilt.authoring.greeting import HostName, Played
from hilt.authoring.speaking.tongue import EVENTS, HAPPENINGS
from hilt.authoring.transcripts import check_members, check_pattern
from hilt.authoring.values import DEEPEST, is_deeper
from hilt.errors import FixtureError
from hilt.model.extensions import Dialect

DEFAULT_WITHIN = 5.0
_LONGEST_WAIT = 600_000
_LARGEST = 64 * 1024 * 1024
_HEAD: dict[str, type] = {
    "about": str,
    "host": str,
    "capabilities": list,
    "dialect": str,
    "files": dict,
    "within_ms": int,
}
_HOSTS: tuple[HostName, ...] = get_args(HostName)
_DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
_VERDICTS = ("allow", "block", "rewrite", "replace")

_SOON: dict[str, type] = {"within_ms": int}
_EFFECTS: dict[str, type] = {**dict.fromkeys(HAPPENINGS, object), **_SOON}
"""What may be expected of anything that is done to it."""
_ANSWER: dict[str, type] = {"result": object, "error": object, **_EFFECTS}
_STEPS: dict[str, dict[str, type]] = {
    "send": {"send": dict},
    "send_raw": {"send_raw": str},
    "expect": {"expect": dict, **_SOON},
    "expect_not": {"expect_not": dict},
    "expect_exit": {"expect_exit": int, **_SOON},
    "call": {"call": str, "args": dict, "wait": bool, "as": str, **_ANSWER},
    "answer": {"answer": str, **_ANSWER},
    "cancel": {"cancel": str},
    "advance_ms": {"advance_ms": int},
    "run": {"run": str, "error": object, **_EFFECTS},
    "shortcut": {"shortcut": str, "error": object, **_EFFECTS},
    "intercept": {
        "intercept": str,
        "args": dict,
        "text": str,
        "step": int,
        "verdict": str,
        "reason": object,
        "to": object,
        **_EFFECTS,
    },
    "after": {"after": str, "text": str, "failed": bool, "result": object, **_EFFECTS},
    "event": {"event": str, "data": dict, **_EFFECTS},
    "ask": {"ask": str, "params": dict, **_ANSWER},
    "stream": {"stream": str, "model": str, "says": object, "error": object, **_EFFECTS},
    "key": {"key": str, "text": str, "panel": str, **_EFFECTS},
    "resize": {"resize": list, "panel": str, **_EFFECTS},
    "close_panel": {"close_panel": str, **_EFFECTS},
    "tell": {"tell": str, "params": dict, **_EFFECTS},
    "host": {"host": str, "params": object, "reply": object, "error": object},
    "registers": {"registers": dict, **_SOON},
    "log": {"log": object, **_SOON},
    "shutdown": {"shutdown": bool},
    "close": {"close": bool},
    "about": {"about": str},
    **{kind: {kind: object, **_SOON} for kind in HAPPENINGS},
}
_PATTERNS = {"expect", "expect_not", "result", "says", "reason", "to", "registers", "log", *HAPPENINGS}
_HINT = "docs/reference/fixtures.md has every step"


class FixtureStep(Struct, frozen=True):
    line: int
    kind: str
    fields: Mapping[str, Any]
    text: str
    """As it stands in the file."""

    @property
    def value(self) -> Any:
        return self.fields[self.kind]


class Fixture(Struct, frozen=True):
    path: Path
    steps: tuple[FixtureStep, ...]
    about: str = ""
    host: Played = Played()
    dialect: Dialect | None = None
    """Only for extensions that speak it."""
    files: Mapping[str, str] = {}
    """To be put into the working directory."""
    within: float = DEFAULT_WITHIN
    """Seconds that a single thing is waited for."""

    @property
    def name(self) -> str:
        return self.path.stem


def read_fixture(path: Path) -> Fixture:
    """Raises `FixtureError`."""
    try:
        if path.stat().st_size > _LARGEST:
            raise FixtureError(f"{path}: a fixture of more than {_LARGEST:,} bytes", hint="make several of it")
        lines = path.read_bytes().decode().split("\n")
    except OSError as error:
        raise FixtureError(f"{path}: {error.strerror or error}", hint="name a file of fixtures, *.jsonl") from error
    except UnicodeDecodeError as error:
        raise FixtureError(f"{path}: it is not UTF-8: {error}", hint="save it as UTF-8") from error
    values = [(number, line, _parsed(line, f"{path}:{number}")) for number, line in enumerate(lines, 1) if line.strip()]
    head: Mapping[str, Any] = {}
    if values and _is_head(values[0][2]):
        head = _checked_head(values.pop(0)[2], f"{path}:1")
    steps = tuple(_step(value, f"{path}:{number}", number, line.strip()) for number, line, value in values)
    steps = tuple(step for step in steps if step.kind != "about")
    if not steps:
        raise FixtureError(f"{path}: there is no step in it", hint=f'such as {{"call":"NAME","args":{{}}}}; {_HINT}')
    capabilities = tuple(head["capabilities"]) if "capabilities" in head else None
    return Fixture(
        path,
        steps,
        head.get("about", ""),
        Played(head.get("host", "hilt"), capabilities),
        head.get("dialect"),
        head.get("files", {}),
        head["within_ms"] / 1000 if "within_ms" in head else DEFAULT_WITHIN,
    )


def _parsed(line: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line, parse_constant=_number)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # what cannot be sent must not be begun
    except (ValueError, RecursionError) as error:
        raise FixtureError(
            f"{where}: this is no JSON: {error}", hint="a step is one JSON object on one line"
        ) from error
    if not isinstance(value, dict):
        raise FixtureError(f"{where}: a step is a JSON object", hint=_HINT)
    if is_deeper(value, DEEPEST):
        raise FixtureError(f"{where}: nested more than {DEEPEST} deep", hint="no extension needs that")
    return value


def _number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON's")


def _is_head(value: Mapping[str, Any]) -> bool:
    """One that begins with a word of the head's; `host` is also a step, with the name of a method."""
    first = next(iter(value), "")
    return first in _HEAD and not (first == "host" and value["host"] not in _HOSTS)


def _checked_head(head: dict[str, Any], where: str) -> Mapping[str, Any]:
    check_members(head, _HEAD, (), where, f"the first line may have {', '.join(_HEAD)}")
    if head.get("host", "hilt") not in _HOSTS:
        raise FixtureError(f"{where}: there is no host {head['host']!r}", hint=f"there are {', '.join(_HOSTS)}")
    if head.get("dialect", "frames") not in _DIALECTS:
        raise FixtureError(f"{where}: no dialect {head['dialect']!r}", hint=f"there are {', '.join(_DIALECTS)}")
    for name, text in head.get("files", {}).items():
        inside = name and "\0" not in name and not Path(name).is_absolute() and ".." not in Path(name).parts
        if not inside or not isinstance(text, str):
            raise FixtureError(
                f"{where}: files: {name!r}", hint="names below the working directory, each with its text"
            )
    if not all(isinstance(one, str) for one in head.get("capabilities", ())):
        raise FixtureError(f"{where}: capabilities are strings")
    _check_wait(head, where)
    return head


def _step(value: dict[str, Any], where: str, number: int, text: str) -> FixtureStep:
    kind = next(iter(value), "")
    if kind not in _STEPS:
        near = difflib.get_close_matches(kind, _STEPS, 1)
        meant = f"did you mean {near[0]!r}? " if near else ""
        raise FixtureError(f"{where}: there is no step {kind!r}", hint=f"{meant}{_HINT}")
    known = _STEPS[kind]
    check_members(value, known, (), where, f"{kind} may have {', '.join(name for name in known if name != kind)}")
    for name, part in value.items():
        if name in _PATTERNS or name == "error":
            check_pattern(part, name, where)
    _check_wait(value, where)
    _check_values(kind, value, where)
    return FixtureStep(number, kind, value, text)


def _check_wait(value: Mapping[str, Any], where: str) -> None:
    if not 0 < value.get("within_ms", 1) <= _LONGEST_WAIT:
        raise FixtureError(f"{where}: within_ms is from 1 to {_LONGEST_WAIT}")


def _check_values(kind: str, value: Mapping[str, Any], where: str) -> None:
    match kind:
        case "run" if not value["run"].startswith("/"):
            raise FixtureError(f"{where}: run has a slash command", hint='such as {"run":"/hi Ada","shows":"hi, Ada"}')
        case "intercept":
            _check_intercept(value, where)
        case "host" if ("reply" in value) == ("error" in value):
            raise FixtureError(f"{where}: host has either a reply or an error")
        case "resize" if not _two_numbers(value["resize"]):
            raise FixtureError(f"{where}: resize has a width and a height", hint='such as {"resize":[80,24]}')
        case "advance_ms" if value["advance_ms"] < 0:
            raise FixtureError(f"{where}: time does not go back")
        case "shutdown" | "close" if value[kind] is not True:
            raise FixtureError(f"{where}: {kind} is true or not there")


def _check_intercept(value: Mapping[str, Any], where: str) -> None:
    if value.get("verdict", "allow") not in _VERDICTS:
        raise FixtureError(f"{where}: no verdict {value['verdict']!r}", hint=f"there are {', '.join(_VERDICTS)}")
    unfit = {"args"} if value["intercept"] in EVENTS else {"text", "step"}
    if wrong := unfit & value.keys():
        raise FixtureError(f"{where}: {', '.join(sorted(wrong))} has no meaning for {value['intercept']}")


def _two_numbers(value: list[Any]) -> bool:
    return len(value) == 2 and all(type(one) is int and one >= 0 for one in value)
