"""Floods from real extensions: the screen is drawn at a bounded rate, what is last is shown, and keys still work."""

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hilt.frontends.tui.app import HiltApp
from support.interface import interface
from support.showing import order, panel, shower, tell

BOTH = pytest.mark.usefixtures("dialect")
MANY = 1500

FLOODS: dict[str, tuple[str, dict[str, Any]]] = {
    "notes": ("notify", {"message": "flood", "level": "warn"}),
    "renders": ("panel/render", {"panel_id": "p", "lines": ["flood 日本語"] * 40}),
    "widgets": ("setWidget", {"key": "k", "placement": "above-input", "content": "flood"}),
    "statuses": ("setStatus", {"key": "k", "text": "flood"}),
    "overlays": ("showOverlay", {"key": "k", "title": "t", "content": "flood", "anchor": "top"}),
    "inputs": ("setInputText", {"text": "flood"}),
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the screen was drawn."""
    times: list[float] = []
    draw = HiltApp._draw

    def counted(self: HiltApp) -> None:
        times.append(asyncio.get_running_loop().time())
        draw(self)

    monkeypatch.setattr(HiltApp, "_draw", counted)
    return times


@BOTH
@pytest.mark.parametrize("kind", FLOODS)
async def test_a_flood_is_drawn_at_most_30_times_a_second_and_its_end_is_shown(
    tmp_path: Path, kind: str, drawn: list[float]
) -> None:
    # U1
    async with interface(tmp_path, shower("noisy")) as face:
        order(face, "noisy", panel("p", "before"))
        await face.shows("┃ before")
        await face.press("f6")
        method, params = FLOODS[kind]
        drawn.clear()
        order(face, "noisy", (method, params), times=MANY)
        await face.until(lambda: not face.client._under_way, "all of it has come")
        await face.shows("flood")
        assert len(drawn) < MANY / 10
        pauses = [later - earlier for earlier, later in pairwise(drawn)]
        assert all(pause > 1 / 31 for pause in pauses), min(pauses)
        await face.press("o", "k")
        assert face.app.editor.text.endswith("ok")


async def test_a_flood_of_notes_keeps_no_more_than_the_last(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("noisy")) as face:
        order(face, "noisy", ("notify", {"message": "flood"}), times=MANY)
        await face.shows("+196 more")
        assert len(face.app.scene.notes) == 200


async def test_what_an_extension_displays_does_not_grow_for_ever(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("noisy")) as face:
        order(face, "noisy", ("showMessage", {"text": "flood"}), times=MANY)
        await face.until(lambda: not face.client._under_way, "all of it has come")
        tell(face, "noisy", "showMessage", text="the last")
        await face.shows("the last")
        assert len(face.app.scene.blocks) <= 1000
