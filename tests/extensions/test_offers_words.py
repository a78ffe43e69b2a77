"""What extensions of either dialect do with the user's words: message hooks and input transformers, real processes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hilt.agent.deadlines import Deadlines
from hilt.errors import HiltError
from hilt.model.content import text_of
from hilt.model.conversation import UserMessage
from support.agent import calls, says
from support.extending import Extended, Made, extended
from support.hilt_process import Hilt
from support.offerer import Ask, Refused
from support.offering import heard, offering

# Message hooks


def inject(ask: Ask) -> Any:
    return {"injection": f"{ask.given} was told {ask.params['message']!r}"}


def hook(name: str, *priorities: int, answer: Any = inject, **more: Any) -> Made:
    offers = [("messageHook", {"name": f"h{place}", "priority": value}) for place, value in enumerate(priorities)]
    return offering(name, *offers, answers={"messageHook/onMessage": answer}, given=name, **more)


@pytest.mark.usefixtures("dialect")
async def test_what_a_hook_adds_is_in_the_first_question_to_the_model_alone_and_it_is_asked_once(
    tmp_path: Path,
) -> None:
    turns = [calls(("t", {})), says("done"), says("again")]
    tool = ("tool", {"name": "t", "description": "t", "parameters": {"type": "object"}})
    async with extended(tmp_path, hook("h", 1, 2, 3), offering("t", tool), turns=turns) as it:
        await it.ready()
        await it.say("look")
        await it.say("twice")
        first, second, third = (request.system for request in it.provider.requests)
        assert second == "be brief" and first == f"{second}\n\nh was told 'look'"
        assert third == f"{second}\n\nh was told 'twice'"
        asked = heard(tmp_path / "extensions/h", "messageHook/onMessage")
        assert [one["params"] for one in asked] == [{"message": "look"}, {"message": "twice"}]
        assert all("was told" not in str(message) for request in it.provider.requests for message in request.messages)


async def test_hooks_of_both_dialects_come_in_the_order_of_their_priorities(tmp_path: Path) -> None:
    made = hook("a", 30, dialect="frames"), hook("b", 10, dialect="jsonrpc"), hook("c", 40, 5, dialect="frames")
    async with extended(tmp_path, *made, turns=[says("ok")]) as it:
        await it.ready()
        await it.say("x")
        assert [line[0] for line in it.provider.requests[0].system.split("\n\n")[1:]] == ["c", "b", "a"]


def refuse(ask: Ask) -> Any:
    raise Refused("not today")


def babble(ask: Ask) -> Any:
    return {"injection": {"not": "a text"}}


def dawdle(ask: Ask) -> Any:
    ask.wait_for_cancel()
    return {"injection": "too late"}


def die(ask: Ask) -> Any:
    ask.die()


@pytest.mark.usefixtures("dialect")
async def test_a_hook_that_fails_hangs_or_dies_costs_its_own_addition_alone(tmp_path: Path) -> None:
    bad = {"refusing": refuse, "babbling": babble, "slow": dawdle, "dying": die}
    made = [hook(name, 0, answer=answer) for name, answer in bad.items()]
    async with extended(tmp_path, hook("good", 9), *made, turns=[says("ok")]) as it:
        it.session.bench = structs.replace(it.session.bench, deadlines=Deadlines(hook=0.5))
        await it.ready()
        assert (await it.say("x")).stop == "end"
        assert it.provider.requests[0].system == "be brief\n\ngood was told 'x'"
        for name in bad:
            await it.warned("message hook of", name, "sent without")
        await it.until((tmp_path / "extensions/slow/cancelled").exists, "word that nobody waits any more")


# Input transformers


def append(ask: Ask) -> Any:
    """What it is told to do stands in the text itself."""
    text = ask.params["input"]
    if f"{ask.given} fail" in text:
        raise Refused("not like this")
    if f"{ask.given} hang" in text:
        ask.wait_for_cancel()
    return {"output": f"{text} {ask.given}", "handled": f"{ask.given} take" in text}


def transformer(name: str, *priorities: int, **more: Any) -> Made:
    offers = [("inputTransformer", {"name": f"i{place}", "priority": value}) for place, value in enumerate(priorities)]
    return offering(name, *offers, answers={"inputTransformer/transform": append}, given=name, **more)


def said(it: Extended) -> list[str]:
    return [text_of(one.content) for one in it.session.transcript.messages if isinstance(one, UserMessage)]


async def test_transformers_of_both_dialects_rewrite_in_order_and_each_extension_is_asked_once(tmp_path: Path) -> None:
    made = transformer("a", 30, dialect="jsonrpc"), transformer("b", 10, 20, dialect="frames")
    async with extended(tmp_path, *made, turns=[says("ok")]) as it:
        await it.ready()
        job = await it.session.input("hello")
        assert job and not isinstance(job, tuple)
        await job.result()
        assert said(it) == ["hello b a"]
        assert [len(heard(tmp_path / f"extensions/{name}", "inputTransformer/transform")) for name in "ab"] == [1, 1]
        assert it.notes("input_transformed") == [{"by": ["b", "a"], "typed": "hello"}]


@pytest.mark.usefixtures("dialect")
async def test_words_that_an_extension_takes_or_chokes_on_never_reach_the_model(tmp_path: Path) -> None:
    async with extended(tmp_path, transformer("a", 10), transformer("b", 20), turns=[says("ok")]) as it:
        await it.ready()
        assert await it.session.input("a take it") == ()
        assert await it.session.input("b take it") == ()
        with pytest.raises(HiltError, match="input transformer of b: not like this") as refused:
            await it.session.input("b fail")
        assert "nothing was sent" in refused.value.hint
        assert said(it) == [] and it.provider.requests == []
        assert len(heard(tmp_path / "extensions/b", "inputTransformer/transform")) == 2


@pytest.mark.usefixtures("dialect")
async def test_cancelling_ends_the_wait_for_a_transformer_and_it_is_told(tmp_path: Path) -> None:
    async with extended(tmp_path, transformer("a", 0), turns=[says("ok")]) as it, asyncio.TaskGroup() as group:
        await it.ready()
        typing = group.create_task(_refusal(it, "a hang"))
        await it.until(lambda: heard(tmp_path / "extensions/a", "inputTransformer/transform"), "the question")
        assert it.session.abort()
        assert "cancelled" in await typing
        await it.until((tmp_path / "extensions/a/cancelled").exists, "word of it")
        assert said(it) == []


async def _refusal(it: Extended, text: str) -> str:
    with pytest.raises(HiltError) as refused:
        await it.session.input(text)
    return refused.value.message


@pytest.mark.usefixtures("dialect")
def test_only_what_a_person_types_is_rewritten_and_no_slash_command_is(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    extension = transformer("a", 0).write(tmp_path)
    flags = (*hilt.script(*(says(str(number)) for number in range(4))), "--ext", str(extension))

    def users(told: list[dict[str, Any]]) -> list[str]:
        return [line["content"][0]["text"] for line in told if line["type"] == "user_message"]

    assert users(hilt.run("--json", "typed", *flags).events) == ["typed a"]
    assert hilt.run("-p", "a take it", *flags).out == ""
    failed = hilt.run("-p", "a fail", *flags)
    assert failed.code == 1 and "input transformer of a: not like this" in failed.err
    with hilt.rpc(*flags) as rpc:
        rpc.event("ext_status", extension="a", state="ready")
        rpc.settled()
        assert users(rpc.prompt("as it is")) == ["as it is"]
        rpc.rest()
        asked = len(heard(extension, "inputTransformer/transform"))
        assert rpc.ask("input", text="/help")["success"]
        assert len(heard(extension, "inputTransformer/transform")) == asked
        rpc.send(type="input", text="as typed")
        assert rpc.event("user_message")["content"][0]["text"] == "as typed a"
        rpc.event("done")
        rpc.rest()
        refused = rpc.ask("input", text="a fail")
        assert not refused["success"] and "input transformer of a" in refused["error"]
