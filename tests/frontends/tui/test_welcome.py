"""The first time: a welcome with three ways to begin, and never again."""

import pytest

from support.agent import says
from support.hilt_process import Hilt
from support.program import program


async def test_there_is_a_welcome_until_there_is_something_to_come_back_to(hilt: Hilt) -> None:
    async with program(hilt) as window:
        await window.shows("A coding agent", "It works in ~/project, and asks", "log in", "the demo", "open a project")
        await window.press("escape")
        await window.until(lambda: window.dialog is None, "it is closed")
        window.say("hello")
        await window.until(lambda: len(window.session.transcript.messages) == 2, "it was answered")
    async with program(hilt) as window:
        await window.shows("Ask anything")
        assert window.dialog is None


async def test_the_demo_says_what_can_be_tried_and_answers(hilt: Hilt) -> None:
    (hilt.project / "README.md").write_text("all about turnips\n")
    async with program(hilt) as window:
        await window.shows("try the demo")
        await window.type("demo", "enter")
        await window.shows("it is not a language model", "read README.md")
        window.say("read README.md")
        await window.shows("all about turnips")


async def test_logging_in_is_offered(hilt: Hilt) -> None:
    async with program(hilt) as window:
        await window.shows("log in")
        await window.press("enter")
        await window.shows("log in to", "Anthropic")


async def test_another_directory_is_opened_in_its_place(hilt: Hilt) -> None:
    other = hilt.folder / "elsewhere"
    other.mkdir()
    (other / "AGENTS.md").write_text("be brief")
    async with program(hilt) as window:
        await window.shows("open a project")
        await window.type("project", "enter")
        await window.shows("which directory?", "> ~/")
        await window.type("elsewhere", "enter")
        again = await window.reopened()
        await again.shows("~/elsewhere", "Ask anything")
        assert again.session.parts.cwd == str(other)
        assert again.dialog is None


async def test_a_whole_path_can_be_typed_behind_what_stands_there(hilt: Hilt) -> None:
    other = hilt.folder / "elsewhere"
    other.mkdir()
    async with program(hilt) as window:
        await window.shows("open a project")
        await window.type("project", "enter")
        await window.shows("> ~/")
        await window.type(str(other), "enter")
        again = await window.reopened()
        await again.shows("~/elsewhere", "Ask anything")


async def test_a_directory_that_is_none_is_refused_and_it_goes_on(hilt: Hilt) -> None:
    async with program(hilt) as window:
        await window.shows("open a project")
        await window.type("project", "enter")
        await window.type("nowhere", "enter")
        await window.shows("is not a directory", "→ leave, and start hilt in the directory you mean")
        assert window.dialog is None


@pytest.mark.parametrize("named", ["provider", "words"])
async def test_who_says_what_he_wants_is_not_welcomed(hilt: Hilt, named: str) -> None:
    arguments = {"provider": ["--provider", "demo"], "words": ["hello there"]}
    async with program(hilt, *arguments[named]) as window:
        await window.shows("hello there" if named == "words" else "Ask anything")
        assert window.dialog is None
        assert not window.session.transcript.messages


async def test_resuming_begins_with_the_list_of_sessions(hilt: Hilt) -> None:
    assert hilt.run("-p", "about turnips", *hilt.script(says("they are round"))).code == 0
    async with program(hilt, *hilt.script(), "-r") as window:
        await window.shows("sessions of this directory", "about turnips")
        await window.press("enter")
        await window.shows("they are round")
