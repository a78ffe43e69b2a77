"""Questions of extensions to the user: what can be asked, what counts as an answer, and what becomes of open ones."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hilt.agent.bus import Bus
from hilt.agent.dialogs import Dialogs
from hilt.agent.questions import Questions, Reply
from hilt.errors import HiltError, UsageError
from hilt.frontends.approver import UserApprover
from hilt.model.contributions import Effect, Preview
from hilt.model.events import Event, PermissionAsked, PickerAsked, QuestionAsked, RequestWithdrawn
from hilt.model.extensions import PickerItem
from hilt.model.ports import PermissionRequest

ITEMS = (PickerItem("a", "Apples"), PickerItem("b", "Bananas", "yellow"))
COMMAND = PermissionRequest("c1", "bash", Effect.EXECUTE, {"command": "ls"}, Preview("command", "ls"))


class Desk:
    """Somebody who is asked."""

    def __init__(self) -> None:
        self.bus = Bus()
        self.questions = Questions(self.bus)
        self.dialogs = Dialogs(self.questions)
        self.asked: asyncio.Queue[Any] = asyncio.Queue()
        """The questions and withdrawals as they come."""

    async def __call__(self, event: Event) -> None:
        self.asked.put_nowait(event)

    async def next(self) -> Any:
        async with asyncio.timeout(10):
            return await self.asked.get()


@asynccontextmanager
async def at_the_desk() -> AsyncIterator[tuple[Desk, asyncio.TaskGroup]]:
    desk = Desk()
    with desk.bus.subscribed(desk):
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            yield desk, group


async def test_the_item_that_was_picked_and_the_choice_that_was_made_are_the_answers() -> None:
    async with at_the_desk() as (desk, group):
        picked = group.create_task(desk.dialogs.pick("Fruit?", ITEMS, "me"))
        question = await desk.next()
        assert question == PickerAsked(question.id, "me", "Fruit?", ITEMS)
        chosen = group.create_task(desk.dialogs.ask("Really?", ("Yes", "No"), "me"))
        other = await desk.next()
        assert other == QuestionAsked(other.id, "me", "Really?", ("Yes", "No")) and other.id != question.id
        desk.questions.answer(other.id, Reply(selected="No"))
        desk.questions.answer(question.id, Reply(selected="b"))
        assert (await picked, await chosen) == ("b", "No")
    assert desk.asked.empty()


@pytest.mark.parametrize("no", [Reply(cancelled=True, selected="Yes"), Reply(approved=False)])
async def test_a_dismissed_dialog_answers_that_it_was(no: Reply) -> None:
    async with at_the_desk() as (desk, group):
        asking = group.create_task(desk.dialogs.ask("Really?", ("Yes",), "me"))
        desk.questions.answer((await desk.next()).id, no)
        assert await asking is None


@pytest.mark.parametrize("wrong", [Reply(), Reply(selected="Apples"), Reply(selected=""), Reply(approved=True)])
async def test_what_is_no_answer_is_refused_and_the_dialog_stays_open(wrong: Reply) -> None:
    async with at_the_desk() as (desk, group):
        asking = group.create_task(desk.dialogs.pick("Fruit?", ITEMS, "me"))
        question = await desk.next()
        with pytest.raises(UsageError):
            desk.questions.answer(question.id, wrong)
        desk.questions.answer(question.id, Reply(selected="a"))
        assert await asking == "a"
        with pytest.raises(UsageError, match="no open request"):
            desk.questions.answer(question.id, Reply(selected="b"))


async def test_permission_cannot_be_given_by_selecting_something_nor_a_dialog_answered_by_giving_it() -> None:
    """A dialog that looks like a question of hilt's own gains nothing: their answers are of different kinds."""
    async with at_the_desk() as (desk, group):
        approver = UserApprover(desk.questions)
        allowing = group.create_task(approver.ask(COMMAND))
        real = await desk.next()
        assert isinstance(real, PermissionAsked)
        faked = group.create_task(desk.dialogs.pick("Allow bash?", (PickerItem(real.id, "Yes"),), "me"))
        fake = await desk.next()
        with pytest.raises(UsageError, match="approved"):
            desk.questions.answer(real.id, Reply(selected=real.id))
        with pytest.raises(UsageError, match="selected"):
            desk.questions.answer(fake.id, Reply(approved=True))
        desk.questions.answer(fake.id, Reply(selected=real.id))
        assert await faked == real.id
        desk.questions.answer(real.id, Reply())
        assert not (await allowing).approved


async def test_ids_cannot_be_foretold_from_earlier_ones() -> None:
    async with at_the_desk() as (desk, group):
        ids = []
        for _ in range(50):
            asking = group.create_task(desk.dialogs.ask("?", ("Yes",), "me"))
            ids.append((await desk.next()).id)
            desk.questions.answer(ids[-1], Reply(cancelled=True))
            await asking
    assert len({id_[:11] for id_ in ids}) == 50  # ui- and 32 bits of it


async def test_a_dialog_that_nobody_waits_for_any_more_is_withdrawn() -> None:
    async with at_the_desk() as (desk, group):
        asking = group.create_task(desk.dialogs.pick("Fruit?", ITEMS, "me"))
        question = await desk.next()
        refused: list[str] = []

        async def too_late(event: Event) -> None:
            if isinstance(event, RequestWithdrawn):
                with pytest.raises(UsageError, match="no open request"):
                    desk.questions.answer(event.id, Reply(selected="a"))
                refused.append(event.id)

        with desk.bus.subscribed(too_late):
            asking.cancel()
            assert await desk.next() == RequestWithdrawn(question.id)
            await asyncio.sleep(0)
        assert refused == [question.id]


async def test_one_that_is_given_up_while_it_is_still_being_shown_is_withdrawn_too() -> None:
    async with at_the_desk() as (desk, group):

        async def slow(event: Event) -> None:
            if isinstance(event, PickerAsked):
                await asyncio.Event().wait()
            elif isinstance(event, RequestWithdrawn):
                with pytest.raises(UsageError, match="no open request"):
                    desk.questions.answer(event.id, Reply(selected="a"))

        with desk.bus.subscribed(slow):
            asking = group.create_task(desk.dialogs.pick("Fruit?", ITEMS, "me"))
            question = await desk.next()
            asking.cancel()
            assert await desk.next() == RequestWithdrawn(question.id)
            with pytest.raises(asyncio.CancelledError):
                await asking


async def test_many_are_open_at_once_and_one_extension_has_no_more_than_its_share() -> None:
    async with at_the_desk() as (desk, group):
        tasks = [group.create_task(desk.dialogs.ask(f"{number}?", ("Yes",), "me")) for number in range(16)]
        ids = [(await desk.next()).id for _ in tasks]
        with pytest.raises(HiltError, match="16 questions of me"):
            await desk.dialogs.ask("17?", ("Yes",), "me")
        other = group.create_task(desk.dialogs.pick("Fruit?", ITEMS, "another"))
        desk.questions.answer((await desk.next()).id, Reply(selected="a"))
        assert await other == "a"
        tasks[3].cancel()
        assert await desk.next() == RequestWithdrawn(ids.pop(3))
        tasks.append(group.create_task(desk.dialogs.ask("17?", ("Yes",), "me")))
        ids.append((await desk.next()).id)
        for id_ in reversed(ids):
            desk.questions.answer(id_, Reply(selected="Yes"))
        del tasks[3]
        assert [await task for task in tasks] == ["Yes"] * 16


async def test_where_nobody_can_be_asked_it_counts_as_dismissed_at_once() -> None:
    async with at_the_desk() as (desk, group):
        nobody = Dialogs(None)
        assert await nobody.pick("Fruit?", ITEMS, "me") is None and await nobody.ask("?", ("Yes",), "me") is None
        asking = group.create_task(desk.dialogs.ask("?", ("Yes",), "me"))
        await desk.next()
        desk.questions.close()
        assert await asking is None
        assert await desk.dialogs.pick("Fruit?", ITEMS, "me") is None
    assert desk.asked.empty()


async def test_where_there_is_nothing_to_choose_from_nobody_is_bothered() -> None:
    async with at_the_desk() as (desk, _):
        assert await desk.dialogs.pick("Fruit?", (), "me") is None
    assert desk.asked.empty()


@pytest.mark.parametrize(
    ("title", "items"),
    [
        ("x" * 1001, ITEMS),
        ("Fruit?", tuple(PickerItem(str(number), "x") for number in range(1001))),
        ("Fruit?", (PickerItem("a", "x" * 1001),)),
        ("Fruit?", (PickerItem("x" * 1001, "a"),)),
        ("Fruit?", (PickerItem("a", "a", "x" * 1001),)),
        ("Fruit?", tuple(PickerItem(str(number), "x" * 900) for number in range(300))),
    ],
)
async def test_a_dialog_that_is_too_large_is_refused_and_the_limit_named(
    title: str, items: tuple[PickerItem, ...]
) -> None:
    async with at_the_desk() as (desk, _):
        with pytest.raises(HiltError, match="limit"):
            await desk.dialogs.pick(title, items, "me")
        with pytest.raises(HiltError, match="limit"):
            await desk.dialogs.ask("x" * 17_000, ("Yes",), "me")
    assert desk.asked.empty()
