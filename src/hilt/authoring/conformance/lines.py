"""What can be said of an extension's lines by themselves: whether they fit the schema, and what they register."""

import json
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from hilt.authoring.conformance.rules import Findings
from hilt.authoring.greeting import Registered
from hilt.authoring.shipped import shipped
from hilt.authoring.values import Value, brief
from hilt.model.extensions import Dialect
from hilt.wire.jsonrpc_methods import METHODS

_TOOL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_COMMAND = re.compile(r"\S{1,64}")
_EXTRAS = {
    "register": "register",
    "tool_progress": "tool_progress",
    "call_tool": "call_tool",
    "call_tool_cancel": "call_tool",
    "host_request": "host_request",
    "host_notify": "host_notify",
    "ext_response": "ext_request",
}
"""The capability that a type of frame belongs to."""
_ENVELOPES = {"frames": "ExtensionFrame", "jsonrpc": "ExtensionMessage"}


def check_schema(findings: Findings, dialect: Dialect, lines: Iterable[Value]) -> None:
    findings.passed("schema")
    for value in lines:
        if problem := _misfit(dialect, _present(value)):
            findings.failed("schema", f"{problem}: {brief(value, 300)}")


def check_registrations(findings: Findings, registered: Iterable[Registered]) -> None:
    for one in registered:
        if one.kind not in ("tool", "command"):
            continue
        findings.passed("names")
        findings.passed("descriptions")
        if not (_TOOL if one.kind == "tool" else _COMMAND).fullmatch(one.name):
            findings.failed("names", f"{one.kind} {one.name!r}")
        if not one.description.strip():
            findings.failed("descriptions", f"{one.kind} {one.name} has none")
        if one.kind == "tool" and one.schema is not None:
            findings.passed("tool-schemas")
            if problem := _bad_schema(one.schema):
                findings.failed("tool-schemas", f"tool {one.name}: {problem}: {brief(one.schema, 300)}")


def check_announced(findings: Findings, dialect: Dialect, lines: Iterable[Value], announced: Iterable[str]) -> None:
    """Whether it said only what a host with these capabilities understands."""
    findings.passed("unannounced")
    known = set(announced)
    for value in lines:
        extra = _extra(dialect, value)
        if extra and extra not in known:
            findings.failed("unannounced", f"{extra} was not announced: {brief(value, 300)}")


def _extra(dialect: Dialect, value: Value) -> str:
    if dialect == "frames":
        return _EXTRAS.get(str(value.get("type")), "")
    method = METHODS.get(str(value.get("method")))
    return method.name if method and method.added else ""


def _bad_schema(schema: Any) -> str:
    import jsonschema_rs  # 35 ms

    if not isinstance(schema, dict):
        return "it is no object"
    if schema.get("type", "object") != "object":
        return f"it is of {schema['type']!r}, and arguments are an object"
    try:
        jsonschema_rs.validator_for(json.dumps(schema), retriever=_refuse)
    except ValueError as error:
        return str(error).splitlines()[0]
    return ""


def _refuse(uri: str) -> Any:
    raise ValueError(f"it refers to another document: {uri}")


def _misfit(dialect: Dialect, value: Value) -> str:
    """Why it is none of what an extension may send; measured by the definition that it claims to be."""
    definition = _definition(dialect, value)
    if definition is None:
        word = value.get("type") if dialect == "frames" else value.get("method")
        return f"an extension sends no {word!r}"
    for error in _validator(dialect, definition).iter_errors(value):
        place = ".".join(map(str, error.instance_path))
        return f"{place}: {error.message}" if place else str(error.message)
    return ""


def _definition(dialect: Dialect, value: Value) -> str | None:
    schema = _schema(dialect)
    if dialect == "frames":
        return _frame_definitions().get(str(value.get("type")))
    if isinstance(method := value.get("method"), str):
        known = schema["x-methods"].get(method)
        if known is None or known["direction"] == "host->ext":
            return None
        return str(known["message"]["$ref"]).rpartition("/")[2]
    return _ENVELOPES[dialect]


@cache
def _frame_definitions() -> dict[str, str]:
    """By type, what extensions may send."""
    definitions = _schema("frames")["$defs"]
    names = [one["$ref"].rpartition("/")[2] for one in definitions[_ENVELOPES["frames"]]["anyOf"]]
    return {type_: name for name in names for type_ in definitions[name]["properties"]["type"]["enum"]}


@cache
def _schema(dialect: Dialect) -> Any:
    return json.loads((shipped("spec") / f"{dialect}.schema.json").read_bytes())


@cache
def _validator(dialect: Dialect, definition: str) -> Any:
    import jsonschema_rs  # 35 ms

    return jsonschema_rs.validator_for({"$ref": f"#/$defs/{definition}", "$defs": _schema(dialect)["$defs"]})


def _present(value: Any) -> Any:
    """Without what is null, which counts as absent, and with keys as they are spelt: in jsonrpc any case counts."""
    match value:
        case dict():
            return {key[:1].lower() + key[1:]: _present(part) for key, part in value.items() if part is not None}
        case list():
            return [_present(part) for part in value]
    return value
