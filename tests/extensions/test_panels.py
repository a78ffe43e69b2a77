"""Panels and notes of real programs of either dialect: who dies, comes back, is reloaded or removed, and floods."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hilt.errors import UsageError
from hilt.model.events import Notified, PanelClosed, PanelShown
from support.extending import DEADLINE, FRAMES_ONLY, Extended, Made, chaos, extended

pytestmark = pytest.mark.usefixtures("dialect")


def panel(name: str, *lines: str) -> str:
    return f"open_panel:{json.dumps({'panel': {'id': name, 'title': 'T', 'lines': lines}})}"


def drawing(name: str, *lines: str) -> str:
    return f"panel_render:{json.dumps({'panel_id': name, 'lines': lines})}"


def opens_once(*reactions: Any) -> Made:
    """One whose first process opens two panels, and dies of the key `enter`. Later ones draw when told a size."""
    first = {"do": [panel("p", "old"), panel("q", "old")], "once": "opened"}
    dies = {"on": "panel_key", "match": {"key": "enter"}, "do": "exit:5"}
    redraws = {"on": "panel_resize", "match": {"panel_id": "p"}, "do": drawing("p", "$PID")}
    return chaos("a", "hello", "record:heard", "ready", first, dies, redraws, *reactions)


def heard(it: Extended, kind: str) -> list[tuple[Any, ...]]:
    """What the processes of `a` were told of panels: by which, and what."""
    rows = [row for row in it.recorded("extensions/a/heard") if "line" in row]
    said = [(row["pid"], row.get("frame") or json.loads(row["line"])) for row in rows]
    return [(pid, frame["panel_id"], frame.get("key")) for pid, frame in said if frame["type"] == kind]


async def opened(it: Extended) -> int:
    """Its process, once both panels are open and have a size."""
    await it.ready("a")
    await it.seen(PanelShown, panel_id="q")
    for name in ("p", "q"):
        it.session.panels.resize(name, 80, 24)
    pid = it.status("a").pid
    assert pid
    await it.seen(PanelShown, panel_id="p", lines=(str(pid),))
    return pid


async def test_panels_of_one_that_dies_stay_and_come_back_with_it_and_it_hears_the_keys(
    tmp_path: Path,
) -> None:
    """U3"""
    async with extended(tmp_path, opens_once()) as it:
        before = await opened(it)
        it.session.panels.key("p", "up")
        it.session.panels.key("p", "enter")
        assert "exited with code 5" in (await it.seen(PanelClosed, panel_id="q")).reason
        for one in it.session.panels.all:
            assert "exited with code 5" in one.bereaved
            with pytest.raises(UsageError, match="exited with code 5"):
                it.session.panels.key(one.panel.id, "up")
        assert it.session.panels.all[0].panel.lines == (str(before),), "what it drew last"

        await it.ready("a")
        after = it.status("a").pid
        assert after and after != before
        await it.seen(PanelShown, panel_id="p", lines=(str(after),))
        assert it.session.panels.shown == PanelShown("a", "q", "T", ("old",), "")
        it.session.panels.key("q", "down")
        await it.until(lambda: (after, "q", "down") in heard(it, "panel_key"), "the key")
        sizes = [(pid, name) for pid, name, _ in heard(it, "panel_resize") if pid == after]
        assert sizes == [(after, "p"), (after, "q")]


async def test_a_reload_leaves_panels_open_and_the_new_process_is_told_their_size(tmp_path: Path) -> None:
    async with extended(tmp_path, opens_once()) as it:
        before = await opened(it)
        async with asyncio.timeout(DEADLINE):
            await it.session.extensions.reload("a")
        after = it.status("a").pid
        assert after and after != before
        await it.seen(PanelShown, panel_id="p", lines=(str(after),), focused=False)
        assert it.of(PanelClosed) == []
        it.session.panels.key("p", "down")
        await it.until(lambda: (after, "p", "down") in heard(it, "panel_key"), "the key")


async def test_panels_of_one_that_is_removed_stay_without_it_until_they_are_closed(tmp_path: Path) -> None:
    user = tmp_path / "user"
    chaos("a", "hello", "ready", panel("p", "one"), panel("q")).write(user)
    async with extended(tmp_path) as it:
        await it.ready("a")
        await it.seen(PanelShown, panel_id="q")
        shutil.rmtree(user / "a")
        async with asyncio.timeout(DEADLINE):
            await it.session.extensions.reload()
        await it.seen(PanelClosed, panel_id="p", reason="extension a was stopped")
        assert [one.bereaved for one in it.session.panels.all] == ["extension a was stopped"] * 2
        await it.session.panels.close("p", owner="a")
        await it.seen(PanelClosed, panel_id="p", reason="")
        chaos("a", "hello", "ready").write(user)
        async with asyncio.timeout(DEADLINE):
            await it.session.extensions.reload()
        await it.until(lambda: it.session.panels.shown == PanelShown("a", "q", "T", (), ""), "it is back")
        assert len(it.session.panels.all) == 1


@FRAMES_ONLY
async def test_a_panel_of_one_that_fails_while_it_is_being_started_takes_no_keys(tmp_path: Path) -> None:
    fails = chaos("a", {"do": "exit:3", "once": "failed"}, "hello", panel("p"), "exit:4")
    async with extended(tmp_path, fails) as it:
        await it.state("a", "failed")
        async with asyncio.timeout(DEADLINE):
            await it.session.extensions.reload("a")
        await it.state("a", "failed")
        (left,) = it.session.panels.all
        assert "exited with code 4" in left.bereaved


async def test_one_panel_too_many_is_refused_and_the_user_is_told_whose(tmp_path: Path) -> None:
    async with extended(tmp_path, chaos("a", "hello", "ready", *(panel(str(number)) for number in range(9)))) as it:
        await it.warned("a has 8 panels open already")
        assert [one.panel.id for one in it.session.panels.all] == [str(number) for number in range(8)]


async def test_a_flood_of_renders_and_notes_is_told_in_a_few_events_and_its_end_always(tmp_path: Path) -> None:
    """U1"""
    many = 20_000
    flood = [f"flood:{many}", drawing("p", "$N"), f"flood:{many}", "notify:note $N"]
    end = [drawing("p", "the end"), "notify:the end"]
    async with extended(tmp_path, chaos("a", "hello", "ready", panel("p"), *flood, *end)) as it:
        begun = asyncio.get_running_loop().time()
        await it.seen(Notified, message="the end")
        await it.seen(PanelShown, lines=("the end",))
        ticks = (asyncio.get_running_loop().time() - begun) * 30 + 10
        assert len(it.of(PanelShown)) <= ticks
        notes = it.of(Notified)
        assert len(notes) <= 200 + ticks
        assert sum(1 + note.skipped for note in notes) == many + 1
        assert len(it.session.notes.shown) == 200 and it.session.notes.shown[-1].message == "the end"
