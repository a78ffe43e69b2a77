"""What extensions ask the user: who asks, what is answered, who comes first, and what becomes of a question whose
asker is gone."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hilt.frontends.terminal import MARK
from hilt.frontends.tui.dialogs.dialog import DEAF
from hilt.frontends.tui.dialogs.picker import Item, Picker
from hilt.frontends.tui.dialogs.question import Question
from hilt.frontends.tui.look import DARK, Look
from hilt.model.events import PermissionDecided, PickerAsked, QuestionAsked, RequestWithdrawn
from hilt.model.extensions import Dialect
from support.agent import calls, says
from support.extending import Made, chaos
from support.interface import Face, interface

BANANAS = {"id": "b", "label": "Bananas", "desc": "yellow"}
FRUIT = [{"id": "a", "label": "Apples"}, BANANAS, {"id": "c", "label": "Cherries"}]
PICK = {"method": "host/showPicker", "params": {"title": "Which fruit?", "items": FRUIT}}
ASK = {"method": "host/askUser", "params": {"prompt": "Really?\nIt is late.", "choices": ["Yes", "No", "Later"]}}


def asker(name: str, *requests: dict[str, Any], dialect: Dialect = "frames") -> Made:
    """Asks as soon as it is ready, and keeps what it hears in a file of its name."""
    asked = [f"host_request:{json.dumps(request)}" for request in requests]
    return chaos(name, f"record:../../{name}.heard", "hello", "ready", *asked, dialect=dialect)


def mortal(dialect: Dialect) -> Made:
    """Asks when it is first started, and ends when its tool is called."""
    asking = {"once": "../../asked", "do": [f"host_request:{json.dumps(ASK)}"]}
    ending = {"on": "tool_call", "do": ["exit:3"]}
    return chaos("nosy", "hello", "register_tool:die", "ready", asking, ending, dialect=dialect)


def results(folder: Path, name: str) -> list[Any]:
    """Of what it asked, as far as it has heard them."""
    file = folder / f"{name}.heard"
    rows = [json.loads(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []
    lines = [json.loads(row["line"]) for row in rows if "line" in row]
    return [line["result"] for line in lines if "result" in line and "id" in line]


async def heard(face: Face, name: str, number: int = 1) -> list[Any]:
    await face.until(lambda: len(results(face.it.folder, name)) >= number, f"{name} hears {number} results")
    return results(face.it.folder, name)


async def test_what_was_picked_is_the_answer(tmp_path: Path, dialect: Dialect) -> None:
    async with interface(tmp_path, asker("shop", PICK, dialect=dialect)) as face:
        shown = await face.shows("shop › Which fruit?", "Bananas", "yellow")
        assert MARK not in shown
        await face.answer(*"nana", "enter")
        assert await heard(face, "shop") == [{"selected": "b"}]
        await face.until(lambda: face.dialog is None)


async def test_what_was_chosen_is_the_answer(tmp_path: Path, dialect: Dialect) -> None:
    async with interface(tmp_path, asker("nosy", ASK, dialect=dialect)) as face:
        shown = await face.shows("nosy › asks you", "Really?", "It is late.", "2    No")
        assert MARK not in shown
        await face.answer("down", "down", "enter")
        assert await heard(face, "nosy") == [{"selected": "Later", "cancelled": False}]


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_what_is_dismissed_is_answered_too(tmp_path: Path, dialect: Dialect, key: str) -> None:
    # U4
    async with interface(tmp_path, asker("nosy", PICK, ASK, dialect=dialect)) as face:
        await face.shows("Which fruit?", "1 of 2")
        await face.answer(key)
        await face.shows("Really?")
        await face.answer(key)
        assert await heard(face, "nosy", 2) == [{"selected": "", "cancelled": True}] * 2
        await face.until(lambda: face.dialog is None)
        assert face.app.is_running


async def test_two_extensions_wait_for_each_other_and_each_is_named(tmp_path: Path) -> None:
    # U5
    async with interface(tmp_path, asker("first", ASK), asker("second", PICK, dialect="jsonrpc")) as face:
        await face.until(lambda: len(face.it.of(PickerAsked)) == len(face.it.of(QuestionAsked)) == 1)
        await face.shows("1 of 2")
        asked = [event.extension for event in face.it.events if isinstance(event, PickerAsked | QuestionAsked)]
        await face.shows(f"{asked[0]} ›")
        await face.answer("enter")
        await face.shows(f"{asked[1]} ›")
        await face.shows_no("1 of 2")
        await face.answer("enter")
        assert await heard(face, "first") == [{"selected": "Yes", "cancelled": False}]
        assert await heard(face, "second") == [{"selected": "a"}]


async def test_what_hilt_asks_comes_on_top_of_what_an_extension_asks(tmp_path: Path) -> None:
    turns = [calls(("bash", {"command": "echo x"})), says("done")]
    async with interface(tmp_path, asker("nosy", ASK), turns=turns) as face:
        await face.shows("nosy › asks you")
        await face.answer("down", "up")
        question = face.dialog
        face.say()
        await face.shows(f"{MARK} Allow bash?", "1 of 2")
        assert question and not question.listening
        await face.answer("n")
        await face.shows("nosy › asks you")
        await face.typed("1", DEAF - 0.01)  # meant for what lay above it
        assert face.dialog and results(tmp_path, "nosy") == []
        assert [decided.approved for decided in face.it.of(PermissionDecided)] == [False]
        await face.answer("2")
        assert await heard(face, "nosy") == [{"selected": "No", "cancelled": False}]


async def test_what_hilt_asks_comes_on_top_of_what_the_user_has_open(tmp_path: Path) -> None:
    turns = [calls(("bash", {"command": "echo x"})), says("done")]
    async with interface(tmp_path, turns=turns) as face:
        picked: list[Any] = []
        face.app.push_screen(Picker("Models", [Item("m", "a model")], Look.of(DARK)), picked.append)
        await face.shows("Models")
        face.say()
        await face.shows("Allow bash?")
        await face.answer("n")
        await face.shows("Models")
        await face.press("enter")
        await face.until(lambda: picked == ["m"])


async def test_an_extension_that_dies_takes_its_open_question_along_and_that_is_said(
    tmp_path: Path, dialect: Dialect
) -> None:
    # U3
    async with interface(tmp_path, mortal(dialect), mode="yolo") as face:
        await face.shows("nosy › asks you")
        await face.it.call("die")
        await face.until(lambda: face.dialog is None)
        await face.shows("what it asked you is closed")


async def test_one_that_dies_below_an_approval_is_closed_as_soon_as_it_is_uncovered(tmp_path: Path) -> None:
    turns = [calls(("bash", {"command": "echo x"})), says("done")]
    async with interface(tmp_path, mortal("frames"), turns=turns) as face:
        await face.shows("nosy › asks you")
        face.say()
        await face.shows("Allow bash?")
        face.it.session.parts.permissions.mode = "yolo"
        await face.it.call("die")
        await face.it.seen(RequestWithdrawn)
        await face.shows("Allow bash?")  # as if nothing had happened
        await face.answer("n")
        await face.until(lambda: face.dialog is None)
        await face.shows("done")


async def test_a_question_that_waits_can_be_taken_back_unseen(tmp_path: Path) -> None:
    async with interface(tmp_path, asker("nosy", ASK)) as face:
        await face.shows("nosy › asks you")
        async with asyncio.TaskGroup() as group:
            permitted = group.create_task(face.it.session.call_tool("bash", {"command": "echo x"}, "test"))
            await face.shows("Allow bash?")
            waiting = group.create_task(face.it.session.call_tool("bash", {"command": "echo y"}, "test"))
            await face.shows("1 of 3")
            waiting.cancel()
            await face.shows("1 of 2")
            await face.answer("n")
            await permitted
        await face.shows("nosy › asks you")


async def test_nobody_waits_for_an_answer_when_the_interface_ends(tmp_path: Path) -> None:
    async with interface(tmp_path, asker("nosy", ASK, PICK)) as face:
        await face.shows("1 of 2")
        face.app.exit()
    assert results(tmp_path, "nosy") == [{"selected": "", "cancelled": True}] * 2


async def test_texts_of_an_extension_are_harmless_and_no_markup(tmp_path: Path) -> None:
    # A19, A23
    evil = f"\x1b]0;title\x07[red]{MARK} hilt asks\x1b[2J\u202e"
    pick = {"method": "host/showPicker", "params": {"title": evil, "items": [{"id": "x", "label": evil, "desc": evil}]}}
    ask = {"method": "host/askUser", "params": {"prompt": evil, "choices": [evil]}}
    async with interface(tmp_path, asker("evil", pick, ask)) as face:
        for _ in range(2):
            shown = await face.shows("evil ›", "[red]‹U+25C8› hilt asks‹U+202E›")
            assert MARK not in shown and "\x1b" not in shown and "title" not in shown
            await face.answer("enter")
        assert await heard(face, "evil", 2) == [{"selected": "x"}, {"selected": evil, "cancelled": False}]


@pytest.mark.parametrize("size", [(40, 24), (80, 24), (40, 10)])
async def test_a_long_question_scrolls_and_its_answers_stay_in_sight(tmp_path: Path, size: tuple[int, int]) -> None:
    prompt = "\n".join(f"line {number}" for number in range(200))
    asked = QuestionAsked("q", "nosy", prompt, tuple(f"choice {number}" for number in range(1, 31)))
    async with interface(tmp_path, size=size) as face:
        chosen: list[Any] = []
        face.app.push_screen(Question(asked, Look.of(DARK)), chosen.append)
        await face.shows("nosy", "choice 1", "more lines below: PgDn")
        await face.answer("end")
        await face.shows("line 199", "choice 1")
        await face.press(*["down"] * 19)
        await face.shows("›20    choice 20", "of 30")
        await face.press("enter")
        await face.until(lambda: chosen == ["choice 20"])


async def test_an_extension_that_asks_again_and_again_is_no_longer_listened_to(tmp_path: Path) -> None:
    async with interface(tmp_path, asker("nosy", ASK, PICK, ASK, PICK, ASK, ASK)) as face:
        for question in ("Really?", "Which fruit?", "Really?"):
            await face.shows(question)
            await face.answer("escape")
        await face.until(lambda: face.dialog is None, "the user is free")
        assert len(await heard(face, "nosy", 6)) == 6  # each has its answer
        await face.shows("asks again and again")


async def test_an_extension_may_ask_again_once_the_user_has_said_something(tmp_path: Path) -> None:
    asking = {"on": "command_invoked", "do": [f"host_request:{json.dumps(ASK)}", "answer"]}
    nosy = chaos("nosy", "hello", "register_command:ask", "ready", asking)
    async with interface(tmp_path, nosy) as face:
        for _ in range(3):
            face.say("/ask")
            await face.shows("Really?")
            await face.answer("escape")
            await face.until(lambda: face.dialog is None)
        face.app.editor.put("/ask", replace=True)
        await face.press("escape", "enter")  # as it is typed: the list of commands first, then the line
        await face.shows("Really?")
