"""Channels over real pipes: order, caps, and that neither side can block or flood the other."""

import asyncio
import fcntl
import os
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.errors import ChannelClosed, ChannelFull, LineTooLong
from hilt.transport.channels import Bounds, Channel
from hilt.transport.lines import TooLong
from hilt.transport.outbox import Outbox
from hilt.transport.pipes import PipeSink, PipeSource
from support.clocks import pass_time
from support.properties import patient
from transport.children import DEADLINE, Heard, until


@dataclass
class Ends:
    """Our two descriptors and, for the test to play the other side, the two opposite ones."""

    read: int
    write: int
    far_read: int
    far_write: int

    def channel(self, bounds: Bounds | None = None) -> Channel:
        return Channel(PipeSource(os.dup(self.read)), PipeSink(os.dup(self.write)), bounds)

    def close_ours(self) -> None:
        """Now only the channel has them."""
        os.close(self.read)
        os.close(self.write)
        self.read = self.write = -1

    def received(self, most: int = 1 << 20) -> bytes:
        os.set_blocking(self.far_read, False)
        try:
            return os.read(self.far_read, most)
        except BlockingIOError:
            return b""


@pytest.fixture
def ends() -> Iterator[Ends]:
    read, far_write = os.pipe()
    far_read, write = os.pipe()
    ends = Ends(read, write, far_read, far_write)
    yield ends
    for fd in (ends.read, ends.write, ends.far_read, ends.far_write):
        if fd >= 0:
            try:
                os.close(fd)
            except OSError:
                pass  # the test closed it


async def read_all(ends: Ends, size: int) -> bytes:
    data = bytearray()

    def complete() -> bool:
        data.extend(ends.received())
        return len(data) >= size

    await until(complete)
    return bytes(data)


async def test_a_call_is_written_before_send_returns_and_an_event_is_not(ends: Ends) -> None:
    channel = ends.channel()
    channel.send(b"call")
    assert ends.received() == b"call\n"
    channel.post(b"event")
    assert ends.received() == b""
    await asyncio.sleep(0)
    assert ends.received() == b"event\n"
    channel.abort()


async def test_a_call_never_overtakes_an_event_posted_before_it(ends: Ends) -> None:
    channel = ends.channel()
    sent = []
    for number in range(2000):
        line = b"%d" % number
        channel.post(line) if number % 3 else channel.send(line)
        sent.append(line)
        if number % 100 == 0:
            await asyncio.sleep(0)
    data = await read_all(ends, sum(len(line) + 1 for line in sent))
    assert data.split(b"\n")[:-1] == sent
    channel.abort()


async def test_calls_that_follow_several_answers_are_written_together(ends: Ends) -> None:
    channel, heard = ends.channel(), Heard()
    channel.listen(heard)
    os.write(ends.far_write, b"one\ntwo\n")
    await until(lambda: heard.lines)
    channel.send(b"three")
    channel.send(b"four")
    assert ends.received() == b""
    await asyncio.sleep(0)
    assert ends.received() == b"three\nfour\n"
    channel.send(b"five")
    assert ends.received() == b"five\n"
    channel.abort()


async def test_a_large_line_arrives_whole_at_a_slow_reader(ends: Ends) -> None:
    channel = ends.channel()
    line = os.urandom(3_000_000).replace(b"\n", b"x")
    channel.send(line)
    channel.send(b"next")
    assert await read_all(ends, len(line) + 6) == line + b"\nnext\n"
    assert channel.waiting == 0
    channel.abort()


async def test_calls_beyond_their_cap_are_refused_and_none_of_the_accepted_is_lost(ends: Ends) -> None:
    channel = ends.channel(Bounds(calls=1_000_000))
    accepted = 0
    try:
        while accepted < 1000:
            channel.send(b"%05d" % accepted + b"x" * 9994)
            accepted += 1
    except ChannelFull:
        pass
    assert accepted < 250, "the cap did not hold"
    data = await read_all(ends, accepted * 10_000)
    assert [int(line[:5]) for line in data.split(b"\n")[:-1]] == list(range(accepted))
    channel.send(b"there is room again")
    channel.abort()


async def test_events_beyond_their_cap_drop_the_oldest_and_are_counted_while_calls_stay(ends: Ends) -> None:
    channel = ends.channel(Bounds(events=100_000))
    fcntl.fcntl(ends.write, fcntl.F_SETPIPE_SZ, 4096)
    filler = b"f" * 2_000_000
    channel.send(filler)  # nobody reads: from here on everything waits
    channel.send(b"call")
    for number in range(5000):
        channel.post(b"%d" % number)
    assert channel.dropped > 3000
    kept = 5000 - channel.dropped
    data = await read_all(ends, len(filler) + 1 + 5 + kept * 5)
    assert data.split(b"\n")[1:-1] == [b"call"] + [b"%d" % number for number in range(5000 - kept, 5000)]
    channel.abort()


async def test_a_subscriber_that_never_reads_costs_no_more_than_the_cap(ends: Ends) -> None:
    channel = ends.channel()
    channel.send(b"f" * 2_000_000)
    tracemalloc.start()
    try:
        for number in range(20_000):
            channel.post(b"%030d" % number)
            if number % 1000 == 0:
                await asyncio.sleep(0)
        current, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert current < 2_000_000
    assert channel.dropped > 10_000
    channel.abort()


async def test_a_burst_of_events_in_one_turn_of_the_loop_reaches_a_reader_that_keeps_up(ends: Ends) -> None:
    channel = ends.channel()
    received = bytearray()
    for number in range(30_000):
        channel.post(b"%099d" % number)
        if number % 1000 == 999:
            received += ends.received(4 << 20)
    received += await read_all(ends, 3_000_000 - len(received))
    assert channel.dropped == 0
    assert [int(line) for line in received.split(b"\n")[:-1]] == list(range(30_000))
    channel.abort()


async def test_posting_holds_the_caller_for_microseconds(ends: Ends) -> None:
    channel = ends.channel()
    taken = []
    for _ in range(2000):
        started = time.perf_counter()
        channel.post(b"x" * 200)
        taken.append(time.perf_counter() - started)
    assert sorted(taken)[len(taken) // 2] < 10e-6
    channel.abort()


async def test_lines_too_long_for_the_other_end_are_refused_or_counted(ends: Ends) -> None:
    channel = ends.channel(Bounds(line=10))
    with pytest.raises(LineTooLong):
        channel.send(b"x" * 10)
    channel.send(b"x" * 9)
    channel.post(b"x" * 10)
    assert channel.dropped == 1
    assert ends.received() == b"x" * 9 + b"\n"
    channel.abort()


async def test_a_lost_reader_is_an_error_for_the_sender_and_told_once(ends: Ends) -> None:
    channel, heard = ends.channel(), Heard()
    channel.listen(heard)
    os.close(ends.far_read)
    for _ in range(2):
        with pytest.raises(ChannelClosed):
            channel.send(b"anyone?")
    channel.post(b"nobody")
    await asyncio.sleep(0)
    assert heard.told == ["broken"]
    assert channel.waiting == 0
    os.write(ends.far_write, b"it still talks\n")  # reading goes on
    await until(lambda: heard.lines == [b"it still talks"])
    channel.abort()


async def test_a_reader_lost_while_much_waits_is_noticed_at_once(ends: Ends) -> None:
    channel, heard = ends.channel(), Heard()
    channel.listen(heard)
    channel.send(b"x" * 3_000_000)
    os.close(ends.far_read)
    await until(lambda: heard.told == ["broken"])
    assert channel.waiting == 0
    channel.abort()


async def test_a_writer_without_progress_is_told_once_until_there_is_progress(ends: Ends) -> None:
    channel, heard = ends.channel(Bounds(stall=0.1)), Heard()
    channel.listen(heard)
    channel.send(b"x" * 3_500_000)
    await until(lambda: heard.told == ["stalled"])
    await asyncio.sleep(0.3)  # three more periods
    assert heard.told == ["stalled"]
    await read_all(ends, 1_000_000)
    await until(lambda: heard.told == ["stalled", "stalled"])
    channel.abort()


async def test_a_slow_reader_is_not_a_stalled_one(ends: Ends) -> None:
    channel, heard = ends.channel(), Heard()
    channel.listen(heard)
    channel.send(b"x" * 3_500_000)
    for _ in range(12):
        await pass_time(Bounds().stall - 1)
        waiting = channel.waiting
        ends.received(200_000)
        await until(lambda waiting=waiting: channel.waiting < waiting)  # type: ignore[misc]
    assert heard.told == []
    channel.abort()


async def test_an_idle_channel_is_never_stalled(ends: Ends) -> None:
    channel, heard = ends.channel(Bounds(stall=0.05)), Heard()
    channel.listen(heard)
    channel.send(b"read or not, it is in the pipe")
    await asyncio.sleep(0.2)
    assert heard.told == []
    channel.abort()


async def test_finishing_writes_what_waits_and_then_says_end(ends: Ends) -> None:
    channel = ends.channel()
    ends.close_ours()
    channel.send(b"x" * 2_000_000)
    channel.post(b"last")
    received = bytearray()

    async def read() -> None:
        os.set_blocking(ends.far_read, True)
        while chunk := await asyncio.to_thread(os.read, ends.far_read, 1 << 20):
            received.extend(chunk)

    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
        group.create_task(read())
        await channel.finish(DEADLINE)
    assert received.endswith(b"x\nlast\n")
    with pytest.raises(ChannelClosed):
        channel.send(b"too late")
    channel.abort()


async def test_finishing_writes_what_was_posted_last_although_all_before_is_written(ends: Ends) -> None:
    channel = ends.channel()
    channel.post(b"first")
    await asyncio.sleep(0)
    channel.post(b"second")
    await channel.finish()
    assert ends.received() == b"first\nsecond\n"
    channel.abort()


async def test_finishing_gives_up_on_a_reader_that_does_not_read(ends: Ends) -> None:
    channel = ends.channel()
    ends.close_ours()
    channel.send(b"x" * 3_000_000)
    started = time.monotonic()
    await channel.finish(0.1)
    assert 0.05 < time.monotonic() - started < 15
    assert channel.waiting == 0
    os.set_blocking(ends.far_read, True)
    size = 0
    while chunk := os.read(ends.far_read, 1 << 20):
        size += len(chunk)
    assert 0 < size < 3_000_000, "the rest was dropped, and the end was said"
    channel.abort()


async def test_nothing_is_read_before_someone_listens_and_nothing_is_lost_by_it(ends: Ends) -> None:
    channel, heard = ends.channel(), Heard()
    os.write(ends.far_write, b"early\r\n")
    await asyncio.sleep(0.01)
    channel.listen(heard)
    await until(lambda: heard.lines == [b"early"])
    channel.abort()


async def test_the_last_line_needs_no_newline_and_comes_before_the_end(ends: Ends) -> None:
    channel, heard = ends.channel(), Heard()
    ends.close_ours()
    channel.listen(heard)
    os.write(ends.far_write, b"first\n\nlast")
    os.close(ends.far_write)
    await until(lambda: heard.told)
    assert heard.lines == [b"first", b"last"]
    assert heard.told == ["ended"]
    channel.abort()


async def test_an_overlong_line_is_told_with_its_beginning_and_the_next_is_whole(ends: Ends) -> None:
    channel, heard = ends.channel(Bounds(line=1000)), Heard()
    channel.listen(heard)
    os.write(ends.far_write, b"y" * 5000 + b"\nnext\n")
    await until(lambda: heard.lines)
    assert heard.overlongs == [TooLong(b"y" * 1000, 5000)]
    assert heard.lines == [b"next"]
    channel.abort()


async def test_a_flood_of_lines_lets_others_have_their_turn_every_256(ends: Ends) -> None:
    channel, heard = ends.channel(), Heard()
    seen: list[int] = []

    def look() -> None:
        seen.append(len(heard.lines))
        if len(heard.lines) < 20_000:
            asyncio.get_running_loop().call_soon(look)

    os.write(ends.far_write, b"x\n" * 20_000)
    channel.listen(heard)
    look()
    await until(lambda: len(heard.lines) == 20_000)
    assert max(after - before for before, after in pairwise(seen)) <= 256
    channel.abort()


async def test_a_flood_of_empty_lines_tells_nothing(ends: Ends) -> None:
    channel, heard = ends.channel(), Heard()
    channel.listen(heard)
    os.write(ends.far_write, b"\n" * 60_000 + b"x\n")
    await until(lambda: heard.lines)
    assert heard.lines == [b"x"]
    channel.abort()


async def test_a_listener_that_raises_loses_only_its_own_line(ends: Ends) -> None:
    class Fragile(Heard):
        def line(self, line: bytes) -> None:
            super().line(line)
            if line == b"2":
                raise ValueError("cannot take it")

    channel, heard, complaints = ends.channel(), Fragile(), []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context["exception"]))
    channel.listen(heard)
    os.write(ends.far_write, b"1\n2\n3\n")
    await until(lambda: len(heard.lines) == 3)
    assert [str(complaint) for complaint in complaints] == ["cannot take it"]
    channel.abort()


async def test_a_paused_channel_tells_nothing_and_holds_the_other_end_back(ends: Ends) -> None:
    channel, heard = ends.channel(), Heard()
    channel.listen(heard)
    channel.pause()
    os.set_blocking(ends.far_write, False)
    written = 0
    try:
        while True:
            written += os.write(ends.far_write, b"0123456789abcde\n")
            await asyncio.sleep(0)
    except BlockingIOError:
        pass
    assert heard.lines == []
    channel.resume()
    await until(lambda: len(heard.lines) == written // 16)
    channel.abort()


async def test_a_listener_may_pause_in_the_middle_of_what_was_read(ends: Ends) -> None:
    channel = ends.channel()

    class OneAtATime(Heard):
        def line(self, line: bytes) -> None:
            super().line(line)
            channel.pause()

    heard = OneAtATime()
    channel.listen(heard)
    os.write(ends.far_write, b"1\n2\n3\n")
    for count in range(1, 4):
        while len(heard.lines) < count:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert len(heard.lines) == count
        channel.resume()
    channel.abort()


async def test_draining_tells_what_is_there_although_others_hold_the_pipe(ends: Ends) -> None:
    channel, heard = ends.channel(), Heard()
    channel.listen(heard)
    os.write(ends.far_write, b"x\n" * 5000)
    await channel.drain()
    assert len(heard.lines) == 5000
    assert not channel.ended
    channel.abort()


async def test_draining_one_that_never_stops_talking_ends_all_the_same(ends: Ends) -> None:
    class Asking(Heard):
        def line(self, line: bytes) -> None:
            os.write(ends.far_write, b"and another thing\n")

    channel = ends.channel()
    channel.listen(Asking())
    os.write(ends.far_write, b"first\n")
    async with asyncio.timeout(5):
        await channel.drain(0.05)
    channel.abort()


async def test_an_aborted_channel_tells_nothing_more_and_may_be_aborted_again(ends: Ends) -> None:
    channel = ends.channel()

    class Leaver(Heard):
        def line(self, line: bytes) -> None:
            super().line(line)
            channel.abort()

    heard = Leaver()
    channel.listen(heard)
    os.write(ends.far_write, b"1\n2\n3\n")
    await until(lambda: heard.lines)
    channel.abort()
    channel.resume()
    await asyncio.sleep(0.01)
    assert heard.lines == [b"1"]
    assert heard.told == []


async def test_a_pipe_grows_only_when_it_is_too_small(ends: Ends) -> None:
    channel, heard = ends.channel(), Heard()
    channel.listen(heard)
    os.write(ends.far_write, b"small\n")
    channel.send(b"small")
    await until(lambda: heard.lines)
    assert [fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) for fd in (ends.read, ends.write)] == [65536, 65536]
    channel.send(b"x" * 200_000)
    assert fcntl.fcntl(ends.write, fcntl.F_GETPIPE_SZ) > 65536
    await until(lambda: channel.waiting == 0)  # though nobody has read any of it
    channel.abort()


LINES = st.lists(st.tuples(st.booleans(), st.binary(max_size=30)), max_size=60)


@patient
@given(LINES, st.integers(1, 200), st.lists(st.integers(0, 60), max_size=30))
def test_an_outbox_keeps_the_order_whatever_is_taken_put_back_and_dropped(
    lines: list[tuple[bool, bytes]], most: int, cuts: list[int]
) -> None:
    outbox = Outbox(1 << 20, 1500)
    expected: list[tuple[bool, int]] = []
    written = bytearray()
    takes = iter(cuts)
    for number, (is_call, _) in enumerate(lines):
        line = b"%d" % number
        outbox.call(line) if is_call else outbox.event(line)
        expected.append((is_call, number))
        if (cut := next(takes, None)) is not None:
            data = bytes(outbox.take(most))
            written += data[:cut]
            outbox.put_back(memoryview(data)[cut:])
    while outbox:
        written += outbox.take(most)
    arrived = [int(line) for line in bytes(written).split(b"\n")[:-1]]
    assert arrived == sorted(arrived)
    assert {number for is_call, number in expected if is_call} <= set(arrived)
    assert len(arrived) + outbox.dropped == len(expected)
    assert outbox.cost == 0
