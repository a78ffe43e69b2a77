"""Channels in memory behave like those over pipes, on a clock that jumps."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from hilt.errors import ChannelClosed
from hilt.transport.channels import Bounds
from hilt.transport.memory import VirtualLoop, pair
from transport.children import Heard


def virtually(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await work()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def test_an_hour_passes_in_no_time_and_in_order() -> None:
    async def work() -> None:
        seen = []
        loop = asyncio.get_running_loop()

        async def wait(seconds: float) -> None:
            await asyncio.sleep(seconds)
            seen.append((seconds, loop.time()))

        async with asyncio.TaskGroup() as group:
            for seconds in (3600, 1, 60):
                group.create_task(wait(seconds))
        assert [pytest.approx(pair) for pair in seen] == [(1, 1), (60, 60), (3600, 3600)]

    started = time.monotonic()
    virtually(work)
    assert time.monotonic() - started < 5


def test_waiting_for_ever_is_an_error_and_not_a_hang() -> None:
    async def work() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="waits for ever"):
        virtually(work)


def test_lines_go_both_ways_and_the_end_is_told() -> None:
    async def work() -> None:
        near, far = pair()
        ours, theirs = Heard(), Heard()
        near.listen(ours)
        far.listen(theirs)
        near.send(b"call")
        near.post(b"event")
        far.send(b"x" * 200_000)  # more than the pipe holds
        await asyncio.sleep(1)
        assert theirs.lines == [b"call", b"event"]
        assert ours.lines == [b"x" * 200_000]
        await near.finish()
        await asyncio.sleep(1)
        assert theirs.told == ["ended"]
        far.send(b"still heard")
        await asyncio.sleep(1)
        assert ours.lines[1:] == [b"still heard"]
        near.abort()
        with pytest.raises(ChannelClosed):
            far.send(b"not any more")
        await asyncio.sleep(1)
        assert theirs.told == ["ended", "broken"]

    virtually(work)


def test_one_that_never_reads_is_stalled_after_five_seconds() -> None:
    async def work() -> None:
        near, _ = pair(capacity=100)
        heard = Heard()
        near.listen(heard)
        await asyncio.sleep(1)
        near.send(b"x" * 1000)
        await asyncio.sleep(4.9)
        assert heard.told == []
        await asyncio.sleep(0.2)
        assert heard.told == ["stalled"]
        started = asyncio.get_running_loop().time()
        await near.finish()
        assert asyncio.get_running_loop().time() - started == pytest.approx(0.5)

    virtually(work)


def test_events_give_way_to_newer_ones_and_calls_do_not() -> None:
    async def work() -> None:
        near, far = pair(Bounds(events=2000), capacity=10)
        near.send(b"x" * 100)
        for number in range(100):
            near.post(b"%d" % number)
        near.send(b"call")
        heard = Heard()
        far.listen(heard)
        await asyncio.sleep(1)
        assert heard.lines[1:] == [b"%d" % number for number in range(near.dropped, 100)] + [b"call"]
        assert 0 < near.dropped < 100

    virtually(work)
