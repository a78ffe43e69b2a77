"""Events and messages as the JSON that `--json` and `hilt rpc` speak (see docs/reference/rpc.md)."""

from typing import Any

import msgspec

from hilt.agent.permissions import remembered
from hilt.model.content import AnyBlock, Image, Text, Thinking, ToolCall
from hilt.model.conversation import AssistantMessage, Message, ToolMessage, ToolResult, Usage, UserMessage
from hilt.model.events import (
    AssistantMessageAdded,
    Decided,
    Event,
    Intercepted,
    PanelShown,
    PermissionAsked,
    PermissionDecided,
    PickerAsked,
    PromptSubmitted,
    QuestionAsked,
    RunStarted,
    StepLimitReached,
    ToolResultAdded,
    TrustAsked,
    UsageReported,
    UserMessageAdded,
)
from hilt.model.extensions import ExtensionStatus, PickerItem

_OPTIONAL = {
    "turn_end": ("error",),
    "error": ("hint", "code"),
    "permission_decision": ("reason",),
    "tool_call": ("extension", "invalid"),
    "assistant_replace": ("reason",),
    "ext_insert": ("replace",),
    "ext_notify": ("skipped",),
    "ext_panel_close": ("reason",),
    "ext_overlay": ("anchor", "width"),
    "ext_image": ("mime_type", "bytes"),
    "background": ("text",),
    "ext_status": ("reason",),
    "interception": ("id", "name"),
}
"""Fields that are left out when empty, as existing clients expect."""


_UNTOLD = {"tool_call": ("known",)}
"""Fields that only extensions may observe."""


def json_line(value: Any) -> bytes:
    """One value as one line, without its newline."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # A file name that is not UTF-8 arrives as lone surrogates, which no JSON can carry.
        return msgspec.json.encode(_sayable(msgspec.to_builtins(value)))


def _sayable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {_sayable(key): _sayable(item) for key, item in value.items()}
        case list() | tuple():
            return [_sayable(item) for item in value]
    return value


def public(event: Event) -> bool:
    """Whether clients are told. They have the queue, the message and the error, and need not hear that nobody was
    asked."""
    match event:
        case PromptSubmitted() | RunStarted() | StepLimitReached():
            return False
        case PermissionDecided(source="yolo" | "policy", approved=True):
            return False
    return True


def event_json(event: Event) -> dict[str, Any]:
    match event:
        case Intercepted():
            fields = _plain(event)
            fields["decisions"] = [_decision(decided) for decided in event.decisions]
            return fields
        case UserMessageAdded() | AssistantMessageAdded():
            kind = "user_message" if isinstance(event, UserMessageAdded) else "assistant_message"
            told = {"type": kind, "content": _blocks(event.content), "time": event.time}
            return {**told, **_whose(event)}
        case ToolResultAdded():
            return {
                "type": "tool_result",
                "id": event.id,
                "name": event.name,
                "is_error": event.is_error,
                "content": _blocks(event.content),
                **({"extension": event.extension} if event.extension else {}),
                **({"changed_by": list(event.changed_by)} if event.changed_by else {}),
            }
        case PanelShown(focused=True):
            fields = _plain(event)
            del fields["focused"]  # as existing clients expect, who know of one panel
            return fields
        case UsageReported():
            return {"type": "usage", **usage_json(event.usage), "cumulative": usage_json(event.cumulative)}
        case PermissionAsked() | TrustAsked() | PickerAsked() | QuestionAsked():
            return {"type": "ui_request", "id": event.id, **_request(event)}
        case _:
            return _plain(event)


def _plain(event: Event) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(event)
    for name in _OPTIONAL.get(fields["type"], ()):
        if not fields[name]:
            del fields[name]
    for name in _UNTOLD.get(fields["type"], ()):
        del fields[name]
    return fields


def _request(event: PermissionAsked | TrustAsked | PickerAsked | QuestionAsked) -> dict[str, Any]:
    """What hilt itself asks is of the kind `confirm`, and nothing else is."""
    match event:
        case PermissionAsked(request=request):
            is_command = request.preview.kind == "command"
            return {
                "kind": "confirm",
                "title": f"Allow {request.tool}?",
                "tool": request.tool,
                "call_id": request.call_id,
                "effect": str(request.effect),
                "args": request.args,
                "preview": {"kind": request.preview.kind, "text": request.preview.text},
                "scopes": ["once", "tool", *(["prefix"] if is_command else []), "session"],
                **({"prefix": remembered(request.preview.text)} if is_command else {}),
                **({"rewritten_by": list(request.rewritten_by)} if request.rewritten_by else {}),
                **({"unchecked_by": list(request.unchecked_by)} if request.unchecked_by else {}),
                **({"step": True} if request.step else {}),
            }
        case TrustAsked(folder=folder, commands=commands, text=text):
            return {
                "kind": "confirm",
                "title": f"Trust the extensions of {folder}?",
                "folder": folder,
                "extensions": [{"name": name, "command": list(argv)} for name, argv in commands],
                "preview": {"kind": "trust", "text": text},
            }
        case PickerAsked(extension=extension, title=title, items=items):
            offered = [_item(item) for item in items]
            return {"kind": "picker", "extension": extension, "title": title, "items": offered}
        case QuestionAsked(extension=extension, prompt=prompt, choices=choices):
            return {"kind": "ask", "extension": extension, "prompt": prompt, "choices": list(choices)}


def _item(item: PickerItem) -> dict[str, Any]:
    described = {"description": item.description} if item.description else {}
    return {"id": item.id, "label": item.label, **described}


def _decision(decided: Decided) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(decided)
    return {name: value for name, value in fields.items() if value not in ("", None)}


def extension_json(status: ExtensionStatus) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(status)
    for name in ("reason", "last_error"):
        if not fields[name]:
            del fields[name]
    return fields


def message_json(message: Message) -> dict[str, Any]:
    match message:
        case UserMessage() | AssistantMessage():
            role = "user" if isinstance(message, UserMessage) else "assistant"
            told = {"role": role, "content": _blocks(message.content), "time": message.time}
            if isinstance(message, AssistantMessage) and message.shown is not None:
                told["shown"] = message.shown
            return {**told, **_whose(message)}
        case ToolMessage(results=results):
            return {"role": "tool", "content": [_result(result) for result in results], "time": message.time}


def _whose(said: object) -> dict[str, str]:
    """The extension whose words these are, if it was not the user who said them."""
    extension = said.extension if isinstance(said, UserMessage | UserMessageAdded) else ""
    return {"extension": extension} if extension else {}


def usage_json(usage: Usage) -> dict[str, Any]:
    return {
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "cost_usd": usage.cost_usd,
    }


def _blocks(content: tuple[AnyBlock, ...]) -> list[dict[str, Any]]:
    return [block for block in map(_block, content) if block]


def _block(block: AnyBlock) -> dict[str, Any]:
    match block:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image(mime_type=mime, data=data):
            return {"type": "image", "mime_type": mime, "bytes": len(data)}
        case ToolCall():
            return {"type": "tool_call", "id": block.id, "name": block.name, "args": block.args}
        case Thinking():
            return {}  # reasoning is shown while it streams and is not part of the message


def _result(result: ToolResult) -> dict[str, Any]:
    return {
        "type": "tool_result",
        "call_id": result.call_id,
        "is_error": result.is_error,
        "content": _blocks(result.content),
    }
