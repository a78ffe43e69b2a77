"""What a line of the jsonrpc dialect is, and how one is written."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import UNSET, Raw

from hilt.errors import FrameError
from hilt.wire.jsonrpc import (
    Fault,
    Malformed,
    Notice,
    Reply,
    Request,
    decode,
    fault,
    notice,
    peek,
    reply,
    request,
    speaks,
    tool_execute_line,
)
from hilt.wire.jsonrpc_reading import value_of
from hilt.wire.jsonrpc_types import Notify
from hilt.wire.line import LINE_LIMIT, strip_bom
from wire.jsonrpc_examples import SAMPLES


@pytest.mark.parametrize("line", SAMPLES)
def test_lines_of_real_conversations_are_read_and_written_again_as_they_were(line: str) -> None:
    match decode(line.encode()):
        case Request(id=id_, method=method, params=params):
            assert request(id_, method, params).decode() == line
        case Notice(method=method, params=params):
            assert notice(method, None if params is UNSET else params).decode() == line
        case Reply(id=id_, result=result, error=None):
            assert reply(id_, result).decode() == line
        case other:
            pytest.fail(f"{other}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id":5,"method":"m","params":{}}', Request(5, "m", Raw(b"{}"))),
        ('{"jsonrpc":"1.7","id":5,"method":"m"}', Request(5, "m")),
        ('{"id":-1,"method":"m"}', Request(-1, "m")),
        ('{"id":null,"method":"m","params":null}', Notice("m", Raw(b"null"))),
        ('{"id":5,"method":"","result":[1]}', Reply(5, Raw(b"[1]"))),
        ('{"id":5,"method":null,"result":null}', Reply(5, Raw(b"null"))),
        ('{"id":5}', Reply(5)),
        ('{"id":5,"error":{"code":-32601,"message":"no"}}', Reply(5, error=Fault(-32601, "no"))),
        ('{"id":5,"result":{},"error":null}', Reply(5, Raw(b"{}"))),
        # An error outlives what stands beside it, and may be incomplete or say more.
        ('{"id":5,"error":{"Code":3,"data":[]},"result":1}', Reply(5, Raw(b"1"), Fault(3, ""))),
    ],
)
def test_the_id_and_the_method_tell_what_a_line_is(line: str, message: object) -> None:
    assert decode(line.encode()) == message


def test_keys_are_known_in_any_case_and_the_exact_spelling_wins() -> None:
    assert decode(b'{"ID":5,"Method":"m","PARAMS":{"A":1}}') == Request(5, "m", Raw(b'{"A":1}'))
    assert decode(b'{"ID":5,"id":6,"Id":7,"method":"m"}') == Request(6, "m")
    assert decode(b'{"id":6,"METHOD":"n","method":"m"}') == Request(6, "m")
    assert decode(b'{"id":null,"ID":6,"method":"m"}') == Request(6, "m")


def test_members_nobody_knows_are_ignored() -> None:
    assert decode(b'{"jsonrpc":"2.0","trace":{"id":"x"},"id":5,"method":"m"}') == Request(5, "m")


@pytest.mark.parametrize(
    ("id_", "kind"),
    [
        ('"5"', "a string"),
        ("5.0", "another number"),
        ("1e3", "another number"),
        ("true", "a boolean"),
        ("[5]", "an array"),
        ('{"a":1}', "an object"),
        ("9223372036854775808", "another number"),
    ],
)
def test_an_id_that_is_no_integer_is_refused_and_named(id_: str, kind: str) -> None:
    read = decode(f'{{"id":{id_},"method":"m"}}'.encode())
    assert isinstance(read, Malformed)
    assert "`id`" in read.reason and read.method == "m" and read.id is None
    if id_ != "9223372036854775808":
        assert kind in read.reason


@pytest.mark.parametrize("id_", [2**63 - 1, -(2**63)])
def test_ids_have_64_bits(id_: int) -> None:
    assert (
        decode(f'{{"id":{id_},"Method":"m"}}'.encode()) == Request(id_, "m") == decode(request(id_, "m")[:-13] + b"}")
    )
    assert isinstance(decode(f'{{"id":{id_ * 2 + 1},"METHOD":"m"}}'.encode()), Malformed)


@pytest.mark.parametrize(
    ("line", "malformed"),
    [
        ('{"id":5,"method":7}', Malformed("`method` must be a string, not another number", "", 5)),
        ('{"id":5,"error":"boom"}', Malformed("`error`: Expected `object`, got `str`", "", 5)),
        ('{"id":5,"error":{"code":"x"}}', Malformed("`error`: `code`: Expected `int`, got `str`", "", 5)),
        ("{}", Malformed("it has neither `id` nor `method`")),
        ('{"jsonrpc":"2.0","params":{}}', Malformed("it has neither `id` nor `method`")),
    ],
)
def test_a_line_that_cannot_be_used_says_what_could_be_read_of_it(line: str, malformed: Malformed) -> None:
    assert decode(line.encode()) == malformed


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"7", b"null", b"hello", b'{"id":5,', b'[{"id":1,"method":"m"}]', b"\x00"]
)
def test_what_is_no_object_is_malformed(line: bytes) -> None:
    assert isinstance(decode(line), Malformed)


def test_a_broken_line_still_tells_whose_answer_it_was() -> None:
    read = decode(b'{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"te')
    assert isinstance(read, Malformed) and read.id == 17 and read.method == ""


def test_deep_nesting_is_malformed_and_kills_nothing() -> None:
    read = decode(b'{"id":5,"method":"m","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    assert read == Malformed("nested too deeply", "m", 5)


def test_broken_utf8_becomes_the_replacement_character() -> None:
    read = decode(b'{"id":5,"method":"m","params":{"a":"\xff\\ud800"}}')
    assert isinstance(read, Request)
    assert value_of(read.params) == {"a": "��"}
    assert decode(b'{"id":5,"method":"\xff"}') == Request(5, "�")


def test_a_byte_order_mark_before_the_first_line_is_taken_away() -> None:
    assert decode(strip_bom(b'\xef\xbb\xbf{"id":5}')) == Reply(5)
    assert isinstance(decode(b'\xef\xbb\xbf{"id":5}'), Malformed)


@pytest.mark.parametrize("line", [b"ready", b'{"id":1}', b'{"level":"info","method":"x"}', b'{"jsonrpc":"2.0"}', b""])
def test_chatter_is_not_taken_for_speech(line: bytes) -> None:
    assert speaks(line) is False


@pytest.mark.parametrize("line", SAMPLES)
def test_a_line_of_the_dialect_may_be_speech(line: str) -> None:
    assert speaks(line.encode()) is not False


@pytest.mark.parametrize(
    ("head", "seen"),
    [
        (b'{"jsonrpc":"2.0","id":12,"method":"tool/execute","params":{"id":9,"method":"x"', ("tool/execute", 12)),
        (b'{"result":{"id":9,"method":"x","a":[{"id":7}]},"id":12,"x":', ("", 12)),
        (b'{"ID":12,"Method":"m","params":"' + b"x" * 9000, ("m", 12)),
        (b'{"method":"m\\u006e","params":{', ("mn", None)),
        (b'{"id":"12","method":"m","params":{', ("m", None)),
        (b'{"id":12.5,"method":"m","params":{', ("m", None)),
        (b'{"id":12', ("", None)),  # it may go on
        (b'{"id":12,"method":"m', ("", 12)),
        (b"", ("", None)),
        (b"[1,2", ("", None)),
        (b" " * 9000 + b'{"id":1,', ("", None)),
    ],
)
def test_the_beginning_of_a_line_tells_its_method_and_id(head: bytes, seen: tuple[str, int | None]) -> None:
    assert peek(head) == seen


def test_a_request_always_has_params_and_members_stand_in_order() -> None:
    assert request(1, "host/abort") == b'{"jsonrpc":"2.0","id":1,"method":"host/abort","params":{}}'
    assert notice("notify", Notify("m")) == b'{"jsonrpc":"2.0","method":"notify","params":{"message":"m"}}'
    assert notice("shutdown") == b'{"jsonrpc":"2.0","method":"shutdown"}'
    assert reply(1, {}) == b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert reply(1, None) == b'{"jsonrpc":"2.0","id":1,"result":null}'
    assert fault(1, -32601, "no") == b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'
    line = tool_execute_line("call_1", "add", {"a": 1}, 8)
    assert (
        line
        == b'{"jsonrpc":"2.0","id":8,"method":"tool/execute","params":{"callId":"call_1","name":"add","args":{"a":1}}}'
    )


def test_text_that_is_no_utf8_is_made_sound() -> None:
    bad = "a\ud800"
    assert b"a\xef\xbf\xbd" in request(1, "m", {"x": [bad], bad: Notify(bad)})
    assert b"a\xef\xbf\xbd" in notice("notify", Notify(bad))
    assert b"a\xef\xbf\xbd" in reply(1, bad)
    assert b"a\xef\xbf\xbd" in fault(1, 2, bad)
    assert b"a\xef\xbf\xbd" in tool_execute_line("c", "n", {"x": bad}, 1)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_in_json_is_refused(number: float) -> None:
    values: list[Any] = [{"x": number}, [number], {"x": {"y": (1, number)}}]
    for value in values:
        with pytest.raises(FrameError, match="NaN"):
            request(1, "m", {"v": value})
        with pytest.raises(FrameError, match="NaN"):
            reply(1, value)
        with pytest.raises(FrameError, match="NaN"):
            tool_execute_line("c", "n", {"v": value}, 1)
    assert tool_execute_line("c", "n", {"v": None}, 1).endswith(b'"args":{"v":null}}}')
    assert request(1, "m", {"v": None, "w": ["null"]}).endswith(b'"params":{"v":null,"w":["null"]}}')


def test_values_nested_too_deeply_are_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(FrameError, match="deep"):
        reply(1, deep)
    with pytest.raises(FrameError, match="deep"):
        tool_execute_line("c", "n", {"v": deep}, 1)


def test_a_line_is_shorter_than_the_limit_newline_included() -> None:
    room = LINE_LIMIT - len(reply(1, "")) - 2
    assert len(reply(1, "x" * room)) == LINE_LIMIT - 2
    with pytest.raises(FrameError, match="bytes"):
        reply(1, "x" * (room + 1))


@pytest.mark.parametrize(
    "write",
    [
        lambda text: request(1, "m", {"x": text}),
        lambda text: notice("m", {"x": text}),
        lambda text: reply(1, text),
        lambda text: fault(1, 2, text),
        lambda text: tool_execute_line("c", "n", {"x": text}, 1),
    ],
)
def test_nothing_is_written_that_is_too_long_to_be_read(write: Callable[[str], bytes]) -> None:
    with pytest.raises(FrameError, match="bytes") as caught:
        write("x" * LINE_LIMIT)
    assert caught.value.hint


def test_json_of_another_program_is_passed_on_compact_and_sound() -> None:
    raw = Raw(b'{ "a" :\n [1, "\xff"],\r\n "b": null }')
    assert reply(1, raw) == '{"jsonrpc":"2.0","id":1,"result":{"a":[1,"�"],"b":null}}'.encode()
    assert json.loads(request(1, "m", raw))["params"] == {"a": [1, "�"], "b": None}
    with pytest.raises(FrameError):
        reply(1, Raw(b"{"))
