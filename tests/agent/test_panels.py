"""Panels of extensions: which there are, who has the focus, where keys go, what faces are told. Time is virtual."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.agent.bus import Bus
from hilt.agent.pacing import EVERY
from hilt.agent.panels import Panels
from hilt.agent.parts import NoExtensions
from hilt.errors import HiltError, UsageError
from hilt.model.events import Event, PanelClosed, PanelShown
from hilt.model.extensions import Panel
from hilt.transport.memory import VirtualLoop
from support.properties import patient


class Owners(NoExtensions):
    """Keeps what the owners of panels would be told."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def panel_key(self, extension: str, panel_id: str, key: str, text: str = "") -> None:
        self.heard.append(("key", extension, panel_id, key, text))

    def panel_resize(self, extension: str, panel_id: str, width: int, height: int) -> None:
        self.heard.append(("resize", extension, panel_id, width, height))

    def panel_closed(self, extension: str, panel_id: str) -> None:
        self.heard.append(("closed", extension, panel_id))


class Face:
    """Believes what it is told."""

    def __init__(self) -> None:
        self.told: list[Event] = []
        self.open: dict[tuple[str, str], tuple[str, ...]] = {}
        self.focus: tuple[str, str] | None = None
        self.taking = asyncio.Event()
        """Cleared while it takes nothing."""
        self.taking.set()

    async def __call__(self, event: Event) -> None:
        self.told.append(event)
        match event:
            case PanelShown(extension=owner, panel_id=panel_id, lines=lines, focused=focused):
                self.open[owner, panel_id] = lines
                self.focus = (owner, panel_id) if focused else self.focus
            case PanelClosed(extension=owner, panel_id=panel_id):
                self.open.pop((owner, panel_id), None)
                self.focus = None if self.focus == (owner, panel_id) else self.focus
        await self.taking.wait()

    def agrees(self, panels: Panels) -> bool:
        living = {one.key: one.panel.lines for one in panels.all if not one.bereaved}
        # While one without its owner has the focus, a face may believe that the one before still has it: what it sends
        # names its panel.
        right = panels.shown is None or self.focus == (panels.shown.extension, panels.shown.panel_id)
        return right and self.open == living


class Table:
    """Panels with a face before them and owners behind."""

    def __init__(self, bus: Bus) -> None:
        self.face, self.owners = Face(), Owners()
        self.panels = Panels(bus, lambda: self.owners)

    def take(self) -> list[Event]:
        """What the face was told since the last time."""
        told, self.face.told = self.face.told, []
        return told

    def keys(self) -> list[tuple[str, str]]:
        return [one.key for one in self.panels.all]


def virtually(work: Callable[[Table], Awaitable[None]]) -> None:
    """On a clock that jumps: whatever is waited for takes no time."""

    async def main() -> None:
        bus = Bus()
        table = Table(bus)
        with bus.subscribed(table.face):
            async with table.panels.running():
                await work(table)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


async def later() -> None:
    await asyncio.sleep(1)


# Several


def test_several_are_open_and_the_last_opened_has_the_focus() -> None:
    async def work(it: Table) -> None:
        await it.panels.show("a", Panel("p", "A", ("one",), "foot"))
        await it.panels.show("b", Panel("p", "B"))
        await it.panels.show("a", Panel("q", "Q"))
        assert it.take() == [
            PanelShown("a", "p", "A", ("one",), "foot"),
            PanelShown("b", "p", "B", (), ""),
            PanelShown("a", "q", "Q", (), ""),
        ]
        assert it.keys() == [("a", "p"), ("b", "p"), ("a", "q")]
        assert it.panels.open and it.panels.open.key == ("a", "q")
        assert it.panels.shown == PanelShown("a", "q", "Q", (), "")
        assert it.owners.heard == [], "nobody lost anything"

    virtually(work)


def test_opening_the_same_again_replaces_its_content_and_gives_it_the_focus() -> None:
    async def work(it: Table) -> None:
        await it.panels.show("a", Panel("p", "A", ("one",), "foot"))
        await it.panels.show("a", Panel("q"))
        await later()
        it.take()
        await it.panels.show("a", Panel("p", "", ("two",)))
        assert it.take() == [PanelShown("a", "p", "", ("two",), "")]
        assert it.keys() == [("a", "q"), ("a", "p")]

    virtually(work)


def test_any_that_is_open_is_drawn_anew_and_keeps_its_title_unless_there_is_another() -> None:
    async def work(it: Table) -> None:
        await it.panels.render("a", Panel("p", "too soon"))
        await it.panels.show("a", Panel("p", "A", ("one",), "foot"))
        await it.panels.show("b", Panel("q", "B"))
        await it.panels.render("b", Panel("p", "not its own"))
        await later()
        it.take()
        await it.panels.render("a", Panel("p", "", ("two",)))
        await later()
        await it.panels.render("a", Panel("p", "C"))
        await it.panels.render("b", Panel("q", "", ("three",)))
        assert it.take() == [
            PanelShown("a", "p", "A", ("two",), "", focused=False),
            PanelShown("a", "p", "C", (), "", focused=False),
            PanelShown("b", "q", "B", ("three",), ""),
        ]
        assert it.keys() == [("a", "p"), ("b", "q")], "drawing moves nothing"

    virtually(work)


def test_when_the_one_with_the_focus_is_closed_the_one_before_it_has_it_and_that_is_told() -> None:
    async def work(it: Table) -> None:
        for name in ("p", "q", "r"):
            await it.panels.show("a", Panel(name))
        await later()
        it.take()
        await it.panels.close_own("a", "p")
        await it.panels.close("r")
        assert it.take() == [PanelClosed("a", "p"), PanelClosed("a", "r"), PanelShown("a", "q", "", (), "")]
        assert it.keys() == [("a", "q")]

    virtually(work)


def test_the_user_moves_the_focus() -> None:
    async def work(it: Table) -> None:
        for name in ("p", "q"):
            await it.panels.show("a", Panel(name))
        await later()
        it.take()
        await it.panels.focus("a", "p")
        await it.panels.focus("a", "p")
        assert it.take() == [PanelShown("a", "p", "", (), "")], "once, for it had it already"
        assert it.keys() == [("a", "q"), ("a", "p")]
        with pytest.raises(UsageError, match='no panel "p" of b is open; "q", "p" are'):
            await it.panels.focus("b", "p")

    virtually(work)


def test_an_extension_closes_its_own_alone_and_is_not_told_what_it_knows() -> None:
    async def work(it: Table) -> None:
        await it.panels.show("a", Panel("p"))
        await it.panels.close_own("b", "p")
        await it.panels.close_own("a", "other")
        assert it.keys() == [("a", "p")]
        await it.panels.close_own("a", "p")
        await later()
        assert it.panels.all == () and it.panels.open is None and it.panels.shown is None
        assert it.take() == [PanelShown("a", "p", "", (), ""), PanelClosed("a", "p")]
        assert it.owners.heard == []

    virtually(work)


def test_there_are_eight_of_one_and_thirty_two_in_all_and_what_is_there_stays() -> None:
    async def work(it: Table) -> None:
        for number in range(8):
            await it.panels.show("a", Panel(str(number)))
        with pytest.raises(HiltError, match="a has 8 panels open already"):
            await it.panels.show("a", Panel("more"))
        await it.panels.show("a", Panel("0", "one that is there"))
        for number in range(24):
            await it.panels.show(f"b{number // 8}", Panel(str(number)))
        before = it.panels.all
        with pytest.raises(HiltError, match="c cannot open a panel: 32 are open already"):
            await it.panels.show("c", Panel("p"))
        assert it.panels.all == before and len(before) == 32
        await it.panels.close("7", owner="a")
        await it.panels.show("c", Panel("p"))

    virtually(work)


# Keys, sizes, ends


def test_keys_sizes_and_the_end_go_to_the_owner() -> None:
    async def work(it: Table) -> None:
        await it.panels.show("a", Panel("p"))
        it.panels.key("p", "rune", "x")
        it.panels.resize("p", 80, 24)
        await it.panels.close("p")
        assert it.owners.heard == [("key", "a", "p", "rune", "x"), ("resize", "a", "p", 80, 24), ("closed", "a", "p")]
        await later()
        assert it.take()[-1] == PanelClosed("a", "p")

    virtually(work)


def test_the_owner_says_which_of_two_is_meant_and_otherwise_it_is_the_one_that_last_had_the_focus() -> None:
    async def work(it: Table) -> None:
        for owner in ("a", "b", "c"):
            await it.panels.show(owner, Panel("p" if owner != "c" else "q"))
        it.panels.key("p", "up")
        it.panels.key("p", "up", owner="a")
        it.panels.resize("p", 9, 9, owner="a")
        await it.panels.close("p", owner="a")
        assert it.owners.heard == [
            ("key", "b", "p", "up", ""),
            ("key", "a", "p", "up", ""),
            ("resize", "a", "p", 9, 9),
            ("closed", "a", "p"),
        ]
        assert it.keys() == [("b", "p"), ("c", "q")]

    virtually(work)


def test_a_new_one_is_told_the_size_when_that_is_known_and_one_that_has_it_is_not_told_again() -> None:
    async def work(it: Table) -> None:
        await it.panels.show("a", Panel("p"))
        it.panels.resize("p", 80, 24)
        it.owners.heard.clear()
        await it.panels.show("b", Panel("q"))
        await it.panels.show("b", Panel("q", "again"))
        assert it.owners.heard == [("resize", "b", "q", 80, 24)]

    virtually(work)


def test_one_that_is_not_open_takes_no_keys() -> None:
    async def work(it: Table) -> None:
        with pytest.raises(UsageError, match='no panel "p" is open; none is'):
            it.panels.key("p", "up")
        await it.panels.show("a", Panel("q"))
        with pytest.raises(UsageError, match='no panel "p" is open; "q" is'):
            it.panels.resize("p", 1, 1)
        with pytest.raises(UsageError, match='"q" is'):
            await it.panels.close("p")
        with pytest.raises(UsageError) as refused:
            it.panels.key("x" * 1_000_000, "up")
        assert len(str(refused.value)) < 200

    virtually(work)


# Owners that go and come back


def test_what_an_owner_leaves_behind_stays_says_why_and_takes_no_keys() -> None:
    async def work(it: Table) -> None:
        await it.panels.show("a", Panel("p", "A", ("one",)))
        await it.panels.show("b", Panel("q"))
        await it.panels.show("a", Panel("r"))
        await later()
        it.take()
        await it.panels.bereave("a", "a exited with code 5")
        await it.panels.bereave("a", "and once more")
        why = "a exited with code 5"
        assert it.take() == [PanelClosed("a", "p", why), PanelClosed("a", "r", why)]
        assert [(one.key, one.bereaved) for one in it.panels.all] == [
            (("a", "p"), why),
            (("b", "q"), ""),
            (("a", "r"), why),
        ]
        assert it.panels.open and it.panels.open.key == ("a", "r"), "no key goes elsewhere unawares"
        assert it.panels.shown is None
        for name in ("p", "r"):
            with pytest.raises(UsageError, match=f'keys of panel "{name}" go nowhere: a exited with code 5'):
                it.panels.key(name, "up")
        it.panels.key("q", "up")
        assert it.owners.heard == [("key", "b", "q", "up", "")]

    virtually(work)


def test_it_comes_back_with_its_owner_who_is_told_its_size() -> None:
    async def work(it: Table) -> None:
        await it.panels.show("a", Panel("p", "A", ("one",)))
        await it.panels.show("b", Panel("q"))
        it.panels.resize("p", 80, 24)
        it.panels.resize("q", 40, 12)
        await it.panels.bereave("a", "gone")
        it.owners.heard.clear()
        it.panels.resize("p", 60, 20)
        assert it.owners.heard == [], "there is nobody to tell"
        await later()
        it.take()
        await it.panels.revive("b")
        assert it.owners.heard == [("resize", "b", "q", 40, 12)] and it.take() == [], "reloaded, and never gone"
        await it.panels.revive("a")
        assert it.owners.heard[1:] == [("resize", "a", "p", 60, 20)]
        assert it.take() == [PanelShown("a", "p", "A", ("one",), "", focused=False)]
        it.panels.key("p", "up")
        assert it.owners.heard[2:] == [("key", "a", "p", "up", "")]

    virtually(work)


def test_what_is_drawn_or_opened_by_one_that_is_starting_again_counts() -> None:
    async def work(it: Table) -> None:
        for name in ("p", "q"):
            await it.panels.show("a", Panel(name, "T", ("old",)))
        it.panels.resize("q", 80, 24)
        await it.panels.bereave("a", "gone")
        await later()
        it.owners.heard.clear()
        it.take()
        await it.panels.render("a", Panel("p", "", ("new",)))
        assert it.take() == [], "it is not ready yet"
        await it.panels.show("a", Panel("q", "T", ("new",)))
        assert it.owners.heard == [("resize", "a", "q", 80, 24)]
        await it.panels.revive("a")
        assert it.take() == [PanelShown("a", "q", "T", ("new",), ""), PanelShown("a", "p", "T", ("new",), "", False)]

    virtually(work)


def test_the_user_closes_what_is_bereaved_and_it_does_not_come_back() -> None:
    async def work(it: Table) -> None:
        await it.panels.show("b", Panel("q"))
        await it.panels.show("a", Panel("p"))
        await it.panels.bereave("a", "gone")
        await it.panels.close("p")
        await later()
        assert it.take()[-2:] == [PanelClosed("a", "p"), PanelShown("b", "q", "", (), "")]
        await it.panels.revive("a")
        assert it.keys() == [("b", "q")] and it.take() == [] and it.owners.heard == []

    virtually(work)


def test_of_two_of_one_id_the_living_is_meant() -> None:
    async def work(it: Table) -> None:
        for owner in ("a", "b"):
            await it.panels.show(owner, Panel("p"))
        await it.panels.bereave("b", "gone")
        it.panels.key("p", "up")
        assert it.owners.heard == [("key", "a", "p", "up", "")]
        with pytest.raises(UsageError, match="gone"):
            it.panels.key("p", "up", owner="b")

    virtually(work)


def test_what_the_user_closes_while_a_face_hears_of_its_loss_stays_closed() -> None:
    async def work(it: Table) -> None:
        for name in ("p", "q"):
            await it.panels.show("a", Panel(name))
        await later()
        it.take()
        it.face.taking.clear()
        async with asyncio.TaskGroup() as group:
            group.create_task(it.panels.bereave("a", "gone"))
            await asyncio.sleep(0)
            group.create_task(it.panels.close("q"))
            await later()
            it.face.taking.set()
        await later()
        assert it.keys() == [("a", "p")]
        assert [event for event in it.take() if event == PanelClosed("a", "q", "gone")] == []

    virtually(work)


# Floods


def test_what_is_drawn_all_the_time_is_told_thirty_times_a_second_and_its_last_change_always() -> None:
    async def work(it: Table) -> None:
        for owner in ("a", "b"):
            await it.panels.show(owner, Panel("p"))
        for number in range(1000):
            for owner in ("a", "b"):
                await it.panels.render(owner, Panel("p", "", (str(number),)))
            await asyncio.sleep(0.001)
        await later()
        assert 40 <= len(it.take()) <= 66
        assert it.face.open == {("a", "p"): ("999",), ("b", "p"): ("999",)} and it.face.agrees(it.panels)

    virtually(work)


@pytest.mark.parametrize("last", [True, False])
def test_what_opens_and_closes_all_the_time_is_told_thirty_times_a_second(last: bool) -> None:
    async def work(it: Table) -> None:
        for _ in range(1000):
            await it.panels.show("a", Panel("p"))
            await it.panels.close_own("a", "p")
            await asyncio.sleep(0.001)
        if last:
            await it.panels.show("a", Panel("p"))
        await later()
        assert len(it.take()) <= 66 and it.face.agrees(it.panels)

    virtually(work)


def test_towards_a_face_that_takes_nothing_nothing_piles_up() -> None:
    async def work(it: Table) -> None:
        async def flood() -> None:
            for number in range(10_000):
                await it.panels.render("a", Panel("p", "", (str(number),)))

        await it.panels.show("a", Panel("p"))
        await later()
        it.take()
        it.face.taking.clear()
        async with asyncio.TaskGroup() as group:
            group.create_task(flood())
            await asyncio.sleep(60)
            assert len(it.face.told) == 1
            it.face.taking.set()
        await later()
        assert len(it.take()) <= 3 and it.face.agrees(it.panels)

    virtually(work)


owners, ids = st.sampled_from(["a", "b"]), st.sampled_from(["1", "2", "3"])
drawn = st.builds(Panel, ids, lines=st.sampled_from([(), ("x",), ("y",)]))
steps = st.one_of(
    st.tuples(st.sampled_from(["show", "render"]), owners, drawn),
    st.tuples(st.sampled_from(["close_own", "focus"]), owners, ids),
    st.tuples(st.just("bereave"), owners, st.just("gone")),
    st.tuples(st.just("revive"), owners),
    st.tuples(st.just("close"), ids),
    st.sampled_from([0.0, EVERY / 2, EVERY, 1.0]),
)


@patient
@given(st.lists(steps, max_size=40))
def test_whatever_is_done_and_however_fast_a_face_ends_up_with_what_is_there(done: list[Any]) -> None:
    async def work(it: Table) -> None:
        for step in done:
            try:
                if isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    await getattr(it.panels, step[0])(*step[1:])
            except UsageError:
                pass  # it is not open
        await later()
        assert it.face.agrees(it.panels)

    virtually(work)
