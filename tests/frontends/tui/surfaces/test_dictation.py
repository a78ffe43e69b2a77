"""What extensions write into the input: never from under the hands of somebody who types, and never sent unseen."""

from pathlib import Path

from textual.events import Key

from hilt.model.events import Inserted
from support.agent import says
from support.interface import Face, interface
from support.showing import shower, tell


async def pressed(face: Face, key: str, after: float) -> None:
    """So long after something was written, or after the key that came too early."""
    event = Key(key, key if len(key) == 1 else None)
    event.time = face.app.editor._dictated[1] + after
    face.app.post_message(event)
    await face.pilot.pause()


async def written(face: Face, text: str) -> None:
    tell(face, "snip", "setInputText", text=text)
    await face.until(lambda: face.app.editor.text == text, "it is written")


async def test_what_an_extension_writes_waits_until_the_user_has_stopped_typing(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("snip"), turns=[says("hi there")]) as face:
        face.app.editor._touched = 1e12  # types on and on
        await face.it.session.bus.publish(Inserted("snip", "/yolo", replace=True))
        await face.shows("snip wrote into the input")
        assert face.app.editor.text == ""
        face.app.editor._touched = 0.0
        face.app.around._paused(face.app.scene)  # type: ignore[union-attr]
        assert face.app.editor.text == "/yolo"


async def test_a_flood_of_writing_takes_no_word_from_who_types(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("snip"), turns=[says("hi there")]) as face:
        for letter in "hello":
            await face.press(letter)
            tell(face, "snip", "setInputText", text="/yolo")
            await face.it.seen(Inserted)
        await face.press("enter")
        await face.shows("hello", "hi there")
        assert face.it.session.parts.permissions.mode == "ask"


async def test_enter_does_not_count_until_there_was_time_to_see_what_was_written(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("snip")) as face:
        await written(face, "/yolo")
        for _ in range(3):
            await pressed(face, "enter", after=0.4)  # whoever goes on pressing has not seen it
        assert (face.app.editor.text, face.it.session.parts.permissions.mode) == ("/yolo", "ask")
        await pressed(face, "enter", after=0.6)
        await face.until(lambda: face.it.session.parts.permissions.mode == "yolo", "it was sent")


async def test_who_wrote_a_command_is_not_covered_by_the_list_of_commands(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("snip")) as face:
        await written(face, "/yolo")
        await face.shows("snip wrote into the input", "/yolo")
        assert "stop asking" not in face.text
        await pressed(face, "backspace", after=0.6)
        await face.shows("stop asking")


async def test_what_an_extension_wrote_and_nobody_touched_is_no_history(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("snip")) as face:
        await face.press("m", "i", "n", "e")
        for text in ("one", "two"):
            await written(face, text)
        await face.press("!", "ctrl+u")
        assert face.app.editor.past.entries == ["mine", "two!"]
