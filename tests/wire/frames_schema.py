"""The JSON Schema of the frames dialect, made from its types. Run this file to write it anew."""

import json
from pathlib import Path
from typing import Any, get_args

import msgspec

from hilt.wire.frames_types import ExtensionFrame, HostFrame

FILE = Path(__file__).parents[2] / "spec" / "frames.schema.json"


def frames_schema() -> dict[str, Any]:
    (extension, host), parts = msgspec.json.schema_components([ExtensionFrame, HostFrame])
    definitions = {name: _open(part) for name, part in sorted(parts.items())}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The frames dialect: one JSON object per line between a host and an extension",
        "anyOf": [{"$ref": "#/$defs/ExtensionFrame"}, {"$ref": "#/$defs/HostFrame"}],
        "$defs": {
            "ExtensionFrame": {"description": "What an extension may send.", "anyOf": extension["anyOf"]},
            "HostFrame": {"description": "What the host sends.", "anyOf": host["anyOf"]},
            **definitions,
        },
    }


def text() -> str:
    return json.dumps(frames_schema(), indent=2, ensure_ascii=False) + "\n"


def names() -> set[str]:
    return {shape.__name__ for union in (ExtensionFrame, HostFrame) for shape in get_args(union)}


def _open(part: dict[str, Any]) -> dict[str, Any]:
    # Readers ignore keys they do not know, which is how the dialect grows; only our decoder looks twice.
    return {key: value for key, value in part.items() if key != "additionalProperties"}


if __name__ == "__main__":
    FILE.write_text(text())
