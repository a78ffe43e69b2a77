"""Everything that happens, as values: the one stream that all faces show.

Order within a prompt: `user_message`, then per step `turn_start`, `assistant_start`, deltas,
`usage`, `assistant_message`, `tool_call`s, `turn_end`, and per tool `tool_progress`es and
`tool_result`; at last `done`. An event that shows a whole message means that its record is
already on disk.
"""

from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from hilt.model.actions import PermissionMode
from hilt.model.content import Args, AssistantBlock, ResultBlock, UserBlock
from hilt.model.conversation import StopReason, Usage
from hilt.model.ports import PermissionRequest
from hilt.model.stream import TextDelta, ThinkingDelta, ToolUseArgs, ToolUseEnd, ToolUseStart


class UserMessageAdded(Struct, frozen=True, tag_field="type", tag="user_message"):
    content: tuple[UserBlock, ...]
    time: datetime


class TurnStarted(Struct, frozen=True, tag_field="type", tag="turn_start"):
    step: int


class AssistantStarted(Struct, frozen=True, tag_field="type", tag="assistant_start"):
    pass


class UsageReported(Struct, frozen=True, tag_field="type", tag="usage"):
    usage: Usage
    cumulative: Usage


class AssistantMessageAdded(Struct, frozen=True, tag_field="type", tag="assistant_message"):
    content: tuple[AssistantBlock, ...]
    time: datetime


class ToolCalled(Struct, frozen=True, tag_field="type", tag="tool_call"):
    id: str
    name: str
    args: Args


class TurnEnded(Struct, frozen=True, tag_field="type", tag="turn_end"):
    stop: StopReason
    error: str = ""


class ToolProgressed(Struct, frozen=True, tag_field="type", tag="tool_progress"):
    id: str
    text: str


class ToolResultAdded(Struct, frozen=True, tag_field="type", tag="tool_result"):
    id: str
    name: str
    is_error: bool
    content: tuple[ResultBlock, ...]


class Done(Struct, frozen=True, tag_field="type", tag="done"):
    """The last event of a prompt, exactly one for each."""

    stop: StopReason = "end"


class Failed(Struct, frozen=True, tag_field="type", tag="error"):
    message: str
    hint: str = ""
    code: str = ""
    """`auth`, `context_overflow`, `step_limit`… for programs; empty when there is no name for it."""


class Retrying(Struct, frozen=True, tag_field="type", tag="retry"):
    """A transient failure; deltas since `assistant_start` are void and come again."""

    attempt: int
    attempts: int
    delay_ms: int
    reason: str


class CompactionStarted(Struct, frozen=True, tag_field="type", tag="compact_start"):
    automatic: bool
    tokens: int


class CompactionDone(Struct, frozen=True, tag_field="type", tag="compact_done"):
    summary: str


class Noticed(Struct, frozen=True, tag_field="type", tag="notice"):
    """Something the user should know that is not part of the conversation."""

    level: Literal["info", "warn", "error"]
    message: str


class PermissionDecided(Struct, frozen=True, tag_field="type", tag="permission_decision"):
    id: str
    name: str
    approved: bool
    source: Literal["user", "remembered", "policy"]
    reason: str = ""


class PermissionAsked(Struct, frozen=True, tag_field="type", tag="ui_request"):
    """A question for whoever is at the other end; answered by `ui_response` with the same id."""

    id: str
    request: PermissionRequest


class Displayed(Struct, frozen=True, tag_field="type", tag="ext_display"):
    extension: str
    text: str


class Inserted(Struct, frozen=True, tag_field="type", tag="ext_insert"):
    extension: str
    text: str


class QueueChanged(Struct, frozen=True, tag_field="type", tag="queue"):
    """Messages waiting for the running turn to end."""

    waiting: tuple[str, ...]


class StateChanged(Struct, frozen=True, tag_field="type", tag="state"):
    """The model, the mode or the session changed by command."""

    provider: str
    model: str
    permissions: PermissionMode
    jail: bool
    session: str


Event: TypeAlias = (
    UserMessageAdded
    | TurnStarted
    | AssistantStarted
    | TextDelta
    | ThinkingDelta
    | ToolUseStart
    | ToolUseArgs
    | ToolUseEnd
    | UsageReported
    | AssistantMessageAdded
    | ToolCalled
    | TurnEnded
    | ToolProgressed
    | ToolResultAdded
    | Done
    | Failed
    | Retrying
    | CompactionStarted
    | CompactionDone
    | Noticed
    | PermissionDecided
    | PermissionAsked
    | Displayed
    | Inserted
    | QueueChanged
    | StateChanged
)
