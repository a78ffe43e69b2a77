"""What a line is in a conversation between hilt and an extension: a question, an answer or something told. Pure.

Of either dialect: in jsonrpc a question has a method and an id, an answer an id alone; among frames the type says it.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from hilt.authoring.values import Value

Part: TypeAlias = Literal["question", "answer", "told"]
Id: TypeAlias = str | int

_QUESTIONS = frozenset(
    {
        "tool_call",
        "command_invoked",
        "shortcut_invoked",
        "event_intercept",
        "ext_request",
        "call_tool",
        "host_request",
    }
)
_ANSWERS = frozenset({"tool_result", "command_response", "event_intercept_response", "ext_response", "host_response"})


class Role(Struct, frozen=True):
    part: Part
    what: str
    """The type of a frame, the method of a message; both for a frame that carries a method. Of an answer in jsonrpc
    `result` or `error`."""
    id: Id | None = None
    """Of a question or an answer."""


def role_of(value: Value) -> Role:
    type_, method, id_ = value.get("type"), value.get("method"), value.get("id")
    known = id_ if isinstance(id_, str | int) else None
    if isinstance(type_, str):
        what = f"{type_} {method}" if isinstance(method, str) else type_
        if known is not None and type_ in _ANSWERS:
            return Role("answer", what, known)
        return Role("question", what, known) if known is not None and type_ in _QUESTIONS else Role("told", what)
    if isinstance(method, str):
        return Role("told", method) if known is None else Role("question", method, known)
    what = "error" if value.get("error") is not None else "result"
    return Role("told", what) if known is None else Role("answer", what, known)


def said(value: Value) -> Any:
    """What is left of it beside its type, its id and its method; the inner part where there is but one."""
    rest = {key: item for key, item in value.items() if key not in ("type", "id", "jsonrpc", "method")}
    if len(rest) == 1 and (only := next(iter(rest))) in ("params", "result", "error"):
        return rest[only]
    return rest
