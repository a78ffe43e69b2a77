"""OpenAI's Chat Completions API as the world speaks it: Kimi, Ollama, llama.cpp, vLLM and many more.

The servers differ in what they leave out, so the reader asks for little: a `[DONE]`, or a finish
reason, is enough for an end.
"""

from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from msgspec import Struct

from hilt.model.content import Image, Text, Thinking, ToolCall, UserBlock, text_of
from hilt.model.conversation import AssistantMessage, Message, StopReason, ToolMessage, Usage, UserMessage
from hilt.model.stream import ModelRequest, StreamItem
from hilt.providers.failures import Fault, reported
from hilt.providers.http import ApiClient, Timeouts, resolve_base
from hilt.providers.incoming import Answer, count
from hilt.providers.outgoing import (
    PRINTABLE_ID,
    ToolNames,
    data_url,
    effort,
    object_schema,
    output_limit,
    result_text,
    sendable,
    to_json,
    with_images,
)
from hilt.providers.sse import SseEvent

OPENAI_URL = "https://api.openai.com/v1"
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

_THOUGHT_FIELDS = ("reasoning_content", "reasoning")
_MIRRORED = "Images returned by the tools above:"
_STOPS: dict[str, StopReason] = {"length": "length", "tool_calls": "tool_use", "function_call": "tool_use"}


class OpenAIChat:
    def __init__(
        self, api_key: str, base_url: str = "", name: str = "openai", *, timeouts: Timeouts | None = None
    ) -> None:
        self.name = name
        key = api_key.strip()
        headers = {"authorization": f"Bearer {key}"} if key else {}
        base = resolve_base(base_url, OPENAI_URL)
        self._vendor = base == OPENAI_URL
        self._api = ApiClient(name, base, headers, key, timeouts)

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        names = ToolNames(request.tools)
        body = request_body(request, self.name, names, vendor=self._vendor)
        return self._api.stream("/chat/completions", body, ChatReader(Answer(self.name, names)))

    async def check_key(self) -> None:
        await self._api.check("/models")

    async def aclose(self) -> None:
        await self._api.aclose()


def request_body(request: ModelRequest, provider: str, names: ToolNames, *, vendor: bool = False) -> dict[str, Any]:
    """The whole request. `vendor` is OpenAI itself, which renamed a field the others still know by its old name."""
    messages: list[dict[str, Any]] = []
    if request.system.strip():
        messages.append({"role": "system", "content": request.system})
    for message in sendable(request, provider, ids=PRINTABLE_ID):
        for wire in _messages(message, names, provider):
            if wire["role"] == "user" and messages and messages[-1]["role"] == "user":
                messages[-1]["content"] = _as_parts(messages[-1]["content"]) + _as_parts(wire["content"])
            else:
                messages.append(wire)
    body: dict[str, Any] = {
        "model": request.model.id,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": names.wire(tool.name),
                    "description": tool.description,
                    "parameters": object_schema(tool.schema),
                },
            }
            for tool in request.tools
        ]
    if limit := output_limit(request):
        body["max_completion_tokens" if vendor else "max_tokens"] = limit
    if (level := effort(request)) and provider != "kimi":  # Kimi's models think by themselves
        body["reasoning_effort"] = level
    return body


def _messages(message: Message, names: ToolNames, provider: str) -> list[dict[str, Any]]:
    match message:
        case UserMessage(content=content):
            return [{"role": "user", "content": _content(content)}]
        case AssistantMessage():
            return [_assistant(message, names, provider)]
        case ToolMessage(results=results):
            answers: list[dict[str, Any]] = [
                {"role": "tool", "tool_call_id": result.call_id, "content": result_text(result.content)}
                for result in results
            ]
            images = tuple(block for result in results for block in result.content if isinstance(block, Image))
            # A tool message holds text only, so pictures follow in the user's name.
            mirrored = [{"role": "user", "content": _content((Text(_MIRRORED), *images))}] if images else []
            return answers + mirrored


def _assistant(message: AssistantMessage, names: ToolNames, provider: str) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": "assistant", "content": text_of(message.content) or None}
    calls = [block for block in message.content if isinstance(block, ToolCall)]
    if not calls:
        return wire
    wire["tool_calls"] = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": names.wire(call.name), "arguments": to_json(call.args).decode()},
        }
        for call in calls
    ]
    thoughts = [block for block in message.content if isinstance(block, Thinking) and block.state in _THOUGHT_FIELDS]
    if thoughts:
        # Between tool calls these servers want the thought back, in the field they sent it in.
        wire[thoughts[0].state] = "".join(thought.text for thought in thoughts)
    elif provider == "kimi":
        wire["reasoning_content"] = ""  # demanded of every call while thinking is on
    return wire


def _content(content: tuple[UserBlock, ...]) -> str | list[dict[str, Any]]:
    """Plain text where there is only text: not every server reads parts."""
    blocks = with_images(content, IMAGES)
    if not any(isinstance(block, Image) for block in blocks):
        return text_of(blocks, "\n")
    return [
        {"type": "image_url", "image_url": {"url": data_url(block)}}
        if isinstance(block, Image)
        else {"type": "text", "text": block.text}
        for block in blocks
    ]


def _as_parts(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class _Function(Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _CallDelta(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct):
    content: Any = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: Any = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


class ChatReader:
    def __init__(self, answer: Answer) -> None:
        self.over = False
        self._answer = answer
        self._finished = False
        self._stop: StopReason = "end"
        self._usage: dict[str, Any] | None = None
        self._calls: list[str] = []
        """The ids of the calls so far, in order; empty for a call that has none."""
        self._at_index: dict[int, int] = {}

    @property
    def complete(self) -> bool:
        return self._finished or self.over

    def read(self, event: SseEvent) -> list[StreamItem]:
        if event.data.strip() == "[DONE]":
            self.over = True
            return []
        chunk = msgspec.json.decode(event.data, type=_Chunk)
        if chunk.error:
            raise reported({"error": chunk.error})
        self._usage = chunk.usage or self._usage
        items: list[StreamItem] = []
        for choice in (chunk.choices or [])[:1]:
            self._usage = choice.usage or self._usage
            if (delta := choice.delta or choice.message) is not None:
                items += self._delta(delta)
            if choice.finish_reason:
                self._finish(choice.finish_reason)
        return items

    def finish(self) -> list[StreamItem]:
        cached = max(
            count(self._usage, "prompt_tokens_details", "cached_tokens"),
            count(self._usage, "cached_tokens"),
            count(self._usage, "prompt_cache_hit_tokens"),
        )
        usage = Usage(
            input=max(0, count(self._usage, "prompt_tokens") - cached),
            output=count(self._usage, "completion_tokens"),
            cache_read=cached,
        )
        return self._answer.finish(self._stop, usage)

    def _finish(self, reason: str) -> None:
        if reason == "content_filter":
            raise Fault("the answer was stopped by the content filter", codes=("content_filter",))
        self._stop = _STOPS.get(reason, "end")
        self._finished = True

    def _delta(self, delta: _Delta) -> list[StreamItem]:
        items: list[StreamItem] = []
        for name in _THOUGHT_FIELDS:
            thought = getattr(delta, name)
            if isinstance(thought, str) and thought:
                items += self._answer.thinking("thought", thought)
                self._answer.sign("thought", name)
                break  # some servers send the same thought under both names
        items += self._answer.text("text", _plain(delta.content) or delta.refusal)
        for call in delta.tool_calls or ():
            items += self._call(call)
        return items

    def _call(self, delta: _CallDelta) -> list[StreamItem]:
        function = delta.function or _Function()
        key = self._key(delta, function)
        items = self._answer.call(key, delta.id, function.name)
        arguments = function.arguments
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        return items + self._answer.args(key, arguments)

    def _key(self, delta: _CallDelta, function: _Function) -> int:
        """Which call a delta belongs to: by index, unless a new id or a second name shows it to be another."""
        last = len(self._calls) - 1
        known = self._at_index.get(delta.index, -1) if delta.index is not None else last
        same = known >= 0 and (
            (not delta.id and (delta.index is not None or not function.name)) or delta.id == self._calls[known]
        )
        if same:
            return known
        if delta.id and delta.id in self._calls and delta.index is None:
            return self._calls.index(delta.id)
        if known >= 0 and not function.name:
            return known  # an id that changes in the middle of a call, without a name: still the same one
        self._calls.append(delta.id or "")
        if delta.index is not None:
            self._at_index[delta.index] = last + 1
        return last + 1


def _plain(content: Any) -> str:
    """Text, or the text among parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""
