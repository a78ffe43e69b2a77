"""Step mode: every call waits for the user, whatever was allowed before; and only where there is one."""

import asyncio
from pathlib import Path

import pytest

from hilt.agent.permissions import Permissions
from hilt.errors import UsageError
from hilt.model.actions import ToggleStep
from hilt.model.content import text_of
from hilt.model.contributions import Command, Effect, Invocation, ToolOutput
from hilt.model.events import Noticed, StateChanged, ToolResultAdded
from hilt.model.ports import PermissionAnswer, PermissionRequest
from support.agent import calls, echo, running, says, script, tool
from support.hilt_process import Hilt


class Person:
    def __init__(self, *, approved: bool = True) -> None:
        self.answer = PermissionAnswer(approved=approved, scope="session" if approved else "once")
        self.asked: list[PermissionRequest] = []

    async def ask(self, request: PermissionRequest) -> PermissionAnswer:
        self.asked.append(request)
        return self.answer


@pytest.mark.parametrize("effect", list(Effect))
async def test_every_call_waits_for_the_user_also_after_all_was_allowed(tmp_path: Path, effect: Effect) -> None:
    person = Person()
    model = script(tmp_path, calls(("t", {"n": 1}), ("t", {"n": 2})), says("ok"), calls(("t", {"n": 3})), says("ok"))
    async with running(model, tool("t", echo, effect=effect), permissions=Permissions("yolo", person)) as harness:
        await harness.session.apply((ToggleStep(),), "hilt")
        await harness.say("go")
        assert [request.args for request in person.asked] == [{"n": 1}, {"n": 2}]
        assert all(request.step for request in person.asked)
        await harness.session.apply((ToggleStep(),), "hilt")
        await harness.say("again")
        assert len(person.asked) == 2
        assert [event.step for event in harness.of(StateChanged)] == [True, False]


async def test_calls_that_could_run_side_by_side_are_shown_one_after_the_other(tmp_path: Path) -> None:
    events: list[str] = []

    class Slow(Person):
        async def ask(self, request: PermissionRequest) -> PermissionAnswer:
            events.append(f"ask {request.args['n']}")
            await asyncio.sleep(0)  # another one that runs beside would ask now
            return await super().ask(request)

    async def run(invocation: Invocation) -> ToolOutput:
        events.append(f"run {invocation.args['n']}")
        return ToolOutput.of("ok")

    model = script(tmp_path, calls(("t", {"n": 1}), ("t", {"n": 2})), says("ok"))
    async with running(model, tool("t", run, parallel=True), permissions=Permissions("yolo", Slow())) as harness:
        await harness.session.toggle_step()
        await harness.say("go")
    assert events == ["ask 1", "run 1", "ask 2", "run 2"]


async def test_a_call_that_the_user_does_not_want_is_refused(tmp_path: Path) -> None:
    model = script(tmp_path, calls(("t", {})), says("ok"))
    async with running(model, tool("t", echo), permissions=Permissions("yolo", Person(approved=False))) as harness:
        assert await harness.session.toggle_step()
        await harness.say("go")
        (result,) = harness.of(ToolResultAdded)
    assert result.is_error and not result.executed and "declined" in text_of(result.content)


async def test_calls_that_extensions_make_wait_too(tmp_path: Path) -> None:
    person = Person()
    async with running(script(tmp_path), tool("t", echo), permissions=Permissions("yolo", person)) as harness:
        await harness.session.toggle_step()
        await harness.session.call_tool("t", {}, "ext")
    assert len(person.asked) == 1


async def test_it_stays_off_where_nobody_can_be_asked(tmp_path: Path) -> None:
    async with running(script(tmp_path, calls(("t", {})), says("ok")), tool("t", echo)) as harness:
        assert not await harness.session.toggle_step()
        assert not await harness.session.toggle_step("ext")
        assert (await harness.say("go")).text == "ok"
        assert "nobody here who could be asked" in harness.of(Noticed)[0].message
        assert not harness.of(StateChanged) and not harness.of(ToolResultAdded)[0].is_error


async def test_an_extension_may_end_only_what_an_extension_began(tmp_path: Path) -> None:
    async with running(script(tmp_path), permissions=Permissions("yolo", Person())) as harness:
        assert await harness.session.toggle_step("ext")
        assert not await harness.session.toggle_step("ext")
        assert await harness.session.toggle_step()
        with pytest.raises(UsageError, match="extension ext did not begin it"):
            await harness.session.toggle_step("ext")
        assert harness.session.parts.permissions.step
        assert not await harness.session.toggle_step()


async def test_an_extension_cannot_type_it_for_the_user(tmp_path: Path) -> None:
    async def toggle(_: str) -> tuple[ToggleStep]:
        return (ToggleStep(),)

    async with running(
        script(tmp_path), Command("step", "", toggle), permissions=Permissions("ask", Person())
    ) as harness:
        with pytest.raises(UsageError, match="for the user alone"):
            await harness.session.command("step", by="ext")
        assert not harness.session.parts.permissions.step
        await harness.session.command("step")
        assert harness.session.parts.permissions.step


async def test_a_question_that_nobody_answers_ends_with_the_turn(tmp_path: Path) -> None:
    asked = asyncio.Event()

    class Absent:
        async def ask(self, _: PermissionRequest) -> PermissionAnswer:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError("nobody sets it")

    model = script(tmp_path, calls(("t", {})), says("ok"))
    async with running(model, tool("t", echo), permissions=Permissions("yolo", Absent())) as harness:
        await harness.session.toggle_step()
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            saying = group.create_task(harness.say("go"))
            await asked.wait()
            harness.session.abort()
            assert (await saying).stop == "aborted"


def test_a_client_is_asked_before_each_call_though_it_had_allowed_everything(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    (hilt.project / "a.txt").write_text("hello")
    reading = calls(("read", {"path": "a.txt"}))
    with hilt.rpc(*hilt.script(reading, says("ok"), reading, says("ok"))) as rpc:
        assert rpc.ask("command", name="step")["data"] == {"action": "toggle_step"}
        assert rpc.ask("get_state")["data"]["step"]
        rpc.send(type="prompt", message="go")
        request = rpc.event("ui_request", kind="confirm", tool="read")
        assert request["step"] and request["effect"] == "read"
        rpc.send(type="ui_response", id=request["id"], approved=True, scope="session")
        assert not rpc.event("tool_result")["is_error"]
        rpc.event("done")
        rpc.rest()
        rpc.send(type="prompt", message="again")
        request = rpc.event("ui_request", kind="confirm", tool="read")
        rpc.ask("input", text="/step")
        rpc.send(type="ui_response", id=request["id"], approved=False, reason="not that")
        assert rpc.event("tool_result")["is_error"]
        rpc.event("done")
        assert not rpc.ask("get_state")["data"]["step"]


def test_a_single_prompt_says_that_there_is_nobody_to_ask(tmp_path: Path) -> None:
    done = Hilt(tmp_path).run("-p", "/step", "--provider", "demo")
    assert done.code == 0 and "nobody here who could be asked" in done.err
