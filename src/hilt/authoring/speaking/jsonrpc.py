"""The jsonrpc dialect, as a scripted host speaks it. Keys of what an extension says count in any case."""

from collections.abc import Sequence
from typing import Any

from hilt.authoring.exchange import Id
from hilt.authoring.speaking.frames import told
from hilt.authoring.speaking.tongue import Answer, Asked, Happened, Heard, Result, joined
from hilt.authoring.values import Value, as_object
from hilt.errors import FrameError
from hilt.wire import jsonrpc_types as wire
from hilt.wire.jsonrpc_reading import shaped

_CALL = "call_"


class JsonRpc:
    def first_id(self) -> Id:
        return 2  # 1 is that of initialize

    def next_id(self, id_: Id) -> Id:
        return int(id_) + 1

    def call(self, id_: Id, tool: str, args: Value) -> Value:
        return self.request(id_, "tool/execute", {"callId": f"{_CALL}{id_}", "name": tool, "args": args})

    def command(self, id_: Id, name: str, args: str) -> Value:
        return self.request(id_, "command/execute", {"name": name, "args": " ".join(args.split())})

    def shortcut(self, id_: Id, key: str) -> Value:
        return self.request(id_, "shortcut/handle", {"key": key})

    def request(self, id_: Id, method: str, params: Value) -> Value:
        return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}

    def notice(self, method: str, params: Value) -> Value:
        return {"jsonrpc": "2.0", "method": method, "params": params}

    def give_up(self, id_: Id, *, call: bool, capabilities: Sequence[str]) -> Value | None:  # noqa: ARG002
        return self.notice("$/cancelRequest", {"id": id_})

    def panel_key(self, panel: str, key: str, text: str) -> Value:
        return self.notice("panel/key", {"panel_id": panel, "key": key, **({"text": text} if text else {})})

    def panel_resize(self, panel: str, width: int, height: int) -> Value:
        return self.notice("panel/resize", {"panel_id": panel, "width": width, "height": height})

    def panel_closed(self, panel: str) -> Value:
        return self.notice("panel/closed", {"panel_id": panel})

    def shutdown(self) -> Value:
        return {"jsonrpc": "2.0", "method": "shutdown"}

    def reply(self, asked: Asked, result: Any) -> Value:
        return {"jsonrpc": "2.0", "id": asked.id, "result": result}

    def refuse(self, asked: Asked, code: int, message: str) -> Value:
        return {"jsonrpc": "2.0", "id": asked.id, "error": {"code": code, "message": message}}

    def heard(self, value: Value) -> Heard:
        match value:
            case {"id": int(id_), "method": str(method)}:
                return Asked(id_, method, as_object(value.get("params")))
            case {"id": int(id_)}:
                return Answer(id_, value)
            case {"method": str(method)}:
                return _told(method, as_object(value.get("params")))
        return None

    def called(self, answer: Value) -> Result:
        if error := answer.get("error"):
            return Result({"content": [], "is_error": True, "error": error}, _message(error), failed=True)
        try:
            result = shaped(answer.get("result") or {}, wire.ToolExecuteResult)
        except FrameError as problem:
            value: Value = {"content": [], "is_error": True}
            return Result(value, f"its answer cannot be read: {problem.message}", failed=True)
        blocks: list[Value] = [
            {"type": "image", "mime_type": block.mime, "data": block.data}
            if block.type == "image"
            else {"type": block.type or "text", "text": block.text}
            for block in result.content
        ]
        failed = result.is_error or bool(result.error_code)
        value = {"content": blocks, "is_error": failed}
        if result.error_code:
            value |= {"error_code": result.error_code, "error_hint": result.error_hint}
        return Result(value, joined(blocks), failed)

    def acted(self, answer: Value) -> tuple[Result, list[Happened]]:
        if error := answer.get("error"):
            return Result(error, _message(error), failed=True), []
        result = as_object(answer.get("result"))
        action = as_object(result.get("action", result.get("Action")))
        kind, payload = action.get("type", action.get("Type")), as_object(action.get("payload", action.get("Payload")))
        happened = _told(str(kind), payload) if kind else None
        return Result(result), [happened] if happened else []

    def answered(self, answer: Value) -> Result:
        if error := answer.get("error"):
            return Result(error, _message(error), failed=True)
        return Result(answer.get("result"))


def _told(method: str, params: Value) -> Happened | None:
    fields = {key[:1].lower() + key[1:]: part for key, part in params.items()}
    match method:
        case "notify":
            return Happened("notes", {"level": fields.get("level") or "info", "message": fields.get("message", "")})
        case "panel/open" | "panel/render":
            panel = {key: part for key, part in fields.items() if key != "panel_id"}
            return Happened(
                "opens" if method == "panel/open" else "renders", {**panel, "id": fields.get("panel_id", "")}
            )
        case "panel/close":
            return Happened("closes", fields.get("panel_id", ""))
        case "tool/progress":
            call = str(fields.get("callId", "")).removeprefix(_CALL)
            return Happened("progress", fields.get("text", ""), int(call) if call.isdecimal() else None)
    return told(method, fields)


def _message(error: Any) -> str:
    return str(as_object(error).get("message", as_object(error).get("Message", "")))
