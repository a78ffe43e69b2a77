"""The JSON Schema of the jsonrpc dialect, made from its types. Run this file to write it anew."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from hilt.wire.jsonrpc import Fault
from hilt.wire.jsonrpc_bare import BareAssistant, BareToolResult, BareUser, Wrapped
from hilt.wire.jsonrpc_methods import METHODS, Method

FILE = Path(__file__).parents[2] / "spec" / "jsonrpc.schema.json"

_ADDED = {"x-hilt-added": True}
_BARE = {"$ref": "#/$defs/BareMessage"}
_WRAPPED = {"$ref": "#/$defs/Wrapped"}
_MESSAGES: dict[str, dict[str, Any]] = {
    "Compact": _WRAPPED,
    "CompactResult": {"anyOf": [_WRAPPED, _BARE]},
    "ProviderStream": _BARE,
    "ConversationMessagesResult": _BARE,
    "SetConversationMessages": {"anyOf": [_WRAPPED, _BARE]},
    "LlmSnapshotResult": _BARE,
}
"""Where the types leave open what a message looks like, because nothing but its keys tells."""

_OPTIONAL = {
    "BareUser": {"role", "timestamp"},
    "BareAssistant": {"role", "content", "model", "provider", "usage", "stopReason", "timestamp"},
    "BareToolResult": {"role", "toolName", "content", "isError", "timestamp"},
    "TextBlock": {"type"},
    "ThinkingBlock": {"type"},
    "ToolCallBlock": {"type", "arguments"},
    "ImageBlock": {"type"},
}
"""What the host always writes, and extensions may leave out."""


def jsonrpc_schema() -> dict[str, Any]:
    shapes = {shape for method in METHODS.values() for shape in (method.params, method.result) if shape is not None}
    ordered = sorted(shapes, key=lambda shape: shape.__name__)
    _, parts = msgspec.json.schema_components([*ordered, Fault, BareUser, BareAssistant, BareToolResult, Wrapped])
    definitions = {name: _refined(name, part) for name, part in sorted(parts.items())}
    methods = {_title(method): _message(method) for method in METHODS.values()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The jsonrpc dialect: one JSON object per line between a host and an extension",
        "anyOf": [{"$ref": "#/$defs/ExtensionMessage"}, {"$ref": "#/$defs/HostMessage"}],
        "x-methods": {name: _entry(method) for name, method in METHODS.items()},
        "$defs": {
            "ExtensionMessage": _direction("What an extension may send.", "ext->host"),
            "HostMessage": _direction("What the host sends.", "host->ext"),
            "Reply": _reply(),
            "BareMessage": {
                "description": "A message; its keys tell which.",
                "anyOf": [{"$ref": f"#/$defs/{name}"} for name in ("BareToolResult", "BareAssistant", "BareUser")],
            },
            **methods,
            **definitions,
        },
    }


def text() -> str:
    return json.dumps(jsonrpc_schema(), indent=2, ensure_ascii=False) + "\n"


def _direction(description: str, direction: str) -> dict[str, Any]:
    names = [_title(method) for method in METHODS.values() if method.direction in (direction, "both")]
    return {"description": description, "anyOf": [{"$ref": f"#/$defs/{name}"} for name in (*names, "Reply")]}


def _title(method: Method) -> str:
    words = re.findall(r"[A-Za-z]+", method.name)
    return "".join(word[0].upper() + word[1:] for word in words) + method.kind.capitalize()


def _entry(method: Method) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "direction": method.direction,
        "kind": method.kind,
        "message": {"$ref": f"#/$defs/{_title(method)}"},
        "params": {"$ref": f"#/$defs/{method.params.__name__}"},
    }
    if method.result is not None:
        entry["result"] = {"$ref": f"#/$defs/{method.result.__name__}"}
    return entry | (_ADDED if method.added else {})


def _message(method: Method) -> dict[str, Any]:
    params: dict[str, Any] = {"$ref": f"#/$defs/{method.params.__name__}"}
    if method.direction == "ext->host":
        params = {"anyOf": [params, {"type": "null"}]}
    request = method.kind == "request"
    required = ["id", "method"] if request else ["method"]
    if method.direction != "ext->host" and method.name != "shutdown":
        required.append("params")
    properties: dict[str, Any] = {"jsonrpc": {"const": "2.0"}}
    # `null` counts as absent, so a notice may have one.
    properties["id"] = {"type": "integer"} if request else {"type": "null"}
    properties |= {"method": {"const": method.name}, "params": params}
    message = {"title": method.name, "type": "object", "properties": properties, "required": required}
    return message | (_ADDED if method.added else {})


def _reply() -> dict[str, Any]:
    fault = {"anyOf": [{"$ref": "#/$defs/Fault"}, {"type": "null"}]}
    return {
        "description": "The answer to a request of the other side. What the result is depends on the method.",
        "type": "object",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": "integer"},
            "method": {"enum": ["", None]},
            "result": {},
            "error": fault,
        },
        "required": ["id"],
    }


def _refined(name: str, part: dict[str, Any]) -> dict[str, Any]:
    # Readers ignore keys they do not know, which is how the dialect grows; only our decoder looks twice.
    part = {key: value for key, value in part.items() if key != "additionalProperties"}
    properties: dict[str, Any] = _guessed(part.get("properties", {}))
    if name in _MESSAGES:
        properties["messages"]["items"] = _MESSAGES[name]
    if name == "Wrapped":
        properties["type"] = {"enum": ["user", "assistant", "tool_result"]}
        properties["data"] = _BARE
    if name == "ProviderStreamResult":
        properties["message"] = {"$ref": "#/$defs/BareAssistant"}
    if name in _OPTIONAL:
        for key in ("role", "type", "hilt"):
            if key in properties:
                properties[key] |= _ADDED
        part["required"] = [key for key in part["required"] if key not in _OPTIONAL[name]]
        properties |= {key: _or_null(properties[key]) for key in ("content", "arguments") if key in properties}
    return part | {"properties": properties}


def _guessed(value: Any) -> Any:
    """A copy that does not promise that `type` tells blocks apart, for it may be missing."""
    if isinstance(value, dict):
        return {key: _guessed(item) for key, item in value.items() if key != "discriminator"}
    return [_guessed(item) for item in value] if isinstance(value, list) else value


def _or_null(value: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [value, {"type": "null"}]}


if __name__ == "__main__":
    FILE.write_text(text())
