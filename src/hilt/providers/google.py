"""Google's Gemini API. The key travels in a header, never in the URL."""

import re
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from hilt.model.content import AssistantBlock, Image, Text, Thinking, ToolCall, UserBlock
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
    result_text,
    sendable,
    with_images,
)
from hilt.providers.sse import SseEvent

BASE_URL = "https://generativelanguage.googleapis.com/v1beta"
IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})

UNSIGNED = "skip_thought_signature_validator"
"""The vendor's own word for a call that another model made and that has no signature."""

_VERSION = re.compile(r"gemini-(\d+)")
_TWO_LEVELS = re.compile(r"gemini-3-pro\b")
_SCHEMA_WORDS = frozenset(
    {
        *("type", "format", "title", "description", "enum", "items", "prefixItems", "minItems", "maxItems"),
        *("minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required", "nullable"),
        *("$ref", "$defs", "$id", "$anchor"),
    }
)
_ENDS: dict[str, StopReason] = {"STOP": "end", "MAX_TOKENS": "length"}
_WORTH_A_RETRY = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "OTHER"})


class Google:
    def __init__(self, api_key: str, base_url: str = "", *, timeouts: Timeouts | None = None) -> None:
        self.name = "google"
        key = api_key.strip()
        headers = {"x-goog-api-key": key} if key else {}
        self._api = ApiClient(self.name, resolve_base(base_url, BASE_URL), headers, key, timeouts)

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        names = ToolNames(request.tools)
        body = request_body(request, self.name, names)
        path = f"/models/{quote(request.model.id.removeprefix('models/'), safe='')}:streamGenerateContent?alt=sse"
        return self._api.stream(path, body, GoogleReader(Answer(self.name, names)))

    async def check_key(self) -> None:
        await self._api.check("/models?pageSize=1")

    async def aclose(self) -> None:
        await self._api.aclose()


def request_body(request: ModelRequest, provider: str, names: ToolNames) -> dict[str, Any]:
    modern = _generation(request.model.id) >= 3
    messages = sendable(request, provider, last_thinking=True)
    body: dict[str, Any] = {
        "contents": [content for message in messages for content in _contents(message, names, modern=modern)]
    }
    if request.system.strip():
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        declarations = [
            {
                "name": names.wire(tool.name),
                "description": tool.description,
                "parametersJsonSchema": trim_schema(object_schema(tool.schema)),
            }
            for tool in request.tools
        ]
        body["tools"] = [{"functionDeclarations": declarations}]
    if config := _generation_config(request, modern=modern):
        body["generationConfig"] = config
    return body


def trim_schema(schema: Any) -> Any:
    """Only the words this API knows: others are refused. A constant becomes a choice of one."""
    if isinstance(schema, list):
        return [trim_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    trimmed: dict[str, Any] = {}
    for word, value in schema.items():
        if word in ("properties", "$defs", "definitions") and isinstance(value, dict):
            named = {name: trim_schema(item) for name, item in value.items()}
            trimmed["properties" if word == "properties" else "$defs"] = named
        elif word == "const":
            trimmed["enum"] = [value]
        elif word == "$ref" and isinstance(value, str):
            trimmed["$ref"] = value.replace("#/definitions/", "#/$defs/")
        elif word in ("enum", "required", "type"):
            trimmed[word] = value
        elif word in _SCHEMA_WORDS:
            trimmed[word] = trim_schema(value)
    return trimmed


def _generation(model: str) -> int:
    """The major version; names like `gemini-flash-latest` mean the newest."""
    found = _VERSION.search(model)
    return int(found[1]) if found else 3 if "gemini" in model else 0


def _generation_config(request: ModelRequest, *, modern: bool) -> dict[str, Any]:
    config: dict[str, Any] = {}
    level = effort(request)
    budget = THINKING_BUDGETS.get(level, 0)
    if limit := output_limit(request):
        config["maxOutputTokens"] = limit + budget if request.max_tokens else limit
    if level and modern:
        # The first of its generation knows two levels only.
        known = "high" if level == "medium" and _TWO_LEVELS.search(request.model.id) else level
        config["thinkingConfig"] = {"includeThoughts": True, "thinkingLevel": known}
    elif level:
        config["thinkingConfig"] = {"includeThoughts": True, "thinkingBudget": budget}
    return config


def _contents(message: Message, names: ToolNames, *, modern: bool) -> list[dict[str, Any]]:
    match message:
        case UserMessage(content=content):
            return [{"role": "user", "parts": _parts(content)}]
        case AssistantMessage(content=blocks):
            parts = _model_parts(blocks, names, modern=modern)
            return [{"role": "model", "parts": parts}] if parts else []
        case ToolMessage(results=results):
            answers = [_function_response(result, names, modern=modern) for result in results]
            images = [block for result in results for block in result.content if isinstance(block, Image)]
            contents: list[dict[str, Any]] = [{"role": "user", "parts": answers}]
            if images and not modern:
                # Earlier models refuse pictures inside a function's response.
                contents.append({"role": "user", "parts": _parts((Text("Images returned by the tools:"), *images))})
            return contents


def _model_parts(blocks: tuple[AssistantBlock, ...], names: ToolNames, *, modern: bool) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    unsigned = UNSIGNED if modern else ""
    for block in blocks:
        match block:
            case Text(text=text):
                parts.append({"text": text})
            case Thinking(text="", state=state) if state:
                parts.append({"text": "", "thoughtSignature": state})  # it came with a part of the text
            case Thinking(text=text, state=state) if state:
                parts.append({"text": text, "thought": True, "thoughtSignature": state})
            case ToolCall(id=call_id, name=name, args=args, state=state):
                part: dict[str, Any] = {"functionCall": {"id": call_id, "name": names.wire(name), "args": args}}
                # Of parallel calls only the first carries a signature, and it must have one.
                if signature := state or unsigned:
                    part["thoughtSignature"] = signature
                unsigned = ""
                parts.append(part)
    return parts


def _function_response(result: ToolResult, names: ToolNames, *, modern: bool) -> dict[str, Any]:
    blocks = with_images(result.content, IMAGES)
    response: dict[str, Any] = {
        "id": result.call_id,
        "name": names.wire(result.name),
        "response": {"error" if result.is_error else "output": result_text(blocks)},
    }
    images = [_part(block) for block in blocks if isinstance(block, Image)]
    if images and modern:
        response["parts"] = images
    return {"functionResponse": response}


def _parts(content: tuple[UserBlock, ...]) -> list[dict[str, Any]]:
    return [_part(block) for block in with_images(content, IMAGES)]


def _part(block: UserBlock) -> dict[str, Any]:
    if isinstance(block, Image):
        return {"inlineData": {"mimeType": block.mime_type, "data": base64_of(block)}}
    return {"text": block.text}


class _FunctionCall(Struct):
    id: str | None = None
    name: str | None = None
    args: Any = None


class _Part(Struct, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _FunctionCall | None = None


class _Content(Struct):
    parts: list[_Part] | None = None


class _Candidate(Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _Feedback(Struct, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Chunk(Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: dict[str, Any] | None = None
    error: Any = None


class GoogleReader:
    def __init__(self, answer: Answer) -> None:
        self.complete = False
        self.over = False  # the end of this stream is the end of the body
        self._answer = answer
        self._usage: dict[str, Any] | None = None
        self._stop: StopReason = "end"
        self._blocks = 0
        self._last = ""

    def read(self, event: SseEvent) -> list[StreamItem]:
        chunk = msgspec.json.decode(event.data, type=_Chunk)
        if chunk.error:
            raise reported({"error": chunk.error})
        self._usage = chunk.usage_metadata or self._usage
        feedback = chunk.prompt_feedback
        if feedback is not None and feedback.block_reason:
            why = feedback.block_reason_message or feedback.block_reason
            raise Fault(f"the prompt was blocked: {why}", codes=("refusal",))
        items: list[StreamItem] = []
        for candidate in (chunk.candidates or [])[:1]:
            for part in (candidate.content.parts if candidate.content else None) or ():
                items += self._part(part)
            if candidate.finish_reason and candidate.finish_reason != "FINISH_REASON_UNSPECIFIED":
                self._finished(candidate.finish_reason, candidate.finish_message)
        return items

    def finish(self) -> list[StreamItem]:
        cached = count(self._usage, "cachedContentTokenCount")
        prompt = count(self._usage, "promptTokenCount") + count(self._usage, "toolUsePromptTokenCount")
        usage = Usage(
            input=max(0, prompt - cached),
            output=count(self._usage, "candidatesTokenCount") + count(self._usage, "thoughtsTokenCount"),
            cache_read=cached,
        )
        return self._answer.finish(self._stop, usage)

    def _part(self, part: _Part) -> list[StreamItem]:
        signature = part.thought_signature or ""
        if part.function_call is not None:
            key = self._begin("call")
            args = part.function_call.args
            return [
                *self._answer.call(key, part.function_call.id, part.function_call.name, state=signature),
                *self._answer.args(key, msgspec.json.encode(args).decode() if args else None),
                *self._answer.end_call(key),
            ]
        if part.thought:
            key = self._begin("thought")
            items = self._answer.thinking(key, part.text)
            if signature:
                self._answer.sign(key, signature)
            return items
        items = self._answer.text(self._begin("text"), part.text) if part.text else []
        if signature:
            # A block of text has no place for it: an empty thought right after keeps it.
            self._answer.sign(self._begin("signature"), signature)
        return items

    def _begin(self, kind: str) -> int:
        """Parts of one kind in a row are one block; each call is its own."""
        if kind != self._last or kind == "call":
            self._blocks += 1
        self._last = kind
        return self._blocks

    def _finished(self, reason: str, message: str | None) -> None:
        if reason not in _ENDS:
            code = () if reason in _WORTH_A_RETRY else ("refusal",)
            raise Fault(f"the answer was stopped ({reason}){': ' + message if message else ''}", codes=code)
        self._stop = _ENDS[reason]
        self.complete = True
