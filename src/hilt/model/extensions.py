"""Extensions as the rest of the program sees them: how they are, what they show."""

from typing import Literal, TypeAlias

from msgspec import Struct

NoteLevel: TypeAlias = Literal["info", "success", "warn", "error"]

Dialect: TypeAlias = Literal["frames", "jsonrpc"]
"""The wire protocol an extension speaks."""

ExtensionState: TypeAlias = Literal["starting", "ready", "restarting", "failed", "disabled", "stopped", "untrusted"]


class Panel(Struct, frozen=True):
    """Lines an extension draws. What they contain is a stranger's: clean it before a terminal gets it."""

    id: str
    title: str = ""
    lines: tuple[str, ...] = ()
    footer: str = ""


Placement: TypeAlias = Literal["above-input", "below-status"]


class Overlay(Struct, frozen=True):
    """A text above everything else."""

    key: str
    title: str
    content: str
    anchor: str = ""
    """Words such as `top-left`; the middle when empty."""
    width: str = ""
    """Columns, or a share of the screen such as `50%`."""


class PickerItem(Struct, frozen=True):
    id: str
    label: str
    description: str = ""


class Note(Struct, frozen=True):
    extension: str
    level: NoteLevel
    message: str


class ExtensionStatus(Struct, frozen=True):
    name: str
    version: str
    dialect: Dialect
    state: ExtensionState
    source: str
    """Where it was found: `flag`, `user` or `project`; empty for one that could not be read."""
    directory: str
    sandbox: Literal["off", "standard", "strict"] = "off"
    """How strictly it is confined."""
    pid: int | None = None
    restarts: int = 0
    start_ms: int | None = None
    """How long its process took to be ready."""
    reason: str = ""
    """Why it is not ready, or what the user should know about it."""
    tools: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    """What it intercepts."""
    also: tuple[str, ...] = ()
    """What else it does, in a word or two each: `models of words`, `message hook`."""
    events_lost: int = 0
    """Events that gave way to newer ones because it did not read them."""
    mistakes: int = 0
    """Lines from it that could not be used."""
    unchecked: int = 0
    """Times it gave no verdict when it was asked for one."""
    tokens_used: int = 0
    """What models used on its behalf beside the conversation, in this session."""


class Reloaded(Struct, frozen=True):
    """What became of a reload."""

    stopped: int
    loaded: int
    ready: int
    problems: tuple[str, ...] = ()
    """One for each that could not be loaded, naming it and what goes on instead."""

    def __str__(self) -> str:
        told = f"reloaded: {self.stopped} stopped, {self.loaded} loaded ({self.ready} ready)"
        if self.problems:
            told += f", {len(self.problems)} error" + "s" * (len(self.problems) > 1)
        return "\n".join([told, *self.problems])
