"""The input in front of a real session: shell commands, what waits, what Esc and Ctrl-C mean."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from hilt.frontends.tui.app import HiltApp
from hilt.frontends.tui.client import Client
from hilt.frontends.tui.presenter import Presenter
from hilt.model.content import text_of
from hilt.model.conversation import UserMessage
from hilt.model.masking import Mask
from hilt.tools.bash import bash_tool
from hilt.tools.jail import Jail
from hilt.tools.shell import Shell
from hilt.tools.workspace import Workspace
from support.agent import calls, says
from support.extending import extended
from support.interface import Face, interface
from support.showing import shower

SECRET = "sk-very-secret-key"


@asynccontextmanager
async def shelled(folder: Path, **more: Any) -> AsyncIterator[Face]:
    """An interface whose user can run commands in `folder`."""
    async with Shell() as shell, interface(folder, **more) as face:
        bash = bash_tool(Workspace(folder, Jail(folder), folder / "outputs"), shell)
        face.it.session.parts = structs.replace(face.it.session.parts, shell=bash)
        assert face.app.presenter
        face.client.shell = partial(face.app.presenter.shells.run, Mask([SECRET]))
        yield face


def told(face: Face) -> list[str]:
    """What the model is told by the user."""
    messages = face.it.session.transcript.messages
    return [text_of(one.content) for one in messages if isinstance(one, UserMessage)]


async def write(face: Face, text: str) -> None:
    await face.press(*("space" if letter == " " else letter for letter in text))


async def test_an_exclamation_mark_runs_a_command_and_the_model_comes_to_know(tmp_path: Path) -> None:
    async with shelled(tmp_path) as face:
        await write(face, "!echo $((6*7))")
        await face.press("enter")
        await face.shows("! echo $((6*7))", "42", "exit 0")
        await face.until(lambda: told(face))
        assert "42" in told(face)[0]
        assert "I ran a shell command" not in face.text  # it is on screen already


async def test_two_exclamation_marks_keep_it_from_the_model(tmp_path: Path) -> None:
    async with shelled(tmp_path) as face:
        await write(face, "!!exit 3")
        await face.press("enter")
        await face.shows("! exit 3", "exit 3 ·", "the model does not see it")
        assert told(face) == []


async def test_what_the_user_says_later_in_the_words_of_a_report_is_shown(tmp_path: Path) -> None:
    async with shelled(tmp_path, turns=[says("ok")]) as face:
        face.say("I ran a shell command myself yesterday")
        await face.shows("I ran a shell command myself yesterday", "ok")


async def test_esc_stops_a_command(tmp_path: Path) -> None:
    async with shelled(tmp_path) as face:
        await write(face, "!echo begun; sleep 60")
        await face.press("enter")
        await face.until(lambda: any(row.strip() == "begun" for row in face.rows))
        await face.press("escape")
        await face.shows("stopped")


async def test_keys_are_blanked_in_what_a_command_writes(tmp_path: Path) -> None:
    (tmp_path / "env").write_text(f"KEY={SECRET}\n")
    async with shelled(tmp_path) as face:
        await write(face, "!!cat env")
        await face.press("enter")
        await face.shows("KEY=[key hidden]", "exit 0")
        assert SECRET not in face.text


async def test_a_command_that_cannot_be_run_says_why(tmp_path: Path) -> None:
    async with shelled(tmp_path) as face:
        face.it.session.parts = structs.replace(face.it.session.parts, shell=None)
        await write(face, "!ls")
        await face.press("enter")
        await face.shows("not run", "shell commands cannot be run here")


HELD = calls(("bash", {"command": "touch begun; while [ ! -e over ]; do sleep 0.02; done"}))
"""A turn that goes on until there is a file `over`."""


async def test_up_takes_back_what_was_sent_while_a_turn_runs(tmp_path: Path) -> None:
    async with interface(tmp_path, turns=[HELD, says("first"), says("second")], mode="yolo") as face:
        face.say("go")
        await face.until((tmp_path / "begun").exists)
        for text in ("one", "two"):
            await write(face, text)
            await face.press("enter")
        await face.until(lambda: face.it.session.waiting == ("one", "two"))
        await face.press("up")
        await face.until(lambda: face.app.editor.text == "one\n\ntwo")
        assert face.it.session.waiting == ()
        await face.press("enter")
        await face.until(lambda: face.it.session.waiting == ("one\n\ntwo",))
        (tmp_path / "over").touch()
        await face.shows("second")
        assert told(face) == ["go", "one\n\ntwo"]


async def test_esc_closes_the_list_then_cancels_the_turn_then_clears_the_input(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("zoom"), turns=[HELD], mode="yolo") as face:
        face.say("go")
        await face.until((tmp_path / "begun").exists)
        await write(face, "/zo")
        await face.shows("▸ /zoom")
        await face.press("escape")
        await face.shows_no("▸ /zoom")
        assert face.it.session.busy
        await face.press("escape")
        await face.until(lambda: not face.it.session.busy)
        assert face.app.editor.text == "/zo"
        await face.press("escape")
        await face.until(lambda: face.app.editor.text == "")
        await face.press("up")
        assert face.app.editor.text == "/zo"


async def test_ctrl_c_clears_the_input_and_it_is_in_the_history(tmp_path: Path) -> None:
    async with interface(tmp_path) as face:
        await write(face, "half a thought")
        await face.press("ctrl+c")
        assert face.app.editor.text == ""
        await face.press("up")
        assert face.app.editor.text == "half a thought"


async def test_ctrl_d_deletes_and_leaves_only_an_empty_input(tmp_path: Path) -> None:
    async with interface(tmp_path) as face:
        await face.press("a", "b", "home", "ctrl+d")
        assert face.app.editor.text == "b"
        await face.press("ctrl+d", "ctrl+d")
        await face.until(lambda: face.app._exit)


async def test_an_extensions_command_is_offered_with_its_owner(tmp_path: Path) -> None:
    async with interface(tmp_path, shower("lint")) as face:
        await write(face, "/li")
        await face.shows("extensions", "▸ /lint", "lint  shows things")


async def test_an_at_offers_the_files_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "readme first.md").touch()
    (tmp_path / ".ignore").write_text("hidden*\n")
    (tmp_path / "hidden_readme.md").touch()
    async with interface(tmp_path) as face:
        await write(face, "@readme")
        await face.shows("▸ readme first.md")
        assert "hidden_readme" not in face.text
        await face.press("tab")
        assert face.app.editor.text == '@"readme first.md" '


async def test_what_is_typed_before_there_is_a_session_is_sent_when_there_is(tmp_path: Path) -> None:
    app = HiltApp(typed="go")
    async with app.run_test(size=(80, 24)) as pilot, extended(tmp_path, turns=[says("there"), says("again")]) as it:
        await pilot.press("enter", *"more", "enter")
        assert app.editor.text == ""
        presenter = Presenter(
            it.session,
            app.scene,
            ask=app.ask,
            withdraw=app.withdraw,
            leave=app.leave,
            clock=asyncio.get_running_loop().time,
        )
        async with Client(it.session, it.questions, app.complain) as client:
            app.attach(client, presenter)
            face = Face(app, pilot, client, it)
            async with it.session.bus.faced(presenter):
                await face.shows("there", "again")
                assert told(face) == ["go", "more"]
