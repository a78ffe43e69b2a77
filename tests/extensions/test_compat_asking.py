"""Interceptors that ask the user before they decide."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hilt.agent.questions import Reply
from hilt.model.events import Noticed, QuestionAsked
from support.clocks import pass_time
from support.extending import extended, tool
from support.offerer import Ask
from support.offering import offering

pytestmark = pytest.mark.usefixtures("dialect")

TIME = 5.0
"""Seconds the interceptor has. All of them together have twice that."""


def confirm(ask: Ask) -> Any:
    answer = ask.host("askUser", prompt="Run it?", choices=["yes", "no"])
    return {"allow": answer["selected"] == "yes", "preview": "the user said no"}


def confirm_and_hang(ask: Ask) -> Any:
    ask.host("askUser", prompt="Run it?", choices=["yes", "no"])
    ask.wait_for("never")


def gate(answer: Any) -> Any:
    offer = ("interceptor", {"name": "gate"})
    guard = {"timeout_ms": round(TIME * 1000)}
    return offering("gate", offer, answers={"interceptor/before": answer}, guard=guard)


async def test_the_user_may_take_longer_than_the_interceptors_have(tmp_path: Path) -> None:
    async with extended(tmp_path, tool(), gate(confirm)) as it, asyncio.TaskGroup() as group:
        await it.ready()
        calling = group.create_task(it.call("t"))
        question = await it.seen(QuestionAsked)
        await pass_time(3 * TIME)
        assert not calling.done()
        it.questions.answer(question.id, Reply(selected="no"))
        text, refused = await calling
        assert refused and "the user said no" in text
        assert it.of(Noticed) == []


async def test_once_the_user_has_answered_time_passes_again(tmp_path: Path) -> None:
    async with extended(tmp_path, tool(), gate(confirm_and_hang)) as it, asyncio.TaskGroup() as group:
        await it.ready()
        calling = group.create_task(it.call("t"))
        question = await it.seen(QuestionAsked)
        it.questions.answer(question.id, Reply(selected="yes"))
        await pass_time(0.0)
        assert not calling.done()
        await pass_time(TIME + 1)  # in which it may make something of the answer
        await pass_time(2 * TIME + 1)
        await calling
        await it.warned("gate gave no verdict")
