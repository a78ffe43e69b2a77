"""What a flood of notes costs: what is kept, and how often faces are told. Time is virtual."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hilt.agent.bus import Bus
from hilt.agent.notes import Notes
from hilt.agent.pacing import EVERY
from hilt.model.events import Event, NotesCleared, Notified
from hilt.model.extensions import Note
from hilt.transport.memory import VirtualLoop
from support.properties import patient


class Face:
    """Counts what it is told of, and what it is told was left out."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.last: dict[str, str] = {}
        self.count: dict[str, int] = {}
        self.taking = asyncio.Event()
        """Cleared while it takes nothing."""
        self.taking.set()

    async def __call__(self, event: Event) -> None:
        self.told.append(event)
        match event:
            case Notified(extension=extension, message=message, skipped=skipped):
                self.last[extension] = message
                self.count[extension] = self.count.get(extension, 0) + 1 + skipped
            case NotesCleared(extension=extension):
                self.last.pop(extension, None)
                self.count.pop(extension, None)
        await self.taking.wait()


def virtually(work: Callable[[Notes, Face], Awaitable[None]]) -> None:
    """On a clock that jumps: whatever is waited for takes no time."""

    async def main() -> None:
        bus = Bus()
        notes, face = Notes(bus), Face()
        with bus.subscribed(face):
            async with notes.running():
                await work(notes, face)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def note(number: int, extension: str = "a") -> Note:
    return Note(extension, "info", str(number))


def test_two_hundred_at_once_are_all_told_in_their_order() -> None:
    async def work(notes: Notes, face: Face) -> None:
        for number in range(200):
            await notes.add(note(number))
        assert face.told == [Notified("a", "info", str(number)) for number in range(200)]

    virtually(work)


def test_of_a_flood_the_last_is_told_with_the_number_of_those_left_out() -> None:
    """U1"""

    async def work(notes: Notes, face: Face) -> None:
        for number in range(100_000):
            await notes.add(note(number))
        assert len(face.told) == 200
        await asyncio.sleep(1)
        assert face.told[200:] == [Notified("a", "info", "99999", skipped=99_799)]
        assert notes.shown == [note(number) for number in range(99_800, 100_000)]

    virtually(work)


def test_one_that_never_stops_is_told_thirty_times_a_second() -> None:
    async def work(notes: Notes, face: Face) -> None:
        for number in range(10_000):
            await notes.add(note(number))
            await asyncio.sleep(0.001)
        await asyncio.sleep(1)
        assert 200 + 250 <= len(face.told) <= 200 + 330
        assert (face.last["a"], face.count["a"]) == ("9999", 10_000)

    virtually(work)


def test_after_a_rest_there_is_room_for_as_many_again() -> None:
    async def work(notes: Notes, face: Face) -> None:
        for number in range(1000):
            await notes.add(note(number))
        await asyncio.sleep(60)
        face.told.clear()
        for number in range(200):
            await notes.add(note(number))
        assert len(face.told) == 200

    virtually(work)


def test_nobody_waits_for_the_flood_of_another() -> None:
    async def work(notes: Notes, face: Face) -> None:
        for number in range(1000):
            await notes.add(note(number))
        await notes.add(note(7, "b"))
        assert face.told[-1] == Notified("b", "info", "7")

    virtually(work)


def test_what_comes_and_goes_all_the_time_is_told_at_a_bounded_rate() -> None:
    async def work(notes: Notes, face: Face) -> None:
        for number in range(10_000):
            await notes.add(note(number))
            await notes.clear("a")
            await asyncio.sleep(0.001)
        await asyncio.sleep(1)
        assert len(face.told) <= 200 + 660
        assert face.last == {} and notes.shown == []

    virtually(work)


def test_what_was_cleared_is_not_told_late() -> None:
    async def work(notes: Notes, face: Face) -> None:
        for number in range(300):
            await notes.add(note(number))
        await notes.clear_all()
        await asyncio.sleep(1)
        assert face.told[200:] == [NotesCleared("a")]
        await notes.add(note(1))
        assert face.told[201:] == [Notified("a", "info", "1")]

    virtually(work)


def test_towards_a_face_that_takes_nothing_nothing_piles_up_or_is_told_out_of_order() -> None:
    async def work(notes: Notes, face: Face) -> None:
        async def flood(start: int) -> None:
            for number in range(start, start + 10_000):
                await notes.add(note(number))

        await flood(0)
        face.taking.clear()
        await asyncio.sleep(60)  # of which the late one takes all but a moment
        told = len(face.told)
        await flood(10_000)
        assert len(face.told) == told == 201
        face.taking.set()
        await asyncio.sleep(1)
        assert (face.last["a"], face.count["a"], len(face.told)) == ("19999", 20_000, 202)

    virtually(work)


steps = st.one_of(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 300)),
    st.sampled_from(["a", "b"]),
    st.sampled_from([0.0, EVERY, 5.0]),
)


@patient
@given(st.lists(steps, max_size=20))
def test_whatever_comes_and_however_fast_a_face_ends_up_with_the_last_and_the_number_of_all(done: list[Any]) -> None:
    async def work(notes: Notes, face: Face) -> None:
        count: dict[str, int] = {}
        last: dict[str, str] = {}
        for step in done:
            match step:
                case (extension, many):
                    for number in range(many):
                        await notes.add(note(number, extension))
                    count[extension] = count.get(extension, 0) + many
                    last[extension] = str(many - 1)
                case str():
                    await notes.clear(step)
                    count.pop(step, None)
                    last.pop(step, None)
                case _:
                    await asyncio.sleep(step)
        await asyncio.sleep(1)
        assert (face.count, face.last) == (count, last)

    virtually(work)
