"""What extensions do with the user's words: transformers rewrite what is typed, hooks add to what the model is told."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hilt.agent.deadlines import Deadlines
from hilt.errors import ExtensionError, HiltError
from hilt.model.actions import AttachImage, SendMessage
from hilt.model.content import Image, text_of
from hilt.model.contributions import InputTransformer, MessageHook, Transformed
from hilt.model.conversation import UserMessage, user_text
from hilt.model.events import Done, Noticed, PromptSubmitted, UserMessageAdded
from hilt.sessions.records import NoteRecord
from support.agent import DEADLINE, Harness, calls, echo, running, says, script, tool

SHORT = Deadlines(transformer=0.02, hook=0.02)


def rewriting(change: Callable[[str], str], priority: int = 0) -> InputTransformer:
    async def transform(text: str) -> Transformed:
        return Transformed(change(text))

    return InputTransformer(transform, priority)


def hook(say: Callable[[str], Awaitable[str]], priority: int = 0) -> MessageHook:
    return MessageHook(say, priority)


def always(text: str) -> MessageHook:
    async def say(_: str) -> str:
        return text

    return hook(say)


async def never(_: str) -> str:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


async def never_transformed(text: str) -> Transformed:
    return Transformed(await never(text))


async def typed(harness: Harness, text: str) -> object:
    async with asyncio.timeout(DEADLINE):
        answer = await harness.session.input(text)
        await harness.session.idle()
    return answer


def said(harness: Harness) -> list[str]:
    """To the model, by the user or in their place."""
    return [text_of(event.content) for event in harness.of(UserMessageAdded)]


def notices(harness: Harness) -> list[str]:
    return [event.message for event in harness.of(Noticed)]


# Input transformers


async def test_each_transformer_gets_what_the_one_before_made_of_it_those_of_low_priority_first(tmp_path: Path) -> None:
    first, second = rewriting(lambda text: f"<{text}>", -1), rewriting(lambda text: f"[{text}]", 5)
    async with running(script(tmp_path, says("ok")), ("late", second), ("early", first)) as harness:
        await typed(harness, "hi")
        records = [harness.session.parts.log.read(entry) for entry in harness.session.parts.log.entries()]
    assert said(harness) == ["[<hi>]"]
    (note,) = [record.data for record in records if isinstance(record, NoteRecord)]
    assert note["typed"] == "hi" and list(note["by"]) == ["early", "late"]


async def test_what_a_transformer_handled_reaches_neither_the_next_one_nor_the_model_nor_the_record(
    tmp_path: Path,
) -> None:
    async def take(text: str) -> Transformed:
        return Transformed(text, handled=True)

    def not_asked(text: str) -> str:
        raise AssertionError(text)

    async with running(
        script(tmp_path, says("no")), ("taker", InputTransformer(take)), ("next", rewriting(not_asked))
    ) as harness:
        assert await typed(harness, "mine") == ()
        assert not harness.session.transcript.messages and not harness.provider.requests
    assert "extension taker dealt with" in notices(harness)[0]
    assert not harness.of(PromptSubmitted)


async def test_a_failing_transformer_costs_the_submission_and_says_whose_it_is(tmp_path: Path) -> None:
    async def fail(_: str) -> Transformed:
        raise ExtensionError("moody", "not today")

    async with running(script(tmp_path, says("no")), ("moody", InputTransformer(fail))) as harness:
        with pytest.raises(HiltError, match="input transformer of moody: not today"):
            await typed(harness, "hi")
        assert not harness.session.transcript.messages and not harness.session.busy


async def test_a_transformer_that_does_not_answer_fails_at_its_deadline(tmp_path: Path) -> None:
    slow = InputTransformer(never_transformed)
    async with running(script(tmp_path, says("no")), ("slow", slow), deadlines=SHORT) as harness:
        with pytest.raises(HiltError, match="input transformer of slow: no answer within"):
            await typed(harness, "hi")


async def test_cancelling_ends_a_transformer_that_hangs(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def hang(text: str) -> Transformed:
        asked.set()
        return await never_transformed(text)

    async with (
        running(script(tmp_path, says("no")), InputTransformer(hang)) as harness,
        asyncio.timeout(DEADLINE),
        asyncio.TaskGroup() as group,
    ):
        typing = group.create_task(_refused(harness, "hi"))
        await asked.wait()
        assert harness.session.abort()
        assert "cancelled" in await typing


async def _refused(harness: Harness, text: str) -> str:
    with pytest.raises(HiltError) as caught:
        await harness.session.input(text)
    return caught.value.message


async def test_slash_commands_and_a_programs_own_words_are_not_rewritten(tmp_path: Path) -> None:
    shout = rewriting(str.upper)
    async with running(script(tmp_path, says("a"), says("b")), shout) as harness:
        with pytest.raises(HiltError, match="unknown command /nope"):
            await typed(harness, "/nope")
        await harness.say("as it is")
        await typed(harness, "as typed")
    assert said(harness) == ["as it is", "AS TYPED"]


async def test_what_is_typed_during_a_turn_is_rewritten_too(tmp_path: Path) -> None:
    async with running(script(tmp_path, says("a"), says("b")), rewriting(str.upper), tool("echo", echo)) as harness:
        await harness.session.prompt(user_text("first"))
        await typed(harness, "second")
    assert said(harness) == ["first", "SECOND"]


async def test_an_extension_that_speaks_in_the_users_place_is_rewritten_and_keeps_its_order(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def transform(text: str) -> Transformed:
        if text == "one":
            await gate.wait()
        return Transformed(text.upper())

    async with running(script(tmp_path, says("a"), says("b")), InputTransformer(transform)) as harness:
        await harness.session.apply((SendMessage("one"), SendMessage("two")), "ext")  # answers at once
        assert not said(harness)
        asyncio.get_running_loop().call_later(0.01, gate.set)  # long after the second would have been ready
        await harness.seen(Done)
        await harness.session.idle()
    assert said(harness)[0] == "ONE" and "TWO" in said(harness)
    assert all(event.extension == "ext" for event in harness.of(UserMessageAdded))


async def test_words_of_an_extension_that_cannot_be_rewritten_are_not_lost_silently(tmp_path: Path) -> None:
    async def fail(_: str) -> Transformed:
        raise ExtensionError("moody", "not today")

    async with running(script(tmp_path, says("no")), ("moody", InputTransformer(fail))) as harness:
        await harness.session.apply((SendMessage("one"),), "ext")
        await harness.seen(Noticed)
    assert notices(harness) == ["what extension ext wanted to say was not sent: input transformer of moody: not today"]


# Message hooks


async def test_what_hooks_add_is_in_the_system_prompt_of_the_next_call_alone(tmp_path: Path) -> None:
    heard: list[str] = []

    async def listen(text: str) -> str:
        heard.append(text)
        return "two"

    model = script(tmp_path, calls(("echo", {})), says("done"), says("again"))
    async with running(
        model, ("b", hook(listen, 2)), ("a", always("one")), ("c", always("  ")), tool("echo", echo)
    ) as harness:
        await harness.say("go")
        first, second = [request.system for request in harness.provider.requests]
    assert heard == ["go"]
    assert first == "be brief\n\none\n\ntwo" and second == "be brief"


async def test_a_failing_or_slow_hook_costs_its_own_addition_alone(tmp_path: Path) -> None:
    async def fail(_: str) -> str:
        raise ExtensionError("moody", "not today")

    async with running(
        script(tmp_path, says("ok")),
        ("moody", hook(fail)),
        ("slow", hook(never)),
        ("fine", always("this")),
        deadlines=SHORT,
    ) as harness:
        outcome = await harness.say("go")
        (request,) = harness.provider.requests
    assert outcome.text == "ok" and request.system == "be brief\n\nthis"
    assert any("message hook of moody: not today" in notice for notice in notices(harness))
    assert any("message hook of slow: no answer within" in notice for notice in notices(harness))


async def test_hooks_are_asked_all_at_once(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    async def meet(_: str) -> str:
        async with asyncio.timeout(DEADLINE):
            await both.wait()
        return "met"

    async with running(script(tmp_path, says("ok")), ("a", hook(meet)), ("b", hook(meet))) as harness:
        await harness.say("go")
        assert harness.provider.requests[0].system == "be brief\n\nmet\n\nmet"


async def test_cancelling_ends_the_wait_for_a_hook_and_the_message_stays(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def hang(text: str) -> str:
        asked.set()
        return await never(text)

    async with running(script(tmp_path, says("no")), hook(hang), deadlines=Deadlines(hook=600)) as harness:
        job = await harness.session.prompt(user_text("go"))
        async with asyncio.timeout(DEADLINE):
            await asked.wait()
            harness.session.abort()
            outcome = await job.result()
        assert outcome.stop == "aborted" and not harness.provider.requests
        assert [text_of(m.content) for m in harness.session.transcript.messages if isinstance(m, UserMessage)] == ["go"]


# Images that extensions attach


async def test_an_attached_image_reaches_the_model_with_the_next_message_and_only_that(tmp_path: Path) -> None:
    async with running(script(tmp_path, says("a cat"), says("yes"))) as harness:
        await harness.session.apply((AttachImage(b"png", "image/png"),), "camera")
        await typed(harness, "what is it?")
        await harness.say("sure?")
        first, second = harness.provider.requests
    asked = first.messages[-1]
    assert isinstance(asked, UserMessage) and asked.content[1:] == (Image("image/png", b"png"),)
    assert isinstance(second.messages[-1], UserMessage) and len(second.messages[-1].content) == 1


async def test_an_attached_image_goes_with_words_that_steer(tmp_path: Path) -> None:
    async with running(script(tmp_path, calls(("echo", {})), says("seen")), tool("echo", echo)) as harness:
        await harness.session.prompt(user_text("go"))
        await harness.session.apply((AttachImage(b"png", "image/png"),), "camera")
        await harness.session.steer(user_text("look"))
        await harness.session.idle()
        told = harness.of(UserMessageAdded)[-1]
    assert told.content[1:] == (Image("image/png", b"png"),)
