"""The event parser, against the standard and against every way a network can cut bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.providers.sse import EventTooLarge, SseEvent, SseParser


def parse(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.close()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_ending_separates_lines_and_events(end: bytes) -> None:
    stream = end.join([b"event: a", b"data: 1", b"", b"data: 2", b"", b""])
    assert parse(stream) == [SseEvent("a", "1"), SseEvent("", "2")]


def test_a_carriage_return_at_the_end_of_a_chunk_is_one_line_end_with_the_line_feed_of_the_next() -> None:
    assert parse(b"data: 1\r", b"\ndata: 2\r", b"\n\r", b"\n") == [SseEvent("", "1\n2")]


def test_lines_of_data_are_joined_by_line_feeds() -> None:
    assert parse(b"data: 1\ndata:2\ndata\n\n") == [SseEvent("", "1\n2\n")]


def test_comments_ids_and_retries_are_passed_over() -> None:
    assert parse(b": ping\n\nid: 7\nretry: 9\ndata: x\n\n: bye\n\n") == [SseEvent("", "x")]


def test_one_leading_space_only_is_taken_from_a_value() -> None:
    assert parse(b"data:  x\n\n") == [SseEvent("", " x")]


def test_a_byte_order_mark_is_dropped_even_when_cut() -> None:
    assert parse(b"\xef\xbb", b"\xbfdata: x\n\n") == [SseEvent("", "x")]


def test_a_name_without_data_is_no_event_and_does_not_stick() -> None:
    assert parse(b"event: a\n\ndata: x\n\n") == [SseEvent("", "x")]


def test_invalid_utf8_is_replaced_and_the_stream_goes_on() -> None:
    assert parse(b"data: \xff\n\ndata: ok\n\n") == [SseEvent("", "�"), SseEvent("", "ok")]


def test_a_last_event_of_whole_lines_counts_without_its_blank_line() -> None:
    assert parse(b"data: [DONE]\n") == [SseEvent("", "[DONE]")]


def test_a_last_line_that_was_cut_off_is_dropped() -> None:
    assert parse(b'data: {"half') == []


@pytest.mark.parametrize(
    "stream",
    [b"data: " + b"x" * 30 + b"\n", b"data: x\n" * 6, b": " + b"c" * 40 + b"\n", b"x" * 33],
    ids=["one line", "many lines", "a comment", "a line that never ends"],
)
def test_an_event_over_the_cap_is_refused_however_it_is_made_up(stream: bytes) -> None:
    with pytest.raises(EventTooLarge):
        SseParser(max_event=32).feed(stream)


def test_the_cap_holds_for_a_line_that_grows_byte_by_byte() -> None:
    parser = SseParser(max_event=32)
    for _ in range(32):
        parser.feed(b"x")
    with pytest.raises(EventTooLarge):
        parser.feed(b"x")


def test_the_cap_is_for_one_event_not_for_the_stream() -> None:
    parser = SseParser(max_event=32)
    assert sum(len(parser.feed(b"data: 0123456789\n\n")) for _ in range(100)) == 100


lines = st.one_of(
    st.text(alphabet="ab:é\U0001f600 ", max_size=6).map(lambda text: f"data: {text}"),
    st.sampled_from(["", "", "event: e", ": c", "data", "data:x", "id: 1", "garbage"]),
)


@given(st.lists(st.tuples(lines, st.sampled_from(["\n", "\r", "\r\n"])), max_size=30), st.booleans(), st.data())
def test_any_chunking_gives_the_same_events(parts: list[tuple[str, str]], bom: bool, data: st.DataObject) -> None:
    stream = (b"\xef\xbb\xbf" if bom else b"") + "".join(line + end for line, end in parts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    chunks = [stream[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    whole = parse(stream)
    assert parse(*chunks) == whole
    assert parse(*(stream[at : at + 1] for at in range(len(stream)))) == whole
