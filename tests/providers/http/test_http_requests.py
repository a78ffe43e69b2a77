"""What is sent: each vendor's request body, and the rules that hold for any conversation."""

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.model.content import AssistantBlock, Image, Text, Thinking, ToolCall
from hilt.model.conversation import AssistantMessage, Message, ToolMessage, ToolResult, UserMessage, now, user_text
from hilt.model.models import ModelInfo, Price, Reasoning
from hilt.model.stream import ModelRequest, ToolSpec
from hilt.providers import anthropic, google, openai_chat, openai_responses
from hilt.providers.outgoing import ToolNames, object_schema, output_limit, sendable, to_json
from providers.http.vendors import BASH, request

PNG = Image("image/png", b"\x89PNG")
SVG = Image("image/svg+xml", b"<svg/>")
PNG_64 = base64.b64encode(PNG.data).decode()


def said(*blocks: AssistantBlock, provider: str = "", model: str = "") -> AssistantMessage:
    return AssistantMessage(blocks, now(), provider, model)


def returned(*results: ToolResult) -> ToolMessage:
    return ToolMessage(results, now())


def body_for(module: Any, asked: ModelRequest, provider: str) -> dict[str, Any]:
    body: dict[str, Any] = module.request_body(asked, provider, ToolNames(asked.tools))
    decoded: dict[str, Any] = msgspec.json.decode(to_json(body))
    return decoded


def tool_turn(provider: str, thought_state: str, call_state: str = "") -> tuple[Message, ...]:
    """A turn with a thought of this provider's, one of another's, a good call, a broken one and a picture."""
    return (
        user_text("look"),
        said(
            Thinking("mine", thought_state, "rs_1", provider=provider),
            Thinking("foreign", "x", provider="someone"),
            Text("ok"),
            ToolCall("call_1", "bash", {"command": "ls"}, state=call_state),
            ToolCall("call_2", "bash", {}, invalid='{"comm'),
            provider=provider,
            model="m-1",
        ),
        returned(
            ToolResult("call_1", "bash", (Text("a"), PNG)), ToolResult("call_2", "bash", (Text("bad"),), is_error=True)
        ),
        user_text("and now?"),
    )


# anthropic


def test_anthropic_gets_thoughts_calls_results_and_words_in_its_own_blocks() -> None:
    body = body_for(anthropic, request(*tool_turn("anthropic", "sig")), "anthropic")
    cache = {"type": "ephemeral"}
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "look", "cache_control": cache}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "mine", "signature": "sig"},
                {"type": "text", "text": "ok"},
                {"type": "tool_use", "id": "call_1", "name": "bash", "input": {"command": "ls"}},
                {"type": "tool_use", "id": "call_2", "name": "bash", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "call_1",
                    "content": [
                        {"type": "text", "text": "a"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_64}},
                    ],
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "call_2",
                    "content": [{"type": "text", "text": "bad"}],
                    "is_error": True,
                },
                {"type": "text", "text": "and now?", "cache_control": cache},
            ],
        },
    ]
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": cache}]
    assert body["tools"] == [
        {"name": "bash", "description": "Run a command", "input_schema": BASH.schema, "cache_control": cache}
    ]
    assert body["stream"] is True and body["max_tokens"] == 8192 and "thinking" not in body


def test_anthropic_marks_at_most_four_places_for_its_cache() -> None:
    turns: list[Message] = []
    for number in range(10):
        turns += [user_text(f"{number}"), said(Text("yes"))]
    body = to_json(anthropic.request_body(request(*turns, user_text("x")), "anthropic", ToolNames((BASH,))))
    assert body.count(b"cache_control") == 4


def test_anthropic_gets_hidden_thoughts_back_and_loses_unsigned_ones() -> None:
    thoughts = (Thinking("", "data==", redacted=True, provider="anthropic"), Thinking("u", provider="anthropic"))
    body = body_for(anthropic, request(user_text("a"), said(*thoughts, Text("b")), user_text("c")), "anthropic")
    assert body["messages"][1]["content"] == [
        {"type": "redacted_thinking", "data": "data=="},
        {"type": "text", "text": "b"},
    ]


def test_anthropic_gets_the_picture_of_a_failed_call_after_the_results() -> None:
    turns = (user_text("a"), said(ToolCall("c1", "bash", {})), returned(ToolResult("c1", "bash", (PNG,), True)))
    content = body_for(anthropic, request(*turns), "anthropic")["messages"][-1]["content"]
    assert [block["type"] for block in content] == ["tool_result", "image"]
    assert [block["type"] for block in content[0]["content"]] == ["text"]


@pytest.mark.parametrize(("level", "budget"), [("low", 2048), ("medium", 8192), ("high", 16384)])
def test_an_older_claude_thinks_within_a_budget_below_its_limit(level: Reasoning, budget: int) -> None:
    asked = request(model="claude-sonnet-4-5-20250929", reasoning=level)
    body = body_for(anthropic, asked, "anthropic")
    assert body["thinking"] == {"type": "enabled", "budget_tokens": budget}
    assert body["max_tokens"] >= budget + 1024


def test_a_budget_shrinks_to_what_a_small_model_can_say() -> None:
    body = body_for(anthropic, request(reasoning="high", max_output=4096), "anthropic")
    assert body["thinking"]["budget_tokens"] < body["max_tokens"] == 4096
    assert "thinking" not in body_for(anthropic, request(reasoning="high", max_output=1500), "anthropic")


@pytest.mark.parametrize(
    ("model", "adaptive"),
    [
        ("claude-3-7-sonnet-20250219", False),
        ("claude-opus-4-20250514", False),
        ("claude-haiku-4-5-20251001", False),
        ("claude-opus-4-6", True),
        ("claude-sonnet-5", True),
        ("claude-opus-5-5", True),
        ("claude-mythos-preview", True),
        ("anthropic/claude-opus-4.7", True),
        ("kimi-k2", False),
    ],
)
def test_a_newer_claude_is_told_an_effort_instead_of_a_budget(model: str, adaptive: bool) -> None:
    body = body_for(anthropic, request(model=model, reasoning="low"), "anthropic")
    assert (body["thinking"]["type"] == "adaptive") is adaptive
    assert body.get("output_config") == ({"effort": "low"} if adaptive else None)


def test_thinking_does_not_start_in_the_middle_of_a_turn_that_began_without() -> None:
    begun = (user_text("a"), said(ToolCall("c1", "bash", {})), returned(ToolResult("c1", "bash", (Text("x"),))))
    assert "thinking" not in body_for(anthropic, request(*begun, reasoning="low"), "anthropic")
    assert "thinking" in body_for(anthropic, request(*begun, user_text("b"), reasoning="low"), "anthropic")
    thought = said(Thinking("t", "sig", provider="anthropic"), ToolCall("c1", "bash", {}))
    later = (
        *(user_text("a"), thought, begun[2]),
        *(said(ToolCall("c2", "bash", {})), returned(ToolResult("c2", "bash", (Text("y"),)))),
    )
    assert "thinking" in body_for(anthropic, request(*later, reasoning="low"), "anthropic")


# openai


def test_responses_get_reasoning_calls_and_outputs_as_items() -> None:
    body = body_for(openai_responses, request(*tool_turn("openai", "enc")), "openai")
    assert body["input"] == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "mine"}],
            "encrypted_content": "enc",
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
        {"type": "function_call", "call_id": "call_1", "name": "bash", "arguments": '{"command":"ls"}'},
        {"type": "function_call", "call_id": "call_2", "name": "bash", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [
                {"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG_64}", "detail": "auto"},
            ],
        },
        {"type": "function_call_output", "call_id": "call_2", "output": "bad"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and now?"}]},
    ]
    assert body["instructions"] == "Be brief."
    assert body["store"] is False and body["stream"] is True
    assert body["tools"][0] == {
        "type": "function",
        "name": "bash",
        "description": "Run a command",
        "parameters": BASH.schema,
        "strict": False,
    }
    assert "reasoning" not in body and "include" not in body


def test_responses_ask_for_encrypted_reasoning_of_models_that_reason() -> None:
    body = body_for(openai_responses, request(reasoning="medium"), "openai")
    assert body["reasoning"] == {"effort": "medium", "summary": "auto"}
    assert body["include"] == ["reasoning.encrypted_content"]


def test_chat_gets_plain_text_calls_and_mirrored_pictures() -> None:
    body = body_for(openai_chat, request(*tool_turn("kimi", "reasoning_content")), "kimi")
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "look"},
        {
            "role": "assistant",
            "content": "ok",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}},
                {"id": "call_2", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
            ],
            "reasoning_content": "mine",
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "a"},
        {"role": "tool", "tool_call_id": "call_2", "content": "bad"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Images returned by the tools above:"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG_64}"}},
                {"type": "text", "text": "and now?"},
            ],
        },
    ]
    assert body["stream_options"] == {"include_usage": True}
    assert body["tools"][0]["function"]["name"] == "bash"


def test_chat_returns_a_thought_in_the_field_it_came_in_and_only_beside_calls() -> None:
    turns = (
        *(user_text("a"), said(Thinking("t", "reasoning", provider="ollama"), ToolCall("c", "bash", {}))),
        *(
            returned(ToolResult("c", "bash", (Text("x"),))),
            said(Thinking("u", "reasoning", provider="ollama"), Text("b")),
        ),
        user_text("c"),
    )
    messages = body_for(openai_chat, request(*turns), "ollama")["messages"]
    assert messages[2]["reasoning"] == "t" and messages[2]["content"] is None
    assert "reasoning" not in messages[4] and "reasoning_content" not in messages[2]


def test_kimi_always_gets_the_field_it_demands_beside_calls() -> None:
    turns = (user_text("a"), said(ToolCall("functions.bash:0", "bash", {})))
    messages = body_for(openai_chat, request(*turns), "kimi")["messages"]
    assert messages[2]["reasoning_content"] == ""
    assert messages[2]["tool_calls"][0]["id"] == messages[3]["tool_call_id"] == "functions.bash:0"


def test_chat_names_the_limit_as_the_server_knows_it() -> None:
    asked = request(max_output=1000, reasoning="high")
    theirs = openai_chat.request_body(asked, "ollama", ToolNames())
    vendors = openai_chat.request_body(asked, "openai", ToolNames(), vendor=True)
    assert theirs["max_tokens"] == vendors["max_completion_tokens"] == 1000
    assert theirs["reasoning_effort"] == "high"
    assert "reasoning_effort" not in openai_chat.request_body(asked, "kimi", ToolNames())


# google


def test_gemini_gets_parts_with_signatures_and_responses_with_pictures() -> None:
    asked = request(*tool_turn("google", "sig", "call-sig"))
    asked = msgspec.structs.replace(asked, model=ModelInfo("m-1", "google"))
    body = body_for(google, asked, "google")
    assert body["contents"] == [
        {"role": "user", "parts": [{"text": "look"}]},
        {
            "role": "model",
            "parts": [
                {"text": "mine", "thought": True, "thoughtSignature": "sig"},
                {"text": "ok"},
                {
                    "functionCall": {"id": "call_1", "name": "bash", "args": {"command": "ls"}},
                    "thoughtSignature": "call-sig",
                },
                {"functionCall": {"id": "call_2", "name": "bash", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "call_1", "name": "bash", "response": {"output": "a"}}},
                {"functionResponse": {"id": "call_2", "name": "bash", "response": {"error": "bad"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"text": "Images returned by the tools:"},
                {"inlineData": {"mimeType": "image/png", "data": PNG_64}},
            ],
        },
        {"role": "user", "parts": [{"text": "and now?"}]},
    ]
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == BASH.schema


def test_gemini_3_gets_pictures_in_the_response_and_a_mark_for_foreign_calls() -> None:
    turns = tool_turn("anthropic", "sig", "foreign-state")
    body = body_for(google, request(*turns, model="gemini-3.1-pro-preview"), "google")
    calls = [part for part in body["contents"][1]["parts"] if "functionCall" in part]
    assert [call.get("thoughtSignature") for call in calls] == [google.UNSIGNED, None]
    response = body["contents"][2]["parts"][0]["functionResponse"]
    assert response["parts"] == [{"inlineData": {"mimeType": "image/png", "data": PNG_64}}]


@pytest.mark.parametrize(
    ("model", "level", "config"),
    [
        ("gemini-2.5-pro", "medium", {"includeThoughts": True, "thinkingBudget": 8192}),
        ("gemini-3-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3.1-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "medium"}),
        ("gemini-flash-latest", "low", {"includeThoughts": True, "thinkingLevel": "low"}),
    ],
)
def test_gemini_is_told_how_hard_to_think_in_its_generations_words(
    model: str, level: Reasoning, config: dict[str, Any]
) -> None:
    body = body_for(google, request(model=model, reasoning=level), "google")
    assert body["generationConfig"]["thinkingConfig"] == config


def test_gemini_gets_only_the_schema_words_it_knows_and_every_property() -> None:
    schema = {
        "type": "object",
        "$schema": "x",
        "additionalProperties": False,
        "properties": {
            "pattern": {"type": "string", "pattern": "^a", "minLength": 1, "default": "a"},
            "const": {"const": "k"},
            "list": {"type": "array", "items": {"$ref": "#/definitions/d", "examples": [1]}},
            "null": {"type": ["string", "null"], "enum": ["a", None]},
        },
        "definitions": {"d": {"type": "integer", "exclusiveMinimum": 0}},
        "required": ["pattern"],
    }
    assert google.trim_schema(object_schema(schema)) == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "pattern": {"type": "string"},
            "const": {"enum": ["k"]},
            "list": {"type": "array", "items": {"$ref": "#/$defs/d"}},
            "null": {"type": ["string", "null"], "enum": ["a", None]},
        },
        "$defs": {"d": {"type": "integer"}},
        "required": ["pattern"],
    }


# shared


def test_thoughts_of_another_model_of_the_same_provider_are_dropped() -> None:
    thought = Thinking("t", "sig", provider="anthropic")
    turns = (user_text("a"), said(thought, Text("b"), provider="anthropic", model="old"), user_text("c"))
    assert sendable(request(*turns), "anthropic")[1] == msgspec.structs.replace(turns[1], content=(Text("b"),))


def test_a_picture_the_vendor_cannot_read_becomes_a_note() -> None:
    asked = request(UserMessage((Text("see"), SVG), now()))
    for module, provider in MODULES:
        body = to_json(module.request_body(asked, provider, ToolNames())).decode()
        assert "an image of type image/svg+xml was left out" in body


def test_tool_names_are_made_safe_unique_and_are_found_again() -> None:
    tools = tuple(ToolSpec(name, "", {}) for name in ("a.b", "a_b", "wörk", "x" * 80, "x" * 81))
    names = ToolNames(tools)
    wires = [names.wire(tool.name) for tool in tools]
    assert len(set(wires)) == 5
    assert all(wire.isascii() and len(wire) <= 64 and "." not in wire for wire in wires)
    assert [names.real(wire) for wire in wires] == [tool.name for tool in tools]
    assert names.wire("") == "_" and names.real("unknown") == "unknown"


def test_a_schema_is_an_object_without_alternatives_at_its_top() -> None:
    assert object_schema({}) == {"type": "object", "properties": {}}
    assert object_schema({"anyOf": [{}], "required": ["a"], "properties": {"a": {"anyOf": []}}}) == {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"anyOf": []}},
    }


def test_the_answers_limit_is_the_wish_or_the_models_but_never_crowds_the_window() -> None:
    assert output_limit(request()) == 0
    assert output_limit(request(max_output=4096)) == 4096
    assert output_limit(request(max_output=128_000)) == 32_000
    assert output_limit(msgspec.structs.replace(request(max_output=128_000), max_tokens=77)) == 77


def test_a_model_known_not_to_reason_is_not_asked_to() -> None:
    for module, provider in MODULES:
        for price, asks in ((Price(), False), (None, True)):
            asked = request(reasoning="high", context_window=8192, price=price)
            body = to_json(module.request_body(asked, provider, ToolNames()))
            assert (b"thinking" in body or b"reasoning" in body) is asks


def check_anthropic(body: dict[str, Any]) -> None:
    messages = body["messages"]
    assert [m["role"] for m in messages] == ["user" if at % 2 == 0 else "assistant" for at in range(len(messages))]
    assert messages[-1]["role"] == "user"
    open_calls: list[str] = []
    seen: set[str] = set()
    for message in messages:
        kinds = [block["type"] for block in message["content"]]
        assert kinds and all(block["text"].strip() for block in message["content"] if block["type"] == "text")
        results = [block for block in message["content"] if block["type"] == "tool_result"]
        assert [block["tool_use_id"] for block in results] == open_calls
        assert kinds[: len(results)] == ["tool_result"] * len(results)
        assert all(block["content"] for block in results)
        open_calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        assert seen.isdisjoint(open_calls) and len(set(open_calls)) == len(open_calls)
        assert all(set(call) <= SAFE for call in open_calls)
        seen.update(open_calls)
        assert message["role"] == "user" or kinds[-1] != "thinking"
    assert open_calls == []
    assert body["max_tokens"] > body.get("thinking", {}).get("budget_tokens", 0)


def check_responses(body: dict[str, Any]) -> None:
    open_calls: set[str] = set()
    for item, following in zip(body["input"], [*body["input"][1:], {"type": "end"}], strict=True):
        if item["type"] == "reasoning":
            assert item["encrypted_content"]
            assert following["type"] in ("reasoning", "message", "function_call")
        elif item["type"] == "function_call":
            assert item["call_id"] not in open_calls and isinstance(msgspec.json.decode(item["arguments"]), dict)
            open_calls.add(item["call_id"])
        elif item["type"] == "function_call_output":
            assert item["output"]
            open_calls.remove(item["call_id"])
        else:
            assert item["content"] and (not open_calls or item["role"] == "assistant")
    assert not open_calls and body["input"][-1]["type"] != "reasoning"


def check_chat(body: dict[str, Any]) -> None:
    open_calls: list[str] = []
    for message, before in zip(body["messages"][1:], body["messages"], strict=False):
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0) and message["content"]
            continue
        assert not open_calls and message["role"] != before["role"]
        assert message["content"] or message.get("tool_calls")
        open_calls = [call["id"] for call in message.get("tool_calls", ())]
    assert not open_calls and body["messages"][-1]["role"] in ("user", "tool")


def check_google(body: dict[str, Any]) -> None:
    open_calls: list[str] = []
    for content in body["contents"]:
        assert content["parts"]
        answers = [part["functionResponse"]["id"] for part in content["parts"] if "functionResponse" in part]
        assert answers == open_calls
        open_calls = [part["functionCall"]["id"] for part in content["parts"] if "functionCall" in part]
    assert not open_calls and body["contents"][0]["role"] == "user" and body["contents"][-1]["role"] == "user"


MODULES: tuple[tuple[Any, str], ...] = (
    (anthropic, "anthropic"),
    (openai_responses, "openai"),
    (openai_chat, "ollama"),
    (google, "google"),
)
CHECKS = {anthropic: check_anthropic, openai_responses: check_responses, openai_chat: check_chat, google: check_google}
SAFE = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")

words = st.sampled_from(["", " \n", "hello", "🌍", "\ud800", "x\x00y"])
ids = st.sampled_from(["", "call_1", "call_2", "functions.bash:0", "é", "x" * 99])
providers = st.sampled_from(["anthropic", "openai", "ollama", "google", "other", ""])
blocks = st.one_of(
    words.map(Text),
    st.builds(Thinking, words, st.sampled_from(["", "state", "reasoning"]), st.just("rs"), st.booleans(), providers),
    st.builds(ToolCall, ids, st.sampled_from(["bash", "", "no such tool"]), st.just({"a": "\ud800"}), words),
)
contents = st.lists(st.one_of(words.map(Text), st.sampled_from([PNG, SVG, Image("image/png", b"")]))).map(tuple)
results = st.builds(ToolResult, ids, st.just("bash"), contents, st.booleans())
messages = st.one_of(
    contents.map(lambda content: UserMessage(content, now())),
    st.builds(lambda content, by: said(*content, provider=by, model="m-1"), st.lists(blocks, max_size=5), providers),
    st.lists(results, max_size=3).map(lambda found: returned(*found)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(messages, max_size=8).map(tuple), st.sampled_from(["", "high"]))
def test_any_conversation_becomes_a_request_that_every_vendor_takes(
    talk: tuple[Message, ...], level: Reasoning
) -> None:
    for module, provider in MODULES:
        asked = ModelRequest(ModelInfo("m-1", provider), "s", talk, (BASH,), level)
        CHECKS[module](body_for(module, asked, provider))
