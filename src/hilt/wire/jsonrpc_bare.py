"""Messages and their blocks as they stand on the jsonrpc wire.

Each of the three messages is written as a type of its own and read as one that has the members of all, because
nothing but the keys tells them apart. `role` on messages and `type` on blocks, and all that is under `hilt`, are
additions that the reference ignores. What they mean is `jsonrpc_messages`.
"""

from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType, field

from hilt.wire.jsonrpc_types import Part

# As written. `type` and `role` come first.


class _Block(Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type"):
    pass


class _Message(Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="role"):
    pass


class TextBlock(_Block, frozen=True, tag="text"):
    text: str


class ThinkingExtra(Part, frozen=True):
    state: str = ""
    id: str = ""
    redacted: bool = False
    provider: str = ""


class ThinkingBlock(_Block, frozen=True, tag="thinking"):
    thinking: str
    hilt: ThinkingExtra | UnsetType = UNSET


class ToolCallBlock(_Block, frozen=True, tag="tool_call"):
    id: str
    name: str
    arguments: dict[str, Any]
    provider_meta: dict[str, Any] = field(default_factory=dict)
    """The provider's own; what hilt keeps with a call is under `hilt`."""


class ImageBlock(_Block, frozen=True, tag="image"):
    data: str
    """Base64."""
    mime_type: str


class MessageUsage(Part, frozen=True, omit_defaults=False):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost: float = 0.0


class UserExtra(Part, frozen=True):
    summary: bool = False
    extension: str = ""


class BareUser(_Message, frozen=True, kw_only=True, tag="user"):
    content: str = ""
    blocks: tuple[TextBlock | ImageBlock, ...] = ()
    timestamp: str
    hilt: UserExtra | UnsetType = UNSET


class AssistantExtra(Part, frozen=True):
    shown: str | UnsetType = UNSET


class BareAssistant(_Message, frozen=True, kw_only=True, tag="assistant"):
    content: tuple[TextBlock | ThinkingBlock | ToolCallBlock, ...]
    model: str
    provider: str
    """One of these two is not empty."""
    usage: MessageUsage
    stop_reason: str
    error: str = ""
    timestamp: str
    hilt: AssistantExtra | UnsetType = UNSET


class BareToolResult(_Message, frozen=True, kw_only=True, tag="tool_result"):
    tool_call_id: str
    tool_name: str
    content: tuple[TextBlock | ImageBlock, ...]
    is_error: bool
    timestamp: str


Bare: TypeAlias = BareUser | BareAssistant | BareToolResult


class Wrapped(Struct, frozen=True):
    """A message where the reference needs to be told what it is."""

    type: str
    data: Bare


# As read: all that any of them may have.


class AnyBlock(Part, frozen=True):
    type: str = ""
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    arguments: Any = None
    provider_meta: Any = None
    data: str = ""
    mime_type: str = ""
    mime: str = ""
    hilt: Any = None


class AnyMessage(Part, frozen=True):
    role: str = ""
    content: Any = None
    blocks: Any = None
    timestamp: str = ""
    model: str = ""
    provider: str = ""
    usage: MessageUsage | None = None
    stop_reason: str = ""
    error: str = ""
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    hilt: Any = None


class Wrapper(Part, frozen=True):
    type: str = ""
    data: Any = None
