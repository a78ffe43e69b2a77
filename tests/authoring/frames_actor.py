"""An extension of the frames dialect that can do a little of everything, and break one rule: that of its argument."""

import json
import os
import select
import sys
from typing import Any

BAD = sys.argv[1]
NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}
SPOILT: dict[str, dict[str, Any]] = {
    "schema": {"type": "notify", "message": 7},
    "unannounced": {"type": "tool_progress", "id": "x", "text": "half"},
}


def send(**frame: Any) -> None:
    sys.stdout.write(json.dumps(frame) + "\n")
    sys.stdout.flush()


def log(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def begin() -> None:
    if BAD == "handshake":
        sys.exit(3)
    if BAD == "json-lines":
        print("loading…", flush=True)
    if BAD == "no-secrets":
        log(str(dict(os.environ)))
    send(type="hello", name="other" if BAD == "name" else "actor", version="1", capabilities=["tool_cancel"])
    schema = {"type": "array"} if BAD == "tool-schemas" else NUMBERS
    described = "" if BAD == "descriptions" else "Adds."
    send(type="register_tool", name="add", description=described, schema=schema)
    send(type="register_tool", name="slow", description="Takes its time.", schema=NUMBERS)
    send(type="register_tool", name="think", description="Asks a model.")
    if BAD == "names":
        send(type="register_tool", name="two words", description="Has a bad name.")
    send(type="register_command", name="hi", description="Says hello.")
    send(type="register_command", name="board", description="Opens a panel.")
    send(type="subscribe", events=["turn_end"], intercept=["tool_call", "assistant_message"])
    if BAD in SPOILT:
        send(**SPOILT[BAD])
    if BAD != "ready":
        send(type="ready")
    if BAD == "leaving":
        os._exit(9)


def told(frame: dict[str, Any]) -> None:
    match frame["type"]:
        case "hello_ack":
            if BAD == "poor-host" and "capabilities" not in frame:
                sys.exit(4)
        case "tool_call":
            call(frame["id"], frame["name"], frame["args"])
        case "tool_cancel":
            if BAD == "cancel":
                sys.exit(5)
            if frame["id"] in slow:
                log(f"cancelled {slow.pop(frame['id'])}")
        case "host_response":
            said = frame["result"]["text"] if "result" in frame else frame["error"]["message"]
            send(type="tool_result", id=thinking.pop(frame["id"]), content=[{"type": "text", "text": said}])
        case "command_invoked":
            command(frame["id"], frame["name"], frame.get("args", ""))
        case "event_intercept":
            decide(frame)
        case "event":
            send(type="notify", level="success", message=f"{frame['event']}: {frame['stop']}")
        case "panel_key":
            send(type="panel_render", panel_id=frame["panel_id"], lines=[f"pressed {frame.get('text', frame['key'])}"])
        case "shutdown":
            if BAD == "quiet":
                send(type="notify", message="bye")
            send(type="shutdown_ack")
            sys.exit(6 if BAD == "shutdown" else 0)
        case _ if BAD == "unknown-message":
            sys.exit(7)


slow: dict[str, str] = {}
thinking: dict[str, str] = {}


def call(id_: str, name: str, args: dict[str, Any]) -> None:
    match name:
        case "add" | "slow" if not {"a", "b"} <= args.keys():
            if BAD == "missing-arguments":
                raise KeyError("a")
            send(type="tool_result", id=id_, is_error=True, content=[{"type": "text", "text": "a and b are needed"}])
        case "add":
            text = "no idea" if BAD == "calls" else str(args["a"] + args["b"])
            send(type="tool_result", id=id_, is_error=BAD == "calls", content=[{"type": "text", "text": text}])
        case "slow":
            slow[id_] = name
            send(type="tool_progress", id=id_, text="begun")
        case "think":
            thinking["q1"] = id_
            send(type="host_request", id="q1", method="host/chat", params={"prompt": args.get("about", "")})
        case _:
            unknown = {"is_error": BAD != "unknown-tool", "content": [{"type": "text", "text": f"no tool {name}"}]}
            send(type="tool_result", id=id_, **unknown)


def command(id_: str, name: str, args: str) -> None:
    match name:
        case "hi":
            for call_id in slow:
                send(type="tool_progress", id=call_id, text="still")
            send(type="command_response", id=id_, action="display", display=f"hello, {args}")
        case "board":
            panel = {"id": "board", "title": "Board", "lines": ["first"]}
            send(type="command_response", id=id_, action="open_panel", open_panel=panel)
        case _ if BAD == "unknown-command":
            send(type="command_response", id=id_, action="noop")
        case _:
            send(type="command_response", id=id_, error=f"no command {name}")


def decide(frame: dict[str, Any]) -> None:
    if BAD == "intercepts":
        return
    if BAD == "unknown-fields" and "hilt_conformance_unknown" in frame:
        sys.exit(8)
    if BAD == "concurrent" and select.select([stdin], [], [], 0.2)[0]:
        stdin.readline()  # whoever asks in between is not heard
    said: dict[str, Any] = {}
    if frame["event"] == "assistant_message":
        said = {"replace_text": frame["text"].replace("secret", "***")}
    elif "rm" in frame["tool_args"].get("command", "") or BAD == "harmless":
        said = {"block": True, "reason": "not that"}
    elif frame["tool_args"].get("command") == "ls":
        said = {"modified_args": {"command": "ls -1"}}
    for _ in range(2 if BAD == "once" else 1):
        send(type="event_intercept_response", id=frame["id"], **said)


stdin = os.fdopen(0, "rb", 0)  # so that what was not read yet can be seen to be there
begin()
while line := stdin.readline():
    try:
        heard = json.loads(line)
    except ValueError:
        if BAD == "garbage":
            raise
        log("that was no JSON")
        continue
    told(heard)
if BAD == "end-of-input":
    select.select([], [], [], 60)
