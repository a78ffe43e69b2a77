"""All surfaces at once: whatever is shown, the input and the status line are on the screen."""

from pathlib import Path

import pytest

from support.agent import calls, says
from support.extending import chaos
from support.interface import interface
from support.showing import of_panels, order, panel, shower

EVERYTHING = [
    panel("p", *["line"] * 100, title="Panel", footer="foot"),
    *[("notify", {"message": "note " * 40, "level": "warn"})] * 9,
    *[("setWidget", {"key": f"a{n}", "placement": "above-input", "content": "above\n" * 20}) for n in range(9)],
    *[("setWidget", {"key": f"b{n}", "placement": "below-status", "content": "below\n" * 20}) for n in range(9)],
]


@pytest.mark.parametrize("size", [(80, 24), (40, 24), (40, 12), (120, 50)])
async def test_the_input_and_the_status_line_are_always_on_the_screen(tmp_path: Path, size: tuple[int, int]) -> None:
    slow = chaos("slow", "hello", "register_tool:t", "ready", {"on": "tool_call", "do": []})
    made = (shower("all"), slow)
    async with interface(tmp_path, *made, turns=[calls(("t", {})), says("x")], mode="yolo", size=size) as face:
        face.say("go")
        await face.shows("esc to cancel")
        for number in range(5):
            face.say(f"later {number}")
        await face.shows("waiting:")
        order(face, "all", *EVERYTHING)
        await face.shows("all Panel")
        await face.until(lambda: face.app.around and face.app.around.panels.has_keys)
        await face.press("f6", "o", "n", "e", *["ctrl+j"] * 4, "e", "n", "d")
        await face.shows("› one", "end", "script", "waiting: later 0")
        room = [face.app.screen.size.height - row for row, text in enumerate(face.rows) if "script" in text]
        assert room[-1] >= 1
        assert face.app.screen.max_scroll_y == 0
        if size[1] >= 24:
            assert "all Panel" in face.text and "line" in face.text and "f6 to use it" in face.text  # a whole box


async def test_what_had_to_give_way_comes_back(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("all"), size=(80, 24)) as face:
        content = "\n".join(f"row {number}." for number in range(8))
        above = ("setWidget", {"key": "a", "placement": "above-input", "content": content})
        order(face, "all", above)
        await face.shows("row 7.")
        order(face, "all", panel("p", *["line"] * 50))
        await face.shows("┃ line")
        await face.shows_no("row 7.")
        await face.until(lambda: of_panels(face, "all"), "it is told how large its panel is")
        assert of_panels(face, "all") == [("resize", "p", 76, 11)]  # which does not depend on what comes and goes
        await face.until(lambda: face.app.around and face.app.around.panels.has_keys)
        await face.press("escape")
        await face.shows("row 7.")
