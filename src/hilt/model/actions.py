"""What a command asks the agent to do. One place applies them: `agent.session`."""

from typing import Literal, TypeAlias

from msgspec import Struct

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


class Rename(Struct, frozen=True, tag_field="action", tag="rename"):
    title: str


Action: TypeAlias = (
    Prompt | Insert | Display | Noop | SwitchModel | Compact | Clear | Undo | SetPermissions | SetJail | Rename
)
