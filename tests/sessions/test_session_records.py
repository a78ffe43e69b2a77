"""Records keep what they are given, and what they do not know."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from hilt.model.content import Image, Text, Thinking, ToolCall
from hilt.model.conversation import AssistantMessage, ToolResult, Usage, UserMessage, user_text
from hilt.model.masking import MASK, Mask
from hilt.sessions.envelope import fields_of, open_line, parse, seal
from hilt.sessions.records import (
    CompactionRecord,
    LabelRecord,
    LeafRecord,
    MessageRecord,
    Meta,
    ModelRecord,
    NoteRecord,
    Record,
    Replaced,
    RestoredRecord,
    ResultRecord,
    SnapshotRecord,
    TitleRecord,
    UnknownRecord,
    decode,
    encode,
    type_of,
)

_text = st.text(max_size=40)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=8,
)
_args = st.dictionaries(_text, _json, max_size=3)
_count = st.integers(0, 2**40)
_time = st.datetimes(timezones=st.just(UTC))
_plain_blocks = st.lists(st.builds(Text, _text) | st.builds(Image, _text, st.binary(max_size=40)), max_size=3).map(
    tuple
)
_answer_blocks = st.lists(
    st.builds(Text, _text)
    | st.builds(Thinking, _text, _text, _text, st.booleans(), _text)
    | st.builds(ToolCall, _text, _text, _args, _text, _text),
    max_size=3,
).map(tuple)
_usage = st.builds(Usage, _count, _count, _count, _count, st.floats(0, 1e6))
_records: st.SearchStrategy[Record] = st.one_of(
    st.builds(Meta, _text, _text, _text, _text, _text, _time, _text, _text),
    st.builds(MessageRecord, st.builds(UserMessage, _plain_blocks, _time, st.booleans())),
    st.builds(
        MessageRecord,
        st.builds(
            AssistantMessage, _answer_blocks, _time, _text, _text, _usage, st.sampled_from(["end", "aborted"]), _text
        ),
    ),
    st.builds(ResultRecord, st.builds(ToolResult, _text, _text, _plain_blocks, st.booleans(), _args)),
    st.builds(CompactionRecord, _text, _text, _count),
    st.builds(TitleRecord, _text),
    st.builds(LabelRecord, _text, _text),
    st.builds(LeafRecord, _text),
    st.builds(ModelRecord, _text, _text),
    st.builds(SnapshotRecord, _text, _text, _text, st.booleans(), st.integers(0, 0o7777)),
    st.builds(
        RestoredRecord, st.lists(_text).map(tuple), st.lists(st.builds(Replaced, _text, _text), max_size=2).map(tuple)
    ),
    st.builds(NoteRecord, _text, _json),
)


@given(_records)
def test_every_record_reads_back_equal_from_its_line(record: Record) -> None:
    line = seal({"type": msgspec.json.encode(type_of(record)), "id": b'"00000001"', "n": b"7", "data": encode(record)})
    head = parse(line)
    opened = open_line(line)
    assert head is not None
    assert opened is not None
    assert (head.type, head.id, head.n) == (type_of(record), "00000001", 7)
    assert b"\n" not in line
    assert decode(head.type, opened.data) == record


@given(_records, st.data())
def test_a_line_with_one_bit_changed_is_known_to_be_damaged_or_says_the_same(
    record: Record, data: st.DataObject
) -> None:
    line = seal({"type": msgspec.json.encode(type_of(record)), "id": b'"00000001"', "n": b"7", "data": encode(record)})
    at = data.draw(st.integers(0, len(line) - 1))
    bit = data.draw(st.integers(0, 7))
    damaged = line[:at] + bytes([line[at] ^ (1 << bit)]) + line[at + 1 :]
    head = parse(damaged)
    if head is not None:
        opened = open_line(damaged)
        assert opened is not None
        assert decode(head.type, opened.data) == record


def test_the_keys_of_a_line_stand_in_their_order_and_unknown_ones_follow() -> None:
    fields = {
        "future": b"[1]",
        "data": b"{}",
        "n": b"1",
        "time": b'"t"',
        "parent": b'"p"',
        "id": b'"i"',
        "type": b'"note"',
    }
    line = seal(fields)
    assert list(msgspec.json.decode(line)) == ["type", "id", "parent", "time", "n", "c", "data", "future"]
    assert seal(fields_of(line)) == line


def test_a_line_without_a_checksum_is_accepted_and_one_with_a_wrong_checksum_is_not() -> None:
    assert parse(b'{"id":"a","data":{"x":{"y":1,"c":"12345678"}},"type":"note"}') is not None
    assert parse(b'{"type":"note","id":"a","c":"12345678","data":{}}') is None


@pytest.mark.parametrize(
    "line", [b"", b"null", b"[]", b'{"type":"note"}', b"\xff\xfe", b"[" * 100_000, b'{"type":"","id":"a","data":{}}']
)
def test_what_is_not_a_record_is_refused_without_an_exception(line: bytes) -> None:
    assert parse(line) is None


def test_an_unknown_type_keeps_its_bytes() -> None:
    record = decode("from_the_future", b'{"b":1, "a":2}')
    assert isinstance(record, UnknownRecord)
    assert encode(record) == b'{"b":1, "a":2}'


def test_a_known_type_in_another_shape_is_kept_as_unknown() -> None:
    assert decode("title", b'{"title":7}') == UnknownRecord("title", Raw(b'{"title":7}'))


def test_a_message_with_a_block_of_a_later_version_keeps_the_blocks_that_are_known() -> None:
    content = b'[{"type":"text","text":"a"},{"type":"smell"}]'
    data = b'{"message":{"role":"user","time":"2024-05-01T00:00:00Z","content":%b}}' % content
    assert decode("message", data) == MessageRecord(UserMessage((Text("a"),), datetime(2024, 5, 1, tzinfo=UTC)))


def test_a_secret_is_blanked_wherever_it_stands() -> None:
    mask = Mask(["sk-very-secret"])
    record = NoteRecord("sk-very-secret", {"sk-very-secret": ["x sk-very-secret y"]})
    data = encode(record, mask)
    assert b"sk-very-secret" not in data
    assert decode("note", data) == NoteRecord(MASK, {MASK: [f"x {MASK} y"]})


def test_a_secret_made_of_digits_does_not_break_a_number() -> None:
    data = encode(NoteRecord("n", {"count": 1234567890, "text": "1234567890"}), Mask(["1234567890"]))
    assert decode("note", data) == NoteRecord("n", {"count": 1234567890, "text": MASK})


def test_half_a_surrogate_pair_does_not_cost_the_message() -> None:
    record = decode("message", encode(MessageRecord(user_text("a\ud800b"))))
    assert isinstance(record, MessageRecord)
    assert record.message.content == (Text("a\\ud800b"),)


def test_a_value_json_does_not_have_is_written_as_its_description() -> None:
    record = decode("tool_result", encode(ResultRecord(ToolResult("1", "x", (), details={"odd": complex(1, 2)}))))
    assert isinstance(record, ResultRecord)
    assert record.result.details == {"odd": "(1+2j)"}
