"""What the host writes, byte for byte: existing extensions match it as text."""

import subprocess
from contextlib import suppress
from typing import get_args

import pytest
from msgspec import Raw

from hilt.errors import FrameError
from hilt.wire import frames_types as t
from hilt.wire.frames import decode_host, encode
from hilt.wire.freeform import pack
from hilt.wire.line import LINE_LIMIT
from wire.lines import EXTENSION_LINES, HOST_LINES

ALL_LINES: list[tuple[bytes, t.Frame]] = [*EXTENSION_LINES.items(), *HOST_LINES.items()]


@pytest.mark.parametrize(("line", "frame"), ALL_LINES)
def test_every_frame_is_written_as_the_protocol_says(line: bytes, frame: t.Frame) -> None:
    assert encode(frame) == line


def test_the_examples_leave_no_frame_of_the_host_out() -> None:
    assert {type(frame) for frame in HOST_LINES.values()} == set(get_args(t.HostFrame))


def test_non_ascii_text_is_written_as_it_is() -> None:
    assert encode(t.Submit("grüße 😀 <&>\u2028")) == '{"type":"submit","text":"grüße 😀 <&>\u2028"}'.encode()


@pytest.mark.parametrize("text", ["a\nb", "\r", "\x00", '"', "\\"])
def test_no_text_can_break_a_line_in_two(text: str) -> None:
    line = encode(t.PanelKey("p", "rune", text))
    assert b"\n" not in line
    assert decode_host(line) == t.PanelKey("p", "rune", text)


def test_free_form_parts_are_compacted_so_that_line_breaks_in_them_do_no_harm() -> None:
    frame = t.ToolCall("1", "x", Raw(b'{\n  "a" : [1, 2],\r\n\t"b": "c d" }'))
    assert encode(frame) == b'{"type":"tool_call","id":"1","name":"x","args":{"a":[1,2],"b":"c d"}}'


@pytest.mark.parametrize(
    "part", [b"", b"{", b"NaN", b'{"a":1}\n{"type":"shutdown"}', b'"\\ud800"', b"[" * 100_000 + b"]" * 100_000]
)
def test_a_free_form_part_that_is_not_json_is_refused(part: bytes) -> None:
    with pytest.raises(FrameError, match="tool_call"):
        encode(t.ToolCall("1", "x", Raw(part)))


def test_a_lone_surrogate_becomes_a_replacement_character_wherever_it_stands() -> None:
    assert encode(t.CallResult("1", "x", (t.Block("text", "a\ud800b"),))).count("a\ufffdb".encode()) == 1
    assert encode(t.ToolCall("1", "x", pack({"k\udc00": ["\udfff"]}))).endswith('{"k\ufffd":["\ufffd"]}}'.encode())


def test_a_line_of_four_mebibytes_is_refused_and_one_byte_less_is_not() -> None:
    room = LINE_LIMIT - len(encode(t.Submit("x")))
    assert len(encode(t.Submit("x" * (room - 1)))) == LINE_LIMIT - 2
    with pytest.raises(FrameError, match=r"submit would be a line of 4,194,304 bytes") as raised:
        encode(t.Submit("x" * room))
    assert raised.value.hint


@pytest.mark.parametrize("value", [float("nan"), {"a": [None, float("inf")]}, [{"b": float("-inf")}]])
def test_a_number_that_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(FrameError, match="NaN"):
        pack(value)


def test_null_is_a_value_like_any_other_when_packed() -> None:
    assert bytes(pack({"a": None, "b": 1.5})) == b'{"a":null,"b":1.5}'


@pytest.mark.parametrize("innermost", ["x", None, "\ud800"])
@pytest.mark.parametrize("depth", [100, 700, 5000, 100_000])
def test_a_value_nested_too_deeply_is_refused_in_words(innermost: object, depth: int) -> None:
    value = innermost
    for _ in range(depth):
        value = [value]
    # Where the limit lies depends on the interpreter and its stack; that there is one does not.
    if depth == 100:
        assert pack(value)
    else:
        with pytest.raises(FrameError, match="deep") if depth == 100_000 else suppress(FrameError):
            pack(value)


def test_a_shell_extension_finds_type_and_id_with_text_tools_alone() -> None:
    script = r"""
        while IFS= read -r line; do
          case "$line" in
            *'"type":"command_invoked"'*)
              id=$(printf '%s' "$line" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
              printf '{"type":"command_response","id":"%s","action":"noop"}\n' "$id" ;;
            '{"type":"shutdown"'*) exit 0 ;;
          esac
        done
        exit 1
    """
    frames: list[t.Frame] = [t.Event("turn_start", step=1), t.CommandInvoked("143015123456", "demo", "x"), t.Shutdown()]
    lines = b"".join(encode(frame) + b"\n" for frame in frames)
    done = subprocess.run(["sh", "-c", script], input=lines, stdout=subprocess.PIPE, timeout=20, check=True)
    assert done.stdout == b'{"type":"command_response","id":"143015123456","action":"noop"}\n'
