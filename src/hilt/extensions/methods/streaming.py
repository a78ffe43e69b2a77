"""Answers of a model that an extension provides: asked for, followed piece by piece, and given up when nobody waits."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

from msgspec import Raw, UnsetType

from hilt.errors import (
    ContextOverflow,
    ExtensionError,
    ExtensionTimeout,
    FrameError,
    LineTooLong,
    ProviderError,
    Unavailable,
)
from hilt.extensions.extension import Extension
from hilt.extensions.peer import Pending
from hilt.extensions.results import brief
from hilt.model.stream import Completed, Delta, ModelRequest, StreamItem
from hilt.wire import jsonrpc_types as wire
from hilt.wire.jsonrpc_provider import Deltas, StreamFailed, completed, stream_params
from hilt.wire.jsonrpc_reading import read

_SILENCE = 300.0
"""Seconds without a word after which an answer is given up."""
_LONGEST = 3600.0
_HIGH, _HEAVY = 1024, 1024 * 1024
"""Pieces that wait to be shown, and their characters; beyond that the extension waits, too."""
_WHOLE = 32 * 1024 * 1024
"""Characters of all pieces of one answer, which are kept until it is complete: far more than any model says."""


class Streams:
    def __init__(self, extension: Extension) -> None:
        self._extension = extension
        self._open: dict[int, _Stream] = {}

    async def stream(self, api: str, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """As `ports.Provider.stream`, for the API that it claims."""
        extension = self._extension
        request_id = extension.new_number()
        extension.before_asking()
        pending = extension.ask_method(
            "provider/stream",
            stream_params(request, request_id, api),
            f"a request for {request.model.id}",
            _SILENCE,
            limit=_LONGEST,
        )
        stream = self._open[request_id] = _Stream(extension, pending)
        try:
            while await stream.some():
                while stream.waiting:
                    yield stream.waiting.popleft()
                stream.taken()
            yield self._completed(await pending.future)
        except ExtensionError as error:
            if isinstance(error, ExtensionTimeout):
                extension.tell_method("$/cancelRequest", {"id": pending.id})
            raise self._failure(error) from error
        finally:
            del self._open[request_id]
            stream.close()

    def delta(self, raw: Raw | UnsetType) -> str | None:
        """A piece has come. What is wrong with it, or None; pieces of answers that nobody waits for are no mistake."""
        try:
            delta = read(raw, wire.ProviderDelta)
        except FrameError as error:
            return f"provider/delta: {error.message}"
        if stream := self._open.get(delta.request_id):
            stream.push(delta)
        return None

    def _completed(self, answer: object) -> Completed:
        name = self._extension.name
        try:
            end = completed(self._extension.outcome(answer))
        except FrameError as error:
            raise Unavailable(f"extension {name} gave an unusable answer: {error.message}") from None
        if isinstance(end, StreamFailed):
            raise Unavailable(f"extension {name}: {brief(end.message)}")
        return end

    def _failure(self, error: ExtensionError) -> ProviderError:
        named = error.message.startswith("extension ")
        message = error.message if named else f"extension {error.extension}: {error.message}"
        if isinstance(error.__cause__, FrameError | LineTooLong):
            return ContextOverflow(message, hint="compact the conversation, then send the message again")
        return Unavailable(message, hint=error.hint)


class _Stream:
    """One answer under way."""

    def __init__(self, extension: Extension, pending: Pending) -> None:
        self._extension = extension
        self._pending = pending
        self._pieces = Deltas()
        self.waiting: deque[Delta] = deque()
        """Pieces that came and were not read yet."""
        self._news = asyncio.Event()
        self._error: ProviderError | None = None
        self._unread = 0
        self._size = 0
        """Characters of those that wait, and of all."""
        pending.future.add_done_callback(self._wake)

    def push(self, delta: wire.ProviderDelta) -> None:
        if self._error:
            return
        name, size = self._extension.name, len(delta.delta) + (len(delta.tool.arguments) if delta.tool else 0)
        self._unread += size
        self._size += size
        pieces = self._pieces.read(delta)
        if isinstance(pieces, StreamFailed):
            self._error = Unavailable(f"extension {name}: {brief(pieces.message)}")
        elif self._size > _WHOLE:
            self._error = ProviderError(f"extension {name}: its answer has more than {_WHOLE:,} characters")
        else:
            self.waiting.extend(pieces)
        self._extension.peer.extend(self._pending)
        self._news.set()
        if len(self.waiting) >= _HIGH or self._unread >= _HEAVY:
            self._extension.brake.hold(self)

    async def some(self) -> bool:
        """Wait until there are some; False when the answer itself has come. Raises `ProviderError`."""
        while not self.waiting:
            if self._error:
                raise self._error
            if self._pending.future.done():
                return False
            self._news.clear()
            await self._news.wait()
        return True

    def taken(self) -> None:
        self._unread = 0
        self._extension.brake.release(self)

    def close(self) -> None:
        """Nobody reads any more: an answer that has not come is given up."""
        self._pending.future.remove_done_callback(self._wake)
        self._extension.brake.release(self)
        self._extension.forsake(self._pending)

    def _wake(self, _: object) -> None:
        self._news.set()
