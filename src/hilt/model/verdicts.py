"""What an interceptor decided. A missing or unusable answer is not among them: that is a failed guard."""

from typing import Literal, TypeAlias

from msgspec import Struct

from hilt.model.content import Args

Interceptable: TypeAlias = Literal["tool_call", "turn_start", "assistant_message", "before_agent_start"]
"""The moments at which interceptors are asked."""


class Allow(Struct, frozen=True, tag_field="verdict", tag="allow"):
    pass


class Block(Struct, frozen=True, tag_field="verdict", tag="block"):
    reason: str
    """For the model or the user; never empty."""


class Rewrite(Struct, frozen=True, tag_field="verdict", tag="rewrite"):
    """Run the tool with these arguments; they are validated like the model's own."""

    args: Args


class ReplaceText(Struct, frozen=True, tag_field="verdict", tag="replace_text"):
    """Show this in place of the assistant's text; the transcript keeps the original."""

    text: str


class SystemPrompt(Struct, frozen=True, tag_field="verdict", tag="system_prompt"):
    """Use exactly this system prompt; it may be empty."""

    text: str


Verdict: TypeAlias = Allow | Block | Rewrite | ReplaceText | SystemPrompt
