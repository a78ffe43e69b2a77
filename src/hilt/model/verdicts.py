"""What an interceptor is asked, and what it decided. A missing or unusable answer is no verdict but a failed guard."""

from typing import Literal, TypeAlias, get_args

from msgspec import Struct, field

from hilt.model.content import Args

Interceptable: TypeAlias = Literal["tool_call", "turn_start", "assistant_message", "before_agent_start"]
"""The moments at which interceptors are asked."""


class Question(Struct, frozen=True, eq=False):
    """May this happen? Which fields belong to which event is said beside them."""

    event: Interceptable
    tool_id: str = ""
    tool_name: str = ""
    tool_args: Args = field(default_factory=dict)
    """`tool_call`: as rewritten so far."""
    step: int = 0
    """`turn_start`: counts from 1 for each prompt."""
    text: str = ""
    """`assistant_message`: its text blocks, a line break between them."""
    system_prompt: str = ""
    """`before_agent_start`: as replaced so far."""
    origin: str = ""
    """The extension that started it, when one did."""
    session_id: str = ""
    run_id: str = ""
    cwd: str = ""
    provider: str = ""
    model: str = ""


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


OnFailure: TypeAlias = Literal["allow", "ask", "block"]
STRICTNESS: tuple[OnFailure, ...] = get_args(OnFailure)
"""The strictest last."""


class GuardPolicy(Struct, frozen=True):
    """What holds when an interceptor does not give a verdict."""

    on_failure: OnFailure | None = None
    """None leaves it to the user's settings."""
    timeout: float = 5.0
    """Seconds it may take to answer."""
    required: bool = False
    """Nothing it guards may happen without it."""
