"""The blocks a message is made of.

Opaque `state` strings belong to the provider that produced them (a signature, an encrypted
reasoning item): they are stored and sent back unread.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

from msgspec import Struct

Args: TypeAlias = dict[str, Any]
"""A tool call's arguments: the one place, with JSON Schema, where free-form JSON is right."""


BY_EXTENSION = "providerMeta:"
"""How the `state` of a call begins that an extension's model made: no adapter of ours may send it as its own."""


class Text(Struct, frozen=True, tag_field="type", tag="text"):
    text: str


class Image(Struct, frozen=True, tag_field="type", tag="image"):
    mime_type: str
    data: bytes
    """Raw bytes; base64 in every JSON form."""


class Thinking(Struct, frozen=True, tag_field="type", tag="thinking", omit_defaults=True):
    text: str
    state: str = ""
    id: str = ""
    redacted: bool = False
    provider: str = ""
    """Who produced it: `state` means nothing to anyone else."""


class ToolCall(Struct, frozen=True, tag_field="type", tag="tool_call", omit_defaults=True):
    id: str
    name: str
    args: Args
    invalid: str = ""
    """What the model wrote, when it was not a JSON object; `args` is then empty."""
    state: str = ""


UserBlock: TypeAlias = Text | Image
AssistantBlock: TypeAlias = Text | Thinking | ToolCall
ResultBlock: TypeAlias = Text | Image
AnyBlock: TypeAlias = Text | Image | Thinking | ToolCall


def text_of(content: Iterable[AnyBlock], separator: str = "") -> str:
    """Join the text blocks, leaving everything else out."""
    return separator.join(block.text for block in content if isinstance(block, Text))
