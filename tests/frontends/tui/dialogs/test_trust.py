"""Asking whether what came with a folder may run."""

import asyncio
from pathlib import Path

import pytest

from hilt.frontends.approver import UserApprover
from hilt.frontends.terminal import MARK
from hilt.frontends.tui.dialogs.dialog import DEAF
from support.interface import Face, interface

COMMANDS = (("guard", ("python3", "main.py", "--flag with blank")), ("other", ("node", "x" * 200)))
TEXT = "guard 1.0: guards\n  may       everything\n" + "\n".join(f"  odd       file{number}.py" for number in range(60))


async def confirmed(face: Face, *keys: str, text: str = TEXT) -> bool:
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(UserApprover(face.it.questions).confirm("/some/folder", COMMANDS, text))
        await face.shows("Trust what came with this folder?")
        await face.answer(*keys)
        async with asyncio.timeout(10):
            return await asking


@pytest.mark.parametrize(
    ("keys", "trusted"),
    [
        (("y",), True),
        (("2",), True),
        (("down", "enter"), True),
        (("enter",), False),
        (("n",), False),
        (("escape",), False),
        (("ctrl+c",), False),
    ],
)
async def test_only_a_yes_is_one(tmp_path: Path, keys: tuple[str, ...], trusted: bool) -> None:
    async with interface(tmp_path) as face:
        assert await confirmed(face, *keys) is trusted
        await face.until(lambda: face.dialog is None)


async def test_every_command_and_all_of_the_text_can_be_read(tmp_path: Path) -> None:
    async with interface(tmp_path, size=(80, 24)) as face, asyncio.TaskGroup() as group:
        asking = group.create_task(UserApprover(face.it.questions).confirm("/some/folder", COMMANDS, TEXT))
        shown = await face.shows(f"{MARK} Trust", "/some/folder", "python3 main.py '--flag with blank'", "more lines")
        assert "› 1 n  No" in shown
        dialog = face.dialog
        assert dialog
        rows = [dialog.row(at, 76).text[2:].strip() for at in range(dialog.length(76))]
        assert f"node {'x' * 200}" in "".join(rows)
        assert all(f"odd       file{number}.py" in rows for number in range(60))
        await face.answer("end")
        await face.shows("file59.py")
        await face.press("escape")
        assert not await asking


async def test_what_is_typed_as_it_appears_does_not_count(tmp_path: Path) -> None:
    # A23
    async with interface(tmp_path) as face, asyncio.TaskGroup() as group:
        asking = group.create_task(UserApprover(face.it.questions).confirm("/f", COMMANDS, TEXT))
        await face.shows("Trust what came")
        for name in ("y", "2", "down", "enter"):
            await face.typed(name, DEAF - 0.01)
        assert not asking.done()
        await face.answer("enter")  # on what it began with
        assert not await asking


async def test_what_hides_in_it_is_written_out(tmp_path: Path) -> None:
    # A33
    async with interface(tmp_path) as face, asyncio.TaskGroup() as group:
        commands = (("a\u200bb", ("run", "\x1b[2J")),)
        asking = group.create_task(UserApprover(face.it.questions).confirm("/f\u202e", commands, f"{MARK} ok\r"))
        shown = await face.shows("/f‹U+202E›", "a‹U+200B›b", "run '‹U+001B›[2J'", "‹U+25C8› ok‹U+000D›")
        assert shown.count(MARK) == 1
        await face.answer("n")
        assert not await asking
