"""What interceptors are asked, by a frame or by a method, and what their answers decide."""

from typing import Any

from hilt.authoring.exchange import Id
from hilt.authoring.speaking.tongue import Occasion, Result, Verdict
from hilt.authoring.values import Value
from hilt.errors import FrameError
from hilt.wire import jsonrpc_types as wire
from hilt.wire.jsonrpc_reading import shaped

_MADE_UP = {"session_id": "s1", "agent_run_id": "r1", "provider": "demo", "model": "demo"}


def frame(id_: Id, occasion: Occasion) -> Value:
    asked: Value = {"type": "event_intercept", "id": id_, "event": occasion.event}
    match occasion.event:
        case "tool_call":
            return {**asked, "tool_id": f"call_{id_}", "tool_name": occasion.tool, "tool_args": occasion.args}
        case "turn_start":
            return {**asked, "step": occasion.step}
        case "before_agent_start":
            return {**asked, "system_prompt": occasion.text, **_MADE_UP}
    return {**asked, "text": occasion.text}


def frame_verdict(answer: Value, occasion: Occasion) -> Verdict:
    if answer.get("block"):
        return Verdict("block", str(answer.get("reason", "")))
    match occasion.event:
        case "tool_call" if answer.get("modified_args") is not None:
            return _changed("rewrite", answer["modified_args"], occasion.args)
        case "assistant_message" if answer.get("replace_text"):
            return _changed("replace", answer["replace_text"], occasion.text)
        case "before_agent_start" if answer.get("system_prompt") is not None:
            return _changed("replace", answer["system_prompt"], occasion.text)
    return Verdict("allow")


def request(name: str, occasion: Occasion, call_id: str) -> tuple[str, Value]:
    """The method and the params by which the interceptor of this name is asked."""
    if occasion.event == "tool_call":
        params = {"name": name, "toolName": occasion.tool, "args": occasion.args, "callId": call_id}
        return "interceptor/before", params
    asked: Value = {"name": name, "event": occasion.event}
    match occasion.event:
        case "turn_start":
            asked["step"] = occasion.step
        case "before_agent_start":
            asked |= {"systemPrompt": occasion.text, "sessionId": "s1", "runId": "r1"}
        case _:
            asked["text"] = occasion.text
    return "interceptor/event", asked


def verdict(result: Result, name: str, occasion: Occasion) -> Verdict:
    """Raises `FrameError` for an answer nobody can act on. An error is a refusal."""
    if result.failed:
        return Verdict("block", f"interceptor {name} before: {result.text}")
    if occasion.event == "tool_call":
        before = shaped(result.value or {}, wire.InterceptorBeforeResult)
        if not before.allow:
            return Verdict("block", before.preview or f"blocked by interceptor: {name}")
        return Verdict("allow") if before.args is None else _changed("rewrite", before.args, occasion.args)
    answer = shaped(result.value or {}, wire.InterceptorEventResult)
    if not answer.allow and occasion.event != "before_agent_start":
        return Verdict("block", answer.reason or f"blocked by interceptor: {name}")
    if occasion.event == "assistant_message" and answer.text:
        return _changed("replace", answer.text, occasion.text)
    if occasion.event == "before_agent_start" and isinstance(answer.system_prompt, str):
        return _changed("replace", answer.system_prompt, occasion.text)
    return Verdict("allow")


def after_request(name: str, tool: str, text: str, *, failed: bool, call_id: str) -> tuple[str, Value]:
    content = [{"type": "text", "text": text}]
    params: Value = {"name": name, "toolName": tool, "details": {"content": content}, "callId": call_id}
    return "interceptor/after", {**params, "content": content, **({"isError": True} if failed else {})}


def after_text(result: Result, text: str) -> str:
    """What the result reads like after the interceptor has seen it. Raises `FrameError`."""
    if result.failed:
        return text
    after = shaped(result.value or {}, wire.InterceptorAfterResult)
    details: Any = after.details if isinstance(after.details, dict) else {}
    for changed in (after.content, details.get("content"), details.get("output")):
        if isinstance(changed, str):
            return changed
        if isinstance(changed, list):
            return "\n".join(str(_member(block, "text")) for block in changed if isinstance(block, dict))
    if after.content is not None:
        raise FrameError("`content` is neither a text nor blocks")
    return text


def _member(block: Value, name: str) -> Any:
    return block.get(name, block.get(name.capitalize(), ""))


def _changed(word: Any, to: Any, given: Any) -> Verdict:
    """What comes back as it was changes nothing."""
    return Verdict("allow") if to == given else Verdict(word, to=to)
