"""Going on elsewhere while the agent runs, and what others may do with sessions."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hilt.agent.bookkeeping import Bookkeeping
from hilt.agent.undoing import Undoing
from hilt.errors import HiltError, SessionError, UsageError
from hilt.extensions.services.ports import Sessions, Undo
from hilt.model.actions import Branch, OpenSession, SetLabel
from hilt.model.content import text_of
from hilt.model.contributions import Contribution, Invocation, ToolOutput
from hilt.model.conversation import AssistantMessage, Message, ToolMessage, UserMessage, user_text
from hilt.model.events import AssistantMessageAdded, Failed, Noticed, QueueChanged, StateChanged, UserMessageAdded
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.records import EntryRecord, NoteRecord, new_meta
from hilt.sessions.store import SessionStore
from hilt.sessions.undo import FileHistory
from support.agent import DEADLINE, Harness, calls, echo, running, says, script, tool
from support.session_files import answered, resulted, said, texts


class Home:
    """Sessions on disk, and a journal in the first of them."""

    def __init__(self, folder: Path) -> None:
        self.store = SessionStore(folder / "sessions")
        self.journal = Journal(self.new(said("here")), self.store)

    def new(self, *records: Any, cwd: str = "/project", model: str = "script") -> SessionLog:
        meta = new_meta(cwd, "script", model)
        log = SessionLog.create(self.store.new_path(cwd, meta.id), meta)
        for record in records:
            log.append(record)
        return log

    def path(self, *records: Any, **facts: str) -> Path:
        """Of another session, which nobody has open."""
        with self.new(*records, **facts) as log:
            assert log.path
            return log.path


@asynccontextmanager
async def at_home(
    folder: Path, *offered: Contribution, turns: list[dict[str, Any]] | None = None
) -> AsyncIterator[tuple[Home, Harness, Sessions]]:
    home = Home(folder)
    try:
        async with running(script(folder, *(turns or [says("ok")])), *offered, journal=home.journal) as harness:
            async with asyncio.timeout(DEADLINE):
                yield home, harness, Bookkeeping(harness.session)
    finally:
        home.journal.close()


def spoken(messages: tuple[Message, ...] | list[Message]) -> list[str]:
    return [
        "|".join(text_of(result.content) for result in message.results)
        if isinstance(message, ToolMessage)
        else text_of(message.content)
        for message in messages
    ]


def kept(path: Path) -> list[str]:
    with SessionLog.open(path, writable=False) as log:
        return texts(log)


def calling(act: Callable[[], Any]) -> Contribution:
    """A tool that does this, in the middle of a turn."""

    async def run(_: Invocation) -> ToolOutput:
        await act()
        return ToolOutput.of("done")

    return tool("act", run)


# Another session


async def test_after_another_session_is_loaded_everything_goes_into_its_file(tmp_path: Path) -> None:  # weakness 15
    async with at_home(tmp_path, tool("echo", echo), turns=[says("there too")]) as (home, harness, sessions):
        here = home.journal.log.path
        there = home.path(said("there"), answered("yes"))
        await sessions.load(str(there))
        assert spoken(harness.session.transcript.messages) == ["there", "yes"]
        await harness.say("go on")
        await sessions.set_title("elsewhere")
        sessions.append_entry("ext:mark", {"page": 3}, "guide")
        sessions.set_label(sessions.path()[0].id, "start")
        await harness.session.call_tool("echo", {}, "guide")
        assert sessions.title() == "elsewhere"
        assert (await sessions.tree())[0].label == "start"
        log = home.journal.log
        records = [log.read(entry) for entry in log.entries()]
        assert EntryRecord("ext:mark", {"page": 3}, "guide") in records
        assert [record.kind for record in records if isinstance(record, NoteRecord)] == ["extension_call"]
        assert harness.of(StateChanged)[-1].session == log.meta.id
        assert harness.session.parts.log is log
    assert here and kept(here) == ["here"]
    assert kept(there) == ["there", "yes", "go on", "there too"]


async def test_the_session_that_was_left_is_closed_and_the_new_one_is_held(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (home, _, sessions):
        here, there = home.journal.log.path, home.path(said("there"))
        await sessions.load(str(there))
        assert here
        SessionLog.open(here).close()
        with pytest.raises(SessionError, match="open in another"):
            SessionLog.open(there)


async def test_a_session_that_is_open_elsewhere_leaves_everything_as_it_is(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (home, harness, sessions):
        with home.new(said("there")) as other, pytest.raises(SessionError, match="open in another"):
            await sessions.load(str(other.path))
        await harness.say("still")
        assert spoken(harness.session.transcript.messages) == ["here", "still", "ok"]
        assert not harness.of(Failed)


@pytest.mark.parametrize("content", [b"", b"not a session\n", b"\x00" * 5000])
async def test_a_file_that_is_no_session_leaves_everything_as_it_is(tmp_path: Path, content: bytes) -> None:
    async with at_home(tmp_path) as (home, harness, sessions):
        wrong = home.path(said("there"))
        wrong.write_bytes(content)
        with pytest.raises(SessionError):
            await sessions.load(str(wrong))
        assert wrong.read_bytes() == content
        assert spoken(harness.session.transcript.messages) == ["here"]


async def test_only_hilts_own_sessions_are_loaded(tmp_path: Path) -> None:  # A14
    async with at_home(tmp_path) as (home, harness, sessions):
        outside = tmp_path / "outside.jsonl"
        outside.write_bytes(home.path(said("there")).read_bytes())
        link = home.path(said("x"))
        link.unlink()
        link.symlink_to(outside)
        for path in (outside, link):
            with pytest.raises(SessionError, match="not among hilt's own"):
                await sessions.load(str(path))
        assert spoken(harness.session.transcript.messages) == ["here"]


async def test_a_session_asked_for_by_a_tool_is_loaded_when_the_turn_has_ended(tmp_path: Path) -> None:
    turns = [calls(("act", {})), says("all of it"), says("over there")]
    async with at_home(tmp_path, calling(lambda: sessions.load(str(there))), turns=turns) as (
        home,
        harness,
        sessions,
    ):
        here, there = home.journal.log.path, home.path(said("there"))
        outcome = await harness.say("go")
        assert outcome.text == "all of it"
        await harness.session.idle()
        assert spoken(harness.session.transcript.messages) == ["there"]
        assert any(event.waiting == (f"/session open {there.stem}",) for event in harness.of(QueueChanged))
        await harness.say("next")
    assert here and kept(here) == ["here", "go", "", "done", "all of it"]
    assert kept(there) == ["there", "next", "over there"]


async def test_what_was_asked_for_before_runs_before_and_what_later_runs_in_the_other_session(tmp_path: Path) -> None:
    turns = [calls(("act", {})), says("first"), says("second"), says("third")]

    async def act() -> None:
        await harness.session.prompt(user_text("before"))
        await sessions.load(str(there))
        await harness.session.prompt(user_text("after"))

    async with at_home(tmp_path, calling(act), turns=turns) as (home, harness, sessions):
        here, there = home.journal.log.path, home.path(said("there"))
        await harness.say("go")
        await harness.session.idle()
    assert here and kept(here)[-2:] == ["before", "second"]
    assert kept(there) == ["there", "after", "third"]


async def test_a_failure_that_comes_later_is_told(tmp_path: Path) -> None:
    async with at_home(
        tmp_path, calling(lambda: sessions.load(str(there))), turns=[calls(("act", {})), says("end")]
    ) as (home, harness, sessions):
        with home.new(said("there")) as other:
            there = other.path
            await harness.say("go")
            await harness.session.idle()
        assert "open in another" in harness.of(Failed)[-1].message
        assert spoken(harness.session.transcript.messages)[0] == "here"


async def test_the_model_is_not_switched_silently_and_the_file_knows_who_answers_now(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (home, harness, sessions):
        there = home.path(said("there"), model="another", cwd="/elsewhere")
        await sessions.load(str(there))
        told = [event.message for event in harness.of(Noticed)]
        assert "was with another (script); it goes on with script" in told[0]
        assert "/elsewhere" in told[1]
        assert harness.session.active.info.id == "script"
        assert home.journal.log.model == ("script", "script")
        await sessions.load(str(there))  # it is there already
        assert len(harness.of(Noticed)) == 2


async def test_calls_without_results_are_repaired_and_so_is_an_unfinished_end(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (home, harness, sessions):
        there = home.path(said("there"), answered("", "1", "2"), resulted("2", "two"))
        there.write_bytes(there.read_bytes() + b'{"type":"message","id"')
        await sessions.load(str(there))
        messages = harness.session.transcript.messages
        assert isinstance(last := messages[-1], ToolMessage)
        assert [result.call_id for result in last.results] == ["1", "2"]
        assert any("unfinished" in event.message for event in harness.of(Noticed))
        assert (await harness.say("go on")).text == "ok"


async def test_the_cost_is_that_of_the_session_that_is_gone_on_with(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (home, harness, sessions):
        there = home.path(said("there"), answered("yes"), answered("no"))
        await sessions.load(str(there))
        assert harness.session.transcript.usage.input == 20
        stats = sessions.stats()
        assert (stats.turns, stats.usage.input, stats.usage.output, stats.model) == (2, 20, 10, "script/script")


async def test_a_session_that_could_not_be_saved_is_not_left(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (home, harness, sessions):
        there = home.path(said("there"))
        here = home.journal.log.path
        assert here
        here.unlink()  # somebody deletes it
        await harness.say("more")
        with pytest.raises(SessionError, match="is not left"):
            await sessions.load(str(there))
        assert spoken(harness.session.transcript.messages) == ["here", "more", "ok"]


@pytest.mark.parametrize("strange", ["", "nosuch", "a\0b", "x" * 5000, "/root/x", "..", "/dev/zero", "~"])
async def test_a_name_that_is_no_session_is_refused(tmp_path: Path, strange: str) -> None:
    async with at_home(tmp_path) as (_, harness, sessions):
        with pytest.raises(SessionError) as raised:
            await sessions.load(strange)
        assert len(raised.value.message) < 1000 and raised.value.hint
        assert spoken(harness.session.transcript.messages) == ["here"]


async def test_a_session_in_which_nothing_was_said_leaves_nothing_behind(tmp_path: Path) -> None:
    home = Home(tmp_path)
    there = home.journal.log.path
    home.journal.turn_to(home.new()).close()
    async with running(script(tmp_path, says("ok")), journal=home.journal) as harness:
        await Bookkeeping(harness.session).load(str(there))
        assert spoken(harness.session.transcript.messages) == ["here"]
        assert [row.path for row in await Bookkeeping(harness.session).list()] == [str(there)]
    home.journal.close()


# A fork


async def test_a_fork_is_gone_on_with_and_the_original_stays_as_it_was(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (home, harness, sessions):
        here, parent = home.journal.log.path, home.journal.log.meta.id
        forked = await sessions.fork()
        assert (forked.parent, forked.messages) == (parent, 1)
        assert home.journal.log.meta.parent == parent
        await harness.say("in the copy")
        there = home.journal.log.path
        rows = await sessions.list()
    assert here and there and here != there
    assert kept(here) == ["here"]
    assert kept(there) == ["here", "in the copy", "ok"]
    assert [(row.id, row.parent) for row in rows] == [(home.journal.log.meta.id, parent), (parent, "")]
    assert [Path(row.path) for row in rows] == [there, here]


async def test_a_fork_in_the_middle_of_a_turn_has_the_whole_turn(tmp_path: Path) -> None:
    async with at_home(tmp_path, calling(lambda: sessions.fork()), turns=[calls(("act", {})), says("end")]) as (
        home,
        harness,
        sessions,
    ):
        here = home.journal.log.path
        await harness.say("go")
        await harness.session.idle()
        there = home.journal.log.path
    assert here and there and here != there
    assert kept(there) == kept(here) == ["here", "go", "", "done", "end"]


async def test_a_conversation_that_is_not_kept_is_neither_forked_nor_left(tmp_path: Path) -> None:
    async with running(script(tmp_path, says("ok"))) as harness:
        sessions = Bookkeeping(harness.session)
        for asked in (sessions.fork(), sessions.load("x"), sessions.list()):
            with pytest.raises(SessionError, match="no active session"):
                await asked


# Elsewhere in this session


async def test_a_branch_begins_at_an_entry_and_says_what_was_left(tmp_path: Path) -> None:
    async with at_home(tmp_path, turns=[says("wrong"), says("right")]) as (_, harness, sessions):
        await harness.say("try")
        root = sessions.path()[0].id
        await sessions.branch(root, "a dead end", "guide")
        assert spoken(harness.session.transcript.messages) == ["here"]
        assert len(harness.of(StateChanged)) == 1
        await harness.say("try again")
        assert spoken(harness.provider.requests[-1].messages) == ["here", "try again"]
        tree = await sessions.tree()
        assert [(node.preview, node.active) for node in tree] == [
            ("here", True),
            ("try again", True),
            ("right", True),
            ("try", False),
            ("wrong", False),
        ]


async def test_a_branch_in_the_middle_of_calls_is_sent_with_results_for_all(tmp_path: Path) -> None:
    turns = [calls(("echo", {})), says("one"), says("two")]
    async with at_home(tmp_path, tool("echo", echo), turns=turns) as (_, harness, sessions):
        await harness.say("go")
        asking = next(node.id for node in sessions.path() if node.type == "assistant")
        await sessions.branch(asking, "", "guide")
        assert (await harness.say("again")).text == "two"


async def test_a_reset_begins_an_empty_conversation_and_keeps_the_old_one(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (_, harness, sessions):
        await sessions.reset("guide")
        assert harness.session.transcript.messages == ()
        assert sessions.path() == ()
        await harness.say("anew")
        assert [node.preview for node in await sessions.tree()] == ["here", "anew", "ok"]


async def test_a_branch_and_a_reset_asked_for_by_a_tool_wait_for_the_turn(tmp_path: Path) -> None:
    turns = [calls(("act", {})), says("end")]

    async def act() -> None:
        await sessions.branch(root, "", "guide")
        await sessions.reset("guide")

    async with at_home(tmp_path, calling(act), turns=turns) as (_, harness, sessions):
        root = sessions.path()[0].id
        await harness.say("go")
        await harness.session.idle()
        assert sessions.path() == ()
        assert [node.preview for node in await sessions.tree()] == ["here", "go", "", "", "end"]


async def test_an_entry_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (_, harness, sessions):
        with pytest.raises(SessionError, match="entry 'nosuch' not found"):
            await sessions.branch("nosuch", "", "guide")
        with pytest.raises(SessionError, match="entry 'nosuch' not found"):
            sessions.set_label("nosuch", "x")
        assert spoken(harness.session.transcript.messages) == ["here"]


async def test_what_people_ask_for_by_command_is_the_same(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (home, harness, sessions):
        await harness.say("more")
        root = sessions.path()[0].id
        await harness.session.apply((SetLabel(root, "start"), Branch(root, "enough")), "hilt")
        assert (await sessions.tree())[0].label == "start"
        assert spoken(harness.session.transcript.messages) == ["here"]
        there = home.path(said("there"))
        await harness.session.apply((OpenSession(there.stem),), "hilt")
        assert spoken(harness.session.transcript.messages) == ["there"]


# What is in it


async def test_a_message_is_in_the_conversation_at_once_and_for_good(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (home, harness, sessions):
        here = home.journal.log.path
        await sessions.append_message("user", "by the way", "guide")
        await sessions.append_message("assistant", "noted", "guide")
        first, second = harness.session.transcript.messages[1:]
        assert isinstance(first, UserMessage) and first.extension == "guide"
        assert isinstance(second, AssistantMessage) and (second.provider, second.model) == ("script", "script")
        assert [event.extension for event in harness.of(UserMessageAdded)] == ["guide"]
        assert len(harness.of(AssistantMessageAdded)) == 1
        assert here and kept(here) == ["here", "by the way", "noted"]
        await harness.say("go on")
        assert spoken(harness.provider.requests[-1].messages) == ["here", "by the way", "noted", "go on"]


async def test_a_message_in_the_middle_of_calls_comes_after_their_results_live_and_on_disk(tmp_path: Path) -> None:
    async with at_home(
        tmp_path,
        calling(lambda: sessions.append_message("user", "by the way", "guide")),
        turns=[calls(("act", {}), ("act", {})), says("end")],
    ) as (home, harness, sessions):
        here = home.journal.log.path
        assert (await harness.say("go")).text == "end"
    wanted = ["here", "go", "", "done|done", "by the way", "by the way", "end"]
    assert spoken(harness.session.transcript.messages) == wanted
    assert here and kept(here) == wanted


async def test_an_entry_of_an_extension_is_on_the_path_and_not_sent(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (_, harness, sessions):
        sessions.append_entry("ext:mark", {"page": 3}, "guide")
        await harness.say("go on")
        assert spoken(harness.provider.requests[-1].messages) == ["here", "go on"]
        assert [node.type for node in sessions.path()] == ["user", "ext:mark", "user", "assistant"]


async def test_what_says_nothing_is_refused(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (_, harness, sessions):
        with pytest.raises(UsageError):
            await sessions.append_message("user", " \n", "guide")
        with pytest.raises(UsageError):
            sessions.append_entry("", {}, "guide")
        assert spoken(harness.session.transcript.messages) == ["here"]


async def test_the_title_is_the_one_somebody_gave(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (home, _, sessions):
        assert (sessions.title(), home.journal.log.title) == ("", "here")
        await sessions.set_title("tea time")
        assert sessions.title() == "tea time"


async def test_sessions_are_listed_newest_first_with_all_there_is_to_know(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (home, _, sessions):
        other = home.path(said("there"), cwd="/elsewhere")
        rows = await sessions.list()
        assert [row.title for row in rows] == ["there", "here"]
        with SessionLog.open(other, writable=False) as log:
            assert (rows[0].id, rows[0].cwd, rows[0].created) == (log.meta.id, "/elsewhere", log.meta.created)


# Files


async def test_a_file_is_put_back_for_whoever_asks(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (home, _, __):
        history = FileHistory(home.journal)
        undo: Undo = Undoing(history, home.journal)
        path = tmp_path / "file"
        path.write_text("before")
        history.remember("1", path)
        path.write_text("after")
        assert undo.snapshots() == {str(path): 6}
        assert await undo.restore(str(path))
        assert path.read_text() == "before"
        assert undo.snapshots() == {}
        assert not await undo.restore(str(path))
        for strange in ("/nowhere", "", "a\0b", "x" * 5000):
            assert not await undo.restore(strange)


async def test_a_file_that_cannot_be_put_back_can_be_tried_again(tmp_path: Path) -> None:
    async with at_home(tmp_path) as (home, _, __):
        history = FileHistory(home.journal)
        undo = Undoing(history, home.journal)
        path = tmp_path / "file"
        path.write_text("before")
        history.remember("1", path)
        path.unlink()
        path.mkdir()
        with pytest.raises(HiltError, match="cannot be put back"):
            await undo.restore(str(path))
        path.rmdir()
        assert await undo.restore(str(path))
        assert path.read_text() == "before"
