"""Arguments of a tool, as a command line has them: a JSON object, in place, in a file or on stdin."""

import json
import sys
from typing import Any

from hilt.cli.ext.site import existing
from hilt.errors import UsageError
from hilt.packages.members import read_file

_LARGEST = 4 * 1024 * 1024
"""Bytes: a line to an extension has no more."""
_SHOWN = 60


def arguments(given: str, what: str = "the arguments") -> dict[str, Any]:
    """What is on the command line, in the file behind an `@`, or on stdin for `-`. Raises `UsageError`."""
    text, where = given, what
    if given == "-":
        text, where = sys.stdin.buffer.read(_LARGEST + 1).decode("utf-8", "replace"), "stdin"
        if len(text) > _LARGEST:
            raise UsageError(
                f"stdin: more than {_LARGEST:,} bytes of arguments", hint="no extension takes so long a line"
            )
    elif given.startswith("@"):
        where = given[1:]
        text = read_file(existing(where), _LARGEST, "arguments").decode("utf-8", "replace")
    hint = """give a JSON object, such as '{"city":"Rome"}'"""
    try:
        args = json.loads(text)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - _SHOWN // 2) : error.pos + _SHOWN // 2]
        place = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"{where}: no JSON: {error.msg} at {place}, near {near!r}", hint=hint) from error
    except RecursionError:
        raise UsageError(f"{where}: nested too deeply", hint=hint) from None
    if not isinstance(args, dict):
        raise UsageError(f"{where}: no JSON object but {text.strip()[:_SHOWN]!r}", hint=hint)
    return args
