"""What extensions write, read as leniently as the host they were written for, and never with an exception."""

from typing import get_args

import msgspec
import pytest
from msgspec import UNSET

from hilt.errors import FrameError
from hilt.wire import frames_types as t
from hilt.wire.frames import decode, decode_host, peek
from hilt.wire.freeform import unpack, unpack_object
from hilt.wire.line import Malformed, Unknown, strip_bom
from wire.lines import EXTENSION_LINES, HOST_LINES

GUARD = b'{"type":"event_intercept_response","id":"1"'


@pytest.mark.parametrize(("line", "frame"), EXTENSION_LINES.items())
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b" "])
def test_every_frame_of_an_extension_is_read(line: bytes, frame: t.ExtensionFrame, end: bytes) -> None:
    assert decode(line + end) == frame


@pytest.mark.parametrize(("line", "frame"), HOST_LINES.items())
def test_every_frame_of_the_host_is_read_on_the_other_side(line: bytes, frame: t.HostFrame) -> None:
    assert decode_host(line) == frame


def test_the_examples_leave_no_frame_of_an_extension_out() -> None:
    assert {type(frame) for frame in EXTENSION_LINES.values()} == set(get_args(t.ExtensionFrame))


@pytest.mark.parametrize(("line", "frame"), EXTENSION_LINES.items())
def test_the_same_frame_is_read_when_all_its_own_keys_are_capitalised(line: bytes, frame: t.ExtensionFrame) -> None:
    shouted = {key.upper(): value for key, value in msgspec.json.decode(line).items()}
    read = decode(msgspec.json.encode(shouted))
    assert read == frame


@pytest.mark.parametrize(("line", "frame"), EXTENSION_LINES.items())
def test_keys_nobody_knows_change_nothing(line: bytes, frame: t.ExtensionFrame) -> None:
    assert decode(line[:-1] + b',"future":{"a":[1,2]},"x":null}') == frame


# What the reference host's decoder (Go's encoding/json) was seen to make of each line: the fields it
# found, or None where it refused. Ours agrees, except where the second table says why not.
GO_ACCEPTS: list[tuple[bytes, dict[str, object]]] = [
    (b'{"TYPE":"event_intercept_response","Id":"1","BLOCK":true}', {"block": True}),
    (GUARD + b',"reason":null,"block":null,"replace_text":null}', {"block": False, "reason": ""}),
    (GUARD + b',"reason":"a\xffb"}', {"reason": "a\ufffdb"}),
    (GUARD + b',"reason":"\\ud800x"}', {"reason": "\ufffdx"}),
    (GUARD + b',"reason":"\\udc00"}', {"reason": "\ufffd"}),
    (GUARD + b',"reason":"\\ud800\\ud83d\\ude00\\ude00"}', {"reason": "\ufffd😀\ufffd"}),
    (GUARD + b',"reason":"\\uD800\\\\udc00"}', {"reason": "\ufffd\\udc00"}),
    (GUARD + b',"reason":"\\\\ud800"}', {"reason": "\\ud800"}),
    (GUARD + b',"reason":"\xe2\x80\xa8"}', {"reason": "\u2028"}),
    (GUARD + b',"reason":"esc","extra":{"a":[]}}', {"reason": "esc"}),
    (GUARD + b',"re\\u0061son":"esc"}', {"reason": "esc"}),
    (GUARD + ',"reaſon":"long s"}'.encode(), {"reason": "long s"}),
    (GUARD + ',"bloc\u212a":true}'.encode(), {"block": True}),
    (GUARD + b"}\r", {"block": False}),
    (b" \t" + GUARD + b"} ", {"block": False}),
    (b'{"block":true,"id":"1","type":"event_intercept_response"}', {"block": True}),
    (b'{"type":"panel_render","panel_id":"p","lines":["a",null]}', {"lines": ("a", "")}),
    (b'{"type":"panel_render","panel_id":"p","lines":null}', {"lines": ()}),
    (b'{"type":"open_panel","panel":{"ID":"p","Title":"T"}}', {"panel": t.PanelSpec("p", "T")}),
    (b'{"type":"open_panel","panel":null}', {"panel": UNSET}),
    (b'{"type":"tool_result","id":"1","content":[{"Type":"text","TEXT":"x"},null]}', {
        "content": (t.Block("text", "x"), t.Block())
    }),
    (b'{"type":"notify","message":"a","message":"b"}', {"message": "b"}),
    (b'{"type":"register_tool"}', {"name": ""}),
]  # fmt: skip

GO_REFUSES = [
    b"",
    b"[]",
    b'"x"',
    b"not json at all",
    b"{'type':'ready'}",
    b'{"type":"ready",}',
    b'{"type":"ready"} x',
    b'{"type":"ready"',
    b'{"type":1}',
    b'{"type":"tool_result","id":1}',
    b'{"type":"tool_result","id":true}',
    b'{"type":"no such frame","id":1}',
    b'{"type":"panel_render","lines":"a"}',
    b'{"type":"open_panel","panel":[]}',
    GUARD + b',"block":1}',
    GUARD + b',"block":"true"}',
    GUARD + b',"reason":1}',
    GUARD + b',"reason":"a\x00b"}',
    GUARD + b',"reason":"tab\t"}',
    GUARD + b',"modified_args":{"x":NaN}}',
    GUARD + b',"modified_args":Infinity}',
    GUARD + b',"modified_args":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b"\xef\xbb\xbf" + GUARD + b"}",
    '{"type":"ready"}'.encode("utf-16"),
]

STRICTER_THAN_GO = {
    "an interceptor that contradicts itself said nothing": GUARD + b',"block":true,"block":false}',
    "also when only the case differs": GUARD + b',"Block":true,"block":false}',
    "or an escape hides it": GUARD + b',"block":true,"bloc\\u006b":false}',
    "an answer without an id answers nobody": b'{"type":"tool_result"}',
    "null is no frame": b"null",
}


@pytest.mark.parametrize(("line", "fields"), GO_ACCEPTS)
def test_what_the_reference_host_accepts_is_accepted(line: bytes, fields: dict[str, object]) -> None:
    frame = decode(line)
    assert not isinstance(frame, Malformed | Unknown)
    assert {name: getattr(frame, name) for name in fields} == fields


@pytest.mark.parametrize("line", GO_REFUSES)
def test_what_the_reference_host_refuses_is_refused(line: bytes) -> None:
    read = decode(line)
    assert isinstance(read, Malformed)
    assert read.reason


@pytest.mark.parametrize("why", STRICTER_THAN_GO)
def test_where_leniency_would_be_dangerous_the_line_is_refused(why: str) -> None:
    assert isinstance(decode(STRICTER_THAN_GO[why]), Malformed)


@pytest.mark.parametrize(
    "line",
    [
        GUARD + b',"block":true,"block":false}',
        GUARD + b',"block":false,"Block":true}',
        GUARD + b',"id":"1"}',
        GUARD + b',"x":1,"modified_args":{},"modified_args":{}}',
    ],
)
def test_an_interceptor_that_gives_a_key_twice_is_malformed_and_says_which_call(line: bytes) -> None:
    read = decode(line)
    assert isinstance(read, Malformed)
    assert (read.type, read.id) == ("event_intercept_response", "1") and "is given twice" in read.reason


@pytest.mark.parametrize(
    "rest",
    [
        b',"modified_args":{"block":1,"reason":{"block":2}}}',
        b',"reason":"say \\"block\\" and \\"block\\""}',
        b',"x":1,"X":2}',
    ],
)
def test_the_same_key_elsewhere_is_no_repetition(rest: bytes) -> None:
    assert isinstance(decode(GUARD + rest), t.EventInterceptResponse)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (GUARD + b',"modified_args":null}', "modified_args"),
        (b'{"type":"tool_result","id":"1","structured_content":null}', "structured_content"),
        (b'{"type":"register_tool","name":"x","schema": null }', "schema"),
        (GUARD + b',"system_prompt":null}', "system_prompt"),
    ],
)
def test_null_counts_as_absent(line: bytes, name: str) -> None:
    assert getattr(decode(line), name) is UNSET


@pytest.mark.parametrize("broken", [b"\xff", b"\\ud800"])
def test_broken_characters_in_a_free_form_part_are_mended_too(broken: bytes) -> None:
    frame = decode(GUARD + b',"modified_args":{"a":"' + broken + b'","b":"\xc3\xa9"}}')
    assert isinstance(frame, t.EventInterceptResponse)
    assert unpack(frame.modified_args) == {"a": "\ufffd", "b": "é"}


@pytest.mark.parametrize(
    ("line", "type_", "id_"),
    [
        (b'{"type":"tool_result","id":"7","content":"x"}', "tool_result", "7"),
        (b'{"type":"tool_result","id":"7","content":[1]}', "tool_result", "7"),
        (b'{"Type":"tool_result","ID":"7","content":[{"text":[]}]}', "tool_result", "7"),
        (b'{"type":"tool_result","id":"7","content":[', "tool_result", "7"),
        (b'{"type":"tool_result","id":"7","x":NaN}', "tool_result", "7"),
        (b'{"type":"tool_result","id":true}', "tool_result", ""),
        (b'{"type":["tool_result"],"id":"7"}', "", "7"),
    ],
)
def test_a_malformed_line_still_says_which_call_it_was_for(line: bytes, type_: str, id_: str) -> None:
    read = decode(line)
    assert isinstance(read, Malformed)
    assert (read.type, read.id) == (type_, id_)


@pytest.mark.parametrize("depth", [100, 900, 5000, 9000, 100_000])
def test_a_deep_line_is_either_read_or_refused_with_its_id(depth: int) -> None:
    read = decode(b'{"type":"tool_result","id":"7","structured_content":' + b"[" * depth + b"]" * depth + b"}")
    if isinstance(read, Malformed):
        assert (read.type, read.id, read.reason) == ("tool_result", "7", "nested too deeply")
        assert depth > 100
    else:
        assert isinstance(read, t.ToolResult)
        assert depth < 100_000


def test_the_reason_names_the_field() -> None:
    read = decode(b'{"type":"notify","level":"info","message":5}')
    assert isinstance(read, Malformed)
    assert "message" in read.reason


@pytest.mark.parametrize("line", [b'{"type":"zap","id":"1","x":{}}', b"{}", b'{"type":null}', b'{"Name":"x"}'])
def test_a_type_nobody_knows_is_told_apart_from_damage(line: bytes) -> None:
    read = decode(line)
    assert isinstance(read, Unknown)
    assert read.raw == line
    assert read.type == ("zap" if b"zap" in line else "")


def test_a_frame_of_the_host_is_unknown_when_an_extension_sends_it() -> None:
    assert decode(b'{"type":"shutdown"}') == Unknown("shutdown", b'{"type":"shutdown"}')


@pytest.mark.parametrize(
    ("head", "seen"),
    [
        (b'{"type":"tool_result","id":"7","content":[{"type":"text","text":"' + b"x" * 5000, ("tool_result", "7")),
        (b' {"id" : "7" , "type" : "tool_result","content":"', ("tool_result", "7")),
        (b'{"content":[{"type":"text","id":"no"}],"type":"tool_result"', ("tool_result", "")),
        (b'{"content":{"type":"no"},"x":"\\"id\\":\\"no\\"","ID":"7"', ("", "7")),
        (b'{"type":"tool_re', ("", "")),
        (b'{"type":"a\\ud800","id":5,"x', ("a\ufffd", "")),
        (b'{"x":"' + b"y" * 5000 + b'","type":"tool_result"', ("", "")),
        (b'say {"type":"tool_result","id":"7"}', ("", "")),
        (b'["type","id"', ("", "")),
        (b"", ("", "")),
    ],
)
def test_type_and_id_are_read_from_the_beginning_of_a_line(head: bytes, seen: tuple[str, str]) -> None:
    assert peek(head) == seen


def test_lists_and_objects_too_large_to_repair_are_refused_rather_than_worked_through() -> None:
    keys = b"{" + b'"a":1,' * 5000 + b'"type":"notify","id":"1"}'
    assert isinstance(decode(keys), Malformed)
    blocks = b'{"type":"tool_result","id":"1","content":[' + b"{}," * 5000 + b'{"x":1}]}'
    assert isinstance(read := decode(blocks), Malformed)
    assert (read.type, read.id) == ("tool_result", "1")
    assert isinstance(decode(blocks.replace(b"{}," * 1000, b"")), t.ToolResult)


def test_only_a_byte_order_mark_at_the_very_beginning_is_dropped() -> None:
    assert strip_bom(b"\xef\xbb\xbf{}\xef\xbb\xbf") == b"{}\xef\xbb\xbf"
    assert strip_bom(b"{}") == b"{}"


@pytest.mark.parametrize("part", [b'{"x":1e999}', b'{"x":' + b"9" * 5000 + b"}"])
def test_a_number_out_of_range_is_refused_when_it_is_asked_for(part: bytes) -> None:
    frame = decode(GUARD + b',"modified_args":' + part + b"}")
    assert isinstance(frame, t.EventInterceptResponse)
    with pytest.raises(FrameError):
        unpack(frame.modified_args)


def test_an_object_is_asked_for_where_only_an_object_makes_sense() -> None:
    frame = decode(b'{"type":"call_tool","id":"1","name":"x","args":[1]}')
    assert isinstance(frame, t.CallTool)
    with pytest.raises(FrameError, match="object"):
        unpack_object(frame.args)
    assert unpack_object(UNSET) == {}
