"""What a command asks the agent to do. One place applies them: `agent.applying`."""

from typing import Literal, TypeAlias

from msgspec import Struct

from hilt.model.content import Args
from hilt.model.extensions import NoteLevel, Overlay, Panel, Placement

PermissionMode: TypeAlias = Literal["ask", "accept-edits", "yolo"]


class Prompt(Struct, frozen=True, tag_field="action", tag="prompt"):
    """Send this text to the model as if the user had typed it."""

    prompt: str


class Insert(Struct, frozen=True, tag_field="action", tag="insert"):
    """Put this text into the user's input."""

    insert: str


class Display(Struct, frozen=True, tag_field="action", tag="display"):
    """Show this text; it never reaches the model."""

    display: str


class Noop(Struct, frozen=True, tag_field="action", tag="noop"):
    pass


class SwitchModel(Struct, frozen=True, tag_field="action", tag="switch_model"):
    model: str


class Compact(Struct, frozen=True, tag_field="action", tag="compact"):
    pass


class Clear(Struct, frozen=True, tag_field="action", tag="clear"):
    """Begin an empty conversation in the same session; the log keeps the old branch."""


class Undo(Struct, frozen=True, tag_field="action", tag="undo"):
    """Put back the files the last change touched."""


class SetPermissions(Struct, frozen=True, tag_field="action", tag="set_permissions"):
    mode: PermissionMode


class SetJail(Struct, frozen=True, tag_field="action", tag="set_jail"):
    on: bool


class ToggleStep(Struct, frozen=True, tag_field="action", tag="toggle_step"):
    """Have every tool call wait for the user, or no longer."""


class Rename(Struct, frozen=True, tag_field="action", tag="rename"):
    title: str


class OpenSession(Struct, frozen=True, tag_field="action", tag="open_session"):
    """Go on in another session, between turns."""

    session: str
    """Its id, the beginning of it, or its path."""


class Branch(Struct, frozen=True, tag_field="action", tag="branch"):
    """Go on from another entry of this session, between turns."""

    entry: str
    summary: str = ""
    """What there is to say of the branch that is left."""


class SetLabel(Struct, frozen=True, tag_field="action", tag="set_label"):
    """Give an entry a name; an empty one takes it away."""

    entry: str
    label: str


class ToolPrompt(Struct, frozen=True, tag_field="action", tag="tool_prompt"):
    """Call this tool, then send `prompt` to the model with what it returned."""

    tool_name: str
    tool_args: Args
    prompt: str


class OpenPanel(Struct, frozen=True, tag_field="action", tag="open_panel"):
    """Show this panel, beside any other, and give it the focus. One of the same owner and id is replaced."""

    open_panel: Panel


class RenderPanel(Struct, frozen=True, tag_field="action", tag="render_panel"):
    """Show this in the open panel of the same owner and id, focused or not. An empty title keeps the old one."""

    panel: Panel


class ClosePanel(Struct, frozen=True, tag_field="action", tag="close_panel"):
    panel_id: str


class Notify(Struct, frozen=True, tag_field="action", tag="notify"):
    """Show a note; it goes when the user sends the next prompt."""

    level: NoteLevel
    message: str


class ClearNotes(Struct, frozen=True, tag_field="action", tag="clear_notes"):
    pass


class Submit(Struct, frozen=True, tag_field="action", tag="submit"):
    """Send this to the model, though the user did not ask for it."""

    text: str


class SendMessage(Struct, frozen=True, tag_field="action", tag="send_message"):
    """Say this in the user's place: into the running turn, or as if typed when there is none."""

    text: str


class Steer(Struct, frozen=True, tag_field="action", tag="steer"):
    """Say this to the model at the next tool boundary, though the user did not ask for it."""

    text: str


class Abort(Struct, frozen=True, tag_field="action", tag="abort"):
    """Stop what runs."""

    marker: str = ""
    """When not empty, the reason goes into the conversation, where the model sees it."""


class SetInput(Struct, frozen=True, tag_field="action", tag="set_input"):
    """Have exactly this text in the user's input; it is not sent."""

    text: str


class SetWidget(Struct, frozen=True, tag_field="action", tag="set_widget"):
    """Show a few lines near the input; without content it goes."""

    key: str
    placement: Placement
    content: str


class ShowOverlay(Struct, frozen=True, tag_field="action", tag="show_overlay"):
    """Show this above everything; one of the same owner and key is replaced."""

    overlay: Overlay


class CloseOverlay(Struct, frozen=True, tag_field="action", tag="close_overlay"):
    key: str


class SetStatus(Struct, frozen=True, tag_field="action", tag="set_status"):
    """Show a word in the status line; an empty one goes."""

    key: str
    text: str


class AttachImage(Struct, frozen=True, tag_field="action", tag="attach_image"):
    """Send this with the user's next message; if one is attached already, that is taken away instead."""

    data: bytes
    mime_type: str


class DetachImage(Struct, frozen=True, tag_field="action", tag="detach_image"):
    pass


class Quit(Struct, frozen=True, tag_field="action", tag="quit"):
    """Ask the face to end."""


class Settle(Struct, frozen=True, tag_field="action", tag="settle"):
    """The owner is gone: take away what it showed. Its panels stay, and take no keys."""

    reason: str


class Revive(Struct, frozen=True, tag_field="action", tag="revive"):
    """The owner is there again: its panels are its own once more."""


Action: TypeAlias = (
    Prompt
    | Insert
    | Display
    | Noop
    | SwitchModel
    | Compact
    | Clear
    | Undo
    | SetPermissions
    | SetJail
    | ToggleStep
    | Rename
    | OpenSession
    | Branch
    | SetLabel
    | ToolPrompt
    | OpenPanel
    | RenderPanel
    | ClosePanel
    | Notify
    | ClearNotes
    | Submit
    | SendMessage
    | Steer
    | Abort
    | SetInput
    | SetWidget
    | ShowOverlay
    | CloseOverlay
    | SetStatus
    | AttachImage
    | DetachImage
    | Quit
    | Settle
    | Revive
)
