"""What slash commands open in the terminal: each dialog, what can be done in it, and what comes of it."""

import pytest

from hilt.model.content import text_of
from hilt.model.conversation import ToolMessage
from hilt.sessions.log import SessionLog
from hilt.sessions.records import new_meta
from hilt.sessions.store import SessionStore
from support.agent import calls, says
from support.extending import Made
from support.hilt_process import Hilt
from support.program import Program, program
from support.session_files import answered, said
from support.showing import shower

COMMANDS = """help login logout model sessions session jump btw skills compact jail unjail yolo reload-ext ext clear
exit theme undo cost permissions step rename study"""


def kept(hilt: Hilt, *texts: str) -> str:
    """A session of this directory, from before; its id."""
    store, meta = SessionStore(hilt.home / "sessions"), new_meta(str(hilt.project), "script", "script")
    with SessionLog.create(store.new_path(hilt.project, meta.id), meta, durability="os") as log:
        for text in texts:
            log.append(said(text))
            log.append(answered(f"answer to {text}"))
    return meta.id


def spoken(window: Program) -> list[str]:
    """What the model would be sent."""
    messages = window.session.transcript.messages
    return [text_of(message.content) for message in messages if not isinstance(message, ToolMessage)]


def ext(hilt: Hilt, *made: Made) -> list[str]:
    return [word for one in made for word in ("--ext", str(one.write(hilt.folder)))]


# The model


async def test_a_model_is_picked_by_typing_part_of_its_name(hilt: Hilt) -> None:
    hilt.environment["OPENAI_API_KEY"] = "sk-of-the-environment"
    async with program(hilt, *hilt.script(says("hello"))) as window:
        window.say("/model")
        await window.shows("model", "type to filter", "need a key: /login", "●  script")
        await window.type("gpt5mini")
        await window.shows("gpt-5-mini")
        await window.press("enter")
        await window.until(lambda: window.session.active.info.id == "gpt-5-mini", "it is switched to")
        await window.shows("gpt-5-mini  runs freely")


async def test_a_model_without_a_key_is_refused_with_the_way_to_give_one(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(says("hello"))) as window:
        window.say("/model")
        await window.shows("type to filter")
        await window.type("gpt5mini", "enter")
        await window.shows("there is no API key for openai", "login openai")
        assert window.session.active.info.id == "script"


async def test_a_dialog_is_closed_by_esc_and_nothing_has_changed(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(says("hello"))) as window:
        for command in ("/model", "/sessions", "/session", "/session tree", "/skills", "/help", "/theme", "/ext"):
            window.say(command)
            await window.until(lambda: window.dialog, f"{command} opens something")
            await window.press("escape")
            await window.until(lambda: window.dialog is None, f"{command} is closed")
        assert window.session.active.info.id == "script"
        assert spoken(window) == []


# Sessions


async def test_another_session_of_this_directory_is_gone_on_with(hilt: Hilt) -> None:
    kept(hilt, "about the weather")
    other = kept(hilt, "about the harvest")
    async with program(hilt, *hilt.script(says("good day"))) as window:
        window.say("hello")
        await window.shows("good day")
        window.say("/sessions")
        await window.shows("about the weather", "about the harvest", "●  hello", "2 messages")
        await window.type("harvest")
        await window.shows_no("about the weather")
        await window.press("enter")
        await window.shows("answer to about the harvest")
        await window.shows_no("good day")
        assert window.session.parts.log.meta.id == other


async def test_a_session_is_renamed_in_the_list_whether_it_is_this_one_or_another(hilt: Hilt) -> None:
    other = kept(hilt, "about the weather")
    async with program(hilt, *hilt.script(says("good day"))) as window:
        window.say("hello")
        await window.shows("good day")
        window.say("/sessions")
        await window.shows("rename", "●  hello")
        await window.press("ctrl+r")
        await window.shows("title of this session", "> hello")
        await window.press("ctrl+u")
        await window.type("hello again", "enter")
        await window.until(lambda: window.session.parts.log.title == "hello again", "it has the title")
        window.say("/sessions")
        await window.type("weather", "ctrl+r")
        await window.shows("> about the weather")
        await window.press("ctrl+u")
        await window.type("rain", "enter")
        await window.shows("it is now called: rain")
        store = SessionStore(hilt.home / "sessions")
        titles = {one.id: one.title for one in store.list(hilt.project)}
        assert titles == {other: "rain", window.session.parts.log.meta.id: "hello again"}


async def test_a_session_that_cannot_be_renamed_says_why(hilt: Hilt) -> None:
    other = kept(hilt, "about the weather")
    path = SessionStore(hilt.home / "sessions").find(other)
    async with program(hilt, *hilt.script(says("good day"))) as window:
        with SessionLog.open(path):  # another program has it open
            window.say("/sessions")
            await window.shows("about the weather")
            await window.type("weather", "ctrl+r")
            await window.shows("title of this session")
            await window.type("x", "enter")
            await window.shows("✗")
    assert SessionStore(hilt.home / "sessions").list(hilt.project)[0].title == "about the weather"


async def test_a_session_is_exported_and_imported_by_its_operations(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(says("good day"))) as window:
        window.say("hello")
        await window.shows("good day")
        window.say("/session")
        await window.shows("export", "import", "fork", "tree", "rename", "open")
        await window.type("export", "enter")
        await window.shows("export: which file?")
        await window.type("given.jsonl", "enter")
        await window.shows("exported to", "given.jsonl")
        assert (hilt.project / "given.jsonl").exists()
        window.say("/session")
        await window.type("import", "enter")
        await window.shows("import: which file?")
        await window.type("given.jsonl", "enter")
        await window.shows("imported as")
        assert len(hilt.sessions()) == 2


async def test_a_command_that_opens_a_dialog_does_so_when_it_is_typed_and_sent(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(says("good day"))) as window:
        await window.press(*"/sess", "enter")
        await window.shows("this session", "export", "rename")


async def test_an_export_without_a_name_finds_one_itself(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(says("good day"))) as window:
        window.say("hello")
        await window.shows("good day")
        window.say("/session")
        await window.type("export", "enter")
        await window.shows("export: which file?")
        await window.press("enter")
        await window.shows("exported to")
        assert len(list(hilt.project.iterdir())) == 1


async def test_a_fork_is_gone_on_with_and_the_session_stays_as_it_is(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(says("good day"), says("once more"))) as window:
        window.say("hello")
        await window.shows("good day")
        before = window.session.parts.log.meta.id
        window.say("/session")
        await window.type("fork", "enter")
        await window.shows("this is a copy now", "good day")
        assert window.session.parts.log.meta.id != before
        window.say("again")
        await window.shows("once more")
    store = SessionStore(hilt.home / "sessions")
    assert {one.id == before: one.messages for one in store.list(hilt.project)} == {True: 2, False: 4}


async def test_a_fork_that_is_typed_is_gone_on_with_too(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(says("good day"))) as window:
        window.say("hello")
        await window.shows("good day")
        before = window.session.parts.log.meta.id
        window.say("/session fork")
        await window.shows("this is a copy now")
        assert window.session.parts.log.meta.id != before


async def test_a_command_of_the_users_looks_the_same_when_its_session_is_shown_again(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(says("good day"))) as window:
        window.say("!echo $((6 * 7)); exit 3")
        shown = await window.shows("! echo $((6 * 7)); exit 3 · exit 3", "42")
        window.say("hello")
        await window.shows("good day")
        window.say("/session")
        await window.type("fork", "enter")
        assert await window.shows("this is a copy now", "! echo $((6 * 7)); exit 3 · exit 3\n   42\n")
        assert "I ran a shell command" not in shown + window.text


async def test_a_session_gets_a_title_by_its_operations(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(says("good day"))) as window:
        window.say("hello")
        await window.shows("good day")
        window.say("/session")
        await window.type("rename", "enter")
        await window.shows("title of this session")
        await window.press("ctrl+u")
        await window.type("a day", "enter")
        await window.until(lambda: window.session.parts.log.title == "a day", "it has the title")


async def test_the_tree_and_the_other_sessions_are_reached_by_the_operations_too(hilt: Hilt) -> None:
    kept(hilt, "about the weather")
    async with program(hilt, *hilt.script()) as window:
        for word, title in (("tree", "go on from"), ("open", "sessions of this directory")):
            window.say("/session")
            await window.shows("this session")
            await window.type(word, "enter")
            await window.shows(title)
            if word == "tree":
                await window.press("escape")
                await window.until(lambda: window.dialog is None, "it is closed")
        await window.type("weather", "enter")
        await window.shows("answer to about the weather")


async def test_the_tree_goes_back_to_any_message_and_on_from_there(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(says("one"), says("two"), says("three"))) as window:
        for word, answer in (("first", "one"), ("second", "two")):
            window.say(word)
            await window.shows(answer)
        window.say("/session tree")
        await window.shows("go on from", "first", "● ", "● is where you are")
        await window.press("home")
        await window.press("down", "enter")
        await window.shows_no("second")
        assert spoken(window) == ["first", "one"]
        window.say("third")
        await window.shows("three")
        assert spoken(window) == ["first", "one", "third", "three"]
        window.say("/session tree")
        await window.shows("second", "third")


async def test_the_tree_says_where_one_is_also_after_something_that_is_not_in_it(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(calls(("bash", {"command": "echo begun; sleep 60"})))) as window:
        window.say("first")
        await window.shows("begun")
        await window.press("escape")
        await window.shows("cancelled")
        window.say("/session tree")
        await window.shows("go on from", "› ●  ")


# Reading


async def test_making_it_short_leaves_nothing_running_and_the_status_says_how_full_it_is(hilt: Hilt) -> None:
    numbers = ("one", "two", "three", "four", "five", "six")
    turns = [says("turnips " * 3000 + number) for number in numbers]
    async with program(hilt, *hilt.script(*turns, says("we spoke of turnips"))) as window:
        for number in numbers:
            window.say(f"say {number}")
            await window.shows(f"turnips {number}")
            await window.shows_no("esc to cancel")
        before = window.app.scene.facts.context
        window.say("/compact")
        await window.shows("the conversation so far, in short")
        await window.shows_no("esc to cancel")
        assert window.app.scene.facts.context < before


async def test_jump_goes_to_the_only_message_that_matches_and_asks_among_several(hilt: Hilt) -> None:
    asked = kept(hilt, *(f"question {number}." for number in range(1, 31)))
    async with program(hilt, *hilt.script(), "--session", asked) as window:
        await window.shows("question 30.")
        window.say("/jump question 7.")
        await window.shows("question 7.")
        await window.shows_no("question 30.")
        window.say("/jump question 2")
        await window.shows("jump to", "question 29.")
        await window.type("21", "enter")
        await window.shows("question 21.")
        await window.until(lambda: window.dialog is None, "the list is closed")


async def test_a_question_beside_the_work_is_answered_and_leaves_nothing(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(says("good day"), says("an **aside**"), says("and another"))) as window:
        window.say("hello")
        await window.shows("good day")
        window.say("/btw what is this?")
        await window.shows("by the way", "› what is this?", "an aside")
        await window.type("why so?", "enter")
        await window.shows("› why so?", "and another")
        await window.press("escape")
        await window.until(lambda: window.dialog is None, "it is closed")
        await window.shows_no("an aside")
        assert spoken(window) == ["hello", "good day"]


async def test_esc_stops_the_answer_beside_the_work_and_then_closes_it(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(says("too late", delay_ms=20_000), says("in time"))) as window:
        window.say("/btw")
        await window.shows("nothing of it is kept", "ask about the conversation so far")
        await window.type("why?", "enter")
        await window.shows("› why?", "…")
        await window.press("escape")
        await window.shows("stopped")
        await window.type("and now?", "enter")
        await window.shows("in time")
        await window.press("escape")
        await window.until(lambda: window.dialog is None, "it is closed")
        assert not window.session.busy


async def test_what_goes_wrong_beside_the_work_is_said_there(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script({"error": "the model is ill"})) as window:
        window.say("/btw why?")
        await window.shows("by the way", "the model is ill")


async def test_leaving_while_an_answer_beside_the_work_is_written_ends_it(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(says("too late", delay_ms=20_000))) as window:
        window.say("/btw why?")
        await window.shows("› why?")
        window.app.leave()
        assert await window.ended() == 0


async def test_skills_are_listed_by_where_they_are_from_and_can_be_read(hilt: Hilt) -> None:
    skill = hilt.project / ".hilt" / "skills" / "sowing" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: sowing\ndescription: how to sow\n---\n# When to sow\n\nIn **spring**.\n")
    async with program(hilt, *hilt.script()) as window:
        window.say("/skills")
        await window.shows("project", "sowing", "how to sow")
        await window.press("enter")
        await window.shows("When to sow", "In spring.")
        await window.press("escape")
        await window.shows("skills", "how to sow")


async def test_help_has_the_keys_and_the_commands_of_hilt_and_of_extensions(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(), *ext(hilt, shower("garden", "ctrl+g")), size=(100, 200)) as window:
        await window.until(lambda: "garden" in window.session.parts.registry.snapshot().commands, "it is there")
        window.say("/help")
        shown = await window.shows("Shift-Tab", "Ctrl-C twice", "a key (garden)", "command of an extension")
        own, _, others = shown.partition("command of an extension")
        rows = ["".join(row.split()) for row in shown.split("\n")]
        assert "ctrl+g│akey(garden)" in rows
        assert "/garden│showsthings(garden)" in rows and "/garden" in others
        for name in COMMANDS.split():
            assert f"/{name} " in own, name


async def test_an_unknown_command_is_not_said_to_the_model(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script(says("hello"))) as window:
        window.say("/nonsense")
        await window.shows("/nonsense", "✗")
        assert spoken(window) == []


async def test_the_commands_of_the_terminal_are_nobody_elses_to_type(hilt: Hilt) -> None:
    async with program(hilt, *hilt.script()) as window:
        owned = window.session.parts.registry.snapshot().commands
        for name in ("login", "logout", "btw", "jump", "theme", "exit"):
            assert owned[name].owner == "hilt" and owned[name].command.personal


async def test_exit_leaves_and_says_how_to_go_on(hilt: Hilt, capsys: pytest.CaptureFixture[str]) -> None:
    async with program(hilt, *hilt.script(says("good day"))) as window:
        window.say("hello")
        await window.shows("good day")
        session = window.session.parts.log.meta.id
        window.say("/exit")
        assert await window.ended() == 0
    assert capsys.readouterr().out == f"to go on with this session: hilt --session {session}\n"


async def test_leaving_with_nothing_said_says_nothing(hilt: Hilt, capsys: pytest.CaptureFixture[str]) -> None:
    async with program(hilt, *hilt.script()) as window:
        window.say("/exit")
        assert await window.ended() == 0
    assert capsys.readouterr().out == ""
