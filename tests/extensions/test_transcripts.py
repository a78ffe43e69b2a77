"""The golden conversations: well formed, complete, and kept to by the host."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from hilt.extensions import life
from support.replay import as_process, in_memory, replay
from support.transcript import FOLDER, BadTranscript, example, filled, filled_text, matched, paths, read
from wire.frames_schema import FILE

ALL = {path.stem: path for path in paths()}
SCHEMA = json.loads(FILE.read_text())
SIDES = {"ext": "ExtensionFrame", "host": "HostFrame"}
"""Whose frames a step shows, by the name of their definition."""


def validator(side: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for({"$ref": f"#/$defs/{side}", "$defs": SCHEMA["$defs"]})


# The host


@pytest.mark.parametrize("name", ALL)
async def test_the_host_keeps_to_its_side_of_the_conversation(name: str, tmp_path: Path) -> None:
    lines = await replay(read(ALL[name]), tmp_path, in_memory)

    fits = validator("HostFrame")
    assert lines
    for line in lines:
        frame = json.loads(line)
        fits.validate(frame)
        # Extensions in shell look for `"type":"…"` as text.
        compact = json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode()
        assert line == compact + b"\n" and line.startswith(b'{"type":')


@pytest.mark.parametrize(
    "name",
    [
        "call-tool-cancelled",
        "events-of-the-session",
        "guards-ask-again",
        "malformed-lines",
        "panel-keys",
        "shutdown",
        "submit-while-busy",
    ],
)
async def test_over_rpc_a_real_hilt_keeps_to_it_too(name: str, tmp_path: Path) -> None:
    await replay(read(ALL[name]), tmp_path, as_process)


async def test_a_moment_of_silence_counts_as_ready_however_much_time_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life, "_READY", 600.0)
    await replay(read(ALL["handshake-no-ready"]), tmp_path, in_memory)


# The conversations


@pytest.mark.parametrize("name", ALL)
def test_every_frame_of_a_conversation_fits_the_published_schema(name: str) -> None:
    for step in read(ALL[name]).steps:
        if side := SIDES.get(step.kind):
            validator(side).validate(example(step.value))


def test_every_type_of_frame_occurs_in_some_conversation_in_each_direction_it_has() -> None:
    shown = {
        (SIDES[step.kind], step.value["type"])
        for path in ALL.values()
        for step in read(path).steps
        if step.kind in SIDES
    }
    defined = set()
    for side in SIDES.values():
        for shape in SCHEMA["$defs"][side]["anyOf"]:
            definition = SCHEMA["$defs"][shape["$ref"].rpartition("/")[2]]
            defined |= {(side, type_) for type_ in definition["properties"]["type"]["enum"]}

    assert shown == defined


def test_every_need_of_a_conversation_is_explained() -> None:
    explained = set(re.findall(r"`(\w+)`", (FOLDER / "README.md").read_text()))

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
        ([HEAD, '{"ext":"ready"}'], "ext is no dict"),
        ([HEAD, '{"ext":{"type":"ready"},"of":"a"}'], "unknown of"),
        ([TWO, '{"ext":{"type":"ready"}}'], "of is missing"),
        ([TWO, '{"ext":{"type":"ready"},"of":"c"}'], "there is no extension 'c'"),
        ([TWO, '{"expect":{},"of":"a"}'], "unknown of"),
        ([HEAD, '{"host_end":false}'], "host_end is true or not there"),
        ([HEAD, '{"do":{"sing":"loud"}}'], "nobody can do 'sing'"),
        ([HEAD, '{"do":{"prompt":"hi","args":"x"}}'], "unknown args"),
        ([HEAD, '{"do":{"prompt":7}}'], "prompt is no str"),
        ([HEAD, '{"do":{"abort":false}}'], "abort is true or not there"),
        ([HEAD, '{"do":{"panel_key":{"panel_id":"p"}}}'], "key is missing"),
        ([HEAD, '{"do":{"panel_resize":{"panel_id":"p","width":true,"height":1}}}'], "width is no int"),
        ([HEAD, '{"host_not":{"id":"$t"}}'], "host_not has no variables"),
        ([HEAD, '{"expect":{"text":{"$contains":"a","more":1}}}'], "$contains has a text and nothing beside it"),
        ([HEAD, '{"expect":{"lines":["$absent"]}}'], "only keys can be $absent"),
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

    with pytest.raises(BadTranscript, match=re.escape(complaint)):
        read(path)


def test_a_conversation_cut_short_in_the_middle_of_a_line_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f'{HEAD}\n{{"host_end":true}}')

    with pytest.raises(BadTranscript, match="no end"):
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
    assert known == {}


def test_what_is_sent_has_the_values_of_variables_and_none_may_lack_one() -> None:
    assert filled({"id": "$t", "list": ["$t", 1]}, {"$t": "7"}) == {"id": "7", "list": ["7", 1]}
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
        ("malformed-lines", 8, "ext_raw", "notify\n", "'type': 'notice'"),
    ],
)
async def test_a_host_that_does_otherwise_is_found_out(
    tmp_path: Path, name: str, line: int, kind: str, value: Any, complaint: str
) -> None:
    conversation = read(ALL[name])
    steps = [replace(step, kind=kind, value=value) if step.line == line else step for step in conversation.steps]
    otherwise = replace(conversation, steps=tuple(steps), needs=())

    with pytest.raises(AssertionError, match=complaint):
        await replay(otherwise, tmp_path, in_memory, patience=0.5)
