"""Extensions that ask the host while the host asks them: whatever waits for what, nothing waits for ever."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hilt.agent.parts import ActiveModel
from hilt.agent.questions import Reply
from hilt.errors import HiltError, UsageError
from hilt.extensions.methods import streaming
from hilt.model.conversation import user_text
from hilt.model.events import Displayed, Event, QuestionAsked, RequestWithdrawn, Retrying
from hilt.model.extensions import Dialect
from hilt.model.ports import Provider
from hilt.model.stream import TextDelta
from hilt.providers.sourced import Sourced
from support.agent import MODEL, calls, says
from support.clocks import no_time_passes
from support.extending import JSONRPC_ONLY, Extended, Made, chaos, extended, tool
from support.leftovers import nothing_left

pytestmark = pytest.mark.usefixtures("dialect")

SLACK = 5.0
"""Seconds within which a person who stops something has control back, on a busy machine."""
ASK_USER = 'host_request:{"id":"q","method":"host/askUser","params":{"prompt":"Which?","choices":["a","b"]}}'
WAIT = 'host_request:{"id":"w","method":"host/waitForIdle"}'
OWN = 'host_request:{"id":"o","method":"host/executeTool","params":{"name":"own","args":{}}}'
SETTING = 'host_request:{"id":"s","method":"host/config.get","params":{"keys":["defaultModel"]}}'


def now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def beside(tmp_path: Path, *made: Made, **options: Any) -> AsyncIterator[Extended]:
    """All of these beside one that is well, and is still well at the end; nothing is left of any of them."""
    async with nothing_left(), extended(tmp_path, *made, tool("well", dialect="frames"), **options) as it:
        await it.ready()
        yield it
        assert await it.call("well") == ("ok", False)
        assert it.status("well").restarts == 0


def asking(*do: str, at: str, beside: dict[str, Any] | None = None, **manifest: Any) -> Made:
    """Asks the host this wherever it is asked something itself, waits for the answer, and answers then."""
    answer = [] if at.startswith("event:") else ["answer"]  # it has been answered, where it can be
    entry = {"on": at, "times": 1, "do": [*do, "await:host_response", "touch:answered", *answer]}
    return chaos(
        "t",
        "record:../../frames",
        "hello",
        "register_tool:own",
        "register_tool:t",
        "register_command:c",
        'register:{"kind":"shortcut","key":"ctrl+g","description":"Goes."}',
        "intercept:tool_call",
        'register:{"kind":"message_hook","name":"h"}',
        'register:{"kind":"input_transformer","name":"i"}',
        *["subscribe:turn_start"] * (at.startswith("event")),
        {"on": "tool_call", "match": {"name": "own"}, "do": "answer:own"},
        {"on": "event_intercept", "match": {"tool_name": "own"}, "do": "answer"},
        entry,
        *[beside] * bool(beside),
        "ready",
        **manifest,
    )


def answers(it: Extended) -> list[dict[str, Any]]:
    return [frame for frame in it.frames("frames") if frame["type"] == "host_response"]


PLACES = ("tool_call", "command_invoked", "shortcut_invoked", "event_intercept", "hook", "transformer", "event")
HOOK, TRANSFORMER = "ext_request:messageHook/onMessage", "ext_request:inputTransformer/transform"
AT = {"hook": HOOK, "transformer": TRANSFORMER, "event": "event:turn_start"}


async def reach(it: Extended, place: str) -> object:
    """Do what has it asked there, to the end."""
    match place:
        case "command_invoked":
            return await it.session.typed.command("c")
        case "shortcut_invoked":
            return await it.session.press("ctrl+g")
        case "tool_call":
            return await it.call("t")
        case "event_intercept":
            return await it.call("well")
        case _:
            job = await it.session.typed.input("go")
            assert not isinstance(job, tuple) and job
            return await job.result()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("question", [OWN, SETTING], ids=["its own tool", "a setting"])
async def test_the_host_can_be_asked_from_wherever_one_is_asked(tmp_path: Path, place: str, question: str) -> None:
    made = asking(question, at=AT.get(place, place))
    async with beside(tmp_path, made, turns=[says("so")]) as it:
        async with asyncio.timeout(SLACK):
            await reach(it, place)
        (answer,) = await it.until(lambda: answers(it))
        assert "result" in answer, answer
        if question == OWN:
            assert answer["result"]["content"][0]["text"] == "own"
        await it.until((tmp_path / "extensions" / "t" / "answered").exists)
        assert await it.call("t") == ("ok", False)


@pytest.mark.parametrize("place", PLACES)
async def test_the_user_can_be_asked_from_wherever_one_is_asked_and_nothing_else_waits(
    tmp_path: Path, place: str
) -> None:
    made = asking(ASK_USER, at=AT.get(place, place), guard={"timeout_ms": 10_000})
    async with beside(tmp_path, made, turns=[says("so")]) as it, asyncio.TaskGroup() as group:
        reached = group.create_task(reach(it, place))
        question = await it.seen(QuestionAsked)
        if place not in ("event_intercept", "event"):
            assert not reached.done()
        if place != "event_intercept":
            assert await it.call("well") == ("ok", False), "others go on"
        it.questions.answer(question.id, Reply(selected="b"))
        async with asyncio.timeout(SLACK):
            await reached
        (answer,) = await it.until(lambda: answers(it))
        assert answer["result"] == {"selected": "b", "cancelled": False}


@pytest.mark.parametrize("place", ["tool_call", "command_invoked", "shortcut_invoked", "transformer", "hook"])
async def test_a_stop_ends_what_waits_for_the_user_or_for_rest(tmp_path: Path, place: str) -> None:
    """Who waits for the end of the turn that waits for it waits in vain, but not after a stop."""
    entry = {"on": AT.get(place, place), "times": 1, "do": [WAIT, ASK_USER]}
    made = asking(SETTING, at="never", beside=entry)
    turns = [calls(("t", {})), says("so"), says("again")]
    async with beside(tmp_path, made, turns=turns) as it, asyncio.TaskGroup() as group:
        ended: list[str] = []

        async def run() -> None:
            try:
                if place == "tool_call":
                    await (await it.session.prompt(user_text("go"))).result()
                else:
                    await reach(it, place)
            except HiltError as error:
                ended.append(error.message)

        reached = group.create_task(run())
        await it.seen(QuestionAsked)
        with no_time_passes():
            assert it.session.abort()
            await reached
            await it.session.idle()
        assert all("cancelled" in message for message in ended)
        assert (await it.say()).stop == "end"
        assert it.status("t").restarts == 0


async def test_whoever_waits_for_rest_outside_a_turn_has_it_when_the_turn_is_over(tmp_path: Path) -> None:
    go = tmp_path / "go"
    waiting = {"on": "tool_call", "match": {"name": "t"}, "do": [WAIT, f"wait_for:{go}", "answer"]}
    made = tool("t", "record:../../frames", waiting)
    async with beside(tmp_path, made, turns=[calls(("t", {})), says("so")]) as it, asyncio.TaskGroup() as group:
        turn = group.create_task(it.say())
        await it.until(lambda: any(frame["type"] == "tool_call" for frame in it.frames("frames")))
        assert await it.call("well") == ("ok", False)
        assert answers(it) == []
        go.touch()
        await turn
        (answer,) = await it.until(lambda: answers(it))
        assert answer["result"] == {}


async def test_the_thirty_third_request_waits_and_every_one_is_answered(tmp_path: Path) -> None:
    asks = 'host_request:{"id":"$N","method":"host/waitForIdle"}'
    go = tmp_path / "go"
    entry = {"on": "tool_call", "match": {"name": "t"}, "do": ["flood:1000", asks, SETTING, f"wait_for:{go}", "answer"]}
    made = tool("t", "record:../../frames", entry)
    async with beside(tmp_path, made, turns=[calls(("t", {})), says("so")]) as it, asyncio.TaskGroup() as group:
        turn = group.create_task(it.say())
        extension = it.host._supervisors["t"].current
        assert extension
        await it.until(lambda: len(extension.requests) == 1001)
        assert len(extension.requests._running) == 32, "the rest waits"
        assert answers(it) == []
        go.touch()
        await turn
        found = await it.until(lambda: len(answers(it)) == 1001 and answers(it))
        assert all("result" in answer for answer in found)
        assert len({answer["id"] for answer in found}) == 1001
        assert len(extension.requests) == 0


async def test_what_it_does_not_want_to_know_any_more_ends_whether_it_runs_or_waits(
    tmp_path: Path, dialect: Dialect
) -> None:
    def cancel(id_: str) -> str:
        number = {"frames": f'"{id_}"', "jsonrpc": id_}[dialect]
        return f'host_notify:{{"method":"$/cancelRequest","params":{{"id":{number}}}}}'

    asks = 'host_request:{"id":"$N","method":"host/askUser","params":{"prompt":"Which?","choices":["a"]}}'
    waits = 'host_request:{"id":"$N","method":"host/waitForIdle"}'
    go = tmp_path / "go"
    begin = [asks, "flood:40", waits, f"wait_for:{go}"]
    do = [*begin, cancel("1"), cancel("40"), cancel("40"), cancel("99"), "await:host_response"]
    made = tool("t", "record:../../frames", {"on": "tool_call", "match": {"name": "t"}, "do": [*do, "hang"]})
    async with (
        beside(tmp_path, made, turns=[calls(("t", {})), says("so")]) as it,
        asyncio.TaskGroup() as group,
    ):
        turn = group.create_task(it.say())
        await it.seen(QuestionAsked)  # one that is taken back before it was put to anyone is not withdrawn
        go.touch()
        found = await it.until(lambda: len(answers(it)) == 2 and answers(it))
        assert {answer["id"] for answer in found} == {"1", "40"}
        assert all("cancelled" in answer["error"]["message"] for answer in found)
        await it.seen(RequestWithdrawn)
        assert it.session.abort()
        await turn


async def test_a_number_still_in_use_cannot_be_used_again(tmp_path: Path) -> None:
    again = [ASK_USER, ASK_USER, SETTING, "await:host_response", "answer"]
    async with beside(tmp_path, tool("t", "record:../../frames", {"on": "tool_call", "do": again})) as it:
        assert await it.call("t") == ("ok", False)
        assert len(it.of(QuestionAsked)) == 1
        await it.warned("extension t", "under a number that is still in use")
        assert it.status("t").mistakes == 1


async def test_what_was_asked_ends_with_the_process_that_asked(tmp_path: Path) -> None:
    subscribe = 'host_request:{"id":"b","method":"host/subscribe","params":{"topic":"news"}}'
    many = ["flood:100", 'host_request:{"id":"$N","method":"host/waitForIdle"}']
    do = [subscribe, "await:host_response", ASK_USER, WAIT, *many]
    dies = {"on": "tool_call", "once": str(tmp_path / "once"), "do": [*do, f"wait_for:{tmp_path / 'go'}", "exit:3"]}
    made = tool("t", "record:../../frames", dies)
    async with beside(tmp_path, made, turns=[calls(("t", {})), says("so")]) as it, asyncio.TaskGroup() as group:
        turn = group.create_task(it.say())
        question = await it.seen(QuestionAsked)
        extension = it.host._supervisors["t"].current
        topics: Any = extension.house.facilities.topics if extension and extension.house.facilities else None
        assert extension
        await it.until(lambda: len(extension.requests) >= 100)
        assert len(topics._subscriptions["news"]) == 1
        (tmp_path / "go").touch()
        await turn
        assert "exited with code 3" in it.result()
        await it.seen(RequestWithdrawn, id=question.id)
        await it.until(lambda: len(extension.requests) == 0)
        assert not topics._subscriptions.get("news")
        await it.until(lambda: it.status("t").state == "ready" and it.status("t").restarts == 1)
        assert await it.call("t") == ("ok", False)


async def test_a_reader_that_lags_loses_what_is_published_and_holds_up_nobody(tmp_path: Path) -> None:
    subscribe = 'host_request:{"id":"b","method":"host/subscribe","params":{"topic":"news"}}'
    deaf = [subscribe, "await:host_response", "stop_reading", "answer"]
    listener = tool("deaf", {"on": "tool_call", "times": 1, "do": deaf}, stop_grace_ms=0)
    news = '{"id":"$N","method":"host/publish","params":{"topic":"news","data":"%s"}}' % ("x" * 10_000)
    publisher = tool("t", {"on": "tool_call", "do": ["flood:600", f"host_request:{news}", "answer"]})
    async with beside(tmp_path, listener, publisher) as it:
        assert await it.call("deaf") == ("ok", False)
        began = now()
        assert await it.call("t") == ("ok", False)
        assert now() - began < SLACK
        await it.until(lambda: it.status("deaf").events_lost > 100)


# What an extension has done as if typed


@JSONRPC_ONLY
async def test_its_own_command_among_its_messages_does_not_hold_up_what_it_says(tmp_path: Path) -> None:
    made = chaos(
        "t",
        "hello",
        "register_tool:t",
        "register_command:c",
        {"on": "tool_call", "do": ["submit_slash:/c", "answer"]},
        {"on": "command_invoked", "do": ["flood:1000", "notify:n$N", "host_notify", "answer"]},
        "ready",
    )
    async with beside(tmp_path, made) as it:
        assert await it.call("t") == ("ok", False)
        await it.seen(Displayed, extension="t", text="chaos")
        assert await it.call("t") == ("ok", False)


# Providers


def provided(it: Extended) -> None:
    """Have the extension answer for the model."""

    def nobody() -> Provider:
        raise UsageError("nobody answers for it")

    session = it.session
    source = Sourced("script", session.parts.registry, lambda: session.extensions, session.bus.emit, nobody)
    session.active = ActiveModel(source, MODEL)


PROVIDER = 'register:{"kind":"provider","api":"script"}'


@pytest.mark.parametrize("end", ["exit:3", "signal:KILL", "close_stdout"])
async def test_a_provider_that_dies_in_the_middle_of_an_answer_is_a_clear_error_and_the_session_goes_on(
    tmp_path: Path, end: str
) -> None:
    streams = ["flood:50", "delta:word $N ", f"wait_for:{tmp_path / 'go'}", "log:out of credit", end]
    dying = {"on": "ext_request:provider/stream", "needs": str(tmp_path / "dies"), "do": streams}
    made = tool("t", PROVIDER, dying)
    (tmp_path / "dies").touch()
    async with beside(tmp_path, made) as it, asyncio.TaskGroup() as group:
        provided(it)
        turn = group.create_task(it.say())
        await it.until(lambda: it.of(TextDelta))
        (tmp_path / "go").touch()
        outcome = await turn
        assert outcome.stop == "error" and "extension t" in outcome.error and "restarting" in outcome.error
        ended = {"exit:3": "exited with code 3", "signal:KILL": "SIGKILL", "close_stdout": "closed its output"}[end]
        reason = it.of(Retrying)[0].reason
        assert ended in reason and "out of credit" in reason
        (tmp_path / "dies").unlink()
        await it.until(lambda: it.status("t").state == "ready", "it is back")
        assert (await it.say()).text == "ok"


# C16


async def test_every_piece_of_a_long_answer_arrives_in_order_and_the_end_decides_what_was_said(tmp_path: Path) -> None:
    streams = {"on": "ext_request:provider/stream", "do": ["flood:10000", "delta:$N ", "answer:something else"]}
    async with beside(tmp_path, tool("t", PROVIDER, streams)) as it:
        provided(it)
        outcome = await it.say()
        assert "".join(event.delta for event in it.of(TextDelta)).split() == list(map(str, range(1, 10_001)))
        assert outcome.text == "something else"
        assert it.status("t").mistakes == 0


async def test_pieces_that_nobody_takes_hold_up_their_sender_and_are_not_lost(tmp_path: Path) -> None:
    taken, sent = asyncio.Event(), tmp_path / "sent"
    much = ["flood:20000", f"delta:{'x' * 200}", f"touch:{sent}", "answer"]
    made = tool("t", PROVIDER, {"on": "ext_request:provider/stream", "do": much})

    async def slowly(event: Event) -> None:
        if isinstance(event, TextDelta):
            await taken.wait()

    async with beside(tmp_path, made) as it, asyncio.TaskGroup() as group:
        provided(it)
        with it.session.bus.subscribed(slowly):
            turn = group.create_task(it.say())
            await it.until(lambda: it.of(TextDelta))
            extension = it.host._supervisors["t"].current
            assert extension
            await it.until(lambda: extension.brake._holders, "it is not read any more")
            assert not sent.exists()
            taken.set()
            await turn
        assert len(it.of(TextDelta)) == 20_000


async def test_an_answer_that_falls_silent_is_given_up_and_its_sender_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert streaming._SILENCE == 300
    monkeypatch.setattr(streaming, "_SILENCE", 0.4)
    slow = {
        "on": "ext_request:provider/stream",
        "times": 1,
        "do": ["delta", "sleep:0.2", "delta", "sleep:0.2", "delta"],
    }
    made = tool("t", "record:../../frames", PROVIDER, slow)
    async with beside(tmp_path, made) as it:
        provided(it)
        began = now()
        outcome = await it.say()
        assert now() - began >= 0.75, "each piece is a sign of life"
        assert outcome.text == "ok", "the second attempt"
        (told,) = [frame for frame in it.frames("frames") if frame["type"] == "ext_notify"]
        assert told["method"] == "$/cancelRequest"
        assert "timeout" in it.of(Retrying)[0].reason


async def test_a_stop_ends_an_answer_at_once_and_its_sender_is_told(tmp_path: Path) -> None:
    endless = {"on": "ext_request:provider/stream", "times": 1, "do": ["delta", "sleep:0.01", "again"]}
    made = tool("t", "record:../../frames", PROVIDER, endless)
    async with beside(tmp_path, made) as it:
        provided(it)
        job = await it.session.prompt(user_text("go"))
        await it.until(lambda: it.of(TextDelta))
        with no_time_passes():
            assert it.session.abort()
            assert (await job.result()).stop == "aborted"
        await it.until(lambda: [frame for frame in it.frames("frames") if frame["type"] == "ext_notify"])
        assert (await it.say()).text == "ok", "what it still sends is for nobody"
        assert it.status("t").mistakes == 0


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("refuse:quota", "quota"),
        ('answer:{"result":{"message":7}}', "message"),
        ('answer:{"result":{"message":{"content":7}}}', "content"),
        ('answer:{"result":{"error":"no credit"}}', "no credit"),
        ('delta:{"type":"error","delta":"line busy"}', "line busy"),
    ],
)
async def test_an_answer_that_fails_or_cannot_be_used_is_an_error_that_says_why(
    tmp_path: Path, answer: str, told: str
) -> None:
    made = tool("t", PROVIDER, {"on": "ext_request:provider/stream", "needs": str(tmp_path / "bad"), "do": answer})
    (tmp_path / "bad").touch()
    async with beside(tmp_path, made) as it:
        provided(it)
        outcome = await it.say()
        assert outcome.stop == "error" and "extension t" in outcome.error and told in outcome.error
        (tmp_path / "bad").unlink()
        assert (await it.say()).text == "ok"


# C17, C18, and others whose word counts


@pytest.mark.parametrize("answer", ["refuse:no", "exit:3", 'answer:{"result":7}', 'answer:{"result":{"output":[]}}'])
async def test_a_transformer_that_fails_loses_nothing_that_was_typed(tmp_path: Path, answer: str) -> None:
    fails = {"on": TRANSFORMER, "once": str(tmp_path / "once"), "do": answer}
    made = tool("t", 'register:{"kind":"input_transformer","name":"i"}', fails)
    async with beside(tmp_path, made, turns=[says("so")]) as it:
        with pytest.raises(HiltError) as raised:
            await it.session.typed.input("go")
        assert "t" in raised.value.message
        assert it.provider.requests == [], "it was not said in another way than it was typed"


@pytest.mark.parametrize("answer", ["refuse:no", "exit:3", 'answer:{"result":7}'])
async def test_a_hook_that_fails_costs_what_it_would_have_added_and_no_more(tmp_path: Path, answer: str) -> None:
    made = tool("t", 'register:{"kind":"message_hook","name":"h"}', {"on": HOOK, "times": 1, "do": answer})
    async with beside(tmp_path, made, turns=[says("so")]) as it:
        assert (await it.say()).text == "so"
