"""Extensions of both dialects around one call of a tool: one registry, one chain of interceptors, one order."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hilt.model.content import ToolCall, text_of
from hilt.model.events import AssistantMessageAdded, Intercepted, ToolResultAdded
from support.agent import calls, says
from support.extending import Made, extended
from support.replay import Piglet

WRITTEN = """
import json, os, sys

def saw(**what):
    with open("../../seen.jsonl", "a") as file:
        file.write(json.dumps(what) + "\\n")
"""

FRAMES = f"""{WRITTEN}
def send(**frame):
    sys.stdout.write(json.dumps(frame) + "\\n")
    sys.stdout.flush()

name = os.path.basename(os.getcwd())
send(type="hello", name=name, version="1")
if name == "guard":
    send(type="subscribe", intercept=["tool_call"])
else:
    send(type="subscribe", events=["tool_call", "tool_result"])
send(type="ready")
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "event_intercept":
        saw(who=name, asked="before", args=frame["tool_args"])
        args = {{**frame["tool_args"], "a": 10}}
        send(type="event_intercept_response", id=frame["id"], modified_args=args)
    elif frame["type"] == "event":
        shown = frame.get("result", {{}}).get("content", [{{}}])[0].get("text", "")
        saw(who=name, event=frame["event"], tool=frame["tool_name"], args=frame.get("tool_args"), text=shown)
"""

JSONRPC = f"""{WRITTEN}
incoming, outgoing = os.fdopen(3, "rb"), os.fdopen(4, "wb")

def send(**message):
    outgoing.write(json.dumps({{"jsonrpc": "2.0", **message}}).encode() + b"\\n")
    outgoing.flush()

def initialize(params):
    if name == "sums":
        shape = {{"type": "object", "properties": {{"a": {{"type": "integer"}}, "b": {{"type": "integer"}}}}}}
        send(method="register/tool", params={{"name": "add", "description": "adds", "parameters": shape}})
    else:
        send(method="register/interceptor", params={{"name": "frame", "priority": int(os.environ["PRIORITY"])}})
        send(method="register/eventHandler", params={{"name": "w", "events": ["EventToolStart", "EventToolEnd"]}})
    return {{"name": name, "version": "1"}}

def execute(params):
    saw(who=name, executed=params["args"])
    return {{"content": [{{"Type": "text", "Text": str(params["args"]["a"] + params["args"]["b"])}}]}}

def before(params):
    saw(who=name, asked="before", args=params["args"])
    return {{"allow": True, "args": {{**params["args"], "b": 7}}}}

def after(params):
    saw(who=name, asked="after", text=params["content"][0]["text"])
    return {{"content": "[" + params["content"][0]["text"] + "]"}}

def dispatch(params):
    saw(who=name, event=params["type"], tool=params["data"]["ToolName"])
    return {{"action": None}}

name = os.path.basename(os.getcwd())
methods = {{"initialize": initialize, "tool/execute": execute, "interceptor/before": before,
           "interceptor/after": after, "event/dispatch": dispatch}}
for line in incoming:
    message = json.loads(line)
    if "id" in message:
        send(id=message["id"], result=methods[message["method"]](message["params"]))
"""


def zot(name: str, priority: int = 0) -> Made:
    manifest = {"exec": sys.executable, "args": ["-I", "-S", "main.py"], "priority": priority}
    return Made(name, manifest, {"main.py": FRAMES})


def piglet(name: str, priority: int = 0) -> Piglet:
    program = f"import os\nos.environ['PRIORITY'] = '{priority}'\n{JSONRPC}"
    return Piglet(name, {"runtime": sys.executable, "entry": "main.py", "pipes": "fd"}, {"main.py": program})


def seen(folder: Path, **what: Any) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "seen.jsonl").read_text().splitlines()]
    return [row for row in rows if row.items() >= what.items()]


@pytest.mark.parametrize(
    ("guard", "interceptor", "order", "between"),
    [
        (50, 20, ["guard", "frame-it"], {"a": 10, "b": 2}),
        (20, 50, ["frame-it", "guard"], {"a": 1, "b": 7}),
    ],
    ids=["the guard first", "the interceptor first"],
)
async def test_a_zot_guard_and_a_piglet_interceptor_stand_in_one_chain_around_a_piglet_tool(
    tmp_path: Path, guard: int, interceptor: int, order: list[str], between: dict[str, int]
) -> None:
    made = (zot("watcher"), piglet("sums"), piglet("frame-it", interceptor), zot("guard", guard))
    turns = [calls(("add", {"a": 1, "b": 2})), says("done", expect={"role": "tool", "contains": "[17]"})]
    async with extended(tmp_path, *made, turns=turns) as it:
        await it.ready()
        await it.say()
        await it.until(lambda: seen(tmp_path, event="tool_result") and seen(tmp_path, event="EventToolEnd"))

        # All are asked at once, but what they answer counts in order: the second is asked about what the first made of
        # it, and the first about what became of it in the end.
        asked = [(row["who"], row["args"]) for row in seen(tmp_path, asked="before")]
        assert (order[0], {"a": 1, "b": 2}) in asked and (order[1], between) in asked
        assert asked[-1] == (order[0], {"a": 10, "b": 7})
        assert seen(tmp_path, who="sums") == [{"who": "sums", "executed": {"a": 10, "b": 7}}]
        assert seen(tmp_path, asked="after") == [{"who": "frame-it", "asked": "after", "text": "17"}]

        # Who only watches is told the model's own arguments, and what became of them.
        told = seen(tmp_path, who="watcher")
        assert [(row["event"], row["tool"]) for row in told] == [("tool_call", "add"), ("tool_result", "add")]
        assert told[0]["args"] == {"a": 1, "b": 2}
        assert told[1]["text"] == "[17]"
        events = [row["event"] for row in seen(tmp_path, who="frame-it") if "event" in row]
        assert events == ["EventToolStart", "EventToolEnd"]

        # One order for all of it, whatever each was told in passing.
        chain = [row for row in seen(tmp_path) if "event" not in row]
        kinds = [row.get("asked", "executed") for row in chain]
        assert kinds == ["before"] * len(asked) + ["executed", "after"]
        (intercepted,) = it.of(Intercepted)
        assert intercepted.outcome == "changed"
        assert [decided.extension for decided in intercepted.decisions][:2] == order
        (result,) = it.of(ToolResultAdded)
        assert (text_of(result.content), result.is_error, result.changed_by) == ("[17]", False, ("frame-it",))
        said = it.of(AssistantMessageAdded)[0].content[0]
        assert isinstance(said, ToolCall) and said.args == {"a": 1, "b": 2}
