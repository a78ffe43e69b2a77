"""A tool call in a few words: of each tool of hilt's what matters of its arguments, of others all of them, short."""

from collections.abc import Mapping
from typing import Any

import msgspec

from hilt.model.content import Args

_VALUE = 60
"""Characters of one argument among others."""


def summary(name: str, args: Args) -> str:
    """As it was given: cleaning and cutting it is up to whoever draws it."""
    match name, args:
        case "bash", {"command": str(command)}:
            return command
        case "read", {"path": str(path)}:
            return path + _range(args)
        case "write", {"path": str(path), "content": str(content)}:
            return f"{path} ({_counted(len(content.splitlines()), 'line')})"
        case "edit", {"path": str(path), "edits": [_, *_] as edits}:
            return f"{path} ({_counted(len(edits), 'edit')})"
        case "write" | "edit", {"path": str(path)}:
            return path
        case "skill", {"name": str(skill)}:
            return skill
    return "  ".join([f"{key}={_short(value)}" for key, value in args.items()])


def _range(args: Mapping[str, Any]) -> str:
    match args.get("offset"), args.get("limit"):
        case None, None:
            return ""
        case int(first), int(count):
            return f":{first}-{first + count - 1}"
        case int(first), _:
            return f":{first}-"
        case _, int(count):
            return f":1-{count}"
    return ""


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _short(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _VALUE else text[: _VALUE - 1] + "…"


def elapsed(seconds: float) -> str:
    """How long something takes or took, from a second on; empty before."""
    if seconds < 1:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
