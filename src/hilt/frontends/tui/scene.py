"""What is on the screen, as plain state: changed by the presenter as things happen, drawn by widgets now and then.

A change costs next to nothing, however often it comes: it only marks what must be drawn again. Drawing is done for
everything marked at once, and not more often than 30 times a second.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # on the way to the first frame nothing of the agent is imported: 80 ms
    from hilt.agent.panels import OpenPanel
    from hilt.agent.waiting import Wait
    from hilt.frontends.tui.transcript.blocks import Block
    from hilt.model.actions import PermissionMode
    from hilt.model.conversation import Usage
    from hilt.model.events import ImageAttached, OverlayShown, StatusShown, WidgetShown
    from hilt.model.extensions import ExtensionStatus, Note


class Part(Flag):
    """A region of the screen that is drawn on its own."""

    TRANSCRIPT = auto()
    ACTIVITY = auto()
    QUEUE = auto()
    NOTES = auto()
    WIDGETS = auto()
    PANELS = auto()
    OVERLAYS = auto()
    STATUS = auto()
    INPUT = auto()
    ALL = TRANSCRIPT | ACTIVITY | QUEUE | NOTES | WIDGETS | PANELS | OVERLAYS | STATUS | INPUT


@dataclass
class Facts:
    """What the status line tells."""

    model: str = ""
    mode: "PermissionMode" = "yolo"
    step: bool = False
    jail: bool = False
    cwd: str = ""
    branch: str = ""
    usage: "Usage | None" = None
    context: int = 0
    """Tokens of the conversation, about."""
    window: int = 0
    """Tokens that the model can take; 0 when nobody knows."""
    extensions: "Sequence[ExtensionStatus]" = ()


@dataclass
class Activity:
    """What runs now, for the line that says so."""

    since: float = 0.0
    """When it began, by the loop's clock; 0 when nothing runs."""
    doing: str = ""
    """Such as `thinking`, or the tool that runs."""
    tokens: int = 0
    """What the model has written since then, about."""


@dataclass(frozen=True)
class Written:
    """What an extension puts into the input."""

    text: str
    replace: bool
    """In place of what stands there."""


@dataclass
class Scene:
    blocks: "list[Block]" = field(default_factory=list)
    """The conversation, oldest first."""
    facts: Facts = field(default_factory=Facts)
    activity: Activity = field(default_factory=Activity)
    waits: "Sequence[Wait]" = ()
    """Extensions that hold things up."""
    hint: str = ""
    """A word of the moment, such as that another Ctrl-C leaves."""
    queue: Sequence[str] = ()
    notes: "Sequence[Note]" = ()
    widgets: "Sequence[WidgetShown]" = ()
    panels: "Sequence[OpenPanel]" = ()
    """In the order in which they had the focus; who has it is last."""
    overlays: "Sequence[OverlayShown]" = ()
    statuses: "Sequence[StatusShown]" = ()
    image: "ImageAttached | None" = None
    written: Written | None = None
    """What is still to be put into the input."""
    written_by: str = ""
    """The extension that last did so, until something is sent."""
    dirty: Part = Part.ALL
    changed: Callable[[], None] = lambda: None
    """Called when something is marked: whoever draws arranges for it."""

    def mark(self, part: Part) -> None:
        self.dirty |= part
        self.changed()

    def taken(self) -> Part:
        """What must be drawn again, which counts as done from now on."""
        dirty, self.dirty = self.dirty, Part(0)
        return dirty
