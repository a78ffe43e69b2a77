"""A model's answer by way of an extension: what it is asked, what it sends meanwhile, how it ends.

Deltas are for showing; the message at the end alone decides. They name a block by its index and hilt names a tool
call by its id, so whoever follows a stream remembers what it has seen of it.
"""

import os
from collections.abc import Iterable, Iterator

from msgspec import Raw, Struct, UnsetType, structs

from hilt.errors import FrameError
from hilt.model.content import AssistantBlock, ToolCall
from hilt.model.conversation import AssistantMessage
from hilt.model.models import ModelInfo, Price
from hilt.model.stream import (
    Completed,
    Delta,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolSpec,
    ToolUseArgs,
    ToolUseEnd,
    ToolUseStart,
)
from hilt.wire.jsonrpc_messages import bare, read_message
from hilt.wire.jsonrpc_reading import read
from hilt.wire.jsonrpc_types import (
    Cost,
    DeltaTool,
    ProviderDelta,
    ProviderModel,
    ProviderStream,
    ProviderStreamResult,
    StreamModel,
    StreamOptions,
    ToolDefinition,
)

CALLS_LIMIT = 1024
"""Tool calls of one answer that are shown while they are written."""

_MOST_TOKENS = 2**50


class StreamFailed(Struct, frozen=True):
    """The provider says that it could not do it."""

    message: str


def stream_params(request: ModelRequest, request_id: int, api: str) -> ProviderStream:
    return ProviderStream(
        request_id,
        _model(request.model, api),
        request.system,
        bare(request.messages),
        StreamOptions(max_tokens=request.max_tokens, thinking=request.reasoning),
        tuple(map(tool_definition, request.tools)),
    )


def tool_definition(tool: ToolSpec) -> ToolDefinition:
    return ToolDefinition(tool.name, tool.description, tool.schema)


def completed(result: Raw | UnsetType) -> Completed | StreamFailed:
    """How the stream ended. Raises `FrameError` when the answer cannot be used."""
    answer = read(result, ProviderStreamResult)
    if answer.error:
        return StreamFailed(answer.error)
    if not isinstance(answer.message, dict):
        raise FrameError("`message` must be an object")
    # It may say neither its role nor its model, by which it would be known for an assistant's.
    message = read_message({"type": "assistant", "data": answer.message})
    assert isinstance(message, AssistantMessage)
    if message.stop == "error":
        return StreamFailed(message.error or "the provider's answer ended with an error")
    return Completed(tuple(_identified(message.content)), message.stop, message.usage)


class Deltas:
    """Follows one stream."""

    def __init__(self) -> None:
        self._calls: dict[int, str] = {}

    def read(self, delta: ProviderDelta) -> tuple[Delta, ...] | StreamFailed:
        """What it adds; nothing, for a kind that nobody knows and for `done`, which the answer itself says."""
        match delta.type:
            case "text_delta":
                return (TextDelta(delta.delta),)
            case "thinking_delta":
                return (ThinkingDelta(delta.delta),)
            case "toolcall_delta":
                return self._begun(delta, delta.delta)
            case "toolcall_end":
                arguments = delta.tool.arguments if delta.tool and delta.index not in self._calls else ""
                begun = self._begun(delta, arguments)
                return (*begun, ToolUseEnd(self._calls.pop(delta.index))) if delta.index in self._calls else begun
            case "error":
                return StreamFailed(delta.delta or "the provider's stream ended with an error")
        return ()

    def _begun(self, delta: ProviderDelta, arguments: str) -> tuple[Delta, ...]:
        """The start of the call, when this is the first that is heard of it, and a part of its arguments."""
        start: tuple[Delta, ...] = ()
        if delta.index not in self._calls:
            if len(self._calls) >= CALLS_LIMIT:
                return ()
            tool = delta.tool or DeltaTool()
            self._calls[delta.index] = tool.id or f"call_{delta.index}"
            start = (ToolUseStart(self._calls[delta.index], tool.name),)
        return (*start, ToolUseArgs(self._calls[delta.index], arguments)) if arguments else start


def model_info(model: ProviderModel, provider: str) -> ModelInfo:
    """A model that only the extension knows. Its numbers are reckoned with, so they are within reason."""
    cost = model.cost
    return ModelInfo(
        model.id,
        provider,
        model.name,
        min(max(model.context_window, 0), _MOST_TOKENS),
        min(max(model.max_tokens, 0), _MOST_TOKENS),
        model.reasoning,
        Price(*(max(price, 0.0) for price in (cost.input, cost.output, cost.cache_read, cost.cache_write))),
    )


def _model(model: ModelInfo, api: str) -> StreamModel:
    price = model.price or Price()
    return StreamModel(
        model.id,
        model.name or model.id,
        api,
        model.provider,
        model.reasoning,
        model.context_window,
        model.max_output,
        Cost(price.input, price.output, price.cache_read, price.cache_write),
        model.base_url,
    )


def _identified(content: Iterable[AssistantBlock]) -> Iterator[AssistantBlock]:
    """Some APIs give their calls no id, but the answer to a call needs one, and no two may be alike."""
    taken = {""}
    for block in content:
        if isinstance(block, ToolCall):
            known = structs.replace(block, id=f"call_{os.urandom(8).hex()}") if block.id in taken else block
            taken.add(known.id)
            yield known
        else:
            yield block
