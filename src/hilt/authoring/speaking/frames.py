"""The frames dialect, as a scripted host speaks it."""

from collections.abc import Sequence
from typing import Any

from hilt.authoring.exchange import Id
from hilt.authoring.speaking.tongue import Answer, Asked, Happened, Heard, Result, joined
from hilt.authoring.values import Value, as_object

_ANSWERS = ("tool_result", "command_response", "event_intercept_response", "ext_response")
_TOLD = {
    "setWidget": "widget",
    "showOverlay": "overlay",
    "setStatus": "status",
    "showMessage": "shows",
    "setInputText": "inserts",
    "sendMessage": "prompts",
    "steer": "prompts",
}
"""By which method an extension tells the host what happens, in both dialects."""
_TEXTS = {"showMessage": "text", "setInputText": "text", "sendMessage": "content", "steer": "content"}


def told(method: str, params: Value) -> Happened | None:
    """What a notification makes happen, in either dialect."""
    kind = _TOLD.get(method)
    if kind is None:
        return None
    return Happened(kind, params.get(_TEXTS[method], "") if method in _TEXTS else params)


class Frames:
    def first_id(self) -> Id:
        return "h1"

    def next_id(self, id_: Id) -> Id:
        return f"h{int(str(id_)[1:]) + 1}"

    def call(self, id_: Id, tool: str, args: Value) -> Value:
        return {"type": "tool_call", "id": id_, "name": tool, "args": args}

    def command(self, id_: Id, name: str, args: str) -> Value:
        return {"type": "command_invoked", "id": id_, "name": name, **({"args": args} if args else {})}

    def shortcut(self, id_: Id, key: str) -> Value:
        return {"type": "shortcut_invoked", "id": id_, "key": key}

    def request(self, id_: Id, method: str, params: Value) -> Value:
        return {"type": "ext_request", "id": id_, "method": method, "params": params}

    def notice(self, method: str, params: Value) -> Value:
        return {"type": "ext_notify", "method": method, "params": params}

    def give_up(self, id_: Id, *, call: bool, capabilities: Sequence[str]) -> Value | None:
        if call:
            return {"type": "tool_cancel", "id": id_} if "tool_cancel" in capabilities else None
        return self.notice("$/cancelRequest", {"id": id_}) if "ext_request" in capabilities else None

    def panel_key(self, panel: str, key: str, text: str) -> Value:
        return {"type": "panel_key", "panel_id": panel, "key": key, **({"text": text} if text else {})}

    def panel_resize(self, panel: str, width: int, height: int) -> Value:
        return {"type": "panel_resize", "panel_id": panel, "width": width, "height": height}

    def panel_closed(self, panel: str) -> Value:
        return {"type": "panel_close", "panel_id": panel}

    def shutdown(self) -> Value:
        return {"type": "shutdown"}

    def reply(self, asked: Asked, result: Any) -> Value:
        if asked.method == "call_tool":
            content = [{"type": "text", "text": result}] if isinstance(result, str) else result
            fields = content if isinstance(content, dict) else {"content": content}
            return {"type": "tool_result", "id": asked.id, "name": asked.params.get("name", ""), **fields}
        return {"type": "host_response", "id": asked.id, "result": result}

    def refuse(self, asked: Asked, code: int, message: str) -> Value:
        if asked.method == "call_tool":
            return self.reply(asked, {"content": [{"type": "text", "text": message}], "is_error": True})
        return {"type": "host_response", "id": asked.id, "error": {"code": code, "message": message}}

    def heard(self, value: Value) -> Heard:
        type_ = value.get("type")
        match value:
            case {"id": str(id_)} if type_ in _ANSWERS:
                return Answer(id_, value)
            case {"type": "host_request", "id": str(id_), "method": str(method)}:
                return Asked(id_, method, as_object(value.get("params")))
            case {"type": "call_tool", "id": str(id_)}:
                return Asked(id_, "call_tool", {"name": value.get("name", ""), "args": value.get("args", {})})
            case {"type": "host_notify", "method": str(method)}:
                return told(method, as_object(value.get("params")))
            case {"type": "notify"}:
                return Happened("notes", {"level": value.get("level", "info"), "message": value.get("message", "")})
            case {"type": "submit" | "submit_slash"}:
                return Happened("prompts", value.get("text", ""))
            case {"type": "open_panel"}:
                return Happened("opens", as_object(value.get("panel")))
            case {"type": "panel_render"}:
                return Happened("renders", {**_without(value, "panel_id"), "id": value.get("panel_id", "")})
            case {"type": "panel_close"}:
                return Happened("closes", value.get("panel_id", ""))
            case {"type": "tool_progress"}:
                return Happened("progress", value.get("text", ""), value.get("id"))
        return None

    def called(self, answer: Value) -> Result:
        value = {"content": [], "is_error": False, **_without(answer, "id")}
        return Result(value, joined(value["content"]), bool(value["is_error"]))

    def acted(self, answer: Value) -> tuple[Result, list[Happened]]:
        value = _without(answer, "id")
        if error := value.get("error"):
            return Result(value, str(error), failed=True), []
        match value.get("action"):
            case "display":
                happened = [Happened("shows", value.get("display", ""))]
            case "prompt":
                happened = [Happened("prompts", value.get("prompt", ""))]
            case "insert":
                happened = [Happened("inserts", value.get("insert", ""))]
            case "open_panel":
                happened = [Happened("opens", as_object(value.get("open_panel")))]
            case _:
                happened = []
        return Result(value), happened

    def answered(self, answer: Value) -> Result:
        if "error" in answer:
            error = answer["error"]
            return Result(error, str(as_object(error).get("message", "")), failed=True)
        return Result(answer.get("result"))


def _without(value: Value, name: str) -> Value:
    return {key: part for key, part in value.items() if key not in (name, "type")}
