"""The tool calls of a session, each with all that is on record about it: who was asked, who decided, what came of it.

Pure but for reading the log. Records that this version does not understand, and what older ones did not keep, are left
out: of a call that is all there is, less is told.
"""

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from hilt.model.content import Args, ToolCall, text_of
from hilt.model.conversation import AssistantMessage, ToolResult
from hilt.model.events import Decided, Intercepted, PermissionDecided
from hilt.sessions.log import SessionLog
from hilt.sessions.records import MessageRecord, NoteRecord, Record, ResultRecord

Status: TypeAlias = Literal["", "completed", "failed", "blocked", "timed_out", "cancelled"]


class Call(Struct):
    id: str
    name: str
    time: str = ""
    """When the model, or an extension, asked for it."""
    by: str = ""
    """The extension that made it, or for which a model did; empty for the model of the conversation."""
    args: Args | None = None
    """As they were asked for. Of a call that an extension made, as they were in the end."""
    guards: list[Decided] = field(default_factory=list)
    """Who was asked before it ran, in the order in which answers counted."""
    outcome: Literal["", "allowed", "blocked", "changed"] = ""
    """What came of that; empty when nobody was asked."""
    permission: PermissionDecided | None = None
    """None when the mode alone allowed it."""
    reviews: list[Decided] = field(default_factory=list)
    """Who was asked about the result, one after the other."""
    changed_by: list[str] = field(default_factory=list)
    """Who of these changed it."""
    original: str | None = None
    """The result's text as the tool gave it, when it was changed."""
    result: str | None = None
    """Its text in the end; None as long as there is no result."""
    status: Status = ""
    """Empty as long as there is no result."""


class _Review(Struct):
    id: str
    name: str = ""
    decisions: list[Decided] = field(default_factory=list)


class _Changed(Struct):
    id: str
    by: list[str]
    original: Any = None


class _Made(Struct):
    """A call that an extension made, or an agent that works for one."""

    id: str
    name: str
    extension: str = ""
    args: Args = field(default_factory=dict)
    status: Status = ""
    text: str = ""


def calls_of(log: SessionLog) -> list[Call]:
    """All of the file, on every branch, in the order in which they were made."""
    history = _History()
    for entry in log.entries():
        if entry.type in (MessageRecord.TYPE, ResultRecord.TYPE, NoteRecord.TYPE):
            history.take(log.read(entry), entry.time)
    return history.calls


class _History:
    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._open: dict[str, Call] = {}
        """The last one of each id: models may use one again."""

    def take(self, record: Record, time: str) -> None:
        match record:
            case MessageRecord(message=AssistantMessage(content=content)):
                for block in content:
                    if isinstance(block, ToolCall):
                        self._add(Call(block.id, block.name, time, args=block.args))
            case ResultRecord(result=result):
                self._ended(self._call(result.call_id, result.name, time), result)
            case NoteRecord(kind=kind, data=data):
                try:
                    self._noted(kind, data, time)
                except msgspec.ValidationError:
                    pass  # another version's

    def _add(self, call: Call) -> Call:
        self.calls.append(call)
        self._open[call.id] = call
        return call

    def _call(self, id_: str, name: str, time: str) -> Call:
        return self._open.get(id_) or self._add(Call(id_, name, time))

    def _noted(self, kind: str, data: Any, time: str) -> None:
        match kind:
            case "interception":
                asked = msgspec.convert(data, Intercepted)
                if asked.event == "tool_call":
                    call = self._call(asked.id, asked.name, time)
                    call.guards, call.outcome = list(asked.decisions), asked.outcome
            case "permission":
                decided = msgspec.convert(data, PermissionDecided)
                self._call(decided.id, decided.name, time).permission = decided
            case "result_interception":
                review = msgspec.convert(data, _Review)
                self._call(review.id, review.name, time).reviews = review.decisions
            case "result_changed":
                changed = msgspec.convert(data, _Changed)
                call = self._call(changed.id, "", time)
                call.changed_by, call.original = changed.by, _text(changed.original)
            case "extension_call" | "agent_call":
                made = msgspec.convert(data, _Made)
                call = self._call(made.id, made.name, time)
                call.by, call.args, call.status, call.result = made.extension, made.args, made.status, made.text

    def _ended(self, call: Call, result: ToolResult) -> None:
        call.result = text_of(result.content, "\n")
        refused = call.permission is not None and not call.permission.approved
        if call.outcome == "blocked" or refused:
            call.status = "blocked"
        elif result.is_error:
            call.status = "timed_out" if result.details.get("timed_out") else "failed"
        else:
            call.status = "completed"


def _text(output: Any) -> str:
    """Of what was recorded of a tool's output."""
    blocks = output.get("content") if isinstance(output, dict) else None
    texts = [block.get("text") for block in blocks or () if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))
