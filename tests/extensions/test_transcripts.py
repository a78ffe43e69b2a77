"""The golden conversations: well formed, complete, and kept to by the host."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from msgspec.structs import replace

from hilt.authoring.matching import example, filled, filled_text, matched
from hilt.authoring.player import PATIENCE, Opener
from hilt.authoring.transcripts import Conversation, folder, paths, read
from hilt.errors import Departure, FixtureError
from hilt.extensions import life
from hilt.wire.jsonrpc_events import EVENTS
from hilt.wire.jsonrpc_methods import METHODS
from support.replay import as_process, in_memory, in_process, replay
from wire import frames_schema, jsonrpc_schema

FOLDER = folder()
ALL = {str(path.relative_to(FOLDER).with_suffix("")): path for path in paths()}
FRAMES = {name: path for name, path in ALL.items() if read(path).dialect == "frames"}
JSONRPC = {name: path for name, path in ALL.items() if read(path).dialect == "jsonrpc"}
SCHEMAS = {
    "frames": json.loads(frames_schema.FILE.read_text()),
    "jsonrpc": json.loads(jsonrpc_schema.FILE.read_text()),
}
SIDES = {
    "frames": {"ext": "ExtensionFrame", "host": "HostFrame"},
    "jsonrpc": {"ext": "ExtensionMessage", "host": "HostMessage"},
}
"""Whose lines a step shows, by the name of their definition."""
BEGINNINGS = {"frames": b'{"type":', "jsonrpc": b'{"jsonrpc":"2.0",'}
"""Extensions in shell look for `"type":"…"` as text."""


def validator(dialect: str, definition: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for({"$ref": f"#/$defs/{definition}", "$defs": SCHEMAS[dialect]["$defs"]})


def host_for(conversation: Conversation) -> Opener:
    """A session alone is enough, unless somebody asks for what stands around it."""
    return in_process if conversation.dialect == "jsonrpc" or "services" in conversation.needs else in_memory


# The host


@pytest.mark.parametrize("name", ALL)
async def test_the_host_keeps_to_its_side_of_the_conversation(name: str, tmp_path: Path) -> None:
    conversation = read(ALL[name])
    lines = await replay(conversation, tmp_path, host_for(conversation))

    fits = validator(conversation.dialect, SIDES[conversation.dialect]["host"])
    assert lines
    for line in lines:
        told = json.loads(line)
        fits.validate(told)
        assert line == msgspec.json.encode(told) + b"\n" and line.startswith(BEGINNINGS[conversation.dialect])


@pytest.mark.parametrize(
    "name",
    [
        "call-tool-cancelled",
        "events-of-the-session",
        "guards-ask-again",
        "host-request",
        "malformed-lines",
        "panel-keys",
        "register-interceptor",
        "shutdown",
        "submit-while-busy",
        "jsonrpc/bus-between-extensions",
        "jsonrpc/events-of-a-run",
        "jsonrpc/handshake",
        "jsonrpc/host-dialogs",
        "jsonrpc/host-sessions",
        "jsonrpc/interceptors-in-order",
        "jsonrpc/provider",
        "jsonrpc/tool-cancelled",
    ],
)
async def test_over_rpc_a_real_hilt_keeps_to_it_too(name: str, tmp_path: Path) -> None:
    await replay(read(ALL[name]), tmp_path, as_process)


@pytest.mark.parametrize("name", ["handshake", "host-tools", "panels", "provider", "tool-cancelled", "tool-text"])
async def test_on_standard_input_and_output_the_host_says_the_same(name: str, tmp_path: Path) -> None:
    await replay(read(JSONRPC[f"jsonrpc/{name}"]), tmp_path, in_process, pipes="stdio")


async def test_a_moment_of_silence_counts_as_ready_however_much_time_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life, "_READY", 600.0)
    await replay(read(ALL["handshake-no-ready"]), tmp_path, in_memory)


# The conversations


@pytest.mark.parametrize("name", ALL)
def test_every_line_of_a_conversation_fits_the_published_schema(name: str) -> None:
    conversation = read(ALL[name])
    for step in conversation.steps:
        if side := SIDES[conversation.dialect].get(step.kind):
            validator(conversation.dialect, side).validate(present(example(step.value)))


@pytest.mark.parametrize("name", JSONRPC)
def test_every_result_of_a_conversation_fits_the_schema_of_its_method(name: str) -> None:
    for method, answer in answered(read(JSONRPC[name])):
        if "result" in answer:
            definition = SCHEMAS["jsonrpc"]["x-methods"][method]["result"]["$ref"].rpartition("/")[2]
            validator("jsonrpc", definition).validate(present(example(answer["result"])))


def test_every_type_of_frame_occurs_in_some_conversation_in_each_direction_it_has() -> None:
    shown = {
        (SIDES["frames"][step.kind], step.value["type"])
        for path in FRAMES.values()
        for step in read(path).steps
        if step.kind in SIDES["frames"]
    }
    defined = set()
    for side in SIDES["frames"].values():
        for shape in SCHEMAS["frames"]["$defs"][side]["anyOf"]:
            definition = SCHEMAS["frames"]["$defs"][shape["$ref"].rpartition("/")[2]]
            defined |= {(side, type_) for type_ in definition["properties"]["type"]["enum"]}

    assert shown == defined


def test_every_method_occurs_in_some_conversation_in_each_direction_it_has() -> None:
    shown = {
        (step.value["method"], {"ext": "ext->host", "host": "host->ext"}[step.kind])
        for path in JSONRPC.values()
        for step in read(path).steps
        if step.kind in ("ext", "host") and "method" in step.value
    }
    both = ("ext->host", "host->ext")
    defined = {
        (method.name, direction)
        for method in METHODS.values()
        for direction in (both if method.direction == "both" else (method.direction,))
    }

    assert sum(not method.added for method in METHODS.values()) == 88
    assert shown == defined


def test_every_request_is_answered_in_some_conversation_with_a_result_and_where_it_can_fail_with_an_error() -> None:
    answers = [pair for path in JSONRPC.values() for pair in answered(read(path))]
    results = {method for method, answer in answers if "result" in answer}
    errors = {method for method, answer in answers if "error" in answer}
    requests = {method.name for method in METHODS.values() if method.kind == "request"}

    assert results == requests
    assert requests - errors == NEVER_FAILING


NEVER_FAILING = {
    "host/abort",
    "host/availableModels",
    "host/cancelBackground",
    "host/commands",
    "host/conversationMessages",
    "host/extInfos",
    "host/extensionsDir",
    "host/forkSession",
    "host/hasCompactor",
    "host/isBackgroundRunning",
    "host/lastAssistantText",
    "host/llmSnapshot",
    "host/promptSections",
    "host/requestQuit",
    "host/resetSessionLeaf",
    "host/sessionEntryInfos",
    "host/sessionFullTree",
    "host/sessionStats",
    "host/sessionTitle",
    "host/sessions",
    "host/shortcuts",
    "host/syncModels",
    "host/toggleStepMode",
    "host/toolDefs",
    "host/undoSnapshots",
}
"""They take nothing that could be wrong, and fail only for reasons that any can fail for, such as a permission that the
extension lacks or a disk that is full."""


def test_every_event_is_told_in_some_conversation() -> None:
    """All but one: how many turns are too many is a setting, and conversations have none."""
    told = {
        step.value["params"]["type"]
        for path in JSONRPC.values()
        for step in read(path).steps
        if step.kind == "host" and step.value.get("method") == "event/dispatch"
    }

    assert told == set(EVENTS) - {"EventMaxTurns"}


def answered(conversation: Conversation) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each answer, of either side, and the method that it answers."""
    asked: dict[tuple[str, str, Any], str] = {}
    for step in conversation.steps:
        match step.kind, step.value:
            case "ext_raw", str() if '"method"' in step.value:
                asked[step.of, "host", json.loads(step.value).get("id")] = json.loads(step.value)["method"]
            case "ext" | "host", {"id": id_, "method": method}:
                other = "host" if step.kind == "ext" else "ext"
                asked[step.of, other, id_] = method
            case "ext" | "host", {"id": id_} if (step.of, step.kind, id_) in asked:
                yield asked[step.of, step.kind, id_], step.value


def present(value: Any) -> Any:
    """Without what is null in objects, which counts as absent."""
    match value:
        case dict():
            return {key: present(part) for key, part in value.items() if part is not None}
        case list():
            return [present(part) for part in value]
    return value


def test_every_need_of_a_conversation_is_explained() -> None:
    explained = set(re.findall(r"`([\w/]+)`", (FOLDER / "README.md").read_text()))

    assert {need for path in ALL.values() for need in read(path).needs} <= explained


# Reading them

HEAD = '{"transcript":"t","about":"a","needs":[]}'
TWO = '{"transcript":"t","about":"a","needs":[],"extensions":["a","b"]}'


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([HEAD, '{"dance":true}'], "t.jsonl:2: there is no step 'dance'"),
        ([HEAD, "{}"], "there is no step ''"),
        ([HEAD, '{"ext":{"type":"ready"},"host":{}}'], "unknown host"),
        ([HEAD, '{"ext":"ready"}'], "ext is no object"),
        ([HEAD, '{"ext":{"type":"ready"},"of":"a"}'], "unknown of"),
        ([TWO, '{"ext":{"type":"ready"}}'], "of is missing"),
        ([TWO, '{"ext":{"type":"ready"},"of":"c"}'], "there is no extension 'c'"),
        ([TWO, '{"expect":{},"of":"a"}'], "unknown of"),
        ([HEAD, '{"host_end":false}'], "host_end is true or not there"),
        ([HEAD, '{"do":{"sing":"loud"}}'], "nobody can do 'sing'"),
        ([HEAD, '{"do":{"prompt":"hi","args":"x"}}'], "unknown args"),
        ([HEAD, '{"do":{"prompt":7}}'], "prompt is no string"),
        ([HEAD, '{"do":{"abort":false}}'], "abort is true or not there"),
        ([HEAD, '{"do":{"panel_key":{"panel_id":"p"}}}'], "key is missing"),
        ([HEAD, '{"do":{"panel_resize":{"panel_id":"p","width":true,"height":1}}}'], "width is no integer"),
        ([HEAD, '{"host_not":{"id":"$t"}}'], "host_not has no variables"),
        ([HEAD, '{"expect":{"text":{"$contains":"a","more":1}}}'], "$contains has nothing beside it"),
        ([HEAD, '{"expect":{"lines":["$absent"]}}'], "only keys can be $absent"),
        ([HEAD, '{"expect":{"lines":{"$has":1,"more":1}}}'], "$has has nothing beside it"),
        ([HEAD, '{"host_not":{"tools":{"$has":{"name":"$#n"}}}}'], "host_not has no variables"),
        ([HEAD, '{"do":{"ui_response":{"selected":"a"}}}'], "id is missing"),
        ([HEAD, '{"do":{"host":"host/publish","params":[]}}'], "params is no object"),
        (['{"transcript":"t","about":"a","needs":[],"dialect":"smoke"}'], "there is no dialect 'smoke'"),
        ([HEAD, '{"ext": {"type":"ready"}}'], "not an object in compact JSON"),
        ([HEAD, "[]"], "not an object in compact JSON"),
        ([HEAD, "{"], "t.jsonl:2: Expecting"),
        (['{"transcript":"t","needs":[]}'], "t.jsonl:1: about is missing"),
        (['{"transcript":"t","about":"a","needs":[],"host":"x"}'], "unknown host"),
        (['{"transcript":"other","about":"a","needs":[]}'], "it is called other"),
        ([], "is missing"),
    ],
)
def test_what_the_format_does_not_know_is_an_error_that_says_where(
    tmp_path: Path, lines: list[str], complaint: str
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(line + "\n" for line in lines))

    with pytest.raises(FixtureError, match=re.escape(complaint)):
        read(path)


def test_a_conversation_cut_short_in_the_middle_of_a_line_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f'{HEAD}\n{{"host_end":true}}')

    with pytest.raises(FixtureError, match="no end"):
        read(path)


# Matching


@pytest.mark.parametrize(
    ("value", "pattern", "fits"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, True),
        ([1, 2], [1, 2], True),
        ([1, 2], [1], False),
        ([{"a": 1, "b": 2}], [{"a": 1}], True),
        ({"a": 1}, [], False),
        ([], {}, False),
        ({"a": None}, {"a": "$any"}, True),
        ({}, {"a": "$any"}, False),
        ({}, {"a": "$absent"}, True),
        ({"a": None}, {"a": "$absent"}, False),
        ("it says seven", {"$contains": "seven"}, True),
        ("it says six", {"$contains": "seven"}, False),
        (["seven"], {"$contains": "seven"}, False),
        (["seven"], {"$has": "seven"}, True),
        ([{"a": 1}, {"a": 2, "b": 3}], {"$has": {"a": 2}}, True),
        ([{"a": 1}, {"b": 2}], {"$has": {"a": 1, "b": 2}}, False),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": {"$has": {"b": 3}}}, False),
        ({"a": 1}, {"$has": {"a": 1}}, False),
        ("$/cancelRequest", "$/cancelRequest", True),
        ("$/other", "$/cancelRequest", False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1.0}, {"a": 1}, True),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": 7, "b": 7}, {"a": "$x", "b": "$x"}, True),
        ({"a": 7, "b": 8}, {"a": "$x", "b": "$x"}, False),
        ({"a": {"c": 1}, "b": {"c": True}}, {"a": "$x", "b": "$x"}, False),
        ({"a": [1]}, {"a": "$known"}, True),
        ({"a": [True]}, {"a": "$known"}, False),
    ],
)
def test_a_value_contains_a_pattern_as_the_rules_say(value: Any, pattern: Any, fits: bool) -> None:
    assert (matched(value, pattern, {"$known": [1]}) is not None) is fits


def test_a_variable_takes_a_value_only_from_what_matches_as_a_whole() -> None:
    known: dict[str, Any] = {}

    assert matched({"id": "7", "name": "add"}, {"id": "$t", "name": "sub"}, known) is None
    assert matched({"id": "7", "name": "add"}, {"id": "$t", "name": "add"}, known) == {"$t": "7"}
    members = [{"id": 1, "name": "sub"}, {"id": 2, "name": "add"}]
    assert matched(members, {"$has": {"id": "$#t", "name": "add"}}, known) == {"$#t": 2}
    assert known == {}


def test_what_is_sent_has_the_values_of_variables_and_none_may_lack_one() -> None:
    assert filled({"id": "$t", "list": ["$t", 1]}, {"$t": "7"}) == {"id": "7", "list": ["7", 1]}
    assert filled({"method": "$/cancelRequest", "params": {"id": "$#t"}}, {"$#t": 7})["params"] == {"id": 7}
    assert filled_text('"${t}" costs $5', {"$t": "7"}) == '"7" costs $5'
    with pytest.raises(KeyError, match="other"):
        filled({"id": "$other"}, {"$t": "7"})


# The player


@pytest.mark.parametrize(
    ("name", "line", "kind", "value", "complaint"),
    [
        ("tool-text", 8, "host", {"type": "tool_cancel"}, "line 8: host .* never came"),
        ("notes", 7, "expect", {"type": "ext_notify", "message": "hm"}, "line 7: expect .* never came"),
        ("command-noop", 10, "expect_response", {"success": False}, "line 10: .* is not in"),
        ("tool-text", 10, "expect_not", {"type": "tool_result"}, "line 10: expect_not .* but it came"),
        ("shutdown", 7, "host_not", {"type": "shutdown"}, "line 7: host_not .* but it came"),
        ("malformed-lines", 8, "ext_raw", "notify\n", "the host complains"),
    ],
)
async def test_a_host_that_does_otherwise_is_found_out(
    tmp_path: Path, name: str, line: int, kind: str, value: Any, complaint: str
) -> None:
    conversation = read(ALL[name])
    steps = [replace(step, kind=kind, value=value) if step.line == line else step for step in conversation.steps]
    otherwise = replace(conversation, steps=tuple(steps), needs=())

    with pytest.raises(Departure, match=complaint):
        await replay(otherwise, tmp_path, in_memory, patience=1.5 if "never came" in complaint else PATIENCE)
