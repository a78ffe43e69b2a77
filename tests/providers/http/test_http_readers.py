"""How each vendor's events are read, with the liberties that compatible servers take. No network here."""

import json
from typing import Any

import pytest

from hilt.errors import BadRequest, RateLimited, Unavailable
from hilt.model.content import Text, Thinking, ToolCall
from hilt.model.conversation import Usage
from hilt.model.masking import Mask
from hilt.model.stream import StreamItem, TextDelta, ThinkingDelta, ToolUseArgs, ToolUseEnd, ToolUseStart
from hilt.providers.anthropic import AnthropicReader
from hilt.providers.failures import Fault, as_error
from hilt.providers.google import GoogleReader
from hilt.providers.http import Reader
from hilt.providers.incoming import Answer, parse_args
from hilt.providers.openai_chat import ChatReader
from hilt.providers.openai_responses import ResponsesReader
from hilt.providers.outgoing import ToolNames
from hilt.providers.sse import SseEvent
from providers.http.vendors import BASH, completed


def read(kind: Any, *bodies: dict[str, Any]) -> list[StreamItem]:
    reader: Reader = kind(Answer("p", ToolNames((BASH,))))
    items = [item for body in bodies for item in reader.read(SseEvent("", json.dumps(body)))]
    return [*items, *reader.finish()] if reader.complete else items


def calls_of(items: list[StreamItem]) -> list[ToolCall]:
    return [block for block in completed(items).content if isinstance(block, ToolCall)]


@pytest.mark.parametrize(
    ("raw", "args", "invalid"),
    [
        ("", {}, ""),
        (" ", {}, ""),
        ('{"a": 1}', {"a": 1}, ""),
        ('{"a": ', {}, '{"a": '),
        ("[1]", {}, "[1]"),
        ('{"a": NaN}', {}, '{"a": NaN}'),
        ("[" * 100_000, {}, "[" * 100_000),
    ],
)
def test_arguments_that_are_no_object_are_kept_as_they_were_written(
    raw: str, args: dict[str, Any], invalid: str
) -> None:
    assert parse_args(raw) == (args, invalid)


# chat


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": fields}]}


def call(arguments: Any, **fields: Any) -> dict[str, Any]:
    name = fields.pop("name", None)
    return delta(tool_calls=[{**fields, "function": {"name": name, "arguments": arguments}}])


END = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


def test_chat_needs_neither_a_creation_time_nor_usage_nor_content() -> None:
    items = read(ChatReader, {"choices": None}, delta(content=None), {}, delta(content="hi"), END)
    done = completed(items)
    assert (done.content, done.stop, done.usage) == ((Text("hi"),), "end", Usage())


@pytest.mark.parametrize(
    "chunks",
    [
        [call('{"a":', index=0, id="x", name="bash"), call("1}", index=0), call("{}", index=1, id="y", name="bash")],
        [call('{"a":1}', id="x", name="bash"), call("{}", id="y", name="bash")],
        [call('{"a":1}', index=0, id="x", name="bash"), call("{}", index=0, id="y", name="bash")],
        [call({"a": 1}, index=0, id="x", name="bash"), call({}, index=1, id="y", name="bash")],
        [call('{"a":', id="x", name="bash"), call("1}", id="x", name="bash"), call("{}", id="y", name="bash")],
        [call('{"a":', id="x", name="bash"), call("1}"), call("{}", id="y", name="bash")],
        [call(None, index=0, id="x"), call('{"a":1}', index=0, name="bash"), call("{}", index=1, id="y", name="bash")],
        [call("{", index=0, id="x"), call('"a":1}', index=0, name="bash"), call("", index=1, id="y", name="bash")],
    ],
    ids=["index", "no index", "one index", "objects", "id repeated", "bare rest", "late name", "early arguments"],
)
def test_chat_calls_are_put_together_however_they_are_sent(chunks: list[dict[str, Any]]) -> None:
    items = read(ChatReader, *chunks, END)
    assert [(c.id, c.name, c.args) for c in calls_of(items)] == [("x", "bash", {"a": 1}), ("y", "bash", {})]
    assert completed(items).stop == "tool_use"
    assert [item.id for item in items if isinstance(item, ToolUseStart)] == ["x", "y"]
    assert sorted(item.id for item in items if isinstance(item, ToolUseEnd)) == ["x", "y"]
    sent = "".join(item.delta for item in items if isinstance(item, ToolUseArgs) and item.id == "x")
    assert json.loads(sent) == {"a": 1}


def test_chat_calls_without_ids_get_ids_of_their_own() -> None:
    first, second = calls_of(read(ChatReader, call("{}", name="bash"), call("{}", name="bash"), END))
    assert first.id and second.id and first.id != second.id


def test_chat_calls_that_share_an_id_are_told_apart() -> None:
    chunks = [call("{}", index=0, id="x", name="bash"), call("{}", index=1, id="x", name="bash")]
    first, second = calls_of(read(ChatReader, *chunks, END))
    assert first.id == "x" != second.id


def test_chat_arguments_that_break_off_are_kept_with_the_length_stop() -> None:
    items = read(ChatReader, call('{"a', index=0, id="x", name="bash"), {"choices": [{"finish_reason": "length"}]})
    assert completed(items).stop == "length"
    assert calls_of(items)[0].invalid == '{"a'


def test_chat_thoughts_under_either_name_are_thinking_and_never_doubled() -> None:
    for field in ("reasoning_content", "reasoning"):
        items = read(ChatReader, delta(**{field: "hm"}), delta(content="a"), END)
        assert items[0] == ThinkingDelta("hm")
        assert completed(items).content[0] == Thinking("hm", field, provider="p")
    both = read(ChatReader, delta(reasoning_content="hm", reasoning="hm"), END)
    assert [item for item in both if isinstance(item, ThinkingDelta)] == [ThinkingDelta("hm")]


def test_chat_usage_is_found_wherever_the_server_puts_it() -> None:
    inside = {"choices": [{"finish_reason": "stop", "usage": {"prompt_tokens": 9, "cached_tokens": 2}}]}
    assert completed(read(ChatReader, inside)).usage == Usage(input=7, cache_read=2)
    odd = {**END, "usage": {"prompt_tokens": 9.0, "completion_tokens": "many", "prompt_tokens_details": None}}
    assert completed(read(ChatReader, odd)).usage == Usage(input=9)


def test_chat_text_may_come_in_parts_or_as_a_refusal() -> None:
    items = read(ChatReader, delta(content=[{"type": "text", "text": "a"}, {"type": "x"}]), delta(refusal="b"), END)
    assert [item for item in items if isinstance(item, TextDelta)] == [TextDelta("a"), TextDelta("b")]


def test_chat_is_not_complete_without_a_reason_to_stop() -> None:
    reader = ChatReader(Answer("p", ToolNames()))
    reader.read(SseEvent("", json.dumps(delta(content="a"))))
    assert not reader.complete and not reader.over
    reader.read(SseEvent("", json.dumps(END)))
    assert reader.complete and not reader.over
    reader.read(SseEvent("", "[DONE]"))
    assert reader.over


# anthropic

STOP = ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"})


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def test_anthropic_counts_cache_writes_and_takes_the_last_word_on_output() -> None:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 5, "output_tokens": 1}
    items = read(
        AnthropicReader,
        {"type": "message_start", "message": {"usage": usage}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "max_tokens"},
            "usage": {"output_tokens": 9, "input_tokens": None},
        },
        {"type": "message_stop"},
    )
    assert completed(items).usage == Usage(3, 9, 5, 7)
    assert completed(items).stop == "length"


def test_anthropic_keeps_a_hidden_thought() -> None:
    items = read(AnthropicReader, start(0, type="redacted_thinking", data="xyz"), *STOP)
    assert completed(items).content == (Thinking("", "xyz", redacted=True, provider="p"),)


def test_anthropic_takes_arguments_that_come_whole_with_the_start() -> None:
    block = start(0, type="tool_use", id="t", name="bash", input={"command": "ls"})
    (made,) = calls_of(read(AnthropicReader, block, {"type": "content_block_stop", "index": 0}, *STOP))
    assert made.args == {"command": "ls"}


def test_anthropic_keeps_broken_arguments() -> None:
    bad = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a'}}
    (made,) = calls_of(read(AnthropicReader, start(0, type="tool_use", id="t", name="bash", input={}), bad, *STOP))
    assert (made.args, made.invalid) == ({}, '{"a')


def test_anthropic_passes_over_blocks_and_events_it_does_not_know() -> None:
    items = read(AnthropicReader, start(0, type="server_tool_use", id="x"), {"type": "new_thing"}, *STOP)
    assert completed(items).content == ()


def test_a_refusal_is_a_bad_request_with_each_vendor() -> None:
    filtered = {"incomplete_details": {"reason": "content_filter"}}
    refusals = (
        (AnthropicReader, {"type": "message_delta", "delta": {"stop_reason": "refusal"}}),
        (ChatReader, {"choices": [{"finish_reason": "content_filter"}]}),
        (ResponsesReader, {"type": "response.incomplete", "response": filtered}),
        (GoogleReader, {"promptFeedback": {"blockReason": "SAFETY"}}),
        (GoogleReader, {"candidates": [{"finishReason": "PROHIBITED_CONTENT"}]}),
    )
    for kind, body in refusals:
        with pytest.raises(Fault) as caught:
            read(kind, body)
        assert type(as_error("p", caught.value, Mask())) is BadRequest


def test_errors_inside_a_stream_keep_their_meaning() -> None:
    failures = (
        (AnthropicReader, {"type": "error", "error": {"type": "rate_limit_error", "message": "m"}}, RateLimited),
        (AnthropicReader, {"type": "error", "error": {"type": "api_error", "message": "m"}}, Unavailable),
        (ResponsesReader, {"type": "error", "code": "rate_limit_exceeded", "message": "m"}, RateLimited),
        (ResponsesReader, {"type": "error", "error": {"type": "invalid_request_error", "message": "m"}}, BadRequest),
        (ResponsesReader, {"type": "response.failed", "response": {"error": {"code": "server_error"}}}, Unavailable),
        (ResponsesReader, {"type": "response.failed"}, Unavailable),
        (ChatReader, {"error": {"message": "m", "type": "invalid_request_error"}}, BadRequest),
        (ChatReader, {"error": "m"}, Unavailable),
        (GoogleReader, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}, RateLimited),
        (GoogleReader, {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, Unavailable),
    )
    for kind, body, meaning in failures:
        with pytest.raises(Fault) as caught:
            read(kind, body)
        assert type(as_error("p", caught.value, Mask())) is meaning, body


# responses


def test_responses_without_deltas_are_read_from_the_finished_items_or_the_end() -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}
    made = {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"}
    thought = {"type": "reasoning", "id": "rs", "summary": [{"text": "a"}, {"text": "b"}], "encrypted_content": "e"}
    output = [thought, message, made]
    done = [
        {"type": "response.output_item.done", "output_index": index, "item": item} for index, item in enumerate(output)
    ]
    end = {"type": "response.completed", "response": {"output": output}}
    expected = (Thinking("a\n\nb", "e", "rs", provider="p"), Text("hi"), ToolCall("c", "bash", {}))
    assert completed(read(ResponsesReader, end)).content == expected
    assert completed(read(ResponsesReader, *done, end)).content == expected
    said = [item for item in read(ResponsesReader, *done, end) if isinstance(item, TextDelta)]
    assert said == [TextDelta("hi")]


def test_parts_of_a_reasoning_summary_are_paragraphs() -> None:
    parts = [
        {"type": "response.reasoning_summary_text.delta", "summary_index": index, "delta": text}
        for index, text in ((0, "a"), (0, "b"), (1, "c"))
    ]
    assert completed(read(ResponsesReader, *parts, {"type": "response.completed"})).content[0] == Thinking(
        "ab\n\nc", provider="p"
    )


def test_an_incomplete_response_stopped_for_its_length() -> None:
    end = {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}}
    assert completed(read(ResponsesReader, end)).stop == "length"


# google


def parts(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts)}, **more}]}


def test_gemini_calls_get_ids_unless_they_have_them_and_keep_signatures() -> None:
    items = read(
        GoogleReader,
        parts({"functionCall": {"name": "bash", "args": {"a": 1}}, "thoughtSignature": "s"}),
        parts({"functionCall": {"id": "own", "name": "bash"}}, finishReason="STOP"),
    )
    first, second = calls_of(items)
    assert first.id and (first.args, first.state) == ({"a": 1}, "s")
    assert (second.id, second.args, second.state) == ("own", {}, "")


def test_the_signature_of_a_text_is_kept_behind_it_and_returned() -> None:
    from hilt.model.conversation import AssistantMessage, now, user_text
    from hilt.providers import google
    from providers.http.vendors import request

    items = read(GoogleReader, parts({"text": "a"}), parts({"text": "", "thoughtSignature": "s"}, finishReason="STOP"))
    content = completed(items).content
    assert content == (Text("a"), Thinking("", "s", provider="p"))
    talk = (user_text("q"), AssistantMessage(content, now(), "p", "m-1"), user_text("r"))
    body = google.request_body(request(*talk), "p", ToolNames())
    assert body["contents"][1]["parts"] == [{"text": "a"}, {"text": "", "thoughtSignature": "s"}]


@pytest.mark.parametrize(("reason", "stop"), [("STOP", "end"), ("MAX_TOKENS", "length")])
def test_gemini_says_why_it_stopped(reason: str, stop: str) -> None:
    assert completed(read(GoogleReader, parts({"text": "a"}, finishReason=reason))).stop == stop


def test_gemini_is_not_complete_without_a_finish_reason() -> None:
    assert read(GoogleReader, parts({"text": "a"}), parts({"text": "b"}, finishReason="FINISH_REASON_UNSPECIFIED")) == [
        TextDelta("a"),
        TextDelta("b"),
    ]
