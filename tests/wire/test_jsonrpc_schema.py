"""The published schema is the one the types make, and real lines fit it."""

import json
from functools import cache
from typing import Any

import jsonschema_rs
import pytest

from hilt.wire.jsonrpc_methods import METHODS
from wire import jsonrpc_schema
from wire.jsonrpc_examples import EXAMPLES, SAMPLES, Example


@cache
def schema() -> dict[str, Any]:
    return jsonrpc_schema.jsonrpc_schema()


def fits(reference: str, value: Any) -> bool:
    return bool(jsonschema_rs.validator_for({"$ref": reference, "$defs": schema()["$defs"]}).is_valid(value))


def test_the_published_schema_is_the_one_the_types_make() -> None:
    assert jsonrpc_schema.FILE.read_text() == jsonrpc_schema.text(), "run tests/wire/jsonrpc_schema.py"


def test_every_method_has_its_definitions_and_what_is_added_is_marked() -> None:
    methods, definitions = schema()["x-methods"], schema()["$defs"]
    assert list(methods) == list(METHODS)
    messages = {entry["message"]["$ref"] for entry in methods.values()}
    assert len(messages) == len(METHODS)
    for name, entry in methods.items():
        for part in ("message", "params", *(["result"] if METHODS[name].kind == "request" else [])):
            assert entry[part]["$ref"].removeprefix("#/$defs/") in definitions
        message = definitions[entry["message"]["$ref"].removeprefix("#/$defs/")]
        assert entry.get("x-hilt-added", False) == message.get("x-hilt-added", False) == METHODS[name].added
    assert definitions["Initialize"]["properties"]["capabilities"]["x-hilt-added"]
    assert definitions["BareUser"]["properties"]["role"]["x-hilt-added"]
    assert "x-hilt-added" not in definitions["Initialize"]["properties"]["cwd"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.method)
def test_examples_of_every_method_fit(example: Example) -> None:
    entry = schema()["x-methods"][example.method]
    assert fits(entry["params"]["$ref"], json.loads(example.params))
    line = {"jsonrpc": "2.0", "id": 3, "method": example.method, "params": json.loads(example.params)}
    if not example.result:
        del line["id"]
    else:
        assert fits(entry["result"]["$ref"], json.loads(example.result))
    assert fits(entry["message"]["$ref"], line)
    directions = {
        "host->ext": ["HostMessage"],
        "ext->host": ["ExtensionMessage"],
        "both": ["HostMessage", "ExtensionMessage"],
    }
    for direction in directions[entry["direction"]]:
        assert fits(f"#/$defs/{direction}", line)


@pytest.mark.parametrize("line", [line for line in SAMPLES if '"Type"' not in line])
def test_lines_of_real_conversations_fit(line: str) -> None:
    assert jsonschema_rs.validator_for(schema()).is_valid(json.loads(line))


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tool/execute", {"name": "x", "args": {}}),
        ("tool/execute", {"callId": "c", "name": "x", "args": [1]}),
        ("register/tool", {"name": 7}),
        ("host/forkSession", [1]),
        ("compact/execute", {"messages": [{"type": "user"}]}),
        ("provider/stream", {"requestId": "6"}),
        ("panel/resize", {"panel_id": "p", "width": "80", "height": 24}),
        ("$/cancelRequest", {"id": "8"}),
    ],
)
def test_params_that_are_wrong_do_not_fit(method: str, params: Any) -> None:
    entry = schema()["x-methods"][method]
    assert not fits(entry["params"]["$ref"], params)
    assert not fits(entry["message"]["$ref"], {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "{}",
        '{"jsonrpc":"2.0","id":"1","method":"host/abort"}',
        '{"jsonrpc":"2.0","method":"host/abort"}',
        '{"jsonrpc":"2.0","id":1,"method":"host/nonsense"}',
        '{"jsonrpc":"1.0","id":1,"method":"host/abort"}',
        '{"jsonrpc":"2.0","id":1,"error":"boom"}',
    ],
)
def test_lines_that_are_no_messages_do_not_fit(line: str) -> None:
    assert not jsonschema_rs.validator_for(schema()).is_valid(json.loads(line))


def test_a_result_in_place_of_another_does_not_fit() -> None:
    assert not fits("#/$defs/ForkSessionResult", {"parentId": "i", "messageCount": 3})
    assert not fits("#/$defs/ToolExecuteResult", {"content": "x"})
    assert not fits("#/$defs/BareAssistant", {"content": [{"id": "c"}]})
