"""What extensions and clients ask the agent for, and what they learn: values only."""

from datetime import datetime
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from hilt.model.conversation import Message, Usage
from hilt.model.stream import ToolSpec


class ToolListing(Struct, frozen=True):
    name: str
    description: str
    schema: dict[str, Any]
    deferred: bool = False
    """The model knows its name only, until it is activated."""
    background_safe: bool = False
    """Fit for an agent that nobody watches: built in, and it only reads."""


class LlmSnapshot(Struct, frozen=True):
    """What the model would be sent now."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]


class ChatRequest(Struct, frozen=True):
    """One answer, without tools and beside the conversation."""

    messages: tuple[Message, ...]
    system: str = ""
    model: str = ""
    """Empty or `default`: the one in use; `small`: the configured small one; else as `/model` takes it."""
    max_tokens: int = 0


class ChatReply(Struct, frozen=True):
    text: str
    usage: Usage


ToolChoice: TypeAlias = Literal["background_safe", "all"]


class AgentTask(Struct, frozen=True):
    """Something for an agent of its own, beside the conversation."""

    task: str
    system: str = ""
    tools: ToolChoice = "background_safe"
    model: str = ""
    max_turns: int = 30
    seconds: float = 300.0
    """How long it may take; then what there is of it is the answer."""


class AgentReport(Struct, frozen=True):
    text: str
    """All that it said, turn by turn."""
    turns: int
    usage: Usage
    error: str = ""
    """Why it ended before it was done."""


class SessionRow(Struct, frozen=True):
    id: str
    title: str
    cwd: str
    created: datetime
    path: str
    parent: str = ""


class Forked(Struct, frozen=True):
    parent: str
    """The id of the session it was forked from."""
    messages: int


class SessionStats(Struct, frozen=True):
    turns: int
    """Answers of the model in the conversation as it is."""
    usage: Usage
    """What those cost."""
    model: str
    """`provider/id`."""


class SessionNode(Struct, frozen=True):
    """One entry of a session's tree."""

    id: str
    parent: str
    type: str
    time: datetime
    children: int
    active: bool
    """On the way from the root to where the conversation is now."""
    depth: int = 0
    preview: str = ""
    label: str = ""
    tokens_before: int = 0
    """Of a compaction: how long the conversation was."""


class ModelListing(Struct, frozen=True):
    id: str
    provider: str
    api: str
    name: str
    current: bool
    context_window: int = 0
    max_output: int = 0
    reasoning: bool = False
    cost_input: float = 0.0
    cost_output: float = 0.0
    extension: str = ""
    """Who answers for it; empty for the built-in adapters."""


class ModelOverride(Struct, frozen=True):
    """What the user's file of models shall say of one; None leaves it as it is."""

    name: str | None = None
    context_window: int | None = None
    max_tokens: int | None = None


class Compacted(Struct, frozen=True):
    before: int
    after: int
    """Messages."""
