"""What is published, on its way to a client that may be slow."""

import asyncio
import json
from typing import Any

from hilt.frontends.rpc_feed import Feed


def feed() -> Feed:
    return Feed(lambda event: json.dumps(event).encode())


async def taken(it: Feed, number: int) -> list[dict[str, Any]]:
    """The next so many, as the client gets them."""
    lines: list[bytes] = []
    enough = asyncio.Event()

    async def send(line: bytes) -> None:
        lines.append(line)
        if len(lines) == number:
            enough.set()
            await asyncio.Event().wait()  # and it takes no more

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        running = group.create_task(it.run(send))
        await enough.wait()
        running.cancel()
    return [json.loads(line) for line in lines]


async def test_a_few_large_messages_are_as_much_as_many_small_ones() -> None:
    it = feed()
    for _ in range(10):
        it.deliver("a", 1, "x" * 1024 * 1024)
    for number in range(1000):
        it.deliver("a", 1, number)
    got = await taken(it, 4)
    assert [event["data"] if isinstance(event["data"], int) else "large" for event in got] == ["large"] * 3 + [0]
    assert [event.get("lost", 0) for event in got] == [0, 0, 0, 7]


async def test_one_that_is_larger_than_all_that_may_wait_is_sent_when_nothing_does() -> None:
    it = feed()
    it.deliver("a", 1, "x" * 5 * 1024 * 1024)
    it.deliver("a", 1, "y")
    (large,) = await taken(it, 1)
    assert len(large["data"]) == 5 * 1024 * 1024


async def test_what_a_client_is_just_being_sent_counts_until_it_has_taken_it() -> None:
    it = feed()
    it.deliver("a", 1, "x" * 5 * 1024 * 1024)
    await taken(it, 1)
    it.deliver("a", 1, "y")
    assert (await taken(it, 1))[0]["data"] != "y"
