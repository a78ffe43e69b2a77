"""What both dialects have in common: what a host may offer, how names must look, and how events correspond.

Pure: tables and functions on values. Frames and messages themselves are in `frames` and `jsonrpc`.
"""

from __future__ import annotations

from hilt_sdk.values import RegistrationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# What hosts offer: as in spec/features.json, which a test holds equal to this.

FEATURES: dict[str, tuple[str, str, str]] = {
    "tools": ("tools", "base", "base"),
    "commands": ("commands", "base", "base"),
    "events": ("events", "base", "base"),
    "more_events": ("events beyond the first five", "call_tool", "base"),
    "raw_events": ("events of the other dialect", "register", "base"),
    "intercept.tool_call": ("interception of tool calls", "base", "base"),
    "intercept.turn_start": ("interception of turns", "base", "interceptor/event"),
    "intercept.assistant_message": ("interception of answers", "base", "interceptor/event"),
    "intercept.before_agent_start": ("interception of the system prompt", "call_tool", "interceptor/event"),
    "intercept.tool_result": ("interception of results", "register", "interceptor/content"),
    "priorities": ("priorities of interceptors", "register", "base"),
    "notes": ("notes", "base", "base"),
    "clear_notes": ("taking notes away", "call_tool", "none"),
    "panels": ("panels", "base", "panel/open"),
    "open_panel": ("panels that open by themselves", "call_tool", "panel/open"),
    "submit": ("prompts by extensions", "call_tool", "base"),
    "tool_prompt": ("prompts with a tool's result", "call_tool", "base"),
    "progress": ("progress of tools", "tool_progress", "tool/progress"),
    "cancel": ("cancellation of calls", "tool_cancel|call_tool", "base"),
    "call_tool": ("calls of other tools", "call_tool", "base"),
    "structured_content": ("structured results", "call_tool", "none"),
    "deferred_tools": ("deferred tools", "call_tool", "base"),
    "activate_tools": ("tools that activate others", "call_tool", "base"),
    "late_registration": ("registration after the start", "base", "register/late"),
    "prompt_sections": ("prompt sections", "register", "base"),
    "shortcuts": ("shortcuts", "register", "base"),
    "message_hooks": ("message hooks", "register", "base"),
    "input_transformers": ("input transformers", "register", "base"),
    "compactors": ("compactors", "register", "base"),
    "providers": ("providers", "register", "base"),
    "provider_models": ("models of a provider's own", "register", "register/models"),
    "services": ("host services", "host_request", "base"),
    "bus": ("messages among extensions", "host_request", "base"),
    "unsubscribe": ("ending a subscription", "host_request", "host/unsubscribe"),
    "show": ("messages to the user", "host_notify", "base"),
    "widgets": ("widgets", "host_notify", "base"),
    "overlays": ("overlays", "host_notify", "base"),
    "status": ("words in the status line", "host_notify", "setStatus"),
    "input_text": ("text in the user's input", "host_notify", "base"),
    "steer": ("steering", "host_notify", "base"),
    "abort": ("stopping the turn", "host_notify", "base"),
}
"""Each with what it is called, and how it is known in the frames and in the jsonrpc dialect."""


class HostInfo:
    """Who is at the other end."""

    __slots__ = ("capabilities", "dialect", "model", "name", "provider", "version")

    def __init__(
        self,
        name: str,
        version: str,
        dialect: str,
        capabilities: Iterable[str] = (),
        provider: str = "",
        model: str = "",
    ) -> None:
        self.name = name
        """`hilt`, `zot` or `piglet`."""
        self.version = version
        """Empty where the host does not say."""
        self.dialect = dialect
        self.capabilities = frozenset(capabilities)
        self.provider = provider
        self.model = model
        """Those at the start; both are empty where the host does not say."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".rstrip()

    def offers(self, feature: str) -> bool:
        """Raises `KeyError` for a feature that nobody knows."""
        words = FEATURES[feature]
        rule = words[1] if self.dialect == "frames" else words[2]
        if rule == "base" or rule == "none":
            return rule == "base"
        return any(capability in self.capabilities for capability in rule.split("|"))


def known_feature(feature: str) -> str:
    """The feature itself. Raises `RegistrationError` for one that is not in the table."""
    if feature not in FEATURES:
        near = [name for name in FEATURES if feature.split(".")[-1].rstrip("s") in name]
        raise RegistrationError(
            f"there is no feature {feature!r}; {'did you mean ' + near[0] if near else 'see FEATURES'}"
        )
    return feature


def lacking(host: HostInfo, wanted: Iterable[tuple[str, str]]) -> list[str]:
    """What the host does not offer of what is wanted, in words: `shortcuts (ctrl+g)`."""
    details: dict[str, list[str]] = {}
    for used, detail in wanted:
        feature = used
        if feature in ("events", "more_events") and not has_event(host.dialect, detail):
            feature = "events"
        elif host.offers(feature):
            continue
        told = details.setdefault(feature, [])
        if detail and detail not in told:
            told.append(detail)
    found = [(feature, details[feature]) for feature in FEATURES if feature in details]
    return [FEATURES[feature][0] + (f" ({', '.join(told)})" if told else "") for feature, told in found]


# Names

_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def tool_name(name: str) -> str:
    if not 1 <= len(name) <= 64 or not _WORD.issuperset(name):
        raise RegistrationError(f"{name!r} is no name for a tool: it has 1 to 64 of A-Z, a-z, 0-9, _ and -")
    return name


def command_name(name: str) -> str:
    plain = name[1:] if name.startswith("/") else name
    if not 1 <= len(plain) <= 64 or any(letter.isspace() for letter in plain):
        raise RegistrationError(f"{name!r} is no name for a command: it has 1 to 64 characters and no spaces")
    return plain


def other_name(name: str, what: str, limit: int = 128) -> str:
    if not 1 <= len(name) <= limit or not name.strip():
        raise RegistrationError(f"{name!r} is no {what}: it has 1 to {limit} characters")
    return name


# Events

FIRST_EVENTS = ("session_start", "turn_start", "assistant_message", "tool_call", "turn_end")
"""Those that every host of the frames dialect has."""
MORE_EVENTS = (
    "session_end",
    "user_prompt_submit",
    "tool_confirmation_requested",
    "permission_decision",
    "tool_result",
    "pre_compact",
    "post_compact",
    "subagent_start",
    "subagent_stop",
)
COUNTERPARTS = {
    "turn_start": "EventTurnStart",
    "turn_end": "EventTurnEnd",
    "assistant_message": "EventStreamDone",
    "tool_call": "EventToolStart",
    "tool_result": "EventToolEnd",
    "user_prompt_submit": "EventMessagePre",
    "post_compact": "EventCompact",
}
"""What an event is called in the jsonrpc dialect; the others it does not have."""
INTERCEPTABLE = ("tool_call", "turn_start", "assistant_message", "before_agent_start", "tool_result")
_STOPS = {"stop": "end", "toolUse": "tool_use"}


def event_name(name: str) -> str:
    if name in FIRST_EVENTS or name in MORE_EVENTS or is_raw(name):
        return name
    raise RegistrationError(
        f"there is no event {name!r}; there are {', '.join((*FIRST_EVENTS, *MORE_EVENTS))}, and those of the "
        "jsonrpc dialect, such as EventTurnStart, or * for all of these"
    )


def is_raw(name: str) -> bool:
    """Whether it is one of the jsonrpc dialect, told as it comes; `*` is all of them."""
    return name.startswith("Event") or name == "*"


def event_feature(name: str) -> str:
    if is_raw(name):
        return "raw_events"
    return "events" if name in FIRST_EVENTS else "more_events"


def has_event(dialect: str, name: str) -> bool:
    """Whether the dialect has it at all, whoever the host is."""
    return dialect == "frames" or is_raw(name) or name in COUNTERPARTS


def translated(name: str, data: dict[str, Any], step: int) -> dict[str, Any]:
    """The members that an event of the jsonrpc dialect has in the other one, as far as they are told."""
    if name == "turn_start":
        return {"step": step}
    if name == "turn_end":
        message = data.get("Assistant") or {}
        reason = message.get("stopReason") or ("error" if not message else "stop")
        members = {"stop": _STOPS.get(reason, reason)}
        return {**members, "error": message["error"]} if message.get("error") else members
    if name == "assistant_message":
        return {"text": message_text(data.get("Message") or {})}
    if name == "user_prompt_submit":
        content = data.get("Content")
        return {"text": content if isinstance(content, str) else message_text({"content": content})}
    if name == "post_compact":
        return {
            "message_count": data.get("After"),
            "token_estimate": data.get("TokensAtCompact"),
            "status": "completed",
        }
    called = {"tool_id": data.get("ToolCallID"), "tool_name": data.get("ToolName")}
    if name == "tool_call":
        return {**called, "tool_args": data.get("Args") or {}}
    failed = bool(data.get("IsError"))
    result = {"content": _blocks(data.get("Result")), "is_error": failed}
    return {**called, "status": "failed" if failed else "completed", "executed": True, "result": result}


def message_text(message: dict[str, Any]) -> str:
    """The text of a message of the jsonrpc dialect."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def own_block(block: dict[str, Any]) -> dict[str, Any]:
    """A block of the jsonrpc dialect, as the SDK has them."""
    if "mime" not in block:
        return block
    return {("mime_type" if name == "mime" else name): value for name, value in block.items()}


def wire_block(block: dict[str, Any]) -> dict[str, Any]:
    """A block as the jsonrpc dialect has them."""
    if "mime_type" not in block:
        return block
    return {("mime" if name == "mime_type" else name): value for name, value in block.items()}


def _blocks(told: Any) -> list[Any]:
    found = told.get("content") if isinstance(told, dict) else told
    return found if isinstance(found, list) else []
