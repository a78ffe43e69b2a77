"""What an extension does, tried with the host in memory, in both dialects where they could differ."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from hilt_sdk import (
    Block,
    Call,
    Event,
    Extension,
    Handled,
    Insert,
    Intercepted,
    Model,
    NotOffered,
    Panel,
    Prompt,
    Replace,
    Reply,
    Request,
    Result,
    Rewrite,
    ToolError,
    ToolPrompt,
)
from hilt_sdk.testing import Host

both = pytest.mark.parametrize("dialect", ["frames", "jsonrpc"])


@dataclass
class Sum:
    total: int


@both
def test_what_a_tool_returns_or_raises_is_its_result(dialect: str, capfd: pytest.CaptureFixture[str]) -> None:
    ext = Extension("demo")
    values: dict[str, Any] = {
        "text": "hello",
        "none": None,
        "number": 7,
        "object": {"a": [1, None]},
        "dataclass": Sum(3),
        "several": ["a", Result("b")],
        "result": Result("x", is_error=True),
        "known": ToolError("no such city", code="NO_CITY", hint="try Rome"),
        "unknown": ValueError("bad\nthing"),
        "unreadable": ToolError("half \ud800"),
        "nan": {"a": [float("nan")]},
        "surrogate": "half \ud800",
        "thing": object(),
        "long": "x" * (4 * 1024 * 1024),
    }

    @ext.tool
    def give(which: str) -> Any:
        value = values[which]
        if isinstance(value, Exception):
            raise value
        return value

    with Host(ext, dialect=dialect) as host:
        told = {which: host.call("give", which=which) for which in values}
    texts = {which: result.text for which, result in told.items()}
    failed = [which for which, result in told.items() if result.is_error]
    assert failed == ["result", "known", "unknown", "unreadable", "nan", "surrogate", "thing", "long"]
    assert (texts["text"], texts["none"], texts["number"], texts["several"]) == ("hello", "ok", "7", "a\nb")
    assert (texts["object"], texts["dataclass"]) == ('{"a":[1,null]}', '{"total":3}')
    assert (texts["unknown"], texts["unreadable"]) == ("ValueError: bad thing", "half ?")
    assert "a[0]: JSON cannot hold NaN" in texts["nan"]
    assert "JSON cannot hold half a character (a lone surrogate)" in texts["surrogate"]
    assert "JSON cannot hold a object" in texts["thing"]
    assert "bytes are too many for one line" in texts["long"] and "write a file" in texts["long"]
    if dialect == "frames":
        assert texts["known"] == "[error:NO_CITY] no such city\nhint: try Rome"
        assert (told["object"].structured, told["dataclass"].structured) == ({"a": [1, None]}, {"total": 3})
    else:
        assert (texts["known"], told["known"].code, told["known"].hint) == ("no such city", "NO_CITY", "try Rome")
    log = capfd.readouterr().err
    assert "raise value\nValueError: bad\nthing" in log, "the traceback of what was not foreseen"
    assert "no such city" not in log, "what the author has foreseen needs none"


@both
def test_handlers_run_side_by_side_and_one_that_hangs_stops_nobody(dialect: str) -> None:
    ext = Extension("demo")
    together = threading.Barrier(21, timeout=5)
    never = threading.Event()

    @ext.tool
    def meet(number: int) -> int:
        together.wait()
        return number

    @ext.tool
    def hang() -> None:
        never.wait(10)

    @ext.tool
    async def wait(number: int) -> int:
        await asyncio.sleep(0.001)
        return number

    with Host(ext, dialect=dialect) as host:
        host.start("hang")
        calls = [host.start("meet", number=number) for number in range(20)]
        assert host.call("wait", number=3).text == "3"
        together.wait()
        assert [host.finish(call).text for call in calls] == [str(number) for number in range(20)]
        calls = [host.start("wait", number=number) for number in range(20)]
        assert [host.finish(call).text for call in calls] == [str(number) for number in range(20)]
        never.set()


def test_the_watchman_wakes_up_for_a_handler_that_hangs_after_a_quiet_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt_sdk.runner._DROWSY", 0)
    monkeypatch.setattr("hilt_sdk.runner._TICK", 0.0005)
    ext = Extension("demo")
    go = [threading.Event() for _ in range(4)]
    for number in range(4):
        ext.tool(name=f"hang{number}")(lambda number=number: go[number].wait(5))
    ext.tool(name="quick")(lambda: "here")
    with Host(ext) as host:
        assert host.call("quick").text == "here"
        for number in range(4):
            host.wait(lambda: host._link.runner._dozing)
            call = host.start(f"hang{number}")
            assert host.call("quick").text == "here"
            go[number].set()
            assert host.finish(call).text == "true"


def test_more_handlers_than_may_run_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt_sdk.runner._THREADS", 2)
    ext = Extension("demo")
    running, most = 0, 0
    counting = threading.Lock()
    go = threading.Event()

    @ext.tool
    def work() -> None:
        nonlocal running, most
        with counting:
            running += 1
            most = max(most, running)
        go.wait(5)
        with counting:
            running -= 1

    with Host(ext) as host:
        calls = [host.start("work") for _ in range(8)]
        host.wait(lambda: running == 2)
        assert host.call("nobody").is_error, "lines are still read"
        go.set()
        assert [host.finish(call).is_error for call in calls] == [False] * 8
    assert most == 2


@both
def test_a_cancelled_call_is_told_and_still_answered(dialect: str) -> None:
    ext = Extension("demo")
    heard: list[str] = []

    @ext.tool
    def slow(call: Call) -> str:
        call.on_cancel(lambda: heard.append("cancelled"))
        call.progress("slow has begun")
        return "stopped" if call.wait(5) else "done"

    @ext.tool
    async def slow_too(call: Call) -> str:
        call.progress("slow_too has begun")
        return "stopped" if await call.sleep(5) else "done"

    with Host(ext, dialect=dialect) as host:
        for name in ("slow", "slow_too"):
            call = host.start(name)
            host.wait(lambda said=f"{name} has begun": said in str(host.said))  # type: ignore[misc]  # bound at once
            host.cancel(call)
            assert host.finish(call).text == "stopped"
        assert heard == ["cancelled"]


def test_a_call_that_waits_for_its_turn_is_cancelled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt_sdk.runner._THREADS", 1)
    ext = Extension("demo")
    go = threading.Event()

    @ext.tool
    def hold(call: Call) -> bool:
        go.wait(5)
        return call.cancelled

    with Host(ext) as host:
        calls = [host.start("hold") for _ in range(3)]
        host.cancel(calls[2])
        host._flush("cancel")
        go.set()
        assert [host.finish(call).text for call in calls] == ["false", "false", "true"]


@both
def test_what_cannot_be_registered_is_said_and_costs_itself_only(dialect: str) -> None:
    ext = Extension("demo")
    ext.prompt_section("Half", "\ud800")
    ext.prompt_section("Rules", "Be kind.")
    with Host(ext, dialect=dialect) as host:
        assert [one["title"] for one in host.registered["prompt_section"]] == ["Rules"]
        assert "a prompt section cannot be registered: " in host.notes[0].text


@both
def test_commands_and_shortcuts_do_what_they_return(dialect: str) -> None:
    ext = Extension("demo")

    @ext.command("hi", "say hello")
    def hi(args: str) -> str | None:
        return f"hello {args}" if args else None

    ext.command("put")(lambda args: Insert("git status"))
    ext.command("ask")(lambda args: Prompt("what is here?"))
    ext.command("explain")(lambda args: ToolPrompt("read", {"path": "a"}, "Explain."))
    ext.command("odd")(lambda args: 3)
    ext.shortcut("ctrl+g", "greet")(lambda: "hello")

    @ext.command("fail")
    def fail(args: str) -> None:
        raise ToolError("not now")

    with Host(ext, dialect=dialect) as host:
        host.answers["host/executeTool"] = {"content": [{"type": "text", "text": "seven"}]}
        assert host.run("/hi Ada").shown == "hello Ada"
        assert host.run("/hi").shown == ""
        assert host.run("/put").inserted == "git status"
        assert host.run("/ask").prompt == "what is here?"
        explain = host.run("/explain")
        if dialect == "frames":
            assert (explain.tool, explain.args, explain.prompt) == ("read", {"path": "a"}, "Explain.")
        else:
            assert explain.prompt == "Explain.\n\nread returned:\nseven"
        assert host.run("/fail").error == "not now"
        assert "cannot return int" in (host.run("/odd").error or "")
        assert host.run("/nope").error == "unknown command: nope"
        assert host.press("ctrl+g").shown == "hello"


@both
def test_a_guard_decides_and_one_that_fails_refuses(dialect: str) -> None:
    ext = Extension("demo")

    @ext.intercept("tool_call")
    def guard(asked: Intercepted) -> Block | Rewrite | str | None:
        if asked.tool == "broken":
            raise KeyError("list")
        if asked.tool == "odd":
            return "a text has no meaning here"
        if "rm" in asked.args.get("command", ""):
            return Block(f"no rm for {asked.origin or 'the model'}")
        return Rewrite({**asked.args, "safe": True}) if asked.tool == "bash" else None

    @ext.intercept("tool_call")
    async def second(asked: Intercepted) -> Block | None:
        return Block("twice") if asked.args.get("safe") and asked.args.get("twice") else None

    @ext.intercept("assistant_message")
    def redact(asked: Intercepted) -> Replace | Block | None:
        if "hidden" in asked.text:
            return Block()
        return Replace(asked.text.replace("1234", "****")) if "1234" in asked.text else None

    ext.intercept("turn_start")(lambda asked: Block("enough") if asked.step > 3 else None)
    ext.intercept("before_agent_start")(lambda asked: asked.system_prompt + " Be brief.")
    ext.intercept("tool_result")(lambda asked: asked.text.upper() if asked.tool == "read" else 1 / 0)

    with Host(ext, dialect=dialect) as host:
        blocked = host.intercept("bash", {"command": "rm x"}, origin="other")
        assert (blocked.blocked, blocked.reason) == (True, "no rm for other")
        assert host.intercept("bash", {"command": "ls"}).args == {"command": "ls", "safe": True}
        assert host.intercept("bash", {"twice": 1}).reason == "twice", "the second sees what the first has changed"
        assert not host.intercept("read").blocked
        for tool in ("broken", "odd"):
            failed = host.intercept(tool)
            assert failed.blocked and failed.reason.startswith("demo's guard failed: "), failed.reason
        assert host.intercept_message("it is 1234").text == "it is ****"
        assert host.intercept_message("hidden").blocked
        assert (host.intercept_turn(3).blocked, host.intercept_turn(4).reason) == (False, "enough")
        assert host.intercept_prompt("You help.").system_prompt == "You help. Be brief."
        assert host.intercept_result("read", "seven").text == "SEVEN"
        assert host.intercept_result("bash", "seven").text == "seven", "one that fails leaves a result as it was"


def test_interceptors_with_a_priority_are_asked_once_each() -> None:
    ext = Extension("demo")
    asked: list[str] = []
    ext.intercept("tool_call")(lambda question: asked.append("plain"))
    ext.intercept("tool_call", priority=5)(lambda question: asked.append("first"))
    ext.intercept("tool_call", priority=1, name="late")(lambda question: asked.append("late"))
    with Host(ext) as host:
        host.intercept("bash")
        assert asked == ["first", "late", "plain"]
    with Host(ext, host="zot") as host:
        asked.clear()
        host.intercept("bash")
        assert asked == ["first", "late", "plain"], "where there are no priorities it still guards"
        assert host.missing == ["priorities of interceptors"]
    alone = Extension("demo")
    alone.intercept("tool_call", priority=5)(lambda question: Block("no"))
    with Host(alone, host="zot") as host:
        assert host.intercept("bash").reason == "no"


@both
def test_events_are_told_one_after_the_other_with_the_same_members(dialect: str) -> None:
    ext = Extension("demo")
    heard: list[Any] = []

    @ext.on("turn_start", "turn_end", "tool_call", "tool_result", "assistant_message", "user_prompt_submit")
    async def listen(event: Event) -> None:
        await asyncio.sleep(0.002 / (len(heard) + 1))
        heard.append((event.name, event.step, event.stop, event.tool_name, event.text))

    with Host(ext, dialect=dialect) as host:
        host.emit("user_prompt_submit", text="hi")
        host.emit("turn_start", step=1)
        host.emit("assistant_message", text="hello")
        host.emit("tool_call", tool_id="c1", tool_name="read", tool_args={"a": 1})
        host.emit("tool_result", tool_id="c1", tool_name="read", result={"content": [], "is_error": True})
        host.emit("turn_end", stop="tool_use")
    assert heard == [
        ("user_prompt_submit", 0, "", "", "hi"),
        ("turn_start", 1, "", "", ""),
        ("assistant_message", 0, "", "", "hello"),
        ("tool_call", 0, "", "read", ""),
        ("tool_result", 0, "", "read", ""),
        ("turn_end", 0, "tool_use", "", ""),
    ]
    heard.clear()
    with Host(ext) as host:
        for step in range(1, 20):
            host._send({"type": "event", "event": "turn_start", "step": step})
        host._flush("events")
    assert [step for _, step, *_ in heard] == list(range(1, 20))
    with pytest.raises(AttributeError, match="turn_end has no colour"):
        _ = Event("turn_end", {"stop": "end"}).colour


class Counter(Panel):
    title = "Count"
    footer = "q closes"
    count = 0
    closed_by_user = False

    def render(self, width: int, height: int) -> list[str]:
        return [f"{self.count} in {width}x{height}"]

    def on_key(self, key: str, text: str) -> None:
        if text == "q":
            self.close()
        elif key == "up":
            self.count += 1

    def on_close(self) -> None:
        self.closed_by_user = True


@both
def test_a_panel_is_drawn_anew_when_it_has_changed(dialect: str) -> None:
    ext = Extension("demo")
    panel = Counter()
    ext.command("count")(lambda args: panel)
    with Host(ext, dialect=dialect) as host:
        panel.update()  # one that is not open is left alone
        panel.close()
        shown = host.run("/count").panel
        assert shown is not None
        assert (shown.title, shown.lines, shown.footer) == ("Count", ["0 in 80x24"], "q closes")
        host.resize(shown, 40, 10)
        host.key(shown, "up")
        assert shown.lines == ["1 in 40x10"]
        said = len(host.said)
        host.key(shown, "down")
        assert not [one for one in host.said[said:] if "render" in str(one)], "nothing to draw"
        host.key(shown, "q")
        assert (shown.open, panel.is_open, panel.closed_by_user) == (False, False, False)
        ext.open(panel)
        host.wait(lambda: panel.id in host.panels)
        host.close_panel(panel.id)
        assert (panel.is_open, panel.closed_by_user) == (False, True)


@both
def test_hooks_transformers_compactors_and_providers_are_asked(dialect: str) -> None:
    ext = Extension("demo")
    ext.message_hook(priority=2, name="b")(lambda text: f"second {text}")
    ext.message_hook(priority=1, name="a")(lambda text: "first")

    @ext.input_transformer()
    def expand(text: str) -> str | Handled | None:
        if text == "note":
            return Handled()
        return text.replace("@me", "Ada") if "@me" in text else None

    ext.compactor(threshold=100)(lambda messages: messages[-1:])

    @ext.provider("parrot", models=[Model("polly", "Polly", 8192)])
    def answer(request: Request, reply: Reply) -> None:
        if request.text == "fail":
            raise RuntimeError("no voice")
        reply.thinking("hm")
        reply.text("You said: ")
        reply.text(request.text)
        if request.text == "look":
            reply.tool_call("read", {"path": "a"}, id="c1")
        reply.usage(5, 2)

    with Host(ext, dialect=dialect) as host:
        assert host.hook("hi") == "first\nsecond hi"
        assert (host.transform("hi @me"), host.transform("hi"), host.transform("note")) == ("hi Ada", "hi", None)
        assert host.compact([{"a": 1}, {"b": 2}]) == [{"b": 2}]
        message = host.stream("look", api="parrot", model="polly").message
        assert message["content"] == [
            {"thinking": "hm"},
            {"text": "You said: look"},
            {"id": "c1", "name": "read", "arguments": {"path": "a"}},
        ]
        assert (message["stopReason"], message["provider"], message["model"]) == ("toolUse", "parrot", "polly")
        assert message["usage"]["inputTokens"] == 5
        pieces = [params["type"] for method, params in host.told if method == "provider/delta"]
        assert pieces == ["thinking_delta", "text_delta", "text_delta", "toolcall_end"]
        assert host.stream("hi").message["stopReason"] == "stop"
        with pytest.raises(AssertionError, match="RuntimeError: no voice"):
            host.stream("fail", api="parrot")
        assert host.registered["provider"][0]["models"] == [{"id": "polly", "name": "Polly", "contextWindow": 8192}]


def _demanding() -> Extension:
    ext = Extension("weather")
    ext.shortcut("ctrl+g")(lambda: None)
    ext.prompt_section("Rules", "Be kind.")
    ext.on("session_end", "EventRetry", "session_start")(lambda event: None)
    ext.intercept("turn_start")(lambda asked: None)
    ext.uses("progress")
    return ext


def test_what_zot_does_not_offer_is_said_at_the_start(capfd: pytest.CaptureFixture[str]) -> None:
    ext = _demanding()
    with Host(ext, host="zot") as host:
        assert host.missing == [
            "events beyond the first five (session_end)",
            "events of the other dialect (EventRetry)",
            "progress of tools",
            "prompt sections (Rules)",
            "shortcuts (ctrl+g)",
        ]
        assert [(note.level, note.text) for note in host.notes] == [
            ("warn", f"weather: zot 0.1.62 does not offer: {', '.join(host.missing)}")
        ]
        assert (ext.host_info.name, ext.offers("shortcuts"), ext.offers("panels")) == ("zot", False, True)
        assert not host.registered, "nothing is registered that zot would not know"
        with pytest.raises(NotOffered, match=r"zot 0\.1\.62 does not offer steering"):
            ext.steer("left")
        ext.show("as a note")
        ext.widget("w", "left out")
        ext.clear_notes()
        host.wait(lambda: len(host.notes) == 2)
        assert host.notes[1].text == "as a note"
    assert "weather: zot 0.1.62 does not offer shortcuts (ctrl+g)\n" in capfd.readouterr().err


def test_what_piglet_does_not_offer_is_said_at_the_start() -> None:
    with Host(_demanding(), host="piglet") as host:
        assert host.missing == [
            "events (session_end, session_start)",
            "interception of turns",
            "progress of tools",
        ]
        assert host.notes[0].text == f"weather: piglet does not offer: {', '.join(host.missing)}"
        assert host.registered["interceptor"] == [{"name": "weather", "priority": 0}]
    with Host(_demanding(), dialect="jsonrpc") as host:
        assert host.missing == ["events (session_end, session_start)"]
    with Host(_demanding()) as host:
        assert (host.missing, host.notes) == ([], [])


@pytest.mark.parametrize("name", ["zot", "piglet"])
def test_an_extension_that_needs_more_does_not_start(name: str) -> None:
    ext = Extension("guard")
    ext.intercept("before_agent_start", required=True)(lambda asked: None)
    with Host(ext, host=name) as host:
        host.wait(lambda: host.exit_code == 1)
        assert "does not offer what it needs: interception of the system prompt" in host.notes[0].text
        assert not any("ready" in str(one) or "result" in one for one in host.said)


@both
def test_what_is_registered_later_counts_where_the_host_allows_it(dialect: str) -> None:
    ext = Extension("demo")
    with Host(ext, dialect=dialect) as host:
        ext.tool(name="late")(lambda: "here")
        ext.prompt_section("Rules", "Be kind.")
        ext.intercept("turn_start")(lambda asked: Block("no"))
        ext.on("EventRetry")(lambda event: None)
        host.wait(lambda: host.registered.get("event_handler"))
        assert host.call("late").text == "here"
        assert host.intercept_turn().reason == "no"
    with Host(ext, host="piglet"), pytest.raises(NotOffered, match="registration after the start"):
        ext.tool(name="later")(lambda: "here")


@both
def test_every_question_is_answered_once_whatever_it_is(dialect: str) -> None:
    ext = Extension("demo")
    with Host(ext, dialect=dialect) as host:
        if dialect == "frames":
            questions: list[dict[str, Any]] = [
                {"type": "tool_call", "id": "a", "name": ["x"]},
                {"type": "command_invoked", "id": "b", "name": None},
                {"type": "shortcut_invoked", "id": "c"},
                {"type": "event_intercept", "id": "d", "event": "nobody knows"},
                {"type": "ext_request", "id": "e", "method": "no/such"},
                {"type": "ext_request", "id": "f", "method": "event/dispatch", "params": [1]},
                {"type": "sparkle", "id": "unheard"},
                {"type": {}, "id": "unheard"},
                {"type": "event", "event": {}, "id": "unheard"},
                {"type": "panel_key", "panel_id": [], "id": "unheard"},
            ]
        else:
            params: list[tuple[str, Any]] = [
                ("no/such", {}),
                ("tool/execute", [1]),
                ("tool/execute", {"name": ["x"]}),
                ("command/execute", {}),
                ("shortcut/handle", None),
                ("interceptor/before", {"name": {}}),
                ("event/dispatch", {"type": 3}),
            ]
            questions = [
                {"jsonrpc": "2.0", "id": 100 + number, "method": method, "params": one}
                for number, (method, one) in enumerate(params)
            ]
        for question in questions:
            host._send(question)
        host._flush("events")
        keys = [one["id"] for one in questions if one["id"] != "unheard"]
        answers = [one for one in host.said if one.get("id") in keys]
        assert sorted(str(one["id"]) for one in answers) == sorted(map(str, keys))
        if dialect == "jsonrpc":
            codes = [one.get("error", {}).get("code") for one in answers]
            assert codes[:5] == [-32601, -32602, -32602, -32602, -32602]


def test_on_ready_and_on_stop_are_called_and_may_fail() -> None:
    ext = Extension("demo")
    called: list[str] = []
    ext.on_ready(lambda: called.append(ext.host_info.dialect))
    ext.on_ready(lambda: called.append(str(1 / 0)))

    @ext.on_stop
    async def stop() -> None:
        await asyncio.sleep(0.001)
        called.append("stopped")

    with Host(ext) as host:
        host.wait(lambda: called)
    assert called == ["frames", "stopped"]


@pytest.mark.parametrize("say", [lambda ext: ext.notify("half \udc00"), lambda ext: ext.show("x" * 5_000_000)])
def test_what_no_line_can_carry_is_never_sent(say: Callable[[Extension], None]) -> None:
    ext = Extension("demo")
    with Host(ext) as host:
        said = len(host.said)
        with pytest.raises(ValueError, match=r"half a character|too many for one line"):
            say(ext)
        ext.notify("fine")
        host.wait(lambda: host.notes)
        assert len(host.said) == said + 1
