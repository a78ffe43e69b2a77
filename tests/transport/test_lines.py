"""Cutting bytes into lines: the chunks they came in never matter, and no line can fill the memory."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from hilt.transport.lines import LineSplitter, TooLong
from support.properties import patient

PIECES = st.lists(st.sampled_from([b"", b"a", b"bc", b"\n", b"\r", b"\r\n", "\u2028é".encode(), b"\x00\xff", b"x" * 9]))


def split(chunks: list[bytes], limit: int) -> list[bytes | TooLong]:
    splitter = LineSplitter(limit)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return lines + splitter.finish()


@patient
@given(PIECES, PIECES, st.integers(1, 30))
def test_any_chunking_gives_the_same_lines(first: list[bytes], second: list[bytes], limit: int) -> None:
    chunks = first + second
    whole = b"".join(chunks)
    bytewise = [whole[index : index + 1] for index in range(len(whole))]
    assert split(chunks, limit) == split([whole], limit) == split(bytewise, limit)


@patient
@given(PIECES)
def test_lines_end_at_newlines_only_and_lose_one_carriage_return(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    expected = [line.removesuffix(b"\r") for line in whole.split(b"\n")]
    if not whole.split(b"\n")[-1]:
        expected.pop()
    assert split(chunks, 10_000) == expected


def test_a_line_of_exactly_the_limit_passes_and_one_more_byte_does_not() -> None:
    assert split([b"12345\nnext\n"], 5) == [b"12345", b"next"]
    assert split([b"123456\nnext\n"], 5) == [TooLong(b"12345", 6), b"next"]


def test_an_overlong_line_keeps_its_beginning_and_its_size_and_the_next_line_is_whole() -> None:
    lines = split([b"h" * 3000, b"i" * 3000, b"j" * 4000, b"\nnext"], 5000)
    assert lines == [TooLong(b"h" * 3000 + b"i" * 1096, 10_000), b"next"]


def test_an_endless_line_costs_no_memory() -> None:
    splitter = LineSplitter(64 * 1024)
    chunk = b"x" * 65536
    tracemalloc.start()
    try:
        for _ in range(1000):
            assert splitter.feed(chunk) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1024 * 1024
    assert splitter.feed(b"\n") == [TooLong(chunk[: LineSplitter.HEAD], 65536 * 1000)]
