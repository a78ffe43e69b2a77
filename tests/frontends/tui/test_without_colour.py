"""With NO_COLOR everything is there, and nothing of it has a colour."""

from pathlib import Path

import pytest
from rich.style import Style
from textual.strip import Strip

from support.agent import calls, says
from support.interface import interface


async def test_with_no_color_nothing_on_the_screen_has_a_colour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    turns = [calls(("bash", {"command": "echo hi"})), says("# Done\n\n```python\nprint(1)\n```")]
    async with interface(tmp_path, turns=turns) as face:
        face.say("go")
        await face.shows("Allow bash?")
        assert coloured(face.app.screen._compositor.render_strips()) == []
        await face.answer("y")
        await face.shows("Done", "print(1)")
        assert coloured(face.app.screen._compositor.render_strips()) == []


def coloured(rows: list[Strip]) -> list[str]:
    styles = [(segment.text, segment.style) for row in rows for segment in row]
    return [text for text, style in styles if style and not plain(style)]


def plain(style: Style) -> bool:
    return all(colour is None or colour.is_default for colour in (style.color, style.bgcolor))
