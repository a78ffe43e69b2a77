"""Everything that happens, as values: the one stream that all faces show.

Order within a prompt: `user_message`, then per step `turn_start`, `assistant_start`, deltas,
`usage`, `assistant_message`, `tool_call`s, `turn_end`, and per tool `tool_progress`es and
`tool_result`; at last `done`. An event that shows a whole message means that its record is
already on disk.
"""

from datetime import datetime
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from hilt.model.actions import PermissionMode
from hilt.model.content import Args, AssistantBlock, ResultBlock, UserBlock
from hilt.model.conversation import StopReason, Usage
from hilt.model.extensions import ExtensionState, NoteLevel, Overlay, Panel, PickerItem, Placement
from hilt.model.ports import PermissionRequest
from hilt.model.stream import TextDelta, ThinkingDelta, ToolUseArgs, ToolUseEnd, ToolUseStart
from hilt.model.verdicts import Interceptable


class PromptSubmitted(Struct, frozen=True, tag_field="type", tag="user_prompt_submit"):
    """Somebody wants this said; it may have to wait for the running turn."""

    content: tuple[UserBlock, ...]
    queued: bool
    extension: str = ""
    """Who, when it was an extension and not the user."""


class UserMessageAdded(Struct, frozen=True, tag_field="type", tag="user_message"):
    content: tuple[UserBlock, ...]
    time: datetime
    extension: str = ""
    """Whose words they are, when they are not the user's."""


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


class AssistantReplaced(Struct, frozen=True, tag_field="type", tag="assistant_replace"):
    """What was streamed since `assistant_start` is void: show `text` in its place, or nothing when it is suppressed.

    A replaced message still comes as `assistant_message`; a suppressed one does not. The model sees the original.
    """

    text: str
    suppressed: bool
    extension: str
    reason: str = ""


class ToolCalled(Struct, frozen=True, tag_field="type", tag="tool_call"):
    id: str
    name: str
    args: Args
    extension: str = ""
    """Who made the call, when it was an extension and not the model."""
    invalid: str = ""
    """What the model wrote in place of arguments, when that was not a JSON object."""
    known: bool = True
    """Whether there is such a tool, as far as is known when it is called."""


class TurnEnded(Struct, frozen=True, tag_field="type", tag="turn_end"):
    stop: StopReason
    error: str = ""


class ToolProgressed(Struct, frozen=True, tag_field="type", tag="tool_progress"):
    id: str
    text: str


ToolStatus: TypeAlias = Literal["completed", "failed", "blocked", "cancelled", "timed_out"]


class ToolResultAdded(Struct, frozen=True, tag_field="type", tag="tool_result"):
    id: str
    name: str
    is_error: bool
    content: tuple[ResultBlock, ...]
    extension: str = ""
    status: ToolStatus = "completed"
    executed: bool = True
    args: Args = {}
    """What it ran with, or would have."""
    invalid: str = ""
    details: dict[str, Any] = {}
    """Facts for screens and programs; never sent to the model."""
    changed_by: tuple[str, ...] = ()
    """The extensions that changed the result before anybody saw it, in order."""


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
    messages: int
    id: str


class CompactionDone(Struct, frozen=True, tag_field="type", tag="compact_done"):
    summary: str
    tokens: int
    messages: int
    id: str


class CompactionFailed(Struct, frozen=True, tag_field="type", tag="compact_failed"):
    """The conversation is as it was."""

    error: str
    tokens: int
    messages: int
    id: str


class Noticed(Struct, frozen=True, tag_field="type", tag="notice"):
    """Something the user should know that is not part of the conversation."""

    level: Literal["info", "warn", "error"]
    message: str


class PermissionDecided(Struct, frozen=True, tag_field="type", tag="permission_decision"):
    id: str
    name: str
    approved: bool
    source: Literal["user", "remembered", "policy", "yolo"]
    reason: str = ""


class PermissionAsked(Struct, frozen=True, tag_field="type", tag="ui_request"):
    """A question for whoever is at the other end; answered by `ui_response` with the same id."""

    id: str
    request: PermissionRequest


class TrustAsked(Struct, frozen=True, tag_field="type", tag="ui_request"):
    """Whether the extensions that came with a folder may run; answered like `PermissionAsked`."""

    id: str
    folder: str
    commands: tuple[tuple[str, tuple[str, ...]], ...]
    """Name and command line of each, whole."""
    text: str
    """All there is to know before saying yes."""


class Displayed(Struct, frozen=True, tag_field="type", tag="ext_display"):
    extension: str
    text: str


class Inserted(Struct, frozen=True, tag_field="type", tag="ext_insert"):
    extension: str
    text: str
    replace: bool = False
    """In place of whatever stands in the input."""


class Notified(Struct, frozen=True, tag_field="type", tag="ext_notify"):
    """A note. It is gone when `ext_clear_notes` names its extension."""

    extension: str
    level: NoteLevel
    message: str
    skipped: int = 0
    """How many of the same extension came before it and were not told, for there were too many."""


class NotesCleared(Struct, frozen=True, tag_field="type", tag="ext_clear_notes"):
    extension: str


class PanelShown(Struct, frozen=True, tag_field="type", tag="ext_panel"):
    """A panel was opened, drawn anew or given the focus, or came back with its extension. There may be several."""

    extension: str
    panel_id: str
    title: str
    lines: tuple[str, ...]
    footer: str
    focused: bool = True
    """It is the one that hears the keys; no other is from now on."""

    @classmethod
    def of(cls, extension: str, panel: Panel, *, focused: bool = True) -> "PanelShown":
        return cls(extension, panel.id, panel.title, panel.lines, panel.footer, focused)


class PanelClosed(Struct, frozen=True, tag_field="type", tag="ext_panel_close"):
    extension: str
    panel_id: str
    reason: str = ""
    """Empty when its owner or the user closed it. Otherwise its owner is gone: nothing hears its keys any more, but it
    comes back with its owner, unless the user closes it first."""


class WidgetShown(Struct, frozen=True, tag_field="type", tag="ext_widget"):
    """A few lines of an extension near the input; without content they go."""

    extension: str
    key: str
    placement: Placement
    content: str


class OverlayShown(Struct, frozen=True, tag_field="type", tag="ext_overlay"):
    """A text of an extension above everything else; one of the same extension and key is replaced."""

    extension: str
    key: str
    title: str
    content: str
    anchor: str = ""
    width: str = ""

    @classmethod
    def of(cls, extension: str, overlay: Overlay) -> "OverlayShown":
        return cls(extension, overlay.key, overlay.title, overlay.content, overlay.anchor, overlay.width)


class OverlayClosed(Struct, frozen=True, tag_field="type", tag="ext_overlay_close"):
    extension: str
    key: str


class StatusShown(Struct, frozen=True, tag_field="type", tag="ext_status_text"):
    """A word of an extension in the status line; an empty one goes."""

    extension: str
    key: str
    text: str


class ImageAttached(Struct, frozen=True, tag_field="type", tag="ext_image"):
    """The next message will carry this image of an extension; without a type, none any more."""

    extension: str
    mime_type: str = ""
    bytes: int = 0


class QuitAsked(Struct, frozen=True, tag_field="type", tag="ext_quit"):
    """An extension wants the program to end; whoever shows it decides."""

    extension: str


class PickerAsked(Struct, frozen=True, tag_field="type", tag="ui_request"):
    """An extension lets the user pick one of several."""

    id: str
    extension: str
    title: str
    items: tuple[PickerItem, ...]


class QuestionAsked(Struct, frozen=True, tag_field="type", tag="ui_request"):
    """An extension asks the user a question with a few answers."""

    id: str
    extension: str
    prompt: str
    choices: tuple[str, ...]


class RequestWithdrawn(Struct, frozen=True, tag_field="type", tag="ui_withdrawn"):
    """Nobody waits for the answer to this `ui_request` any more."""

    id: str


class RunStarted(Struct, frozen=True, tag_field="type", tag="run_start"):
    """A prompt is about to be answered, with all that the model is going to be told."""

    text: str
    system: str
    tools: int
    history: int
    """Messages before this one."""


class StepLimitReached(Struct, frozen=True, tag_field="type", tag="step_limit"):
    count: int
    limit: int


class BackgroundChanged(Struct, frozen=True, tag_field="type", tag="background"):
    """An agent that works beside the conversation."""

    name: str
    state: Literal["started", "done", "failed", "cancelled"]
    extension: str
    text: str = ""
    """What it had to say at the end, or what went wrong."""


class ExtensionChanged(Struct, frozen=True, tag_field="type", tag="ext_status"):
    extension: str
    state: ExtensionState
    reason: str = ""


Deciding: TypeAlias = Literal["allow", "block", "rewrite", "replace", "suppress", "fail"]


class Decided(Struct, frozen=True):
    """One interceptor's part in a decision."""

    extension: str
    decision: Deciding
    ms: float
    reason: str = ""
    """Why it refused, or why there was no verdict."""
    applied: Literal["", "allow", "ask", "block"] = ""
    """What was done in place of a verdict, when there was none."""
    changed: Any = None
    """The arguments or the text as it left them, when it changed them."""


class Intercepted(Struct, frozen=True, tag_field="type", tag="interception"):
    """Interceptors were asked; every one of them, in the order in which their answers counted."""

    event: Interceptable
    outcome: Literal["allowed", "blocked", "changed"]
    decisions: tuple[Decided, ...]
    id: str = ""
    """The tool call, when it was about one."""
    name: str = ""


class QueueChanged(Struct, frozen=True, tag_field="type", tag="queue"):
    """Messages waiting for the running turn to end."""

    waiting: tuple[str, ...]


class ConversationMoved(Struct, frozen=True, tag_field="type", tag="conversation"):
    """It is another one from here on: another session or branch was opened, or it was cleared or replaced."""

    session: str
    messages: int


class StateChanged(Struct, frozen=True, tag_field="type", tag="state"):
    """The model, the mode or the session changed by command."""

    provider: str
    model: str
    permissions: PermissionMode
    jail: bool
    session: str
    step: bool = False
    """Every tool call waits for the user."""


Event: TypeAlias = (
    PromptSubmitted
    | UserMessageAdded
    | TurnStarted
    | AssistantStarted
    | TextDelta
    | ThinkingDelta
    | ToolUseStart
    | ToolUseArgs
    | ToolUseEnd
    | UsageReported
    | AssistantMessageAdded
    | AssistantReplaced
    | ToolCalled
    | TurnEnded
    | ToolProgressed
    | ToolResultAdded
    | Done
    | Failed
    | Retrying
    | CompactionStarted
    | CompactionDone
    | CompactionFailed
    | Noticed
    | PermissionDecided
    | PermissionAsked
    | TrustAsked
    | Displayed
    | Inserted
    | Notified
    | NotesCleared
    | PanelShown
    | PanelClosed
    | WidgetShown
    | OverlayShown
    | OverlayClosed
    | StatusShown
    | ImageAttached
    | QuitAsked
    | PickerAsked
    | QuestionAsked
    | RequestWithdrawn
    | RunStarted
    | StepLimitReached
    | BackgroundChanged
    | ExtensionChanged
    | Intercepted
    | QueueChanged
    | ConversationMoved
    | StateChanged
)
