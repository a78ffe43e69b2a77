"""A conversation with a model that an extension answers for: through the real loop, also when the extension fails."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hilt.agent.budgets import Budgets
from hilt.agent.minds import Minds
from hilt.agent.parts import ActiveModel, NoExtensions
from hilt.errors import AuthError, ProviderError, Unavailable, UsageError
from hilt.model.actions import SwitchModel
from hilt.model.content import Text, ToolCall, text_of
from hilt.model.conversation import AssistantMessage, Usage, user_text
from hilt.model.events import Failed, Noticed, Retrying, StateChanged, UsageReported
from hilt.model.models import ModelInfo, Price
from hilt.model.ports import Provider
from hilt.model.services import AgentTask, ChatRequest
from hilt.providers.sourced import Sourced, named
from hilt.registry.snapshot import Owner
from support.agent import DEADLINE, Harness, echo, running, says, script, tool
from support.sources import Source

MODEL = ModelInfo("big", "myapi", price=Price(1.0, 2.0), extension="ext")


def nobody() -> Provider:
    raise UsageError("no extension answers for myapi at present")


@asynccontextmanager
async def conversing(fallback: Provider | None = None, *offered: Any) -> AsyncIterator[Harness]:
    """With a model of `myapi`, for which nobody answers yet but the fallback, if there is one."""
    unused = Sourced("", None, None, None, nobody)  # type: ignore[arg-type] # replaced before anything is asked
    async with asyncio.timeout(DEADLINE), running(unused, *offered) as harness:
        session = harness.session
        sourced = Sourced(
            "myapi",
            session.parts.registry,
            lambda: session.extensions,
            session.bus.emit,
            (lambda: fallback) if fallback else nobody,
        )
        session.active = ActiveModel(sourced, MODEL)
        yield harness


def last(harness: Harness) -> AssistantMessage:
    message = harness.session.transcript.messages[-1]
    assert isinstance(message, AssistantMessage)
    return message


async def test_a_whole_conversation_with_tool_calls_is_the_extensions() -> None:
    source = Source("myapi", [Text("look"), ToolCall("1", "t", {"a": 1})], [Text("seen")], usage=Usage(10, 5))
    async with conversing(None, tool("t", echo)) as harness:
        with harness.session.parts.registry.publish(Owner("ext"), (source.offer(),)):
            assert (await harness.say("go")).text == "seen"
        assert [spec.name for spec in source.requests[0].tools] == ["t"] and len(source.requests[1].messages) == 3
        assert (last(harness).provider, last(harness).model) == ("myapi", "big")
        assert harness.of(UsageReported)[-1].cumulative.cost_usd == pytest.approx(2 * (10 + 10) / 1e6)


async def test_one_that_is_killed_in_mid_stream_is_asked_again_when_it_is_back() -> None:
    source, again = Source("myapi", Unavailable("extension ext ended")), Source("myapi", [Text("back")])
    async with conversing() as harness:
        registry = harness.session.parts.registry
        with registry.publish(Owner("ext"), (source.offer(),)) as publication:

            async def restart(event: object) -> None:
                if isinstance(event, Retrying):
                    publication.update((again.offer(),))

            with harness.session.bus.subscribed(restart):
                assert (await harness.say("go")).text == "back"
        assert text_of(last(harness).content) == "back" and source.closed == 1


async def test_one_that_stays_away_gives_a_clear_error_and_a_session_that_goes_on() -> None:
    source = Source("myapi", Unavailable("extension ext ended"))
    async with conversing() as harness:
        registry = harness.session.parts.registry
        with registry.publish(Owner("ext"), (source.offer(),)) as publication:

            async def die(event: object) -> None:
                if isinstance(event, Retrying):
                    publication.update(())

            with harness.session.bus.subscribed(die):
                outcome = await harness.say("go")
        assert outcome.stop == "error" and "extension ext, which answers for myapi/big" in outcome.error
        assert "/reload-ext ext" in harness.of(Failed)[-1].hint
        with registry.publish(Owner("ext"), (Source("myapi", [Text("well again")]).offer(),)):
            assert (await harness.say("again")).text == "well again"


async def test_a_refusal_of_the_extension_is_told_in_its_words_and_what_had_come_is_kept() -> None:
    async with conversing() as harness:
        source = Source("myapi", ProviderError("extension ext: the model said no"), [Text("fine")])
        with harness.session.parts.registry.publish(Owner("ext"), (source.offer(),)):
            outcome = await harness.say("go")
            assert outcome.error == "extension ext: the model said no"
            assert text_of(last(harness).content) == "half of" and last(harness).stop == "error"
            assert (await harness.say("go on")).text == "fine"


async def test_cancelling_the_turn_closes_the_extensions_stream() -> None:
    source = Source("myapi", [], [Text("next")])
    async with conversing() as harness:
        with harness.session.parts.registry.publish(Owner("ext"), (source.offer(),)):
            job = await harness.session.prompt(user_text("go"))
            await source.hanging.wait()
            assert harness.session.abort()
            assert (await job.result()).stop == "aborted" and source.closed == 1
            assert (await harness.say("again")).text == "next"


async def test_the_built_in_adapter_takes_over_with_a_notice(tmp_path: Path) -> None:
    async with conversing(script(tmp_path, says("built in"))) as harness:
        with harness.session.parts.registry.publish(Owner("ext"), (Source("myapi", [Text("ext")]).offer(),)):
            assert (await harness.say("go")).text == "ext"
        assert (await harness.say("go")).text == "built in"
        assert "extension ext no longer answers" in harness.of(Noticed)[-1].message


async def test_answers_and_agents_beside_the_conversation_are_the_extensions_too() -> None:
    source = Source("myapi", [Text("chat")], [Text("agent")])
    async with conversing() as harness:
        minds = Minds(harness.session, Budgets(lambda _: 1000))
        with harness.session.parts.registry.publish(Owner("ext"), (source.offer(),)):
            assert (await minds.chat(ChatRequest((user_text("hi"),)), "other")).text == "chat"
            assert (await minds.run(AgentTask("hi"), "other")).text == "agent"
        assert [request.model.id for request in source.requests] == ["big", "big"]


# Before it is known who answers


class Coming(NoExtensions):
    """Extensions that are still being started; `arrive` is what happens when they have been."""

    def __init__(self, arrive: Any = lambda: None) -> None:
        self.waited = 0
        self._arrive = arrive

    async def settled(self) -> None:
        self.waited += 1
        self._arrive()


async def test_the_first_request_waits_for_the_extensions_and_then_knows_who_answers() -> None:
    source = Source("myapi", [Text("hello")], models=(ModelInfo("big", "", context_window=99),))
    async with conversing() as harness:
        session, registry = harness.session, harness.session.parts.registry
        sourced = session.active.provider

        def again() -> ActiveModel:
            info = named(registry.snapshot().sources, "myapi", "big")
            if info is None:
                raise UsageError('the provider "myapi" is not known', hint="did you mean openai?")
            return ActiveModel(sourced, info, "its price is not known")

        session.active = ActiveModel(sourced, ModelInfo("big", "myapi"), pending=again)
        session.extensions = coming = Coming()
        outcome = await harness.say("too early")
        assert (outcome.error, outcome.hint) == ('the provider "myapi" is not known', "did you mean openai?")
        assert len(session.transcript.messages) == 1  # what the user said is not lost
        with registry.publish(Owner("ext"), (source.offer(),)):
            assert (await harness.say("now")).text == "hello"
        assert session.active.info.context_window == 99 and coming.waited == 2
        assert harness.of(Noticed)[-1].message == "its price is not known"
        assert harness.of(StateChanged)[-1].model == "big"
        with registry.publish(Owner("ext"), (Source("myapi", [Text("x")]).offer(),)):
            await harness.say("again")
        assert coming.waited == 2


async def test_a_model_that_was_chosen_while_extensions_were_coming_stays() -> None:
    async with conversing() as harness:
        session = harness.session
        chosen = ActiveModel(session.active.provider, ModelInfo("another", "myapi"))

        def again() -> ActiveModel:
            raise AssertionError("it is not asked who answers when the user has said so")

        def choose() -> None:
            session.active = chosen

        session.active = ActiveModel(session.active.provider, MODEL, pending=again)
        session.extensions = Coming(choose)
        assert await session.model() is chosen


async def test_a_missing_key_is_told_as_such_when_no_extension_does_without_it() -> None:
    async with conversing() as harness:

        def again() -> ActiveModel:
            raise AuthError("there is no API key for openai", hint="run `hilt login openai`")

        harness.session.active = ActiveModel(harness.session.active.provider, MODEL, pending=again)
        assert (await harness.say("hi")).error == "there is no API key for openai"
        assert harness.of(Failed)[-1].code == "auth"


async def test_a_model_that_is_switched_to_may_be_one_that_is_still_coming() -> None:
    known: list[str] = []

    def switch(model: str, current: ActiveModel) -> ActiveModel:
        if model not in known:
            raise UsageError(f'unknown model "{model}"')
        return ActiveModel(current.provider, ModelInfo(model, "myapi"))

    unused = Sourced("", None, None, None, nobody)  # type: ignore[arg-type] # nothing is asked
    async with running(unused, switch=switch) as harness:
        harness.session.extensions = Coming(lambda: known.append("late"))
        await harness.session.apply((SwitchModel("late"),), "test")
        assert harness.session.active.info.id == "late"
        with pytest.raises(UsageError, match="never"):
            await harness.session.apply((SwitchModel("never"),), "test")
