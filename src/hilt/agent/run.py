"""What one prompt or compaction needs, and how it ended: values that the loop and all it is made of share."""

import os
from collections.abc import Awaitable, Callable

from msgspec import Struct, field

from hilt.agent.activation import Activation
from hilt.agent.breaker import Breaker
from hilt.agent.interception import Bench
from hilt.agent.permissions import Permissions
from hilt.agent.retry import RetryPolicy
from hilt.agent.stopping import Stop
from hilt.agent.transcript import Transcript
from hilt.model.conversation import StopReason, UserMessage
from hilt.model.events import Event, Noticed
from hilt.model.models import ModelInfo, Reasoning
from hilt.model.ports import Extensions, Provider
from hilt.registry.registry import Registry


class Run(Struct, frozen=True):
    """What one prompt needs, fixed for its duration."""

    transcript: Transcript
    provider: Provider
    model: ModelInfo
    system: str
    registry: Registry
    activation: Activation
    permissions: Permissions
    bench: Bench
    emit: Callable[[Event], Awaitable[None]]
    steering: Callable[[], Awaitable[UserMessage | None]]
    """The next message that the user wants delivered at a tool boundary, if there is one."""
    extensions: Extensions
    stop: Stop
    retry: RetryPolicy
    reasoning: Reasoning
    max_steps: int
    cwd: str
    origin: str = ""
    """The extension on whose behalf the model works here, when it is not the user."""
    compact_at: int = 0
    """Tokens from which on the conversation is made short by itself; 0 leaves it to the model's window."""
    breaker: Breaker = field(default_factory=Breaker)
    """For an extension that shortens conversations and fails at it."""
    id: str = field(default_factory=lambda: os.urandom(6).hex())

    async def settle(self) -> None:
        """Wait until the disk has what was said, and tell when it has not."""
        await self.transcript.settle()
        await self.warn_if_unsaved()

    async def warn_if_unsaved(self) -> None:
        if trouble := self.transcript.new_trouble():
            await self.emit(Noticed("warn", trouble))


class Outcome(Struct, frozen=True):
    """How a prompt or a compaction ended."""

    stop: StopReason
    error: str = ""
    hint: str = ""
    text: str = ""
    """The last assistant text."""
    handled: bool = False
    """An extension dealt with it: no model was asked."""
