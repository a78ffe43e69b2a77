"""OpenAI's Responses API. Nothing is stored at the vendor's: reasoning travels with the request, encrypted."""

from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from msgspec import Struct

from hilt.model.content import Image, ResultBlock, Text, Thinking, ToolCall, UserBlock
from hilt.model.conversation import AssistantMessage, Message, StopReason, ToolMessage, Usage, UserMessage
from hilt.model.stream import ModelRequest, StreamItem
from hilt.providers.failures import Fault, reported
from hilt.providers.http import ApiClient, Timeouts, resolve_base
from hilt.providers.incoming import Answer, count
from hilt.providers.outgoing import (
    THINKING_BUDGETS,
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

BASE_URL = "https://api.openai.com/v1"
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class OpenAIResponses:
    def __init__(
        self, api_key: str, base_url: str = "", name: str = "openai", *, timeouts: Timeouts | None = None
    ) -> None:
        self.name = name
        key = api_key.strip()
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._api = ApiClient(name, resolve_base(base_url, BASE_URL), headers, key, timeouts)

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        names = ToolNames(request.tools)
        reader = ResponsesReader(Answer(self.name, names))
        return self._api.stream("/responses", request_body(request, self.name, names), reader)

    async def check_key(self) -> None:
        await self._api.check("/models")

    async def aclose(self) -> None:
        await self._api.aclose()


def request_body(request: ModelRequest, provider: str, names: ToolNames) -> dict[str, Any]:
    level = effort(request)
    body: dict[str, Any] = {
        "model": request.model.id,
        "stream": True,
        "store": False,
        "input": [item for message in sendable(request, provider) for item in _items(message, names)],
    }
    if request.system.strip():
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": names.wire(tool.name),
                "description": tool.description,
                "parameters": object_schema(tool.schema),
                "strict": False,  # the default refuses optional arguments
            }
            for tool in request.tools
        ]
    if limit := output_limit(request):
        body["max_output_tokens"] = limit + THINKING_BUDGETS.get(level, 0) if request.max_tokens else limit
    if level:
        body["reasoning"] = {"effort": level, "summary": "auto"}
    if level or request.model.reasoning:
        body["include"] = ["reasoning.encrypted_content"]  # refused by models that do not reason
    return body


def _items(message: Message, names: ToolNames) -> list[dict[str, Any]]:
    match message:
        case UserMessage(content=content):
            return [{"type": "message", "role": "user", "content": _parts(content)}]
        case AssistantMessage(content=blocks):
            return [item for block in blocks if (item := _assistant_item(block, names)) is not None]
        case ToolMessage(results=results):
            return [
                {
                    "type": "function_call_output",
                    "call_id": result.call_id,
                    "output": _parts(result.content)
                    if any(isinstance(block, Image) for block in result.content)
                    else result_text(result.content),
                }
                for result in results
            ]


def _assistant_item(block: Text | Thinking | ToolCall, names: ToolNames) -> dict[str, Any] | None:
    match block:
        case Text(text=text):
            return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        case Thinking(state=""):
            return None  # the vendor kept nothing, so an id alone leads nowhere
        case Thinking(text=text, state=state, id=item_id):
            summary = [{"type": "summary_text", "text": text}] if text else []
            item = {"type": "reasoning", "summary": summary, "encrypted_content": state}
            return {**item, "id": item_id} if item_id else item
        case ToolCall(id=call_id, name=name, args=args):
            arguments = to_json(args).decode()
            return {"type": "function_call", "call_id": call_id, "name": names.wire(name), "arguments": arguments}


def _parts(content: tuple[UserBlock, ...] | tuple[ResultBlock, ...]) -> list[dict[str, Any]]:
    return [
        {"type": "input_image", "image_url": data_url(block), "detail": "auto"}
        if isinstance(block, Image)
        else {"type": "input_text", "text": block.text}
        for block in with_images(content, IMAGES)
    ]


class _Part(Struct):
    text: str | None = None
    refusal: str | None = None


class _Item(Struct):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    encrypted_content: str | None = None
    summary: list[_Part] | None = None
    content: list[_Part] | None = None


class _Incomplete(Struct):
    reason: str | None = None


class _Response(Struct):
    output: list[_Item] | None = None
    usage: dict[str, Any] | None = None
    incomplete_details: _Incomplete | None = None
    error: Any = None


class _Event(Struct):
    type: str = ""
    output_index: int = 0
    summary_index: int = 0
    delta: str | None = None
    item: _Item | None = None
    response: _Response | None = None
    error: Any = None
    code: str | None = None
    message: str | None = None


class ResponsesReader:
    def __init__(self, answer: Answer) -> None:
        self.complete = False
        self._answer = answer
        self._usage: dict[str, Any] | None = None
        self._stop: StopReason = "end"
        self._summary_part: dict[int, int] = {}
        self._done: set[int] = set()

    @property
    def over(self) -> bool:
        return self.complete

    def read(self, event: SseEvent) -> list[StreamItem]:
        if event.data.strip() == "[DONE]":  # some compatible servers add it
            return []
        said = msgspec.json.decode(event.data, type=_Event)
        index = said.output_index
        match said.type or event.event:
            case "response.output_text.delta" | "response.refusal.delta":
                return self._answer.text(index, said.delta)
            case "response.reasoning_summary_text.delta":
                return self._thought(index, said.summary_index, said.delta)
            case "response.reasoning_text.delta":
                return self._answer.thinking(index, said.delta)
            case "response.output_item.added" if said.item is not None and said.item.type == "function_call":
                return self._answer.call(index, said.item.call_id or said.item.id, said.item.name)
            case "response.function_call_arguments.delta":
                return self._answer.args(index, said.delta)
            case "response.output_item.done" if said.item is not None:
                return self._item(index, said.item)
            case "response.completed" | "response.incomplete":
                return self._ended(said.response or _Response())
            case "response.failed":
                raise reported({"error": said.response.error if said.response else None})
            case "error":
                raise reported({"error": said.error or {"code": said.code, "message": said.message}})
        return []

    def finish(self) -> list[StreamItem]:
        cached = count(self._usage, "input_tokens_details", "cached_tokens")
        usage = Usage(
            input=max(0, count(self._usage, "input_tokens") - cached),
            output=count(self._usage, "output_tokens"),
            cache_read=cached,
        )
        return self._answer.finish(self._stop, usage)

    def _thought(self, index: int, part: int, delta: str | None) -> list[StreamItem]:
        """Summaries come in parts, which are paragraphs."""
        begun = self._summary_part.get(index)
        self._summary_part[index] = part
        gap = "\n\n" if delta and begun not in (None, part) else ""
        return self._answer.thinking(index, gap + (delta or ""))

    def _item(self, index: int, item: _Item) -> list[StreamItem]:
        """The finished item. What its deltas already said is not said again."""
        if index in self._done:
            return []
        self._done.add(index)
        match item.type:
            case "message" if not self._answer.received("text", index):
                return self._answer.text(index, "".join(part.text or part.refusal or "" for part in item.content or ()))
            case "reasoning":
                items: list[StreamItem] = []
                if not self._answer.received("thinking", index):
                    parts = item.summary or item.content or []
                    items = self._answer.thinking(index, "\n\n".join(part.text or "" for part in parts))
                if item.encrypted_content:
                    self._answer.sign(index, item.encrypted_content, id=item.id or "")
                return items
            case "function_call":
                items = self._answer.call(index, item.call_id or item.id, item.name)
                if not self._answer.received("call", index):
                    items += self._answer.args(index, item.arguments)
                return items + self._answer.end_call(index)
        return []

    def _ended(self, response: _Response) -> list[StreamItem]:
        reason = response.incomplete_details.reason if response.incomplete_details else None
        if reason == "content_filter":
            raise Fault("the answer was stopped by the content filter", codes=("content_filter",))
        items = [made for index, item in enumerate(response.output or ()) for made in self._item(index, item)]
        self._stop = "length" if reason else "end"
        self._usage = response.usage
        self.complete = True
        return items
