"""Messages among extensions, and the lines of commands that run."""

import asyncio
from typing import Any

import pytest

from hilt.agent.bus import Bus
from hilt.agent.topics import TAIL, Topics
from hilt.errors import UsageError
from hilt.model.content import Text
from hilt.model.events import ToolCalled, ToolProgressed, ToolResultAdded


async def delivered() -> None:
    """What has been published is delivered in the next turn of the loop."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_all_who_listen_to_exactly_this_topic_hear_it_in_order_and_only_from_now_on() -> None:
    topics = Topics(Bus())
    one: list[Any] = []
    two: list[Any] = []
    topics.publish("a", "too early")
    topics.subscribe("a", one.append)
    topics.subscribe("a", two.append)
    topics.subscribe("a.b", two.append)
    topics.publish("a", 1)
    topics.publish("a", {"x": [2]})
    topics.publish("a.*", 3)
    assert (one, two) == ([], [])  # whoever publishes goes on first
    await delivered()
    assert one == two == [1, {"x": [2]}]


async def test_one_that_has_ended_hears_nothing_more_not_even_what_is_under_way() -> None:
    topics = Topics(Bus())
    heard: list[Any] = []
    other: list[Any] = []
    end = topics.subscribe("a", heard.append)
    topics.subscribe("a", other.append)
    topics.publish("a", 1)
    end()
    end()
    topics.publish("a", 2)
    await delivered()
    assert (heard, other) == ([], [1, 2])


async def test_one_that_fails_costs_neither_the_others_nor_the_publisher() -> None:
    topics = Topics(Bus())
    heard: list[Any] = []
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["exception"]))

    def fail(_: Any) -> None:
        raise ValueError("oh")

    topics.subscribe("a", fail)
    topics.subscribe("a", heard.append)
    topics.publish("a", 1)
    await delivered()
    assert heard == [1] and [str(error) for error in complaints] == ["oh"]


async def test_two_that_answer_each_other_for_ever_leave_room_for_everything_else() -> None:
    topics = Topics(Bus())
    end = topics.subscribe("ping", lambda data: topics.publish("pong", data + 1))
    topics.subscribe("pong", lambda data: topics.publish("ping", data + 1))
    topics.publish("ping", 0)
    async with asyncio.timeout(5):
        for _ in range(100):
            await asyncio.sleep(0)
    end()


@pytest.mark.parametrize("topic", ["", "x" * 201])
async def test_a_topic_without_a_name_or_with_an_endless_one_is_refused(topic: str) -> None:
    topics = Topics(Bus())
    with pytest.raises(UsageError, match="200"):
        topics.publish(topic, 1)
    with pytest.raises(UsageError, match="200"):
        topics.subscribe(topic, lambda _: None)


# The lines of commands


async def tail_of(*pieces: str, tool: str = "bash") -> list[dict[str, Any]]:
    """What is heard of a command that prints this, piece by piece."""
    bus = Bus()
    topics = Topics(bus)
    heard: list[dict[str, Any]] = []
    topics.subscribe(TAIL, heard.append)
    await bus.emit(ToolCalled("c1", tool, {}))
    for piece in pieces:
        await bus.emit(ToolProgressed("c1", piece))
    await bus.emit(ToolResultAdded("c1", tool, False, (Text("done"),)))
    await delivered()
    return heard


async def test_each_line_of_a_command_is_told_when_it_is_complete() -> None:
    heard = await tail_of("one\ntw", "o\r\n", "\nthree")
    assert heard[0] == {"ToolCallID": "c1", "ToolName": "bash", "Partial": "one"}
    assert [line["Partial"] for line in heard] == ["one", "two", "", "three"]


async def test_of_a_long_line_only_the_end_is_told_and_kept() -> None:
    pieces = ["x" * 1000] * 50
    (line,) = await tail_of(*pieces, "y" * 79 + "\n")
    assert line["Partial"] == "x" + "y" * 79
    for pieces in (["x" * 100, "\r\n"], ["x" * 100 + "\r", "\n"]):
        (line,) = await tail_of(*pieces)
        assert line["Partial"] == "x" * 80


async def test_of_a_flood_only_the_end_is_told() -> None:
    heard = await tail_of("".join(f"{number}\n" for number in range(30_000)))
    assert len(heard) == 500 and heard[-1]["Partial"] == "29999"


async def test_other_tools_are_not_told() -> None:
    assert await tail_of("one\ntwo\n", tool="read") == []


async def test_while_nobody_listens_nobody_looks_at_what_happens() -> None:
    bus = Bus()
    topics = Topics(bus)
    assert len(bus._sinks) == 0
    ends = [topics.subscribe(TAIL, lambda _: None) for _ in range(3)]
    topics.subscribe("other", lambda _: None)
    assert len(bus._sinks) == 1
    for end in ends:
        end()
    assert len(bus._sinks) == 0
    topics.subscribe(TAIL, lambda _: None)
    assert len(bus._sinks) == 1
