"""What an extension offers, whatever dialect it says so in, and how much of it is acceptable: names, sizes, numbers.

Each checker returns the reason for refusing, or None. A refusal concerns that one registration; whether to tell the
user, and how, is up to the host.
"""

import re

from msgspec import UNSET, Raw, Struct, UnsetType

from hilt.errors import FrameError
from hilt.model.contributions import Exposure
from hilt.wire.freeform import unpack_object

TOOL_LIMIT = 256
COMMAND_LIMIT = 256
"""How many of each one extension may have."""

DESCRIPTION_LIMIT = 8 * 1024
SCHEMA_LIMIT = 64 * 1024
"""Bytes, each: both are sent to the model with every request."""

EXPOSURES: tuple[Exposure, ...] = ("direct", "codemode", "deferred", "model-only")

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# Wider than a tool's, which the model's API restricts: a command only has to be one word to type or pick.
_COMMAND_NAME = re.compile(r"[^\s/\x00-\x1f\x7f-\x9f][^\s\x00-\x1f\x7f-\x9f]{0,63}")


class OfferedTool(Struct, frozen=True):
    name: str
    description: str = ""
    schema: Raw | UnsetType = UNSET
    """JSON Schema of the arguments."""
    output_schema: Raw | UnsetType = UNSET
    namespace: str = ""
    namespace_description: str = ""
    namespace_instructions: str = ""
    exposure: str = ""
    """`direct` when empty; see `EXPOSURES`."""
    deferred: bool = False
    interactive: bool = False
    """It waits for a person, so it has no deadline."""
    detached: bool = False
    """A call goes on when nobody waits for it any more."""
    hint: str = ""


class OfferedCommand(Struct, frozen=True):
    name: str
    description: str = ""
    immediate: bool = True
    """It runs beside a turn, and does not wait for its own."""


class OfferedSection(Struct, frozen=True):
    """Of the system prompt."""

    title: str
    content: str
    order: int = 0
    tokens: int = 0


class OfferedShortcut(Struct, frozen=True):
    key: str
    description: str = ""


def tool_problem(tool: OfferedTool, others: int) -> str | None:
    """May it be registered beside so many other tools of the same extension?"""
    if not _TOOL_NAME.fullmatch(tool.name):
        return f"tool name {_shown(tool.name)} must be 1 to 64 of the characters A-Z a-z 0-9 _ -"
    if others >= TOOL_LIMIT:
        return f"tool {tool.name}: an extension can have {TOOL_LIMIT} tools"
    if tool.exposure and tool.exposure not in EXPOSURES:
        return f"tool {tool.name}: exposure {_shown(tool.exposure)} is not one of {', '.join(EXPOSURES)}"
    problem = (
        _description_problem(tool.description)
        or _description_problem(tool.namespace + tool.namespace_description, "namespace_description")
        or _description_problem(tool.namespace_instructions, "namespace_instructions")
        or _schema_problem("schema", tool.schema)
        or _schema_problem("output_schema", tool.output_schema)
    )
    return f"tool {tool.name}: {problem}" if problem else None


def command_problem(command: OfferedCommand, others: int) -> str | None:
    """May it be registered beside so many other commands of the same extension?"""
    if not _COMMAND_NAME.fullmatch(command.name):
        return f"command name {_shown(command.name)} must be 1 to 64 characters, without spaces and the leading slash"
    if others >= COMMAND_LIMIT:
        return f"command {command.name}: an extension can have {COMMAND_LIMIT} commands"
    problem = _description_problem(command.description)
    return f"command {command.name}: {problem}" if problem else None


def shortcut_problem(shortcut: OfferedShortcut) -> str | None:
    if not shortcut.key:
        return "shortcut: key is missing"
    problem = _description_problem(shortcut.description)
    return f"shortcut {_shown(shortcut.key)}: {problem}" if problem else None


def _description_problem(description: str, name: str = "description") -> str | None:
    size = len(description.encode())
    return f"{name} has {size:,} bytes; {DESCRIPTION_LIMIT:,} is the limit" if size > DESCRIPTION_LIMIT else None


def _schema_problem(name: str, schema: Raw | UnsetType) -> str | None:
    if schema is UNSET:
        return None
    size = len(memoryview(schema))
    if size > SCHEMA_LIMIT:
        return f"{name} has {size:,} bytes; {SCHEMA_LIMIT:,} is the limit"
    try:
        unpack_object(schema)
    except FrameError as error:
        return f"{name}: {error.message}"
    return None


def _shown(name: str) -> str:
    return repr(name if len(name) <= 64 else name[:64] + "…")
