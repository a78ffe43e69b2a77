"""What a provider is asked, and what it yields while it answers.

The deltas double as events, so the loop passes them on as they are. `Completed` is the
truth: exactly one ends every stream, and it alone decides content and tool calls.
"""

from typing import Any, TypeAlias

from msgspec import Struct

from hilt.model.content import AssistantBlock
from hilt.model.conversation import Message, StopReason, Usage
from hilt.model.models import ModelInfo, Reasoning


class ToolSpec(Struct, frozen=True):
    """A tool as the model sees it."""

    name: str
    description: str
    schema: dict[str, Any]


class ModelRequest(Struct, frozen=True):
    model: ModelInfo
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    reasoning: Reasoning = ""
    max_tokens: int = 0
    """0 leaves it to the adapter: the model's own limit, or a sane default."""


class TextDelta(Struct, frozen=True, tag_field="type", tag="text_delta"):
    delta: str


class ThinkingDelta(Struct, frozen=True, tag_field="type", tag="thinking_delta"):
    delta: str


class ToolUseStart(Struct, frozen=True, tag_field="type", tag="tool_use_start"):
    id: str
    name: str


class ToolUseArgs(Struct, frozen=True, tag_field="type", tag="tool_use_args"):
    id: str
    delta: str
    """Part of the arguments' JSON text."""


class ToolUseEnd(Struct, frozen=True, tag_field="type", tag="tool_use_end"):
    id: str


class Completed(Struct, frozen=True):
    content: tuple[AssistantBlock, ...]
    stop: StopReason
    usage: Usage = Usage()
    """Token counts only; the loop fills in the price."""


Delta: TypeAlias = TextDelta | ThinkingDelta | ToolUseStart | ToolUseArgs | ToolUseEnd
StreamItem: TypeAlias = Delta | Completed
