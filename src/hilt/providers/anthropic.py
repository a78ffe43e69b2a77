"""Anthropic's Messages API, and the servers that speak it."""

import re
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from msgspec import Struct

from hilt.model.content import Image, ResultBlock, Text, Thinking, ToolCall, UserBlock
from hilt.model.conversation import AssistantMessage, Message, StopReason, ToolMessage, ToolResult, Usage, UserMessage
from hilt.model.stream import ModelRequest, StreamItem
from hilt.providers.failures import Fault, reported
from hilt.providers.http import ApiClient, Timeouts, resolve_base
from hilt.providers.incoming import Answer, count
from hilt.providers.outgoing import (
    THINKING_BUDGETS,
    ToolNames,
    base64_of,
    effort,
    object_schema,
    output_limit,
    sendable,
    with_images,
)
from hilt.providers.sse import SseEvent

BASE_URL = "https://api.anthropic.com/v1"
API_VERSION = "2023-06-01"
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

_UNKNOWN_OUTPUT = 8192
_SMALLEST_BUDGET = 1024
_CACHE = {"type": "ephemeral"}
_VERSION = re.compile(r"(?<![0-9])(\d{1,2})(?:[-.](\d{1,2}))?(?![0-9])")
_FIRST_ADAPTIVE = (4, 6)
_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "pause_turn": "end",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


class Anthropic:
    def __init__(self, api_key: str, base_url: str = "", *, timeouts: Timeouts | None = None) -> None:
        self.name = "anthropic"
        key = api_key.strip()
        headers = {"anthropic-version": API_VERSION, **({"x-api-key": key} if key else {})}
        # The custom of this API: a base names the place, and /v1 belongs to the route.
        base = resolve_base(base_url, BASE_URL, always=True)
        self._api = ApiClient(self.name, base, headers, key, timeouts)

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        names = ToolNames(request.tools)
        reader = AnthropicReader(Answer(self.name, names))
        return self._api.stream("/messages", request_body(request, self.name, names), reader)

    async def check_key(self) -> None:
        await self._api.check("/models?limit=1")

    async def aclose(self) -> None:
        await self._api.aclose()


def request_body(request: ModelRequest, provider: str, names: ToolNames) -> dict[str, Any]:
    """The whole request. Four marks tell the server what to cache: tools, system, the last two user messages."""
    messages = sendable(request, provider)
    body: dict[str, Any] = {
        "model": request.model.id,
        "stream": True,
        **_limits(request, messages),
        "messages": _with_cache_marks([_message(message, names) for message in _joined(messages)]),
    }
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHE}]
    if request.tools:
        body["tools"] = [
            {
                "name": names.wire(tool.name),
                "description": tool.description,
                "input_schema": object_schema(tool.schema),
            }
            for tool in request.tools
        ]
        body["tools"][-1]["cache_control"] = _CACHE
    return body


def _limits(request: ModelRequest, messages: list[Message]) -> dict[str, Any]:
    """How long the answer may be and how it is thought about, in the words this model knows."""
    most = request.model.max_output
    wanted = output_limit(request) or _UNKNOWN_OUTPUT
    wanted = min(wanted, most) if most else wanted
    level = effort(request)
    if not level:
        return {"max_tokens": wanted}
    budget = THINKING_BUDGETS[level]
    room = wanted if wanted > budget + _SMALLEST_BUDGET else budget + wanted
    room = min(room, most) if most else room
    if thinks_adaptively(request.model.id):
        # Newer models hide their thoughts unless asked, and refuse a budget.
        thinking = {"type": "adaptive", "display": "summarized"}
        return {"max_tokens": room, "thinking": thinking, "output_config": {"effort": level}}
    budget = min(budget, room - _SMALLEST_BUDGET)
    if budget < _SMALLEST_BUDGET or _mid_turn_without_thought(messages):
        return {"max_tokens": wanted}
    return {"max_tokens": room, "thinking": {"type": "enabled", "budget_tokens": budget}}


def thinks_adaptively(model: str) -> bool:
    """Claude 4.6 and later decide themselves how long to think; earlier ones need a budget."""
    found = _VERSION.search(model)
    if "claude" not in model:
        return False
    return found is None or (int(found[1]), int(found[2] or 0)) >= _FIRST_ADAPTIVE


def _mid_turn_without_thought(messages: list[Message]) -> bool:
    """True while tools run for an answer that began without a signed thought: thinking cannot start there."""
    first: AssistantMessage | None = None
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            break
        first = message if isinstance(message, AssistantMessage) else first
    if first is None:
        return False
    block = first.content[0]
    return not (isinstance(block, Thinking) and block.state)


def _joined(messages: list[Message]) -> list[list[Message]]:
    """Tool results and the user's next words are one message here."""
    groups: list[list[Message]] = []
    for message in messages:
        if groups and isinstance(message, UserMessage) and isinstance(groups[-1][-1], ToolMessage):
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def _message(group: list[Message], names: ToolNames) -> dict[str, Any]:
    first = group[0]
    if isinstance(first, AssistantMessage):
        blocks = [block for part in first.content if (block := _assistant_block(part, names)) is not None]
        return {"role": "assistant", "content": blocks}
    content: list[dict[str, Any]] = []
    for message in group:
        if isinstance(message, ToolMessage):
            content += _results(message.results)
        elif isinstance(message, UserMessage):
            content += _blocks(message.content)
    return {"role": "user", "content": content}


def _assistant_block(block: Text | Thinking | ToolCall, names: ToolNames) -> dict[str, Any] | None:
    match block:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Thinking(state=""):
            return None  # without its signature a thought is refused
        case Thinking(redacted=True, state=state):
            return {"type": "redacted_thinking", "data": state}
        case Thinking(text=text, state=state):
            return {"type": "thinking", "thinking": text, "signature": state}
        case ToolCall(id=call_id, name=name, args=args):
            return {"type": "tool_use", "id": call_id, "name": names.wire(name), "input": args}


def _results(results: tuple[ToolResult, ...]) -> list[dict[str, Any]]:
    """All results first, as demanded. Images of failed calls come after them: an error may hold text only."""
    blocks: list[dict[str, Any]] = []
    after: list[dict[str, Any]] = []
    for result in results:
        content = _blocks(result.content)
        if result.is_error:
            after += [block for block in content if block["type"] != "text"]
            content = [block for block in content if block["type"] == "text"] or _blocks((Text("(failed)"),))
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call_id, "content": content}
        blocks.append({**block, "is_error": True} if result.is_error else block)
    return blocks + after


def _blocks(content: tuple[UserBlock, ...] | tuple[ResultBlock, ...]) -> list[dict[str, Any]]:
    return [
        {"type": "image", "source": {"type": "base64", "media_type": block.mime_type, "data": base64_of(block)}}
        if isinstance(block, Image)
        else {"type": "text", "text": block.text}
        for block in with_images(content, IMAGES)
    ]


def _with_cache_marks(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for message in [message for message in messages if message["role"] == "user"][-2:]:
        message["content"][-1]["cache_control"] = _CACHE
    return messages


class _Block(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None


class _Delta(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Message(Struct):
    usage: dict[str, Any] | None = None


class _Event(Struct):
    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


class AnthropicReader:
    def __init__(self, answer: Answer) -> None:
        self.complete = False
        self._answer = answer
        self._usage: dict[str, Any] = {}
        self._stop: StopReason = "end"
        self._inputs: dict[int, Any] = {}
        """Arguments that came whole with the start of a call, as some compatible servers do."""

    @property
    def over(self) -> bool:
        return self.complete

    def read(self, event: SseEvent) -> list[StreamItem]:
        said = msgspec.json.decode(event.data, type=_Event)
        match said.type or event.event:
            case "message_start" if said.message is not None:
                self._usage.update(said.message.usage or {})
            case "content_block_start" if said.content_block is not None:
                return self._start(said.index, said.content_block)
            case "content_block_delta" if said.delta is not None:
                return self._delta(said.index, said.delta)
            case "content_block_stop":
                return self._end(said.index)
            case "message_delta":
                # Later counts replace earlier ones; a null never does.
                self._usage.update({key: value for key, value in (said.usage or {}).items() if value is not None})
                self._stopped(said.delta.stop_reason if said.delta else None)
            case "message_stop":
                self.complete = True
            case "error":
                raise reported({"error": said.error})
        return []

    def finish(self) -> list[StreamItem]:
        usage = Usage(
            input=count(self._usage, "input_tokens"),
            output=count(self._usage, "output_tokens"),
            cache_read=count(self._usage, "cache_read_input_tokens"),
            cache_write=count(self._usage, "cache_creation_input_tokens"),
        )
        return self._answer.finish(self._stop, usage)

    def _start(self, index: int, block: _Block) -> list[StreamItem]:
        match block.type:
            case "text":
                return self._answer.text(index, block.text)
            case "thinking":
                if block.signature:
                    self._answer.sign(index, block.signature)
                return self._answer.thinking(index, block.thinking)
            case "redacted_thinking":
                self._answer.sign(index, block.data, redacted=True)
            case "tool_use":
                self._inputs[index] = block.input
                return self._answer.call(index, block.id, block.name)
        return []

    def _delta(self, index: int, delta: _Delta) -> list[StreamItem]:
        match delta.type:
            case "text_delta":
                return self._answer.text(index, delta.text)
            case "thinking_delta":
                return self._answer.thinking(index, delta.thinking)
            case "signature_delta":
                self._answer.sign(index, delta.signature)
            case "input_json_delta":
                return self._answer.args(index, delta.partial_json)
        return []

    def _end(self, index: int) -> list[StreamItem]:
        whole = self._inputs.pop(index, None)
        items: list[StreamItem] = []
        if whole and not self._answer.received("call", index):
            items = self._answer.args(index, msgspec.json.encode(whole).decode())
        return items + self._answer.end_call(index)

    def _stopped(self, reason: str | None) -> None:
        if reason == "refusal":
            raise Fault("the model declined to answer", codes=("refusal",))
        if reason:
            self._stop = _STOPS.get(reason, "end")
