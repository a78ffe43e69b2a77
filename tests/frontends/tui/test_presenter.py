"""From what happens to what is on the screen, as plain state: real sessions, no screen."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hilt.frontends.tui.look import DARK, Look
from hilt.frontends.tui.presenter import Asking, Presenter
from hilt.frontends.tui.scene import Part, Scene
from hilt.frontends.tui.transcript.answer import Answer, Thought
from hilt.frontends.tui.transcript.call import Call
from hilt.frontends.tui.transcript.said import Said
from hilt.frontends.tui.transcript.told import Condensed, Told
from hilt.model import events as happened
from hilt.model.contributions import Effect, Invocation, ToolOutput
from hilt.model.stream import TextDelta, ThinkingDelta, ToolUseArgs, ToolUseStart
from support.agent import Harness, calls, echo, running, says, script, tool
from support.interface import interface

LOOK = Look.of(DARK)


@dataclass
class Stage:
    harness: Harness
    scene: Scene
    presenter: Presenter
    asked: list[Asking] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    now: float = 100.0

    def text(self) -> list[str]:
        """What each block shows."""
        return ["\n".join(row.text.rstrip() for row in block.rows(200, LOOK)) for block in self.scene.blocks]

    def kinds(self) -> list[type]:
        return [type(block) for block in self.scene.blocks]

    async def hear(self, *events: happened.Event) -> None:
        for event in events:
            await self.presenter(event)


@asynccontextmanager
async def stage(folder: Path, *turns: dict[str, Any], tools: tuple[Any, ...] = (), **more: Any) -> AsyncIterator[Stage]:
    async with running(script(folder, *turns), *tools, **more) as harness:
        scene = Scene()
        it: Stage
        presenter = Presenter(
            harness.session,
            scene,
            ask=lambda asking: it.asked.append(asking),
            withdraw=lambda id_: it.withdrawn.append(id_),
            leave=lambda extension: it.left.append(extension),
            clock=lambda: it.now,
        )
        it = Stage(harness, scene, presenter)
        presenter.begin()
        async with harness.session.bus.faced(presenter):
            yield it


async def failing(_: Invocation) -> ToolOutput:
    return ToolOutput.of("it went wrong", is_error=True)


async def test_a_turn_becomes_what_was_said_called_and_answered(tmp_path: Path) -> None:
    turns = [calls(("t", {"a": 1})), says("**done**", usage={"input": 100, "output": 20})]
    async with stage(tmp_path, *turns, tools=(tool("t", echo),)) as it:
        await it.harness.say("please")
        assert it.kinds() == [Said, Call, Answer]
        said, call, answer = it.text()
        assert "please" in said and "t" in call and answer == "done"
        assert it.scene.facts.usage and it.scene.facts.usage.output == 20
        assert it.scene.activity.since == 0.0 and it.scene.activity.doing == ""


async def test_a_session_that_is_opened_again_looks_as_it_did(tmp_path: Path) -> None:
    turns = [calls(("t", {"a": 1}), ("bad", {})), says("**done**"), says("and again")]
    async with stage(tmp_path, *turns, tools=(tool("t", echo), tool("bad", failing))) as it:
        await it.harness.say("please")
        await it.harness.say("again")
        live = it.text()
        it.presenter.begin()
        assert it.text() == live
        assert it.kinds() == [Said, Call, Call, Answer, Said, Answer]


async def test_text_in_pieces_is_one_answer_and_a_thought_ends_where_it_begins(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        await it.hear(
            happened.TurnStarted(1),
            happened.AssistantStarted(),
            ThinkingDelta("hm, "),
            ThinkingDelta("well"),
            TextDelta("hel"),
            TextDelta("lo"),
        )
        assert it.kinds() == [Thought, Answer]
        assert it.text()[1] == "hello"
        assert it.scene.activity.doing == "writing"


async def test_what_was_streamed_is_void_when_it_is_tried_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        await it.hear(
            happened.AssistantStarted(),
            TextDelta("half of"),
            ToolUseStart("c1", "t"),
            ToolUseArgs("c1", '{"a":'),
            happened.Retrying(1, 4, 2000, "the line went dead"),
        )
        assert it.kinds() == [Told]
        assert "the line went dead: trying again in 2 s (1/4)" in it.text()[0]
        await it.hear(TextDelta("all of it"))
        assert it.text()[-1] == "all of it"


async def test_an_answer_that_an_extension_changed_or_hid_is_not_seen_and_it_is_said_who(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        await it.hear(happened.AssistantStarted(), TextDelta("the secret is 7"))
        await it.hear(happened.AssistantReplaced("the secret is …", False, "guard", "secrets"))
        shown = "\n".join(it.text())
        assert "the secret is …" in shown and "7" not in shown and "[guard]" in shown and "secrets" in shown
        await it.hear(happened.AssistantStarted(), TextDelta("another 8"))
        await it.hear(happened.AssistantReplaced("", True, "guard", ""))
        assert "8" not in "\n".join(it.text()) and "hid the answer" in it.text()[-1]


async def test_the_time_a_tool_takes_is_seen_to_pass(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def slowly(_: Invocation) -> ToolOutput:
        await release.wait()
        return ToolOutput.of("at last")

    async with stage(tmp_path, calls(("t", {})), says("done"), tools=(tool("t", slowly),)) as it:
        job = await it.harness.session.say("go")
        await it.harness.seen(happened.ToolCalled)
        assert it.scene.activity.doing == "running t"
        before = it.text()[-1]
        it.scene.taken()
        it.now += 7
        it.presenter.tick()
        assert it.text()[-1] != before and "7" in it.text()[-1]
        assert Part.TRANSCRIPT | Part.ACTIVITY in it.scene.taken()
        release.set()
        assert job
        await job.result()
        it.scene.taken()
        it.now += 7
        it.presenter.tick()
        assert it.scene.taken() == Part(0)  # nothing is drawn while nothing happens


async def test_a_cancelled_turn_says_so_and_nothing_goes_on(tmp_path: Path) -> None:
    async def for_ever(_: Invocation) -> ToolOutput:
        await asyncio.Event().wait()
        raise AssertionError

    async with stage(tmp_path, calls(("t", {})), says("done"), tools=(tool("t", for_ever),)) as it:
        job = await it.harness.session.say("go")
        await it.harness.seen(happened.ToolCalled)
        it.harness.session.abort()
        assert job
        await job.result()
        assert "cancelled" in it.text()[-1]
        assert it.scene.activity.since == 0.0


async def test_an_error_is_told_with_what_to_do_about_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        await it.hear(happened.Failed("no key", "log in"))
        assert it.text() == ["✗ no key\n  → log in"]


async def test_questions_are_passed_on_and_taken_back(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        asked = happened.QuestionAsked("q1", "ext", "which?", ("a", "b"))
        await it.hear(asked, happened.RequestWithdrawn("q1"))
        assert (it.asked, it.withdrawn) == ([asked], ["q1"])
        assert it.scene.blocks == []


async def test_an_extension_cannot_end_the_program_in_the_middle_of_something(tmp_path: Path) -> None:
    async with stage(tmp_path, calls(("t", {})), says("done"), tools=(tool("t", echo, effect=Effect.READ),)) as it:
        inside = asyncio.Event()

        async def during(event: happened.Event) -> None:
            if isinstance(event, happened.ToolCalled):
                await it.hear(happened.QuitAsked("ext"), happened.QuitAsked("ext"))
                inside.set()

        with it.harness.session.bus.subscribed(during):
            await it.harness.say("go")
        assert inside.is_set() and it.left == []
        assert sum("wants to end the program" in text for text in it.text()) == 1  # said once
        await it.hear(happened.QuitAsked("ext"))
        assert it.left == ["ext"]


async def test_what_waits_is_in_the_queue(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        it.scene.taken()
        await it.hear(happened.QueueChanged(("first", "second")))
        assert it.scene.queue == ("first", "second")
        assert it.scene.taken() == Part.QUEUE


async def test_a_summary_stands_for_what_it_replaced(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        await it.hear(happened.CompactionStarted(False, 1000, 10, "c1"))
        assert it.scene.activity.since and "short" in it.scene.activity.doing
        await it.hear(happened.CompactionDone("we spoke of turnips", 10, 2, "c1"))
        assert it.kinds() == [Condensed] and not it.scene.activity.since


async def test_the_owner_stands_with_the_words_of_an_extension(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        await it.hear(happened.Displayed("gardener", "sow now"))
        assert it.text() == ["[gardener]\n▏ sow now"]


async def test_calls_that_run_in_turn_wait_for_it_and_only_their_own_time_counts(
    tmp_path: Path,
) -> None:
    turns = [calls(("bash", {"command": "sleep 1.2"}), ("bash", {"command": "sleep 1.1"})), says("done")]
    async with interface(tmp_path, turns=turns, mode="yolo") as face:
        face.say("go")
        await face.shows("◐ bash sleep 1.2 · running", "○ bash sleep 1.1 · waits its turn")
        await face.shows("✓ bash sleep 1.2 · done 1.", "◐ bash sleep 1.1 · running", "running bash")
        await face.shows("✓ bash sleep 1.1 · done 1.")
