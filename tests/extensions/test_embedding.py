"""`from hilt.extensions import ExtensionHost`: other programs get the extensions, and all that protects them."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from hilt.errors import ExtensionTimeout, ManifestError, UsageError
from hilt.extensions import Called, ExtensionHost
from hilt.model.content import text_of
from hilt.model.conversation import Usage
from hilt.model.events import (
    Displayed,
    Event,
    Inserted,
    Noticed,
    Notified,
    PanelClosed,
    PanelShown,
    PromptSubmitted,
    StatusShown,
    ToolResultAdded,
)
from hilt.model.extensions import Dialect
from hilt.model.ports import PermissionRequest
from hilt.model.services import ChatReply, ChatRequest
from support.extending import DEADLINE, Made, chaos, tool
from support.leftovers import nothing_left

ROOT = Path(__file__).parents[2]
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = f"register_tool:{json.dumps({'name': 'weather', 'description': 'Tells it.', 'schema': CITY})}"
SAYS_ARGS = {"on": "tool_call", "do": "answer:$ARGS"}


@asynccontextmanager
async def opened(folder: Path, *made: Made, **options: Any) -> AsyncIterator[ExtensionHost]:
    """They alone, for at most as long as a test may take; nothing is left of them."""
    paths = [made_one.write(folder / "extensions") for made_one in made]
    options = {"cwd": folder, "home": folder / "home", "wait": DEADLINE, **options}
    async with nothing_left(), asyncio.timeout(DEADLINE), ExtensionHost.open(paths, **options) as host:
        assert [(one.name, one.state) for one in host.statuses()] == [(one.name, "ready") for one in made]
        yield host


def weather(dialect: Dialect) -> Made:
    return chaos("sky", "hello", WEATHER, SAYS_ARGS, "ready", dialect=dialect)


@pytest.mark.parametrize(("tools", "guards"), [("frames", "jsonrpc"), ("jsonrpc", "frames")])
async def test_a_call_goes_through_guards_of_the_other_dialect_and_a_refusal_is_a_value(
    tmp_path: Path, tools: Dialect, guards: Dialect
) -> None:
    rules = [
        {"on": "event_intercept", "match": {"tool_args": {"city": "Atlantis"}}, "do": "block:it has sunk"},
        {"on": "event_intercept", "match": {"tool_args": {"city": "rome"}}, "do": 'rewrite:{"city":"Rome"}'},
    ]
    guard = chaos("guard", "hello", "intercept:tool_call", *rules, "ready", dialect=guards)
    async with opened(tmp_path, weather(tools), guard) as host:
        (listed,) = host.tools()
        assert (listed.name, listed.description, listed.schema["required"]) == ("weather", "Tells it.", ["city"])
        fine = await host.call("weather", {"city": "rome"})
        assert (fine.status, fine.is_error, json.loads(fine.text)) == ("completed", False, {"city": "Rome"})
        assert fine.args == {"city": "Rome"}
        assert [(one.extension, one.decision) for one in fine.decisions] == [("guard", "rewrite")]
        refused = await host.call("weather", {"city": "Atlantis"}, call_id="c7")
        assert (refused.status, refused.blocked, refused.is_error, refused.call_id) == ("blocked", True, True, "c7")
        assert "it has sunk" in refused.text and "guard" in refused.text
        wrong = await host.call("weather", {"city": 7})
        assert wrong.status == "failed" and wrong.text.startswith("invalid arguments for weather: city")
        as_written = await host.call("weather", '{"city": "rome"}')
        assert as_written.args == {"city": "Rome"}
        torn = await host.call("weather", '{"city": "Ro')
        assert torn.status == "failed" and "the arguments of weather are not a JSON object" in torn.text
        unknown = await host.call("whether", {})
        assert unknown.is_error and 'unknown tool "whether"; the tools are: weather' in unknown.text


async def test_a_guard_that_must_be_heard_and_gives_no_verdict_refuses_the_call(tmp_path: Path) -> None:
    silent = {"on": "event_intercept", "do": []}
    policy = {"required": True, "timeout_ms": 200}
    guard = chaos("guard", "hello", "intercept:tool_call", silent, "ready", guard=policy)
    events: list[Event] = []
    async with opened(tmp_path, weather("frames"), guard, on_event=events.append) as host:
        refused = await host.call("weather", {"city": "Rome"})
    assert refused.blocked and "guard gave no verdict" in refused.text.replace("guard guard", "guard")
    (decided,) = refused.decisions
    assert (decided.decision, decided.applied) == ("fail", "block")
    assert any(isinstance(event, Noticed) and "gave no verdict" in event.message for event in events)


async def test_arguments_that_json_cannot_say_cost_their_own_call_and_no_other(tmp_path: Path) -> None:
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]
    listening = chaos("ears", "hello", "subscribe:tool_call", "intercept:tool_call", "ready")
    async with opened(tmp_path, weather("frames"), listening) as host:
        for wrong in ({"city": object()}, {"city": float("nan")}, {"city": nested}, ["Rome"]):
            refused = await host.call("weather", wrong)  # type: ignore[arg-type]  # that is what is tried
            assert refused.status == "failed" and "are not a JSON object" in refused.text, wrong
            fine = await host.call("weather", {"city": "Rome"})
            assert fine.status == "completed", fine.text


async def test_progress_comes_while_a_tool_runs_and_a_call_that_is_late_or_withdrawn_is_cancelled_there(
    tmp_path: Path,
) -> None:
    heard, answered, events = tmp_path / "heard", list[str](), list[Event]()
    slow = {"on": "tool_call", "do": ["tool_progress:half", "await:tool_cancel", f"touch:{heard}"]}
    async with opened(tmp_path, tool("slow", slow), on_event=events.append) as host:
        late = await host.call("slow", timeout=0.5, progress=answered.append)
        assert late.status == "timed_out" and "within 0.5 s" in late.text
        assert answered == ["half"]

        begun = asyncio.Event()
        withdrawn = asyncio.ensure_future(host.call("slow", progress=lambda _: begun.set()))
        await begun.wait()
        withdrawn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await withdrawn
        while not (heard.exists() and len(heard.read_text().split("\n")) > 2):
            await asyncio.sleep(0.01)
    assert [event.status for event in events if isinstance(event, ToolResultAdded)] == ["timed_out", "cancelled"]


async def test_one_that_dies_costs_its_call_and_is_there_again_for_the_next(tmp_path: Path) -> None:
    once = {"on": "tool_call", "once": str(tmp_path / "died"), "do": "exit:3"}
    async with opened(tmp_path, tool("t", once)) as host:
        lost = await host.call("t")
        assert lost.is_error and "exited with code 3" in lost.text
        while (host.statuses()[0].restarts, host.statuses()[0].state) != (1, "ready"):
            await asyncio.sleep(0.01)
        assert (await host.call("t")).text == "ok"


async def test_what_a_command_and_an_extension_want_shown_or_said_is_told(tmp_path: Path) -> None:
    shows = ["notify:careful", "submit:look at this", "open_panel", "answer:hello"]
    status = 'host_notify:{"method":"setStatus","params":{"key":"k","text":"busy"}}'
    made = chaos(
        "talker",
        "hello",
        "register_command:hi",
        "register_command:slow",
        {"on": "command_invoked", "match": {"name": "slow"}, "do": "hang"},
        {"on": "command_invoked", "do": [status, *shows]},
        "ready",
    )
    events: list[Event] = []

    async def note(event: Event) -> None:
        events.append(event)
        raise ValueError("a listener's own fault harms nobody")

    async with opened(tmp_path, made, on_event=note) as host:
        assert {command.name for command in host.commands()} == {"hi", "slow"}
        await host.run("/hi", "Ada")
        while not any(isinstance(event, PanelShown) for event in events):
            await asyncio.sleep(0.01)
        host.panel_key("p", "enter")
        await host.close_panel("p")
        with pytest.raises(UsageError, match="no panel"):
            host.panel_key("p", "enter")
        with pytest.raises(UsageError) as unknown:
            await host.run("/ho")
        assert "/hi" in unknown.value.hint
        with pytest.raises(ExtensionTimeout, match=r"/slow did not end within 0\.2 s"):
            await host.run("slow", timeout=0.2)
    told = {type(event): event for event in events if not isinstance(event, Inserted)}
    assert told[Displayed] == Displayed("talker", "hello")
    assert told[Notified] == Notified("talker", "info", "careful")
    submitted = told[PromptSubmitted]
    assert isinstance(submitted, PromptSubmitted)
    assert (text_of(submitted.content), submitted.extension) == ("look at this", "talker")
    assert {PanelShown, PanelClosed, StatusShown} <= set(told)


async def test_extensions_have_their_say_in_the_prompt_the_turn_and_the_answer(tmp_path: Path) -> None:
    section = {"kind": "prompt_section", "title": "House", "content": "be kind"}
    made = chaos(
        "editor",
        "hello",
        f"register:{json.dumps(section)}",
        "intercept:turn_start,assistant_message",
        {"on": "event_intercept:turn_start", "match": {"step": 2}, "do": "block:enough"},
        {"on": "event_intercept:assistant_message", "match": {"text": "secret"}, "do": "suppress"},
        {"on": "event_intercept:assistant_message", "do": "replace:redacted"},
        "ready",
    )
    async with opened(tmp_path, made) as host:
        assert await host.system_prompt("Base.") == "Base.\n\n# House\n\nbe kind"
        assert await host.begin_turn(1) is None
        refused = await host.begin_turn(2)
        assert refused and (refused.by, refused.reason) == ("editor", "enough")
        assert await host.review("hello") == "redacted"
        assert await host.review("secret") is None
        assert await host.transform("as it is") == "as it is"
        assert await host.context("as it is") == ""


async def test_extensions_are_answered_by_the_program_s_model_and_told_what_is_not_there(tmp_path: Path) -> None:
    asked: list[str] = []

    async def chat(request: ChatRequest) -> ChatReply:
        asked.append(text_of(request.messages[0].content))  # type: ignore[union-attr] # it is the user's
        return ChatReply("forty-two", Usage(input=1, output=1))

    question = {"method": "host/chat", "params": {"messages": [{"role": "user", "content": "why?"}]}}
    asks = [
        f"host_request:{json.dumps({'id': 'c', **question})}",
        'host_request:{"id":"s","method":"host/sessions"}',
    ]
    made = tool("t", f"record:{tmp_path / 'frames'}", {"on": "tool_call", "do": [*asks, "answer"]}, dialect="frames")

    def answers() -> dict[str, Any]:
        lines = (tmp_path / "frames").read_text().split("\n")[:-1]
        frames = [json.loads(json.loads(line).get("line", "{}")) for line in lines]
        return {frame["id"]: frame for frame in frames if frame.get("type") == "host_response"}

    async with opened(tmp_path, made, chat=chat) as host:
        await host.call("t")
        while len(answers()) < 2:
            await asyncio.sleep(0.01)
    assert asked == ["why?"]
    assert answers()["c"]["result"]["text"] == "forty-two"
    assert "this host has no sessions" in json.dumps(answers()["s"])


async def test_a_tool_that_acts_waits_for_the_program_s_consent(tmp_path: Path) -> None:
    asked: list[PermissionRequest] = []

    async def approve(request: PermissionRequest) -> bool:
        asked.append(request)
        return request.args == {"city": "Rome"}

    async with opened(tmp_path, weather("frames"), approve=approve) as host:
        assert (await host.call("weather", {"city": "Rome"})).status == "completed"
        refused = await host.call("weather", {"city": "Oslo"})
    assert (refused.status, refused.text) == ("blocked", "permission denied")
    assert [request.tool for request in asked] == ["weather", "weather"]


async def test_what_the_program_raises_comes_out_as_it_was_raised(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with opened(tmp_path, tool("t")):
            raise KeyError("mine")


async def test_a_path_that_is_no_extension_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one path is no list"):
        async with ExtensionHost.open(str(tmp_path), cwd=tmp_path, home=tmp_path / "home"):
            pass
    with pytest.raises(ManifestError, match=r"nowhere: No such file") as wrong:
        async with ExtensionHost.open([tmp_path / "nowhere"], cwd=tmp_path, home=tmp_path / "home"):
            raise AssertionError("it must not open")
    assert not wrong.value.message.startswith("--ext")


async def test_without_paths_those_run_that_are_installed_and_not_switched_off(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in ("one", "two"):
        tool(name).write(home / "extensions")
    tool("lies_here").write(tmp_path / ".hilt" / "extensions")
    (home / "config.toml").write_text("[extensions.two]\nenabled = false\n")
    async with asyncio.timeout(DEADLINE), ExtensionHost.open(cwd=tmp_path, home=home, wait=DEADLINE) as host:
        assert {status.name: status.state for status in host.statuses()} == {"one": "ready", "two": "disabled"}
        assert [tool.name for tool in host.tools()] == ["one"]


def test_the_package_itself_stays_as_light_as_it_was() -> None:
    code = "import sys; import hilt.extensions.host; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"hilt.embedding", "hilt.agent"} & set(done.stdout.split())


def test_the_reference_names_every_method_argument_and_field() -> None:
    text = (ROOT / "docs" / "reference" / "embedding.md").read_text(encoding="utf-8")
    methods = [name for name in vars(ExtensionHost) if not name.startswith("_")]
    assert [name for name in methods if f"host.{name}(" not in text and f"ExtensionHost.{name}(" not in text] == []
    arguments = [name for method in (ExtensionHost.open, ExtensionHost.call) for name in signature(method).parameters]
    fields = [*arguments, *Called.__struct_fields__]
    assert [name for name in fields if name not in ("self", "tool") and f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    ("city", "said"), [("Rome", "Rome: sunny"), ("Atlantis", "interceptor guard before: Atlantis has sunk")]
)
def test_the_example_of_forty_lines_works_as_it_stands(tmp_path: Path, city: str, said: str) -> None:
    example = ROOT / "examples" / "embedding" / "loop.py"
    assert len(example.read_text().splitlines()) <= 40
    environment = {**os.environ, "HILT_HOME": str(tmp_path)}
    command = [sys.executable, str(example), "How is the weather in", f"{city}?"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, env=environment)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout.startswith(f"I asked, and this is the answer: {said}")
