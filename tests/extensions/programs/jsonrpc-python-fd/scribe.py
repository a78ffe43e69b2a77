"""Writes down what happens, without any SDK: JSON-RPC on descriptors 3 and 4, each request in a thread of its own."""

import itertools
import json
import os
import queue
import sys
import threading
from typing import Any

if os.environ.get("PIGLET_FD") != "1":
    sys.exit("scribe speaks on descriptors 3 and 4 only")
incoming, outgoing = os.fdopen(3, "rb"), os.fdopen(4, "wb")
writing = threading.Lock()
numbers = itertools.count(1)
answers: dict[int, "queue.Queue[dict[str, Any]]"] = {}
events: list[str] = []


def send(**message: Any) -> None:
    with writing:
        outgoing.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        outgoing.flush()


def ask(method: str, **params: Any) -> Any:
    number = next(numbers)
    waiting = answers[number] = queue.Queue()
    send(id=number, method=method, params=params)
    answer = waiting.get(timeout=20)
    if "error" in answer:
        raise RuntimeError(answer["error"]["message"])
    return answer["result"]


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def register(kind: str, **params: Any) -> None:
    send(method=f"register/{kind}", params=params)


def initialize(params: dict[str, Any]) -> dict[str, Any]:
    print("scribe prints what nobody should take for a message")
    print(f"scribe works for {params['cwd']} in {os.getcwd()}", file=sys.stderr)
    shape = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    register("tool", name="backwards", description="say it backwards", parameters=shape)
    register("tool", name="recite", description="the conversation so far", parameters=None)
    register("command", name="title", description="give this session a title")
    register("command", name="learn", description="learn to shout")
    register("promptSection", title="Scribe", content="Everything is written down.", order=5)
    register("eventHandler", name="ledger", events=None)
    return {"name": "scribe", "version": "1.2.0"}


def execute(params: dict[str, Any]) -> dict[str, Any]:
    match params["name"], params["args"]:
        case "backwards", {"text": said}:
            return text(said[::-1])
        case "shout", {"text": said}:
            return text(said.upper())
        case "recite", _:
            return text(json.dumps([message["role"] for message in ask("host/conversationMessages")["messages"]]))
    return text("what?", isError=True, errorCode="UNKNOWN", errorHint="look at the list of tools")


def command(params: dict[str, Any]) -> dict[str, Any]:
    if params["name"] == "learn":
        shape = {"type": "object", "properties": {"text": {"type": "string"}}}
        register("tool", name="shout", description="say it loud", parameters=shape)
        return {}
    ask("host/setSessionTitle", title=params["args"])
    send(method="notify", params={"message": "called " + ask("host/sessionTitle")["title"]})
    return {}


def dispatch(params: dict[str, Any]) -> dict[str, Any]:
    events.append(params["type"])
    if params["type"] == "EventAgentEnd":
        return {"action": {"type": "notify", "payload": {"message": " ".join(events)}}}
    return {"action": None}


METHODS = {
    "initialize": initialize,
    "tool/execute": execute,
    "command/execute": command,
    "event/dispatch": dispatch,
}


def handle(message: dict[str, Any]) -> None:
    method = METHODS.get(message["method"])
    if method is None:
        send(id=message["id"], error={"code": -32601, "message": f"unknown method: {message['method']}"})
        return
    try:
        send(id=message["id"], result=method(message["params"]))
    except (RuntimeError, queue.Empty) as error:
        send(id=message["id"], error={"code": -32603, "message": str(error)})


for line in incoming:
    heard = json.loads(line)
    if "method" not in heard:
        answers.pop(heard["id"]).put(heard)
    elif "id" in heard:
        threading.Thread(target=handle, args=(heard,), daemon=True).start()
