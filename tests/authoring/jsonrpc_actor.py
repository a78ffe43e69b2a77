"""The same of the jsonrpc dialect, on descriptors 3 and 4."""

import json
import os
import select
import sys
from typing import Any

BAD = sys.argv[1]
NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}
heard_on, said_on = os.fdopen(3, encoding="utf-8"), os.fdopen(4, "w", encoding="utf-8")


def send(**message: Any) -> None:
    said_on.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    said_on.flush()


def log(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def notice(method: str, **params: Any) -> None:
    send(method=method, params=params)


def text_of(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"Type": "text", "Text": text}], **more}  # compiled Go programs spell it so


def initialize(params: dict[str, Any]) -> dict[str, Any]:
    notice("register/tool", name="add", description="Adds.", parameters=NUMBERS)
    notice("register/tool", name="slow", description="Takes its time.", parameters=NUMBERS)
    notice("register/tool", name="think", description="Asks a model.")
    notice("register/command", name="hi", description="Says hello.")
    notice("register/command", name="board", description="Opens a panel.")
    notice("register/interceptor", name="late", priority=1)
    notice("register/interceptor", name="early", priority=9, events=["tool_call", "assistant_message"])
    notice("register/eventHandler", name="ends", events=["turn_end"])
    notice("register/messageHook", name="hook")
    notice("register/provider", api="parrot", models=[{"id": "polly"}])
    if BAD == "unannounced" and not params.get("capabilities"):
        notice("setStatus", key="k", text="here")
    return {"name": "actor", "version": "1"}


def executed(id_: int, name: str, args: dict[str, Any]) -> dict[str, Any] | None:
    match name:
        case "add" | "slow" if not {"a", "b"} <= args.keys():
            return text_of("a and b are needed", isError=True)
        case "add":
            return text_of(str(args["a"] + args["b"]))
        case "slow":
            notice("tool/progress", callId=f"call_{id_}", text="begun")
            slow.append(id_)
            return None
        case "think":
            thinking.append(id_)
            send(id=1, method="host/chat", params={"prompt": args.get("about", "")})
            return None
    return text_of(f"no tool {name}", isError=True)


slow: list[int] = []
thinking: list[int] = []


def ran(name: str, args: str) -> dict[str, Any]:
    if name == "hi":
        for call in slow:
            notice("tool/progress", callId=f"call_{call}", text="still")
        notice("showMessage", text=f"hello, {args}")
    elif name == "board":
        notice("panel/open", panel_id="board", title="Board", lines=["first"])
    else:
        raise LookupError(f"no command {name}")
    return {}


def decided(params: dict[str, Any]) -> dict[str, Any]:
    command = params["args"].get("command", "")
    if "rm" in command:
        return {"allow": False, "preview": "not that"}
    if command == "ls" and params["name"] == "late":
        return {"allow": True, "args": {"command": "ls -1"}}
    return {"allow": True}


def answer(id_: int, method: str, params: dict[str, Any]) -> None:
    result: dict[str, Any] | None = {}
    match method:
        case "initialize":
            result = initialize(params)
        case "tool/execute":
            result = executed(id_, params["name"], params["args"])
        case "command/execute":
            result = ran(params["name"], params["args"])
        case "interceptor/before":
            result = decided(params)
        case "interceptor/event":
            result = {"text": params["text"].replace("secret", "***")}
        case "interceptor/after":
            result = {"content": params["content"][0]["text"].replace("secret", "***")}
        case "event/dispatch":
            notice("notify", level="success", message=f"{params['type']}: {params['data'].get('stop')}")
        case "messageHook/onMessage":
            if BAD == "kinds":
                raise LookupError("no hook")
            result = {"injection": f"heard {params['message']}"}
        case "provider/stream":
            said = params["messages"][0]["content"]
            result = {"message": {"role": "assistant", "content": [{"type": "text", "text": f"{said}!"}]}}
        case _ if BAD != "unknown-message":
            send(id=id_, error={"code": -32601, "message": f"no method {method}"})
            return
    if result is not None:
        send(id=id_, result=result)


def told(method: str, params: dict[str, Any]) -> None:
    match method:
        case "$/cancelRequest" if params["id"] in slow:
            log("cancelled slow")
            send(id=params["id"], error={"code": -32603, "message": "cancelled"})
            slow.remove(params["id"])
        case "panel/key":
            pressed = params.get("text", params["key"])
            notice("panel/render", panel_id=params["panel_id"], lines=[f"pressed {pressed}"])
        case "shutdown":
            sys.exit(0)


while line := heard_on.readline():
    try:
        message = json.loads(line)
    except ValueError:
        log("that was no JSON")
        continue
    if "method" not in message:
        answered = message["result"]["text"] if "result" in message else message["error"]["message"]
        send(id=thinking.pop(), result=text_of(answered))
    elif "id" not in message:
        told(message["method"], message.get("params", {}))
    else:
        try:
            answer(message["id"], message["method"], message["params"])
        except LookupError as error:
            send(id=message["id"], error={"code": -32603, "message": str(error)})
if BAD == "end-of-input":
    select.select([], [], [], 60)
