"""One session of the real agent with the demo program: everything it does is tried once, and what came of it is kept.

Owns the conversation and what of it is looked at. Which outcome is the right one is in `sdk_behaviours`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.agent import calls, says
from support.hilt_process import Hilt, Rpc, until

Event = dict[str, Any]
Outcomes = dict[str, Any]
TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "text": ("echo", {"text": "hi", "times": 2}),
    "default": ("echo", {"text": "once"}),
    "picture": ("picture", {}),
    "told": ("told", {}),
    "broken": ("broken", {}),
    "data": ("data", {}),
    "nan": ("nan", {}),
    "nothing": ("nothing", {}),
    "relay": ("relay", {"path": "seven.txt"}),
    "chatter": ("chatter", {}),
    "forbidden": ("echo", {"text": "forbidden"}),
    "changed": ("echo", {"text": "change me"}),
    "exploded": ("echo", {"text": "explode"}),
    "loud": ("echo", {"text": "loud"}),
    "whisper": ("echo", {"text": "whisper"}),
}
TURNS = (
    {"content": [{"type": "tool_call", "id": key, "name": name, "args": args} for key, (name, args) in TOOLS.items()]},
    says("tools tried"),
    calls(("echo", {"text": "a"})),
    says("events told"),
    says("my code is 1234"),
    says("say nothing"),
    says("hello Ada", expect={"role": "user", "contains": "hi Ada"}),
    says("prompted", expect={"role": "user", "contains": "prompted words"}),
    says("explained", expect={"role": "user", "contains": "Explain this.\n\nread returned:\n"}),
    says("submitted", expect={"role": "user", "contains": "submitted words"}),
    says("four"),  # to host.chat
    calls(("slow", {})),
)
"""What the model says, in the order of the steps below."""


def play(hilt: Hilt, extension: Path) -> Outcomes:
    """The outcome of each behaviour, by its name."""
    (hilt.project / "seven.txt").write_text("seven\n")
    hilt.home.mkdir(exist_ok=True)
    (hilt.home / "config.toml").write_text('[extensions.demo.settings]\nunits = "metric"\n')
    outcomes: Outcomes = {}
    with hilt.rpc("--ext", str(extension), "--permissions", "yolo", *hilt.script(*TURNS)) as rpc:
        rpc.event("ext_status", extension="demo", state="ready")
        for step in _STEPS:
            outcomes |= step(rpc)
        outcomes["it ends with the host"] = rpc.close()
    written = (hilt.home / "logs" / "ext-demo.log").read_text()
    outcomes["print goes to the log"] = [word in written for word in ("printed by demo", "echoed by demo")]
    outcomes["data is kept"] = (hilt.home / "data" / "demo" / "kept.txt").exists()
    return outcomes


def _turn(rpc: Rpc, message: str) -> list[Event]:
    lines = rpc.prompt(message)
    rpc.rest()
    return lines


def _of(lines: list[Event], kind: str) -> list[Event]:
    return [line for line in lines if line["type"] == kind]


def _words(content: list[Event]) -> str:
    return "\n".join(str(block.get("text", block.get("mime_type"))) for block in content)


def _answer(lines: list[Event]) -> str:
    return _words(_of(lines, "assistant_message")[-1]["content"])


def _run(rpc: Rpc, name: str, args: str = "") -> Event:
    return rpc.ask("command", name=name, args=args)


def _shown(rpc: Rpc, name: str, args: str = "") -> str:
    """What a command showed."""
    rpc.send(type="command", name=name, args=args)
    return str(rpc.event("ext_display", extension="demo")["text"])


def _tools(rpc: Rpc) -> Outcomes:
    lines = _turn(rpc, "try the tools")
    results = {line["id"]: (line["is_error"], _words(line["content"])) for line in _of(lines, "tool_result")}
    failed, words = results["broken"]
    progress = [line["text"] for line in _of(lines, "tool_progress") if line["id"] == "text"]
    started = next(line for line in _of(lines, "interception") if line["event"] == "before_agent_start")
    return {
        "a tool answers with a text": results["text"],
        "progress is shown": progress,
        "a default is filled in": results["default"],
        "a picture is a result": results["picture"],
        "a ToolError is told with its code and hint": results["told"],
        "an exception is an error result": (failed, words.endswith("boom")),
        "data are told as JSON": results["data"],
        "what JSON cannot hold is an error": results["nan"],
        "nothing is ok": results["nothing"],
        "a tool calls another tool": results["relay"],
        "printing does no harm": results["chatter"],
        "a call is blocked": results["forbidden"],
        "arguments are rewritten": results["changed"],
        "a guard that fails refuses": results["exploded"],
        "the text of a result is replaced": results["loud"],
        "a whole result is replaced": results["whisper"],
        "the system prompt is replaced": [one["changed"].endswith("\nBe brief.") for one in started["decisions"]],
    }


def _events(rpc: Rpc) -> Outcomes:
    _turn(rpc, "tell the events")
    told: list[str] = []

    def all_told() -> bool:
        told.extend(_shown(rpc, "events").split("; ")[1:])
        return told[-2:] == ["assistant_message:events told", "turn_end:end"]

    until(all_told, "the last event")
    return {"events are told": told[told.index("user_prompt_submit:tell the events") :]}


def _answers(rpc: Rpc) -> Outcomes:
    (replaced,) = _of(_turn(rpc, "what is your code?"), "assistant_replace")
    (kept,) = _of(_turn(rpc, "be quiet"), "assistant_replace")
    return {
        "an answer is replaced": (replaced["text"], replaced["suppressed"]),
        "an answer is kept back": (kept["suppressed"], kept["reason"]),
    }


def _input(rpc: Rpc) -> Outcomes:
    rpc.send(type="input", text="hi @me")
    said = _words(rpc.event("user_message")["content"])
    rpc.event("done", stop="end")
    rpc.rest()
    handled = rpc.ask("input", text="note to self")["data"]
    system = rpc.ask("host", method="host/llmSnapshot")["data"]["system"]
    return {
        "input is transformed": said,
        "input is dealt with": handled["action"],
        "a section is in the system prompt": "Use echo." in system,
    }


def _commands(rpc: Rpc) -> Outcomes:
    shown = _shown(rpc, "show", "me")
    nothing = _run(rpc, "nothing")["success"]
    rpc.send(type="command", name="insert")
    inserted = rpc.event("ext_insert", extension="demo")["text"]
    rpc.send(type="command", name="prompt")
    prompted = rpc.event("done")["stop"]
    rpc.rest()
    rpc.send(type="command", name="explain", args="seven.txt")
    explained = rpc.event("done")["stop"]
    rpc.rest()
    rpc.send(type="command", name="submit")
    by = rpc.event("user_message")["extension"]
    submitted = rpc.event("done")["stop"]
    rpc.rest()
    rpc.send(type="shortcut", key="ctrl+g")
    pressed = rpc.event("ext_display", extension="demo")["text"]
    failed = _run(rpc, "fail")
    return {
        "a command shows a text": shown,
        "a command does nothing": nothing,
        "a command inserts": inserted,
        "a command prompts": prompted,
        "a command prompts with a tool's result": explained,
        "a prompt is submitted": (by, submitted),
        "a shortcut is pressed": pressed,
        "a command fails": (failed["success"], failed["error"]),
    }


def _panel(rpc: Rpc) -> Outcomes:
    rpc.send(type="command", name="count")
    opened = rpc.event("ext_panel", extension="demo")
    panel = opened["panel_id"]

    def drawn(wanted: str) -> bool:
        rpc.wait(lambda line: line["type"] == "ext_panel" and wanted in line["lines"], wanted)
        return True

    rpc.send(type="panel_resize", panel_id=panel, width=40, height=10)
    sized = drawn("40 x 10")
    rpc.send(type="panel_key", panel_id=panel, key="up")
    counted = drawn("count 1")
    rpc.send(type="panel_key", panel_id=panel, key="rune", text="é")
    typed = drawn("typed é")
    rpc.send(type="panel_close", panel_id=panel)
    told = rpc.event("ext_notify", extension="demo")["message"]
    rpc.send(type="command", name="count")
    again = rpc.event("ext_panel", extension="demo")["panel_id"]
    rpc.send(type="panel_key", panel_id=again, key="rune", text="q")
    closed = rpc.event("ext_panel_close", extension="demo", panel_id=again)["panel_id"] == again
    return {
        "a panel is opened": (opened["title"], opened["lines"][:2], opened["footer"]),
        "a panel is drawn anew": (sized, counted, typed),
        "a panel is closed by the user": told,
        "a panel closes itself": closed,
    }


def _saying(rpc: Rpc) -> Outcomes:
    first = len(rpc.lines)
    rpc.send(type="command", name="say")
    rpc.event("ext_status_text", extension="demo", key="s", text="a word")

    def settled() -> bool:
        state = rpc.ask("get_state")["data"]
        return not state["widgets"] and not state["overlays"]

    until(settled, "what was taken away again")
    lines = rpc.lines[first:]
    return {
        "a note is left": [(line["level"], line["message"]) for line in _of(lines, "ext_notify")],
        "a text is shown": [line["text"] for line in _of(lines, "ext_display")],
        "the input is set": [(line["text"], line.get("replace")) for line in _of(lines, "ext_insert")],
        "a word is in the status line": [line["text"] for line in _of(lines, "ext_status_text")],
        "widgets and overlays come and go": True,
    }


def _asking(rpc: Rpc) -> Outcomes:
    asked = _shown(rpc, "host")
    rpc.send(type="command", name="ask")
    question = rpc.event("ui_request", extension="demo")
    rpc.send(type="ui_response", id=question["id"], selected="that")
    chosen = rpc.event("ext_display", extension="demo")["text"]
    rpc.ask("host", method="host/publish", params={"topic": "demo.topic", "data": {"word": "a word"}})
    heard = rpc.event("ext_notify", extension="demo")["message"]
    return {
        "the host is asked": asked,
        "the user is asked": chosen,
        "the bus is heard": heard,
        "data is kept where the host says": _shown(rpc, "keep"),
    }


def _account(rpc: Rpc) -> Outcomes:
    """Before anything is cancelled: what is answered all the same then counts as a mistake."""
    (row,) = rpc.ask("extensions")["data"]["extensions"]
    return {
        "nothing strange is said": (row["mistakes"], row["unchecked"], row["restarts"]),
        "all is registered": (row["version"], len(row["tools"]), len(row["commands"]), sorted(row["also"])),
    }


def _ending(rpc: Rpc) -> Outcomes:
    rpc.send(type="prompt", message="take your time")
    waiting = rpc.event("tool_progress")["text"]
    rpc.ask("abort")
    told = rpc.event("ext_notify", extension="demo")["message"]
    rpc.rest()
    _run(rpc, "close", "on")
    refused = _of(_turn(rpc, "begin"), "error")[0]
    _run(rpc, "close", "off")
    rpc.ask("compact")
    compacted = rpc.event("compact_done")["messages"]
    rpc.rest()
    switched = rpc.ask("set_model", model="echo-1")["success"]
    lines = _turn(rpc, "polly")
    thought = "".join(line["delta"] for line in _of(lines, "thinking_delta"))
    (usage,) = _of(lines, "usage")
    hooked = _turn(rpc, "what time is it?")
    return {
        "a call is cancelled": (waiting, told),
        "a turn is refused": (refused["code"], refused["message"].endswith("no turns now")),
        "a compactor shortens": compacted,
        "a provider answers": (switched, thought, _answer(lines), usage["input"], usage["output"]),
        "a hook adds to a message": _answer(hooked),
    }


_STEPS: tuple[Callable[[Rpc], Outcomes], ...] = (
    _tools,
    _events,
    _answers,
    _input,
    _commands,
    _panel,
    _saying,
    _asking,
    _account,
    _ending,
)
