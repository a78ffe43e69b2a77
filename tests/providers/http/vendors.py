"""The five adapters side by side: how each is made, and how its server says the same answer.

Every `answer` is one thought, one text and one tool call, with ten tokens in (four of them cached)
and five out.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from hilt.model.content import Text, Thinking, ToolCall
from hilt.model.conversation import Message, Usage, user_text
from hilt.model.models import ModelInfo, Reasoning
from hilt.model.stream import Completed, ModelRequest, StreamItem, ToolSpec
from hilt.providers.anthropic import Anthropic
from hilt.providers.google import Google
from hilt.providers.http import Timeouts
from hilt.providers.openai import OpenAI
from hilt.providers.openai_chat import OpenAIChat
from hilt.providers.openai_responses import OpenAIResponses
from support.api_server import events, typed_events

KEY = "sk-test-0123456789abcdef"
TEXT = "Grüße 🌍"
QUICK = Timeouts(connect=5.0, idle=0.3)
BASH = ToolSpec("bash", "Run a command", {"type": "object", "properties": {"command": {"type": "string"}}})


class HttpProvider(Protocol):
    name: str

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]: ...

    async def check_key(self) -> None: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True)
class Vendor:
    id: str
    make: Callable[..., HttpProvider]
    path: str
    key_header: tuple[str, str]
    answer: str
    """The whole stream."""
    state: str
    """What the vendor wants back with its thought."""
    error: str
    """An overload in the middle of a stream."""
    malformed: str = "data: {not json\n\n"

    def __str__(self) -> str:
        return self.id


def request(
    *messages: Message, model: str = "m-1", reasoning: Reasoning = "", system: str = "Be brief.", **info: Any
) -> ModelRequest:
    return ModelRequest(ModelInfo(model, "test", **info), system, messages or (user_text("hello"),), (BASH,), reasoning)


async def collect(provider: HttpProvider, asked: ModelRequest | None = None) -> list[StreamItem]:
    return [item async for item in provider.stream(asked or request())]


def completed(items: list[StreamItem]) -> Completed:
    last = items[-1]
    assert isinstance(last, Completed)
    assert not any(isinstance(item, Completed) for item in items[:-1])
    return last


def check_answer(items: list[StreamItem], vendor: Vendor) -> None:
    """The scripted answer, whole and unchanged."""
    done = completed(items)
    thought, text, call = done.content
    assert isinstance(thought, Thinking) and isinstance(call, ToolCall)
    assert (thought.text, thought.state) == ("Hm.", vendor.state)
    assert text == Text(TEXT)
    assert (call.name, call.args, call.invalid) == ("bash", {"command": "ls"}, "")
    assert done.stop == "tool_use"
    assert done.usage == Usage(input=6, output=5, cache_read=4)


def _chat(**delta: Any) -> dict[str, Any]:
    return {"id": "c1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}


def _gemini(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **more}]}


ANTHROPIC = typed_events(
    {
        "type": "message_start",
        "message": {"id": "msg_1", "usage": {"input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 1}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig=="}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Grüße "}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "🌍"}},
    {"type": "content_block_stop", "index": 1},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}},
    },
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"command":'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ' "ls"}'}},
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
)

RESPONSES = typed_events(
    {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1"}},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "Hm."},
    {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "encrypted_content": "enc==",
        },
    },
    {"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "id": "m", "content": []}},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Grüße "},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "🌍"},
    {
        "type": "response.output_item.done",
        "output_index": 1,
        "item": {"type": "message", "id": "m", "content": [{"type": "output_text", "text": TEXT}]},
    },
    {
        "type": "response.output_item.added",
        "output_index": 2,
        "item": {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "bash", "arguments": ""},
    },
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"command":'},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '"ls"}'},
    {
        "type": "response.output_item.done",
        "output_index": 2,
        "item": {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "bash",
            "arguments": '{"command":"ls"}',
        },
    },
    {
        "type": "response.completed",
        "response": {
            "status": "completed",
            "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5},
        },
    },
)

CHAT = (
    events(
        _chat(role="assistant", content=None),
        _chat(reasoning_content="Hm."),
        _chat(content="Grüße "),
        _chat(content="🌍"),
        _chat(tool_calls=[{"index": 0, "id": "call_1", "function": {"name": "bash", "arguments": ""}}]),
        _chat(tool_calls=[{"index": 0, "function": {"arguments": '{"command":'}}]),
        _chat(tool_calls=[{"index": 0, "function": {"arguments": '"ls"}'}}]),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {
            "choices": [],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}},
        },
    )
    + "data: [DONE]\n\n"
)

GEMINI = events(
    _gemini({"text": "Hm.", "thought": True, "thoughtSignature": "sig=="}),
    _gemini({"text": "Grüße "}),
    _gemini({"text": "🌍"}),
    {
        **_gemini({"functionCall": {"name": "bash", "args": {"command": "ls"}}}, finishReason="STOP"),
        "usageMetadata": {
            "promptTokenCount": 10,
            "cachedContentTokenCount": 4,
            "candidatesTokenCount": 3,
            "thoughtsTokenCount": 2,
        },
    },
)

_BEARER = ("authorization", f"Bearer {KEY}")

VENDORS = (
    Vendor(
        "anthropic",
        Anthropic,
        "/v1/messages",
        ("x-api-key", KEY),
        ANTHROPIC,
        "sig==",
        typed_events({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ),
    Vendor(
        "responses",
        OpenAIResponses,
        "/v1/responses",
        _BEARER,
        RESPONSES,
        "enc==",
        typed_events({"type": "error", "code": "server_error", "message": "Overloaded", "param": None}),
    ),
    Vendor(
        "chat",
        OpenAIChat,
        "/v1/chat/completions",
        _BEARER,
        CHAT,
        "reasoning_content",
        events({"error": {"message": "Overloaded", "code": 503}}),
    ),
    Vendor(
        "openai",
        OpenAI,
        "/v1/responses",
        _BEARER,
        RESPONSES,
        "enc==",
        typed_events(
            {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "Overloaded"}}}
        ),
    ),
    Vendor(
        "google",
        Google,
        "/v1beta/models/m-1:streamGenerateContent?alt=sse",
        ("x-goog-api-key", KEY),
        GEMINI,
        "sig==",
        events({"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}),
    ),
)
