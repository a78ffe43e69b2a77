"""What extensions have on the screen: what is there, who is told, and what a flood costs. Time here is virtual."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.agent.bus import Bus
from hilt.agent.pacing import EVERY
from hilt.agent.screen import Screen, ScreenAction
from hilt.errors import HiltError, UsageError
from hilt.model.actions import AttachImage, CloseOverlay, DetachImage, SetStatus, SetWidget, ShowOverlay
from hilt.model.content import Image
from hilt.model.events import Event, ImageAttached, OverlayClosed, OverlayShown, StatusShown, WidgetShown
from hilt.model.extensions import Overlay
from hilt.transport.memory import VirtualLoop
from support.properties import patient


class Face:
    """Believes what it is told."""

    def __init__(self) -> None:
        self.told: list[Event] = []
        self.widgets: dict[tuple[str, str], str] = {}
        self.overlays: dict[tuple[str, str], str] = {}
        self.statuses: dict[tuple[str, str], str] = {}
        self.image = ""
        self.open = asyncio.Event()
        """Closed while it takes nothing."""
        self.open.set()

    async def __call__(self, event: Event) -> None:
        self.told.append(event)
        match event:
            case WidgetShown(extension=owner, key=key, content=content):
                self.widgets[owner, key] = content
            case OverlayShown(extension=owner, key=key, content=content):
                self.overlays.pop((owner, key), None)
                self.overlays[owner, key] = content
            case OverlayClosed(extension=owner, key=key):
                del self.overlays[owner, key]
            case StatusShown(extension=owner, key=key, text=text):
                self.statuses[owner, key] = text
            case ImageAttached(mime_type=mime_type):
                self.image = mime_type
        await self.open.wait()

    def agrees(self, screen: Screen) -> bool:
        widgets = {one: content for one, content in self.widgets.items() if content}
        statuses = {one: text for one, text in self.statuses.items() if text}
        return (
            widgets == {(one.extension, one.key): one.content for one in screen.widgets}
            and statuses == {(one.extension, one.key): one.text for one in screen.statuses}
            and [*self.overlays.items()] == [((one.extension, one.key), one.content) for one in screen.overlays]
            and self.image == (screen.attached.mime_type if screen.attached else "")
        )


def virtually(work: Callable[[Screen, Face], Awaitable[None]]) -> None:
    """On a clock that jumps: whatever is waited for takes no time."""

    async def main() -> None:
        bus = Bus()
        screen, face = Screen(bus), Face()
        with bus.subscribed(face):
            async with screen.running():
                await work(screen, face)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def overlay(key: str, content: str = "text") -> ShowOverlay:
    return ShowOverlay(Overlay(key, "Title", content))


def widget(key: str, content: str) -> SetWidget:
    return SetWidget(key, "above-input", content)


PNG = AttachImage(b"12345", "image/png")


def test_what_is_shown_is_told_at_once_and_known_to_who_comes_later() -> None:
    async def work(screen: Screen, face: Face) -> None:
        await screen.do(widget("w", "two\nlines"), "me")
        await screen.do(overlay("o"), "me")
        await screen.do(SetStatus("s", "busy"), "me")
        await screen.do(PNG, "me")
        assert face.told == [
            WidgetShown("me", "w", "above-input", "two\nlines"),
            OverlayShown("me", "o", "Title", "text"),
            StatusShown("me", "s", "busy"),
            ImageAttached("me", "image/png", 5),
        ]
        assert (*screen.widgets, *screen.overlays, *screen.statuses, screen.attached) == tuple(face.told)

    virtually(work)


def test_what_is_taken_away_is_told_once_and_gone() -> None:
    async def work(screen: Screen, face: Face) -> None:
        shown: list[ScreenAction] = [widget("w", "x"), overlay("o"), SetStatus("s", "x"), PNG]
        for action in shown:
            await screen.do(action, "me")
        await asyncio.sleep(1)
        face.told.clear()
        gone: list[ScreenAction] = [widget("w", ""), CloseOverlay("o"), SetStatus("s", ""), DetachImage()]
        for action in gone * 2:
            await screen.do(action, "me")
        await asyncio.sleep(1)
        assert face.told == [
            WidgetShown("me", "w", "above-input", ""),
            OverlayClosed("me", "o"),
            StatusShown("me", "s", ""),
            ImageAttached("me"),
        ]
        assert not (screen.widgets or screen.overlays or screen.statuses or screen.attached)

    virtually(work)


def test_one_extension_touches_nothing_of_another_and_takes_its_own_with_it() -> None:
    async def work(screen: Screen, face: Face) -> None:
        for owner in ("me", "you"):
            for action in (widget("k", owner), overlay("k", owner), SetStatus("k", owner)):
                await screen.do(action, owner)
        await screen.do(CloseOverlay("k"), "them")
        await screen.do(PNG, "me")
        await screen.bereave("me")
        await asyncio.sleep(1)
        assert face.agrees(screen)
        left: list[Any] = [*screen.widgets, *screen.overlays, *screen.statuses]
        assert [one.extension for one in left] == ["you"] * 3
        assert screen.attached  # the user asked for it, and will send it

    virtually(work)


def test_the_overlay_shown_last_is_on_top_and_the_user_can_close_any() -> None:
    async def work(screen: Screen, face: Face) -> None:
        for key in ("a", "b", "a"):
            await screen.do(overlay(key), "me")
        assert [one.key for one in screen.overlays] == ["b", "a"]
        await screen.close_overlay("me", "b")
        await asyncio.sleep(1)
        assert [one.key for one in screen.overlays] == ["a"] and face.agrees(screen)
        for owner, key in (("me", "b"), ("you", "a")):
            with pytest.raises(UsageError, match="no overlay"):
                await screen.close_overlay(owner, key)

    virtually(work)


def test_an_attached_image_goes_with_one_message_and_attaching_again_takes_it_away() -> None:
    async def work(screen: Screen, face: Face) -> None:
        await screen.do(PNG, "me")
        assert await screen.take_image() == (Image("image/png", b"12345"),)
        assert await screen.take_image() == ()
        await screen.do(PNG, "me")
        await screen.do(PNG, "me")
        assert await screen.take_image() == () and screen.attached is None
        await asyncio.sleep(1)
        assert face.agrees(screen)

    virtually(work)


def test_what_is_too_much_is_refused_and_what_was_there_stays() -> None:
    async def work(screen: Screen, _: Face) -> None:
        long, longer = "x" * 1001, "x" * (64 * 1024 + 1)
        for number in range(32):
            await screen.do(widget(str(number), "x"), "me")
            await screen.do(SetStatus(str(number), "x"), "me")
            if number < 16:
                await screen.do(overlay(str(number)), "me")
        before = (screen.widgets, screen.overlays, screen.statuses)
        refused: list[ScreenAction] = [
            *(widget("more", "x"), SetStatus("more", "x"), overlay("more")),
            *(widget("1", longer), overlay("1", longer), SetStatus("1", long)),
            *(widget(long, ""), SetStatus(long, ""), ShowOverlay(Overlay("1", long, "x"))),
            *(ShowOverlay(Overlay("1", "", "x", anchor=long)), ShowOverlay(Overlay("1", "", "x", width=long))),
            *(AttachImage(b"x" * (8 * 1024 * 1024 + 1), "image/png"), AttachImage(b"x", "text/html")),
        ]
        for action in refused:
            with pytest.raises(HiltError):
                await screen.do(action, "me")
        assert (screen.widgets, screen.overlays, screen.statuses) == before and screen.attached is None
        await screen.do(widget("1", "still mine to change"), "me")
        await screen.do(widget("1", "and yours"), "you")

    virtually(work)


# Floods


def told_per_second(work: Callable[[int], ScreenAction], times: int) -> list[Event]:
    """What a face is told while one of them comes every millisecond."""
    told: list[Event] = []

    async def flood(screen: Screen, face: Face) -> None:
        for number in range(times):
            await screen.do(work(number), "me")
            await asyncio.sleep(0.001)
        await asyncio.sleep(1)
        told.extend(face.told)
        assert face.agrees(screen)

    virtually(flood)
    return told


@pytest.mark.parametrize(
    "action",
    [
        lambda number: widget("w", f"{number}"),
        lambda number: overlay("o", f"{number}"),
        lambda number: SetStatus("s", f"{number}"),
    ],
)
def test_what_changes_all_the_time_is_told_thirty_times_a_second_and_its_last_change_always(
    action: Callable[[int], ScreenAction],
) -> None:
    told: list[Any] = told_per_second(action, 1000)
    assert 20 <= len(told) <= 33
    assert "999" in (getattr(told[-1], "content", ""), getattr(told[-1], "text", ""))


def test_an_image_that_comes_and_goes_all_the_time_is_told_thirty_times_a_second() -> None:
    assert len(told_per_second(lambda _: PNG, 1001)) <= 33


def test_keys_that_come_and_go_cost_no_more_than_those_that_stay() -> None:
    """A fresh key each time, so that none is told too often by itself."""

    async def work(screen: Screen, face: Face) -> None:
        for number in range(10_000):
            await screen.do(widget(f"{number}", "x"), "me")
            await screen.do(widget(f"{number}", ""), "me")
        await asyncio.sleep(1)
        assert len(face.told) <= 2 and face.agrees(screen)
        face.told.clear()
        for number in range(1000):
            await screen.do(widget(f"{number}", ""), "me")
        assert face.told == []

    virtually(work)


def test_what_is_told_late_keeps_its_place_among_what_is_told_at_once() -> None:
    async def work(screen: Screen, face: Face) -> None:
        for key in ("a", "a", "b"):
            await screen.do(overlay(key), "me")
        await asyncio.sleep(1)
        assert [key for _, key in face.overlays] == ["a", "b"] == [one.key for one in screen.overlays]

    virtually(work)


def test_towards_a_face_that_takes_nothing_whoever_shows_something_waits_and_nothing_piles_up() -> None:
    async def work(screen: Screen, face: Face) -> None:
        async def flood() -> None:
            for number in range(10_000):
                await screen.do(widget("w", f"{number}"), "me")

        face.open.clear()
        async with asyncio.TaskGroup() as group:
            group.create_task(flood())
            await asyncio.sleep(60)
            assert len(face.told) == 1
            face.open.set()
        await asyncio.sleep(1)
        assert len(face.told) <= 3 and face.agrees(screen)

    virtually(work)


def test_a_flood_at_once_is_told_twice_however_large_it_is() -> None:
    async def work(screen: Screen, face: Face) -> None:
        for number in range(100_000):
            await screen.do(widget("w", f"{number}"), "me")
        assert len(face.told) == 1
        await asyncio.sleep(EVERY)
        await asyncio.sleep(EVERY)
        assert [event.content for event in face.told if isinstance(event, WidgetShown)] == ["0", "99999"]

    virtually(work)


owners, keys = st.sampled_from(["a", "b"]), st.sampled_from(["1", "2", "3"])
texts = st.sampled_from(["", "x", "y"])
actions = st.one_of(
    st.builds(widget, keys, texts),
    st.builds(overlay, keys, texts),
    st.builds(CloseOverlay, keys),
    st.builds(SetStatus, keys, texts),
    st.just(PNG),
    st.just(DetachImage()),
    st.sampled_from([0.0, EVERY / 2, EVERY, 1.0]),
)


@patient
@given(st.lists(st.tuples(owners, actions), max_size=40))
def test_whatever_is_done_and_however_fast_a_face_ends_up_with_what_is_there(
    steps: list[tuple[str, ScreenAction | float]],
) -> None:
    async def work(screen: Screen, face: Face) -> None:
        for owner, step in steps:
            await (asyncio.sleep(step) if isinstance(step, float) else screen.do(step, owner))
        await asyncio.sleep(1)
        assert face.agrees(screen)

    virtually(work)
