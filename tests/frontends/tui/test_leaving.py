"""Ctrl-C: twice leaves, but not when something else was done in between."""

from pathlib import Path

from support.interface import interface


async def test_ctrl_c_twice_leaves(tmp_path: Path) -> None:
    async with interface(tmp_path) as face:
        await face.press("ctrl+c")
        await face.shows("ctrl+c again to leave")
        await face.press("ctrl+c")
        await face.until(lambda: not face.app.is_running, "it has ended")


async def test_whoever_types_after_ctrl_c_does_not_mean_to_leave(tmp_path: Path) -> None:
    async with interface(tmp_path) as face:
        await face.press("ctrl+c", "h", "i")
        await face.until(lambda: face.app.editor.text == "hi")
        await face.press("ctrl+c")
        await face.until(lambda: face.app.editor.text == "")
        assert face.app.is_running
        await face.press("up")
        await face.until(lambda: face.app.editor.text == "hi", "what was cleared is in the history")
