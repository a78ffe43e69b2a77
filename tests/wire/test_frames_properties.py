"""Whatever arrives is read as something, and what was written is what is read."""

from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw, Struct, UnsetType, structs

from hilt.wire import frames_types as t
from hilt.wire.frames import decode, decode_host, encode, peek
from hilt.wire.freeform import pack
from hilt.wire.line import Malformed, Unknown
from support.properties import patient
from wire.lines import EXTENSION_LINES

JSON = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
READ = (*get_args(t.ExtensionFrame), Unknown, Malformed)


def values(annotation: Any) -> st.SearchStrategy[Any]:
    if annotation is Raw:
        return JSON.map(pack)
    if annotation is UnsetType:
        return st.just(UNSET)
    if annotation is int:
        return st.integers(-(2**63), 2**63 - 1)
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return frames(annotation)
    arguments = get_args(annotation)
    if arguments and Ellipsis in arguments:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    return st.one_of([values(argument) for argument in arguments]) if arguments else st.from_type(annotation)


def frames(shape: type[Struct]) -> st.SearchStrategy[Any]:
    return st.builds(shape, **{info.name: values(info.type) for info in structs.fields(shape)})


@patient
@given(st.one_of([frames(shape) for shape in get_args(t.ExtensionFrame)]))
def test_what_an_extension_writes_is_what_is_read(frame: t.ExtensionFrame) -> None:
    assert decode(encode(frame)) == frame


@patient
@given(st.one_of([frames(shape) for shape in get_args(t.HostFrame)]))
def test_what_the_host_writes_is_what_an_extension_reads(frame: t.HostFrame) -> None:
    line = encode(frame)
    assert line.startswith(b'{"type":"') and b"\n" not in line
    assert decode_host(line) == frame


@patient
@given(st.binary())
def test_any_bytes_are_read_as_something(line: bytes) -> None:
    assert isinstance(decode(line), READ)
    peek(line)


@patient
@given(st.sampled_from(list(EXTENSION_LINES)), st.data())
def test_a_damaged_line_is_read_as_something(line: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, len(line)))
    damaged = line[:start] + data.draw(st.binary(max_size=8)) + line[end:]
    read = decode(damaged)
    assert isinstance(read, READ)
    if not isinstance(read, Unknown | Malformed):
        assert decode(encode(read)) == read


@patient
@given(
    st.dictionaries(
        st.sampled_from(
            ["type", "Type", "id", "ID", "block", "BLOCK", "content", "Content", "lines", "panel", "schema"]
        )
        | st.text(),
        JSON | st.none() | st.sampled_from(["tool_result", "event_intercept_response", "open_panel", "register_tool"]),
    )
)
def test_any_object_is_read_as_something(members: dict[str, Any]) -> None:
    assert isinstance(decode(bytes(pack(members))), READ)


@patient
@given(st.lists(st.sampled_from(["\\ud83d", "\\ude00", "\\uD800", "\\\\", "\\n", "\\u0041", "ud800", "x", "\\\\\\\\"])))
def test_no_sequence_of_escapes_leaves_a_lone_surrogate(escapes: list[str]) -> None:
    read = decode(f'{{"type":"submit","text":"{"".join(escapes)}"}}'.encode())
    assert isinstance(read, t.Submit)
    read.text.encode()
    # Pairs, escaped backslashes and plain characters come through; only the lone ones are replaced.
    units = "".join(escapes).encode().decode("unicode_escape").encode("utf-16", "surrogatepass")
    assert read.text == units.decode("utf-16", "replace")
