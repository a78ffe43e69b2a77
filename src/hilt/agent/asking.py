"""One question to the model: stream the answer, and ask again when the failure is a passing one."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from itertools import count

from msgspec import Struct, field

from hilt.agent.retry import RetryPolicy
from hilt.errors import HiltError, ProviderError, RateLimited, Unavailable
from hilt.model.events import AssistantStarted, Event, Retrying
from hilt.model.ports import Provider
from hilt.model.stream import Completed, ModelRequest, StreamItem, TextDelta


class Answer(Struct):
    """What has arrived of an answer; `text` is what a reader has seen if it breaks off."""

    started: bool = False
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Nobody:
    """The provider (a port) where there is none that could answer: it says why."""

    def __init__(self, name: str, error: HiltError) -> None:
        self.name = name
        self._error = error

    async def stream(self, _: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        if isinstance(self._error, ProviderError):
            raise self._error
        raise ProviderError(self._error.message, hint=self._error.hint)
        yield  # that makes it a generator, as all are

    async def aclose(self) -> None:
        """Nothing is open."""


async def ask(
    provider: Provider,
    request: ModelRequest,
    retry: RetryPolicy,
    emit: Callable[[Event], Awaitable[None]],
    answer: Answer,
) -> Completed:
    """Stream one reply, emitting its deltas; `answer` follows along for whoever must pick up the pieces."""
    for attempt in count(1):
        try:
            return await _stream(provider, request, emit, answer)
        except (RateLimited, Unavailable) as error:
            delay = retry.delay(attempt, error)
            if delay is None:
                if error.retry_after is not None and error.retry_after > retry.patience:
                    error.hint = f"it asks to wait {error.retry_after:.0f} s, which is too long to wait here"
                raise
            answer.pieces.clear()  # void from here on, also for whoever stops during the pause
            await emit(Retrying(attempt + 1, retry.attempts, round(delay * 1000), error.message))
        await asyncio.sleep(delay)
    raise AssertionError("count() never ends")


async def _stream(
    provider: Provider, request: ModelRequest, emit: Callable[[Event], Awaitable[None]], answer: Answer
) -> Completed:
    # Closed here and not by the garbage collector, so that cancelling ends the connection at once.
    async with aclosing(provider.stream(request)) as items:
        async for item in items:
            if isinstance(item, Completed):
                return item
            if not answer.started:
                answer.started = True
                await emit(AssistantStarted())
            if isinstance(item, TextDelta):
                answer.pieces.append(item.delta)
            await emit(item)
    raise Unavailable(f"{provider.name}: the stream ended without its end")
