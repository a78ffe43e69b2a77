"""What extensions write into the input: never from under the hands of somebody who types, and never sent unseen."""

from pathlib import Path
from time import monotonic

from textual.events import Key

from hilt.model.events import Inserted
from support.agent import says
from support.interface import Face, interface
from support.showing import shower, tell


async def pressed(face: Face, key: str, when: float) -> None:
    event = Key(key, key if len(key) == 1 else None)
    event.time = when
    face.app.post_message(event)
    await face.pilot.pause()


async def written(face: Face, text: str) -> float:
    """And when that was."""
    tell(face, "snip", "setInputText", text=text)
    await face.until(lambda: face.app.editor.text == text, "it is written")
    return face.app.editor._dictated[1]


async def test_what_an_extension_writes_waits_until_the_user_has_stopped_typing(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("snip")) as face:
        await face.press("m", "i", "n", "e")
        tell(face, "snip", "setInputText", text="its own")
        await face.shows("snip wrote into the input")
        pressed_at = face.app.editor._touched
        await face.until(lambda: face.app.editor.text == "its own")
        assert monotonic() - pressed_at >= 1.0


async def test_a_flood_of_writing_takes_no_word_from_who_types(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("snip"), turns=[says("hi there")]) as face:
        for letter in "hello":
            await face.press(letter)
            tell(face, "snip", "setInputText", text="/yolo")
            await face.it.seen(Inserted)
        assert face.app.editor.text == "hello"
        await face.press("enter")
        await face.shows("┃ hello", "hi there")


async def test_enter_does_not_count_until_there_was_time_to_see_what_was_written(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("snip"), turns=[says("hi there")]) as face:
        then = await written(face, "its own")
        for after in (0.4, 0.8, 1.2):
            await pressed(face, "enter", then + after)  # whoever goes on pressing has not seen it
        assert face.app.editor.text == "its own"
        await pressed(face, "enter", then + 1.8)
        await face.shows("┃ its own", "hi there")


async def test_who_wrote_a_command_is_not_covered_by_the_list_of_commands(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("snip")) as face:
        then = await written(face, "/snip")
        await face.shows("snip wrote into the input", "/snip")
        assert "shows things" not in face.text
        await pressed(face, "backspace", then + 0.6)
        await face.shows("/sni", "shows things")


async def test_what_an_extension_wrote_and_nobody_touched_is_no_history(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("snip")) as face:
        await face.press("m", "i", "n", "e")
        for text in ("one", "two"):
            await written(face, text)
        await face.press("!", "ctrl+u")
        assert face.app.editor.past.entries == ["mine", "two!"]
