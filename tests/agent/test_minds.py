"""Models at work beside the conversation: single answers and agents, what they may do, and what they cost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hilt.agent.budgets import Budgets
from hilt.agent.minds import Minds
from hilt.agent.parts import ActiveModel
from hilt.agent.permissions import Permissions
from hilt.errors import ExtensionError, HiltError, Unavailable, UsageError
from hilt.model.content import Text, text_of
from hilt.model.contributions import (
    Contribution,
    Effect,
    Finished,
    Invocation,
    MessageHook,
    PromptSection,
    ResultInterceptor,
    ToolOutput,
)
from hilt.model.conversation import AssistantMessage, UserMessage, now, user_text
from hilt.model.events import Noticed, UsageReported
from hilt.model.ports import Provider
from hilt.model.services import AgentTask, ChatRequest
from hilt.sessions.log import SessionLog
from hilt.sessions.records import NoteRecord, SpentRecord, new_meta
from support.agent import DEADLINE, MODEL, Harness, Strict, calls, echo, running, says, script, tool
from support.sources import Source

SPENT = {"usage": {"input": 100, "output": 20}}


@asynccontextmanager
async def minded(
    provider: Provider,
    *offered: Contribution | tuple[str, Contribution],
    limit: int = 1_000_000,
    small: str = "",
    **options: Any,
) -> AsyncIterator[tuple[Harness, Minds]]:
    async with asyncio.timeout(DEADLINE), running(provider, *offered, **options) as harness:
        minds = Minds(harness.session, Budgets(lambda _: limit), small_model=small)
        async with minds.working():
            yield harness, minds


def asking(text: str = "hi", **more: Any) -> ChatRequest:
    return ChatRequest((user_text(text),), **more)


def notes(harness: Harness, kind: str) -> list[Any]:
    log = harness.session.parts.log
    records = [log.read(entry) for entry in log.entries()]
    return [record.data for record in records if isinstance(record, NoteRecord) and record.kind == kind]


# One answer


async def test_an_answer_beside_the_conversation_leaves_no_trace_in_it(tmp_path: Path) -> None:
    async with minded(script(tmp_path, says("forty-two", **SPENT), says("later"))) as (harness, minds):
        said = (user_text("what is"), AssistantMessage((Text("what?"),), now()), user_text("it"))
        reply = await minds.chat(ChatRequest(said, system="count", max_tokens=7), "ext")
        assert reply.text == "forty-two" and (reply.usage.input, reply.usage.output) == (100, 20)
        (request,) = harness.provider.requests
        assert (request.system, request.messages, request.max_tokens, request.tools) == ("count", said, 7, ())
        assert harness.session.transcript.messages == ()
        assert {type(event) for event in harness.events} == {UsageReported}
        await harness.say("hello")
        assert len(harness.provider.requests[-1].messages) == 1


async def test_what_it_costs_is_the_sessions_and_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    log = SessionLog.create(path, new_meta("/p", "script", "script"))
    async with minded(script(tmp_path, says("a", **SPENT), says("b", **SPENT)), log=log) as (harness, minds):
        reply = await minds.chat(asking(), "ext")
        await minds.run(AgentTask("do"), "ext")
        assert reply.usage.cost_usd == pytest.approx(100 / 1e6 + 40 / 1e6)
        spent = harness.session.transcript.usage
        assert (spent.input, spent.output) == (200, 40) and spent.cost_usd == pytest.approx(2 * reply.usage.cost_usd)
        assert harness.of(UsageReported)[-1].cumulative == spent
        records = [log.read(entry) for entry in log.entries() if entry.type == SpentRecord.TYPE]
        assert [(one.extension, one.model) for one in records if isinstance(one, SpentRecord)] == [
            ("ext", "script")
        ] * 2
    log.close()
    with SessionLog.open(path) as again:
        assert again.usage == spent


async def test_the_small_model_is_the_configured_one_and_is_closed_after_use(tmp_path: Path) -> None:
    closed: list[str] = []

    class Small(Strict):
        async def aclose(self) -> None:
            closed.append(self.name)

    small = Small(script(tmp_path, says("small one"), says("named")))
    asked: list[str] = []

    def switch(model: str, _: ActiveModel) -> ActiveModel:
        asked.append(model)
        if model not in ("tiny", "vendor/big"):
            raise UsageError(f'unknown model "{model}"')
        return ActiveModel(small, structs.replace(MODEL, id=model))

    main = tmp_path / "main"
    main.mkdir()
    async with minded(script(main, says("main"), says("main again")), small="tiny", switch=switch) as (_, minds):
        assert (await minds.chat(asking(model="small"), "ext")).text == "small one" and closed == ["script"]
        assert (await minds.chat(asking(model="vendor/big"), "ext")).text == "named"
        assert (await minds.chat(asking(model="default"), "ext")).text == "main"
        assert (await minds.chat(asking(), "ext")).text == "main again"
        with pytest.raises(UsageError, match="unknown model"):
            await minds.chat(asking(model="huge"), "ext")
    assert asked[:2] == ["tiny", "vendor/big"] and closed == ["script", "script"]


async def test_without_a_small_model_the_one_in_use_does_the_small_tasks(tmp_path: Path) -> None:
    async with minded(script(tmp_path, says("main"))) as (_, minds):
        assert (await minds.chat(asking(model="small"), "ext")).text == "main"


async def test_a_failing_answer_is_tried_again_and_then_told(tmp_path: Path) -> None:
    failing: dict[str, Any] = {"error": {"status": 503}}
    async with minded(script(tmp_path, failing, says("third time"), *[failing] * 4)) as (harness, minds):
        assert (await minds.chat(asking(), "ext")).text == "third time"
        with pytest.raises(Unavailable):
            await minds.chat(asking(), "ext")
        assert harness.of(Noticed) == []
        with pytest.raises(UsageError, match="empty"):
            await minds.chat(ChatRequest(()), "ext")


async def test_the_user_cancels_what_extensions_ask_of_the_model(tmp_path: Path) -> None:
    async with minded(script(tmp_path, says("late", delay_ms=60_000), says("late", delay_ms=60_000))) as (
        harness,
        minds,
    ):
        async with asyncio.TaskGroup() as group:
            chat = group.create_task(_failure(minds.chat(asking(), "ext")))
            run = group.create_task(minds.run(AgentTask("x"), "ext"))
            while len(harness.provider.requests) < 2:
                await asyncio.sleep(0)
            assert harness.session.abort()
        assert "cancelled" in chat.result() and run.result().error == "it was cancelled"


async def _failure(work: Any) -> str:
    with pytest.raises(HiltError) as caught:
        await work
    return caught.value.message


# An agent of its own


async def test_an_agent_works_through_the_real_loop_with_safe_tools_only(tmp_path: Path) -> None:
    turns = script(
        tmp_path,
        {"content": [{"type": "text", "text": "looking"}, {"type": "tool_call", "name": "look", "args": {"a": 1}}]},
        calls(("push", {})),
        calls(("strange", {})),
        says("done"),
    )
    ran: list[str] = []

    async def push(_: Invocation) -> ToolOutput:
        ran.append("push")
        return ToolOutput.of("pushed")

    offered = (
        ("hilt", tool("look", echo)),
        ("hilt", tool("push", push, effect=Effect.WRITE)),
        ("ext", tool("strange", push)),
    )
    async with minded(turns, *offered) as (harness, minds):
        report = await minds.run(AgentTask("look around", system="you look"), "ext")
        assert (report.text, report.turns, report.error) == ("looking\ndone", 4, "")
        first = harness.provider.requests[0]
        assert [spec.name for spec in first.tools] == ["look"] and first.system == "you look"
        assert isinstance(first.messages[0], UserMessage) and text_of(first.messages[0].content) == "look around"
        assert ran == []
        assert {type(event) for event in harness.events} <= {UsageReported}
        called = notes(harness, "agent_call")
        assert [(one["extension"], one["name"], one["status"]) for one in called] == [
            ("ext", "look", "completed"),
            ("ext", "push", "failed"),
            ("ext", "strange", "failed"),
        ]


async def test_with_all_tools_the_permissions_guards_and_filters_of_the_session_hold(tmp_path: Path) -> None:
    turns = script(tmp_path, calls(("push", {})), calls(("read_it", {})), calls(("hidden", {})), says("ok"))

    async def cut(finished: Finished) -> ToolOutput:
        return ToolOutput.of(f"cut: {text_of(finished.output.content)}")

    offered = (
        ("ext", tool("push", echo, effect=Effect.WRITE)),
        ("hilt", tool("read_it", echo)),
        ("hilt", tool("hidden", echo)),
        ("ext", ResultInterceptor(cut)),
    )
    async with minded(turns, *offered, permissions=Permissions("ask")) as (harness, minds):
        harness.session.activation.narrow(("push", "read_it"), "other")
        await minds.run(AgentTask("go", tools="all"), "ext")
        texts = [one["text"] for one in notes(harness, "agent_call")]
        assert "permission denied" in texts[0] and texts[1] == "cut: {}" and "other narrowed" in texts[2]
        assert [spec.name for spec in harness.provider.requests[0].tools] == ["push", "read_it"]


async def test_without_a_system_prompt_it_has_the_sessions_and_never_the_hooks(tmp_path: Path) -> None:
    async def hook(_: str) -> str:
        raise ExtensionError("ext", "a task is no message of the user")

    section = PromptSection("Rules", "be kind")
    async with minded(script(tmp_path, says("a"), says("b")), section, MessageHook(hook)) as (harness, minds):
        await minds.run(AgentTask("x"), "ext")
        await minds.run(AgentTask("x", system="mine"), "ext")
        assert [request.system for request in harness.provider.requests] == ["be brief\n\n# Rules\n\nbe kind", "mine"]
        assert harness.of(Noticed) == []


async def test_what_ends_an_agent_early_is_told_with_what_it_said_until_then(tmp_path: Path) -> None:
    turns = [says("one", error={"status": 400, "message": "bad"}), calls(("look", {})), calls(("look", {}))]
    slow = {"content": [{"type": "text", "text": "never"}], "delay_ms": 60_000}
    provider = script(tmp_path, *turns, calls(("look", {})), slow)
    async with minded(provider, ("hilt", tool("look", echo))) as (_, minds):
        failed = await minds.run(AgentTask("x"), "ext")
        assert failed.error == "bad" and failed.text == "one"
        limited = await minds.run(AgentTask("x", max_turns=2), "ext")
        assert limited.error == "max steps (2) exceeded" and limited.turns == 2
        slept = await minds.run(AgentTask("x", seconds=0.05), "ext")
        assert slept.error == "it was stopped after 0.05 s" and slept.turns == 2
        with pytest.raises(UsageError, match="needs a task"):
            await minds.run(AgentTask("  "), "ext")


async def test_cancelling_the_caller_ends_the_agent_and_its_stream() -> None:
    source = Source("script", [])
    async with minded(_Provider(source)) as (harness, minds):
        async with asyncio.TaskGroup() as group:
            task = group.create_task(minds.run(AgentTask("x"), "ext"))
            await source.hanging.wait()
            task.cancel()
        assert source.closed == 1 and harness.session.transcript.messages == ()


async def test_a_tool_that_an_agent_had_begun_when_it_was_cancelled_is_on_record(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def dig(_: Invocation) -> ToolOutput:
        begun.set()
        await asyncio.Event().wait()
        return ToolOutput.of("never")

    async with minded(script(tmp_path, calls(("dig", {"deep": True}))), ("hilt", tool("dig", dig))) as (harness, minds):
        async with asyncio.TaskGroup() as group:
            task = group.create_task(minds.run(AgentTask("x"), "ext"))
            await begun.wait()
            task.cancel()
        (call,) = notes(harness, "agent_call")
        assert (call["name"], call["args"], call["status"]) == ("dig", {"deep": True}, "cancelled")


async def test_only_so_many_agents_work_for_one_extension_at_once() -> None:
    source = Source("script", *([[]] * 5))
    async with minded(_Provider(source)) as (_, minds):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(minds.run(AgentTask("x"), "ext")) for _ in range(4)]
            while len(source.requests) < 4:
                await asyncio.sleep(0)
            with pytest.raises(UsageError, match="4 agents already work for ext"):
                await minds.run(AgentTask("x"), "ext")
            other = group.create_task(minds.run(AgentTask("x"), "another"))
            while len(source.requests) < 5:
                await asyncio.sleep(0)
            for task in (*tasks, other):
                task.cancel()
        source = Source("script", [Text("free again")])
    async with minded(_Provider(source)) as (_, minds):
        assert (await minds.run(AgentTask("x"), "ext")).text == "free again"


class _Provider:
    """A source, asked directly."""

    name = "script"

    def __init__(self, source: Source) -> None:
        self.stream = source.stream

    async def aclose(self) -> None: ...


# How much they may use


async def test_an_extension_that_has_used_its_tokens_is_refused_and_told_which_setting_it_is(tmp_path: Path) -> None:
    turns = script(tmp_path, says("a", usage={"input": 400, "output": 100, "cache_read": 500}), says("b"), says("c"))
    async with minded(turns, limit=1000) as (_, minds):
        await minds.chat(asking(), "ext")
        assert minds.used("ext") == 1000
        for work in (minds.chat(asking(), "ext"), minds.run(AgentTask("x"), "ext")):
            with pytest.raises(UsageError) as caught:
                await work
            assert "ext has used 1,000 tokens" in caught.value.message
            assert "[extensions.ext]" in caught.value.message and "extension_tokens" in caught.value.message
        assert (await minds.chat(asking(), "another")).text == "b"


async def test_an_agent_that_uses_up_the_tokens_ends_before_its_next_turn(tmp_path: Path) -> None:
    turns = [calls(("look", {}), usage={"input": 900, "output": 200}), says("whole", usage={"input": 2000})]
    async with minded(script(tmp_path, *turns), ("hilt", tool("look", echo)), limit=1000) as (harness, minds):
        report = await minds.run(AgentTask("x"), "ext")
        assert "ext has used 1,100 tokens" in report.error and len(harness.provider.requests) == 1
    with_room = tmp_path / "room"
    with_room.mkdir()
    async with minded(script(with_room, turns[1]), limit=1000) as (_, minds):
        assert (await minds.run(AgentTask("x"), "ext")).error == ""  # what is whole is whole


async def test_many_requests_at_once_have_one_budget_together() -> None:
    source = Source("script", *([[]] * 10))
    async with minded(_Provider(source), limit=1000) as (_, minds):
        async with asyncio.TaskGroup() as group:
            long = asking("word " * 300)
            tasks = [group.create_task(minds.chat(long, "ext")) for _ in range(2)]
            while len(source.requests) < 2:
                await asyncio.sleep(0)
            with pytest.raises(UsageError, match="tokens"):
                await minds.chat(long, "ext")
            for task in tasks:
                task.cancel()
        assert minds.used("ext") > 600  # what was begun is paid for


async def test_where_a_provider_does_not_say_what_it_used_an_estimate_counts(tmp_path: Path) -> None:
    async with minded(script(tmp_path, says("a"), says("b"))) as (harness, minds):
        await minds.chat(asking("word " * 300), "ext")
        used = minds.used("ext")
        assert used > 300
        await minds.run(AgentTask("word " * 300), "ext")
        assert minds.used("ext") >= 2 * used - 10
        assert harness.of(UsageReported) == []
