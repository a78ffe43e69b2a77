"""Write the tables of methods and shapes in docs/reference/jsonrpc-protocol.md from the types on the wire.

    python scripts/write_jsonrpc_reference.py            # rewrites the file
    python scripts/write_jsonrpc_reference.py --check    # exit code 1 when it is out of date

A table stands between `<!-- methods: NAME … -->` or `<!-- shapes: NAME … -->` and `<!-- end -->`; the words around it
are written by hand.
"""

import argparse
import re
import sys
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from msgspec import NODEFAULT, Struct, UnsetType
from msgspec.structs import FieldInfo, fields

from hilt.wire import jsonrpc_bare, jsonrpc_types
from hilt.wire.jsonrpc import Fault
from hilt.wire.jsonrpc_methods import METHODS, Method
from hilt.wire.jsonrpc_types import ADDED

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "jsonrpc-protocol.md"
NEEDED: dict[str, set[str]] = {
    "register/tool": {"name"},
    "register/command": {"name"},
    "register/promptSection": {"title"},
    "register/interceptor": {"name"},
    "register/shortcut": {"key"},
    "register/messageHook": {"name"},
    "register/inputTransformer": {"name"},
    "register/compactor": {"name"},
    "register/provider": {"api"},
    "notify": {"message"},
    "showMessage": {"text"},
    "sendMessage": {"content"},
    "steer": {"content"},
    "setWidget": {"key", "placement"},
    "showOverlay": {"key"},
    "closeOverlay": {"key"},
    "setStatus": {"key"},
    "panel/open": {"panel_id"},
    "panel/render": {"panel_id"},
    "panel/close": {"panel_id"},
    "provider/delta": {"requestId"},
    "tool/progress": {"callId"},
}
"""The types let extensions leave out everything; without these a message is good for nothing."""
SHAPES: dict[str, tuple[str, type[Struct]]] = {
    "block": ("a block", jsonrpc_types.Block),
    "action": ("an action", jsonrpc_types.Action),
    "cost": ("a cost", jsonrpc_types.Cost),
    "model": ("a model", jsonrpc_types.ProviderModel),
    "stream model": ("a model to be asked", jsonrpc_types.StreamModel),
    "options": ("options", jsonrpc_types.StreamOptions),
    "tool": ("a tool", jsonrpc_types.ToolDefinition),
    "delta tool": ("a call", jsonrpc_types.DeltaTool),
    "error": ("an error", Fault),
    "user": ("of the user", jsonrpc_bare.BareUser),
    "assistant": ("of the model", jsonrpc_bare.BareAssistant),
    "tool result": ("a tool's result", jsonrpc_bare.BareToolResult),
    "usage": ("a usage", jsonrpc_bare.MessageUsage),
    "text": ("text", jsonrpc_bare.TextBlock),
    "thinking": ("thinking", jsonrpc_bare.ThinkingBlock),
    "tool call": ("a tool call", jsonrpc_bare.ToolCallBlock),
    "image": ("an image", jsonrpc_bare.ImageBlock),
}
"""What a shape is called in a table, and how its own row begins."""
_PLAIN = {str: "string", int: "integer", float: "number", bool: "true or false", Any: "any JSON"}
_CALLED = {shape: name for name, shape in SHAPES.values()}
_PLURALS = {
    jsonrpc_types.Block: "blocks",
    jsonrpc_types.ProviderModel: "models",
    jsonrpc_types.ToolDefinition: "tools",
}
_TABLE = re.compile(r"(<!-- (?P<kind>methods|shapes): (?P<names>.*?) -->\n).*?(<!-- end -->)", re.DOTALL)
_SENDERS = {"host->ext": "hilt", "ext->host": "the extension", "both": "either"}


def rewritten(text: str) -> str:
    return _TABLE.sub(lambda found: f"{found[1]}{_table(found['kind'], found['names'])}{found[4]}", text)


def methods_in(text: str) -> list[str]:
    """Those that have a row."""
    return [name for found in _TABLE.finditer(text) if found["kind"] == "methods" for name in found["names"].split()]


def shapes_in(text: str) -> list[str]:
    return [
        name.strip()
        for found in _TABLE.finditer(text)
        if found["kind"] == "shapes"
        for name in found["names"].split(",")
    ]


def _table(kind: str, names: str) -> str:
    if kind == "shapes":
        rows = [f"| {SHAPES[name][0]} | {_members(SHAPES[name][1])} |" for name in map(str.strip, names.split(","))]
        return "\n".join(["| | members |", "|---|---|", *rows]) + "\n"
    methods = [METHODS[name] for name in names.split()]
    columns = [("method", _name), ("sent by", _sender), ("params", _params), ("result", _result)]
    if len({method.direction for method in methods}) == 1:
        columns = [column for column in columns if column[0] != "sent by"]
    if not any(method.result for method in methods):
        columns = [column for column in columns if column[0] != "result"]
    head = ["| " + " | ".join(title for title, _ in columns) + " |", "|" + "---|" * len(columns)]
    rows = ["| " + " | ".join(cell(method) for _, cell in columns) + " |" for method in methods]
    return "\n".join([*head, *rows]) + "\n"


def _name(method: Method) -> str:
    return f"`{method.name}`{' ➕' if method.added else ''}"


def _sender(method: Method) -> str:
    return _SENDERS[method.direction]


def _params(method: Method) -> str:
    return _members(method.params, None if method.direction != "ext->host" else NEEDED.get(method.name, set()))


def _result(method: Method) -> str:
    if method.result is None:
        return "none"
    return _members(method.result, set()) or "`{}`"


def _members(shape: type[Struct], needed: set[str] | None = None) -> str:
    """`needed`: of what extensions send, the members that must be there; everything else may be left out."""
    return "; ".join(_member(member, needed) for member in fields(shape))


def _member(member: FieldInfo, needed: set[str] | None) -> str:
    kind, added = _unwrapped(member.type)
    if needed is None:
        optional = member.default is not NODEFAULT or member.default_factory is not NODEFAULT
    else:
        optional = member.encode_name not in needed
    return f"`{member.encode_name}`{'?' if optional else ''}{' ➕' if added else ''} {_kind(kind)}"


def _unwrapped(kind: Any) -> tuple[Any, bool]:
    if get_origin(kind) is Annotated:
        inner, *marks = get_args(kind)
        return inner, ADDED in marks
    return kind, False


def _kind(kind: Any) -> str:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(dict.fromkeys(_kind(part) for part in get_args(kind) if part is not UnsetType))
    if get_origin(kind) is tuple:
        return _list_of(get_args(kind)[0])
    if get_origin(kind) is dict:
        return "object"
    if kind is type(None):
        return "null"
    return _CALLED.get(kind, "object")


def _list_of(kind: Any) -> str:
    if kind is str:
        return "list of strings"
    if kind in _PLURALS:
        return f"list of {_PLURALS[kind]}"
    parts = get_args(kind)
    if parts and all(issubclass(part, Struct) for part in parts):
        return "list of " + " or ".join(_CALLED[part].removeprefix("a ").removeprefix("an ") for part in parts)
    return "list of messages" if kind is Any else "list"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether the file is up to date")
    options = parser.parse_args()
    before = REFERENCE.read_text(encoding="utf-8")
    after = rewritten(before)
    if options.check and before != after:
        sys.exit(f"{REFERENCE} is out of date: run python scripts/write_jsonrpc_reference.py")
    if before != after:
        REFERENCE.write_text(after, encoding="utf-8")
        print(f"{REFERENCE} rewritten")


if __name__ == "__main__":
    main()
