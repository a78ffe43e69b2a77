"""What hostile extensions of either dialect try: to see what they may not, to get past a guard, to be too much."""

from pathlib import Path
from typing import Any

import pytest

from hilt.agent.permissions import Permissions
from hilt.cli.settings import Settings
from hilt.errors import HiltError, SessionError
from hilt.extensions.capabilities import READ, needed_to_hear
from hilt.home import Home
from hilt.model.events import Notified
from hilt.model.extensions import Dialect, Note
from hilt.packages.choices import Choices
from hilt.sessions.log import SessionLog
from hilt.sessions.records import EntryRecord, new_meta
from hilt.wire.jsonrpc_events import EVENTS
from hilt.wire.jsonrpc_messages import bare, read_messages
from support.agent import calls, says
from support.extending import JSONRPC_ONLY, chaos, extended, tool
from support.hilt_process import Hilt, until
from support.offerer import Ask, Refused
from support.offering import heard, offering

LONG = 1_000_000
HARMLESS = {
    "EventAgentStart",
    "EventSessionLoad",
    "EventAgentInit",
    "EventTurnStart",
    "EventStepWait",
    "EventToolStart",
    "EventRetry",
    "EventMaxTurns",
    "EventCompact",
}
"""Events that say that something happens, or which tool is called, and nothing of what is said."""

pytestmark = pytest.mark.usefixtures("dialect")


# Seeing


@JSONRPC_ONLY
def test_every_event_that_carries_what_was_said_takes_the_permission_to_read_it() -> None:
    assert {event for event in EVENTS if needed_to_hear(event) != (READ,)} == HARMLESS


async def test_one_that_may_not_read_the_conversation_is_told_of_nothing_that_is_said(tmp_path: Path) -> None:
    made = offering("spy", ("eventHandler", {"name": "all", "events": []}), ("tool", {"name": "t", "description": "x"}))
    turns = [calls(("t", {"a": "asked"})), says("an answer")]
    revoked = {"spy": Choices(revoked=(READ,))}
    async with extended(tmp_path, made, turns=turns, choices=revoked) as it:
        await it.ready()
        await it.warned("permission denied: spy may not read the conversation", "EventAgentEnd")
        await it.say("a secret")
        await it.until(lambda: {"EventToolStart"} <= set(told(tmp_path)))
        await it.say("another secret")  # whatever the first turn told it is there by now
    assert set(told(tmp_path)) <= HARMLESS
    assert "secret" not in (tmp_path / "extensions" / "spy" / "heard.jsonl").read_text()


def told(folder: Path) -> list[str]:
    return [message["params"]["type"] for message in heard(folder / "extensions" / "spy", "event/dispatch")]


@JSONRPC_ONLY
def test_a_link_in_its_data_directory_shows_an_extension_no_file_of_the_users(tmp_path: Path) -> None:
    data = tmp_path / "data" / "spy"
    data.mkdir(parents=True)
    (tmp_path / "auth.json").write_text("sk-secret")
    (data / "spy.md").write_text("be kind\n")
    settings = Settings(Home(tmp_path))
    assert settings.read("spy") == "be kind"
    (data / "spy.md").unlink()
    (data / "spy.md").symlink_to(tmp_path / "auth.json")
    with pytest.raises(HiltError, match="not a regular file"):
        settings.read("spy")


# Getting past a guard


@pytest.mark.parametrize("mode", ["yolo", "accept-edits"])
async def test_a_call_too_large_to_be_shown_to_a_guard_is_refused_whatever_its_silence_means(
    tmp_path: Path, mode: Any
) -> None:
    guard = chaos("guard", "hello", "intercept:tool_call", "ready", guard={"on_failure": "allow"})
    turns = [calls(("t", {"text": "x" * 4 * 1024 * 1024})), says("done")]
    async with extended(tmp_path, guard, tool("t"), turns=turns, permissions=Permissions(mode)) as it:
        await it.ready()
        await it.say()
        assert it.result().startswith("refused, because guard guard gave no verdict")
        await it.warned("guard guard gave no verdict", "the call of t is refused")


# Being too much


def refuse(_: Ask) -> Any:
    raise Refused("x" * 1_000_000)


def forbid(_: Ask) -> Any:
    return {"allow": False, "preview": "x" * 1_000_000}


def inject(_: Ask) -> Any:
    return {"injection": "x" * 1_000_000}


TOOL = ("tool", {"name": "t", "description": "x", "parameters": {"type": "object"}})


@JSONRPC_ONLY
async def test_a_tool_that_fails_at_length_does_not_fill_the_conversation(tmp_path: Path) -> None:
    turns = [calls(("t", {})), says("done")]
    async with extended(tmp_path, offering("p", TOOL, answers={"tool/execute": refuse}), turns=turns) as it:
        await it.ready()
        await it.say()
        assert it.result().startswith("ext p tool t: xxx") and len(it.result()) < 11_000


@pytest.mark.parametrize("answer", [refuse, forbid])
async def test_a_guard_that_refuses_at_length_does_not_fill_the_conversation(tmp_path: Path, answer: Any) -> None:
    guard = offering("guard", ("interceptor", {"name": "i"}), answers={"interceptor/before": answer})
    turns = [calls(("t", {})), says("done")]
    async with extended(tmp_path, guard, tool("t"), turns=turns) as it:
        await it.ready()
        await it.say()
        assert "xxx" in it.result() and "guard" in it.result() and len(it.result()) < 11_000


async def test_a_message_hook_cannot_drown_the_system_prompt(tmp_path: Path) -> None:
    made = offering("p", ("messageHook", {"name": "h"}), answers={"messageHook/onMessage": inject})
    async with extended(tmp_path, made, turns=[says("fine")]) as it:
        await it.ready()
        assert (await it.say()).stop == "end"
        await it.warned("message hook of p", "`injection` has 1,000,000 characters")


@pytest.mark.parametrize("kind", ["messageHook", "inputTransformer", "eventHandler"])
async def test_only_so_many_of_what_is_asked_all_at_once_are_kept(tmp_path: Path, kind: str) -> None:
    offers = [(kind, {"name": f"n{number}"}) for number in range(70)]
    async with extended(tmp_path, offering("p", *offers)) as it:
        await it.ready()
        await it.warned("'n64': an extension can have 64")
        registered = it.host.registered("p")
        kept = {"messageHook": registered.message_hooks, "eventHandler": registered.event_handlers}
        assert len(kept.get(kind, range(64))) == 64


async def test_a_note_of_a_million_characters_is_cut(tmp_path: Path) -> None:
    async with extended(tmp_path) as it:
        await it.session.notes.add(Note("p", "info", "x" * LONG))
        [note], [shown] = it.session.notes.shown, it.of(Notified)
        assert note.message == shown.message == "x" * 10_000 + "…"


# Providers


OWN = ("provider", {"api": "mine", "models": [{"id": "m1"}]})


def endless(ask: Ask) -> Any:
    while not ask.cancelled.is_set():
        ask.say("x" * 500_000)


def failing(ask: Ask) -> Any:
    return {"error": "x" * 1_000_000}


def alike(ask: Ask) -> Any:
    if any(message.get("toolCallId") for message in ask.params["messages"]):
        return ask.message({"text": "done"})
    return ask.message(*({"id": "a", "name": "t", "arguments": {"n": n}} for n in range(2)), stop="toolUse")


def session_of(tmp_path: Path, answer: Any, dialect: Dialect) -> tuple[Hilt, list[str]]:
    hilt = Hilt(tmp_path)
    hilt.home.mkdir()
    (hilt.home / "config.toml").write_text("[retry]\nattempts = 2\nbase_delay = 0.01\n")
    made = offering("p", OWN, TOOL, answers={"provider/stream": answer}, dialect=dialect).write(tmp_path)
    return hilt, ["--ext", str(made), "--model", "mine/m1", "--permissions", "yolo"]


def test_an_answer_without_end_is_ended(tmp_path: Path, dialect: Dialect) -> None:
    hilt, flags = session_of(tmp_path, endless, dialect)
    with hilt.rpc(*flags) as rpc:
        rpc.settled()
        events = rpc.prompt("go")
        assert "more than 33,554,432 characters" in next(line for line in events if line["type"] == "error")["message"]
        assert not [line for line in events if line["type"] == "retry"]
        assert rpc.ask("get_state")["success"]


def heavy(ask: Ask) -> Any:
    """As fast as it can, and says how far it is."""
    for number in range(60):
        ask.say("x" * 500_000)
        ask.touch(f"at-{number}")
    return ask.message({"text": "done"})


@JSONRPC_ONLY
def test_heavy_pieces_wait_for_the_reader_however_few_they_are(tmp_path: Path) -> None:
    hilt, flags = session_of(tmp_path, heavy, "jsonrpc")
    with hilt.started("--json", "go", *flags) as process:
        assert process.stdout
        sent: list[int] = []

        def at_rest() -> bool:
            """Whether it has got no further for a while."""
            sent.append(len(list((tmp_path / "p").glob("at-*"))))
            return sent[-1] > 0 and len(sent) > 50 and len(set(sent[-50:])) == 1

        until(at_rest, "a pause of the extension")
        assert sent[-1] < 30
        assert b'"stop":"end"' in process.stdout.read()
        assert process.wait(30) == 0


def test_a_failure_told_at_length_is_told_in_brief(tmp_path: Path, dialect: Dialect) -> None:
    hilt, flags = session_of(tmp_path, failing, dialect)
    with hilt.rpc(*flags) as rpc:
        rpc.settled()
        told = [line for line in rpc.prompt("go") if line["type"] in ("retry", "error")]
    assert len(told) == 2 and max(len(str(line)) for line in told) < 11_000


def test_two_calls_of_one_answer_never_have_the_same_id(tmp_path: Path, dialect: Dialect) -> None:
    hilt, flags = session_of(tmp_path, alike, dialect)
    with hilt.rpc(*flags) as rpc:
        rpc.settled()
        results = [line for line in rpc.prompt("go") if line["type"] == "tool_result"]
    assert len({result["id"] for result in results}) == len(results) == 2


# What stays


@JSONRPC_ONLY
@pytest.mark.parametrize(
    "time", ["9999-12-31T23:59:59-23:00", "0001-01-01T00:00:00+23:00", "0002-01-01T00:00:00+23:59"]
)
def test_a_message_from_the_end_of_time_does_not_make_the_conversation_unreadable(time: str) -> None:
    messages, problems = read_messages([{"role": "user", "content": "x", "timestamp": time}])
    assert problems == ()
    [written] = bare(messages)
    assert written.timestamp


@JSONRPC_ONLY
def test_what_is_nested_too_deeply_to_be_kept_is_refused_and_the_session_goes_on(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    log = SessionLog.in_memory(new_meta(str(tmp_path), "script", "script"))
    with pytest.raises(SessionError, match="nested too deeply"):
        log.append(EntryRecord("k", deep, "p"))
    log.append(EntryRecord("k", 1, "p"))
    assert [entry.type for entry in log.entries()] == ["meta", EntryRecord.TYPE]
