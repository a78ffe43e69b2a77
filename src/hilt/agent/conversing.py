"""The conversation as others may use it: read it, replace it, have it shortened, wait for its end. `Conversation`."""

import asyncio
from collections.abc import Sequence

from msgspec import structs

from hilt.agent.prompt import with_contributions
from hilt.agent.session import Session
from hilt.errors import HiltError
from hilt.model.actions import Action
from hilt.model.conversation import AssistantMessage, Message
from hilt.model.services import Compacted, LlmSnapshot

PATIENCE = 30.0
"""Seconds to wait for a compaction's turn: whoever asks may be part of the turn that it waits for."""


class Conversing:
    def __init__(self, session: Session, patience: float = PATIENCE) -> None:
        self._session = session
        self._patience = patience

    def messages(self) -> tuple[Message, ...]:
        return self._session.transcript.messages

    async def replace(self, messages: Sequence[Message], source: str) -> None:
        """Also in the middle of a turn: what is under way stays, and what comes later follows it."""
        transcript = self._session.transcript
        transcript.replace([self._signed(message) for message in messages], source)
        await transcript.settle()
        await self._session.tell_moved()

    def snapshot(self) -> LlmSnapshot:
        parts, activation = self._session.parts, self._session.activation
        offers = parts.registry.snapshot()
        system = with_contributions(parts.system, offers.sections, activation.instructions(offers))
        return LlmSnapshot(system, self._session.transcript.messages, activation.offered(offers))

    async def idle(self) -> None:
        await self._session.idle()

    async def compact(self) -> Compacted:
        turn = _Turn(self._session)
        job = await self._session.compact(turn)
        try:
            async with asyncio.timeout(self._patience):
                await turn.come.wait()
        except TimeoutError:
            raise HiltError(
                "the conversation is compacted when the turn that runs has ended",
                hint="ask between turns to be told of the result",
            ) from None
        outcome = await job.result()
        if outcome.stop != "end":
            raise HiltError(outcome.error, hint=outcome.hint)
        return Compacted(turn.before, len(self._session.transcript.messages))

    def has_compactor(self) -> bool:
        return self._session.parts.registry.snapshot().compactor is not None

    async def toggle_step(self, source: str) -> bool:
        return await self._session.toggle_step(source)

    def _signed(self, message: Message) -> Message:
        """An answer names whoever gave it, or else whoever answers now: not all providers can do without."""
        if not isinstance(message, AssistantMessage) or (message.provider and message.model):
            return message
        active = self._session.active
        return structs.replace(
            message, provider=message.provider or active.provider.name, model=message.model or active.info.id
        )


class _Turn:
    """Knows when a compaction begins, and how long the conversation was then."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.come = asyncio.Event()
        self.before = 0

    async def started(self) -> None:
        self.before = len(self._session.transcript.messages)
        self.come.set()

    async def withdrawn(self) -> None:
        self.come.set()

    async def ran(self, actions: tuple[Action, ...]) -> None:
        pass

    async def failed(self, error: HiltError) -> None:
        pass
