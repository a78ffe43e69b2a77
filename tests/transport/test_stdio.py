"""This process's own pipes: everything arrives, a slow reader slows the sender, a lost reader is noticed."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hilt.transport.lines import TooLong
from hilt.transport.stdio import LineWriter, read_lines

DEADLINE = 20


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    open_ = {read, write}
    try:
        yield read, write
    finally:
        for fd in open_:
            try:
                os.close(fd)
            except OSError:
                pass  # the test closed it


async def test_lines_are_read_as_they_come_and_until_the_end() -> None:
    with pipe() as (read, write):
        lines = read_lines(read, 10)
        async with asyncio.timeout(DEADLINE):
            os.write(write, b"first\nsec")
            assert await anext(lines) == b"first"
            os.write(write, b"ond\r\nfar too long for that\nlast")
            assert await anext(lines) == b"second"
            assert await anext(lines) == TooLong(b"far too lo", 21)
            os.close(write)
            assert [line async for line in lines] == [b"last"]


async def test_a_slow_reader_gets_every_line_in_order_and_holds_the_sender_back() -> None:
    count, size = 600, 20_000  # twelve megabytes, three times what may wait
    received = bytearray()
    with pipe() as (read, write):
        writer = LineWriter(write)

        async def send() -> None:
            for number in range(count):
                await writer.send(b"%06d" % number + b"x" * size)

        async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
            sending = group.create_task(send())
            await asyncio.wait({sending}, timeout=0.3)
            assert not sending.done(), "nobody reads, yet everything was taken"
            while len(received) < count * (size + 7):
                received += await asyncio.to_thread(os.read, read, 1 << 20)
        async with asyncio.timeout(DEADLINE):
            await writer.flush(DEADLINE)
        assert not writer.broken
    numbers = [int(line[:6]) for line in received.decode().split("\n") if line]
    assert numbers == list(range(count))


async def test_a_reader_that_goes_is_noticed_while_nothing_is_sent() -> None:
    gone = asyncio.Event()
    with pipe() as (read, write):
        writer = LineWriter(write)
        writer.when_broken = gone.set
        await writer.send(b"hello")
        await writer.flush(DEADLINE)
        os.close(read)
        async with asyncio.timeout(DEADLINE):
            await gone.wait()
    assert writer.broken


async def test_a_sender_that_waits_for_a_full_pipe_is_freed_when_the_reader_goes() -> None:
    with pipe() as (read, write):
        writer = LineWriter(write)

        async def send() -> None:
            while not writer.broken:
                await writer.send(b"x" * 1_000_000)

        async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
            sending = group.create_task(send())
            await asyncio.wait({sending}, timeout=0.2)
            assert not sending.done()
            os.close(read)
        await writer.flush(DEADLINE)
        await writer.send(b"into the void")
    assert writer.broken


async def test_flush_gives_up_on_a_reader_that_does_not_read() -> None:
    with pipe() as (_, write):
        writer = LineWriter(write)
        await writer.send(b"x" * 1_000_000)
        async with asyncio.timeout(DEADLINE):
            assert not await writer.flush(0.05)
        assert not writer.broken


async def test_a_sender_that_is_cancelled_while_it_waits_loses_no_line_and_is_not_overtaken() -> None:
    big = 5_000_000
    with pipe() as (read, write):
        writer = LineWriter(write)
        async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
            waiting = [group.create_task(writer.send(name * big)) for name in (b"a", b"b")]
            await asyncio.wait(waiting, timeout=0.1)
            waiting[0].cancel()
            await asyncio.wait({waiting[0]})
            third = group.create_task(writer.send(b"c"))
            received = bytearray()
            while len(received) < 2 * (big + 1) + 2:
                received += await asyncio.to_thread(os.read, read, 1 << 20)
            await third
    assert [line[:1] for line in bytes(received).split(b"\n")] == [b"a", b"b", b"c", b""]


async def test_flush_waits_for_a_slow_reader_as_long_as_something_moves() -> None:
    with pipe() as (read, write):
        writer = LineWriter(write)
        await writer.send(b"x" * 300_000)

        async def sip() -> int:
            taken = 0
            while taken < 300_001:
                await asyncio.sleep(0.02)
                taken += len(await asyncio.to_thread(os.read, read, 20_000))
            return taken

        async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
            sipping = group.create_task(sip())
            assert await writer.flush(0.25)
    assert sipping.result() == 300_001


async def test_a_full_disk_is_told_apart_from_a_reader_that_left() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        writer = LineWriter(full)
        await writer.send(b"hello")
        async with asyncio.timeout(DEADLINE):
            await writer.flush(None)
        assert writer.broken and writer.trouble == "No space left on device"
    finally:
        os.close(full)
