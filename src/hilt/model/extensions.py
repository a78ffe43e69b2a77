"""Extensions as the rest of the program sees them: how they are, what they show."""

import time
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, field

from hilt.errors import UsageError

NoteLevel: TypeAlias = Literal["info", "success", "warn", "error"]

Dialect: TypeAlias = Literal["frames", "jsonrpc"]
"""The wire protocol an extension speaks."""

ExtensionState: TypeAlias = Literal["starting", "ready", "restarting", "failed", "disabled", "stopped", "untrusted"]


_LONGEST = 100
"""Characters of a name that is none which are repeated, and compared with others."""


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
    prompt_tokens: int = 0
    """An estimate of what its tools and prompt sections cost with every call of the model."""
    calls: int = 0
    """Questions of any kind that it answered, since it was first started in this session."""
    mean_ms: float = 0.0
    worst_ms: float = 0.0
    """How long the answers took, on average and at most."""
    busy_ms: float = 0.0
    """How long there was something that it was waited for."""
    last_error: str = ""
    """The last thing that went wrong with it, after the time of day; kept when it is started anew."""
    log: str = ""
    """The file with what it writes to stderr and what hilt remarks about it. It need not exist."""


class Mishap(Struct, frozen=True):
    """Something that went wrong, and when that was: for people, so by the clock on the wall."""

    what: str
    when: float = field(default_factory=time.time)

    def __str__(self) -> str:
        return f"{time.strftime('%H:%M:%S', time.localtime(self.when))} {self.what}"


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


def no_such_extension(name: str, known: Sequence[str]) -> UsageError:
    """That there is none of this name, and which may have been meant."""
    from difflib import get_close_matches  # 5 ms, and only for the mistaken

    name = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
    near = get_close_matches(name, known, 1)
    meant = f'did you mean "{near[0]}"? ' if near else ""
    return UsageError(f"there is no extension {name}", hint=f"{meant}there are: {', '.join(known) or 'none'}")
