"""A model's answer by way of an extension."""

import json
from typing import Any

import pytest
from msgspec import Raw

from hilt.errors import FrameError
from hilt.model.content import Text, Thinking, ToolCall
from hilt.model.conversation import AssistantMessage, Usage, user_text
from hilt.model.models import ModelInfo, Price
from hilt.model.stream import (
    Completed,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolSpec,
    ToolUseArgs,
    ToolUseEnd,
    ToolUseStart,
)
from hilt.wire.jsonrpc import request
from hilt.wire.jsonrpc_provider import Deltas, StreamFailed, completed, model_info, stream_params
from hilt.wire.jsonrpc_types import Cost, DeltaTool, ProviderDelta, ProviderModel

MODEL = ModelInfo("m1", "p1", "M1", 8192, 512, reasoning=True, price=Price(1, 2), base_url="http://127.0.0.1:9")


def asked(question: ModelRequest) -> Any:
    return json.loads(request(7, "provider/stream", stream_params(question, 6, "openai")))["params"]


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


def test_a_request_says_all_that_the_model_needs() -> None:
    tool = ToolSpec("add", "Adds", {"type": "object"})
    params = asked(ModelRequest(MODEL, "S", (user_text("hi"),), (tool,), "low", 99))
    assert params["requestId"] == 6
    assert params["model"] == {
        "id": "m1",
        "name": "M1",
        "api": "openai",
        "provider": "p1",
        "baseUrl": "http://127.0.0.1:9",
        "reasoning": True,
        "contextWindow": 8192,
        "maxTokens": 512,
        "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0},
    }
    assert params["system"] == "S"
    assert params["messages"][0]["content"] == "hi"
    assert params["tools"] == [{"name": "add", "description": "Adds", "parameters": {"type": "object"}}]
    assert params["options"] == {"maxTokens": 99, "thinking": "low"}


def test_what_there_is_nothing_to_say_about_is_left_out() -> None:
    params = asked(ModelRequest(ModelInfo("m1", "p1"), "", ()))
    assert params["options"] == {} and params["messages"] == [] and "tools" not in params
    assert params["model"]["name"] == "m1" and params["model"]["cost"]["input"] == 0
    assert "baseUrl" not in params["model"]


def test_the_message_at_the_end_is_the_answer() -> None:
    # Neither a role nor a model by which it would be known: it is an assistant's all the same.
    message = {
        "content": [{"thinking": "hm"}, {"text": "hello"}, {"id": "c", "name": "add", "arguments": {"a": 1}}],
        "usage": {"inputTokens": 1, "outputTokens": 2, "cacheReadTokens": 3, "cacheWriteTokens": 4, "cost": 0.5},
        "stopReason": "toolUse",
        "timestamp": "",
    }
    assert completed(raw({"message": message})) == Completed(
        (Thinking("hm"), Text("hello"), ToolCall("c", "add", {"a": 1})), "tool_use", Usage(1, 2, 3, 4, 0.5)
    )


def test_calls_without_an_id_get_one_each() -> None:
    answer = completed(raw({"message": {"content": [{"name": "a"}, {"name": "a"}]}}))
    assert isinstance(answer, Completed)
    ids = [block.id for block in answer.content if isinstance(block, ToolCall)]
    assert all(ids) and len(set(ids)) == 2


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"error": "quota"}, "quota"),
        ({"message": {"content": []}, "Error": "quota"}, "quota"),
        ({"message": {"content": [{"text": "half"}], "stopReason": "error", "error": "quota"}}, "quota"),
        ({"message": {"stopReason": "error"}}, "the provider's answer ended with an error"),
    ],
)
def test_an_error_in_the_answer_fails_the_stream(result: Any, message: str) -> None:
    assert completed(raw(result)) == StreamFailed(message)


@pytest.mark.parametrize("result", [{}, None, {"message": 7}, {"message": {"content": 7}}, [1], {"error": 7}])
def test_an_answer_that_cannot_be_read_is_refused(result: Any) -> None:
    with pytest.raises(FrameError):
        completed(raw(result))


def test_deltas_become_those_of_the_stream() -> None:
    deltas = Deltas()
    read = [
        deltas.read(delta)
        for delta in (
            ProviderDelta(6, "thinking_delta", delta="h"),
            ProviderDelta(6, "text_delta", delta="Hel"),
            ProviderDelta(6, "toolcall_delta", 1, '{"pa', DeltaTool("c1", "read")),
            ProviderDelta(6, "toolcall_delta", 1, 'th":1}'),
            ProviderDelta(6, "toolcall_delta", 2, "{}"),
            ProviderDelta(6, "toolcall_end", 1, tool=DeltaTool("c1", "read", '{"path":1}')),
            ProviderDelta(6, "toolcall_end", 3, tool=DeltaTool("c3", "add", '{"a":1}')),
        )
    ]
    assert read == [
        (ThinkingDelta("h"),),
        (TextDelta("Hel"),),
        (ToolUseStart("c1", "read"), ToolUseArgs("c1", '{"pa')),
        (ToolUseArgs("c1", 'th":1}'),),
        (ToolUseStart("call_2", ""), ToolUseArgs("call_2", "{}")),
        (ToolUseEnd("c1"),),
        (ToolUseStart("c3", "add"), ToolUseArgs("c3", '{"a":1}'), ToolUseEnd("c3")),
    ]


def test_an_error_among_the_deltas_fails_the_stream_and_the_unknown_is_ignored() -> None:
    deltas = Deltas()
    assert deltas.read(ProviderDelta(6, "error", delta="quota")) == StreamFailed("quota")
    assert isinstance(deltas.read(ProviderDelta(6, "error")), StreamFailed)
    assert deltas.read(ProviderDelta(6, "done")) == deltas.read(ProviderDelta(6, "toolcall_start")) == ()


def test_no_number_of_open_calls_fills_the_memory() -> None:
    deltas = Deltas()
    shown = [deltas.read(ProviderDelta(6, "toolcall_delta", index, "x")) for index in range(1100)]
    assert sum(map(bool, shown)) == 1024
    assert deltas.read(ProviderDelta(6, "toolcall_end", 1099)) == ()


def test_a_model_that_only_the_extension_knows_is_one_like_others() -> None:
    model = ProviderModel("m", "M", 8192, 512, reasoning=True, cost=Cost(1, 2, 3, 4))
    assert model_info(model, "p") == ModelInfo("m", "p", "M", 8192, 512, True, Price(1, 2, 3, 4))


def test_an_answer_sent_back_in_the_next_request_is_the_same() -> None:
    answer = completed(raw({"message": {"content": [{"name": "n", "id": "c", "providerMeta": {"sig": "x"}}]}}))
    assert isinstance(answer, Completed)
    message = AssistantMessage(answer.content, user_text("").time, "p1", "m1")
    assert asked(ModelRequest(MODEL, "", (message,)))["messages"][0]["content"] == [
        {"type": "tool_call", "id": "c", "name": "n", "arguments": {}, "providerMeta": {"sig": "x"}}
    ]
