"""The conversation as extensions of the jsonrpc dialect see it, and as they give it back."""

import base64
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from hilt.model.content import Image, Text, Thinking, ToolCall
from hilt.model.conversation import (
    AssistantMessage,
    Message,
    StopReason,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
    now,
)
from hilt.wire.jsonrpc import reply
from hilt.wire.jsonrpc_messages import bare, read_messages, timestamp, wrapped
from wire.jsonrpc_examples import BARE, WRAPPED

AT = datetime(2026, 5, 1, 10, 0, 0, tzinfo=UTC)
LATER = AT + timedelta(seconds=2)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
HISTORY: tuple[Message, ...] = (
    UserMessage((Text("look at a.txt"),), AT),
    AssistantMessage(
        (Thinking("…"), Text("reading"), ToolCall("call_1", "read", {"path": "a.txt"})),
        LATER,
        "p1",
        "m1",
        Usage(10, 3, cost_usd=0.001),
        "tool_use",
    ),
    ToolMessage((ToolResult("call_1", "read", (Text("1\thello\n"),)),), LATER),
)


def sent(messages: tuple[Message, ...]) -> list[Any]:
    """As it looks on the other side."""
    result: list[Any] = json.loads(reply(1, bare(messages)))["result"]
    return result


def back(values: Any) -> tuple[Message, ...]:
    messages, problems = read_messages(values)
    assert not problems
    return messages


def test_a_conversation_is_written_as_extensions_know_it_and_says_what_is_what() -> None:
    assert msgspec.json.encode(bare(HISTORY)).decode() == BARE
    assert msgspec.json.encode(wrapped(HISTORY)).decode() == WRAPPED


def test_it_is_read_back_in_either_form() -> None:
    assert back(json.loads(BARE)) == HISTORY
    assert back(json.loads(WRAPPED)) == HISTORY


def test_messages_without_any_word_on_what_they_are_are_told_apart_by_their_keys() -> None:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if key not in ("role", "type")}
        return [plain(item) for item in value] if isinstance(value, list) else value

    assert back(plain(json.loads(BARE))) == HISTORY


def test_keys_in_other_case_are_read() -> None:
    assert back(
        [{"Content": [{"Text": "a"}], "Provider": "p", "STOPREASON": "length", "Timestamp": timestamp(AT)}]
    ) == (AssistantMessage((Text("a"),), AT, "p", stop="length"),)


def test_what_has_no_place_in_the_bare_form_comes_back_too() -> None:
    history: tuple[Message, ...] = (
        UserMessage((Text("before"),), AT, summary=True),
        UserMessage((Text("from outside"), Image("image/png", PNG)), AT, extension="demo"),
        AssistantMessage(
            (
                Thinking("hm", "signature", "rs_1", provider="p"),
                Thinking("", "sealed", redacted=True, provider="p"),
                ToolCall("c1", "read", {}, invalid="{oops", state="s"),
                ToolCall("c2", "read", {}, state='{"looks":"like"}'),
                ToolCall("c3", "read", {}, state="providerMeta:{"),
            ),
            AT,
            "p",
            "m",
            shown="",
        ),
        ToolMessage(
            (
                ToolResult("c1", "read", (Text("no"), Image("image/png", PNG)), is_error=True),
                ToolResult("c2", "read", ()),
                ToolResult("c3", "read", ()),
            ),
            LATER,
        ),
    )
    assert back(sent(history)) == history


def test_what_a_provider_keeps_with_a_call_is_given_back_to_it_as_it_was() -> None:
    meta = {"thoughtSignature": "x", "n": [1, None]}
    call = {"id": "c", "name": "n", "arguments": {}, "providerMeta": meta}
    history = back([{"content": [call], "model": "m"}])
    block = sent(history)[0]["content"][0]
    assert block["providerMeta"] == meta
    (again,) = back(sent(history))
    assert again == history[0]


def test_a_thinking_block_has_no_key_by_which_it_would_be_taken_for_a_call() -> None:
    block = sent((AssistantMessage((Thinking("hm", "s", "rs_1"),), AT, "p"),))[0]["content"][0]
    assert not {"id", "name"} & block.keys()


def test_an_assistant_message_always_has_a_model_or_a_provider() -> None:
    (message,) = sent((AssistantMessage((Text("x"),), AT),))
    assert message["provider"] == "hilt" and message["model"] == ""
    assert back([message]) == (AssistantMessage((Text("x"),), AT),)
    assert sent((AssistantMessage((), AT, model="m"),))[0]["provider"] == ""


def test_a_users_text_is_a_plain_string_and_only_images_are_blocks() -> None:
    (message,) = sent((UserMessage((Text("a"), Image("image/png", PNG), Text("b")), AT),))
    assert message["content"] == "a\nb"
    assert message["blocks"] == [{"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}]
    assert "blocks" not in sent((UserMessage((Text("a"),), AT),))[0]


def test_every_result_of_a_turn_is_a_message_and_they_come_back_together() -> None:
    results = tuple(ToolResult(f"c{n}", "t", (Text(str(n)),)) for n in range(3))
    history = (ToolMessage(results, AT), UserMessage((Text("x"),), AT), ToolMessage(results[:1], LATER))
    values = sent(history)
    assert [value.get("toolCallId") for value in values] == ["c0", "c1", "c2", None, "c0"]
    assert back(values) == history


@pytest.mark.parametrize(
    ("stop", "said"),
    [("end", "stop"), ("tool_use", "toolUse"), ("length", "length"), ("error", "error"), ("aborted", "aborted")],
)
def test_why_it_stopped_has_the_names_of_the_dialect(stop: StopReason, said: str) -> None:
    message = AssistantMessage((Text("x"),), AT, "p", stop=stop, error="e" if stop == "error" else "")
    assert sent((message,))[0]["stopReason"] == said
    assert back(sent((message,))) == (message,)


def test_a_reason_that_is_not_given_follows_from_the_content() -> None:
    call = {"id": "c", "name": "n"}
    stops = [back([{"model": "m", "stopReason": said, "content": [call]}])[0] for said in ("", "whatever")]
    assert [message.stop for message in stops if isinstance(message, AssistantMessage)] == ["tool_use", "tool_use"]
    (message,) = back([{"model": "m", "content": None}])
    assert isinstance(message, AssistantMessage) and message.stop == "end" and message.content == ()


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (AT, "2026-05-01T10:00:00Z"),
        (AT.replace(microsecond=120000), "2026-05-01T10:00:00.120000Z"),
        (AT.replace(tzinfo=None), "2026-05-01T10:00:00Z"),
        (AT.astimezone(timezone(timedelta(hours=5))), "2026-05-01T10:00:00Z"),
    ],
)
def test_a_timestamp_is_rfc_3339_in_utc(time: datetime, text: str) -> None:
    assert timestamp(time) == text
    assert sent((UserMessage((), time),))[0]["timestamp"] == text


def test_timestamps_of_go_programs_are_read() -> None:
    (message,) = back([{"content": "x", "timestamp": "2026-11-15T19:22:29.079965032+01:00"}])
    assert message.time == datetime(2026, 11, 15, 18, 22, 29, 79965, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", None, "0001-01-01T00:00:00Z", "yesterday"])
def test_a_message_that_does_not_say_when_is_of_now(text: str | None) -> None:
    before = now()
    (message,) = back([{"content": "x", "timestamp": text}])
    assert before <= message.time <= now()
    assert back([{"content": "x"}])[0].time >= before


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (7, "it must be an object"),
        ({"note": 1}, "it has neither `role` nor `content`"),
        ({"type": "user", "data": "hello"}, "it has neither `role` nor `content`"),
        ({"role": "system", "content": "x"}, "'system' is no kind of message"),
        ({"type": "other", "data": {"content": "x"}}, "'other' is no kind of message"),
        ({"role": "user", "content": 7}, "`content` must be a text or a list of blocks"),
        ({"role": "user", "content": "x", "blocks": [{"text": 7}]}, "`blocks[0]`: `text`"),
        ({"role": "tool_result", "content": []}, "`toolCallId` is missing"),
        ({"role": "assistant", "content": [{"id": "c"}]}, "has no `name`"),
        ({"role": "assistant", "content": [{"id": "c", "name": "n", "arguments": "{}"}]}, "must be an object"),
        ({"role": "assistant", "content": [{"mimeType": "image/png"}]}, "cannot have an image"),
        ({"role": "user", "content": [{}] * 5000}, "5,000 blocks"),
        (
            {"role": "assistant", "content": [{"name": "n", "providerMeta": {"hilt": {"state": 7}}}]},
            "`providerMeta.hilt`",
        ),
    ],
)
def test_what_cannot_be_read_is_reported_and_the_rest_is_kept(value: Any, reason: str) -> None:
    messages, problems = read_messages([{"content": "a"}, value, {"content": "b"}])
    assert [message.content for message in messages if isinstance(message, UserMessage)] == [(Text("a"),), (Text("b"),)]
    assert len(problems) == 1
    assert problems[0].startswith("message 2: ") and reason in problems[0]


def test_an_image_that_cannot_be_shown_becomes_a_text_that_says_so() -> None:
    (message,) = back([{"content": "x", "blocks": [{"data": "!", "mimeType": "image/png"}]}])
    assert isinstance(message, UserMessage)
    assert isinstance(text := message.content[1], Text) and "undecodable" in text.text


def test_messages_that_come_back_unchanged_get_back_what_could_not_be_sent() -> None:
    image = Image("image/png", PNG)
    user = UserMessage((Text("a"), image, Text("b")), AT)
    results = ToolMessage((ToolResult("c", "edit", (Text("ok"),), details={"added": 3}), ToolResult("d", "x", ())), AT)
    values = sent((user, results))
    assert read_messages(values, (user, results)) == ((user, results), ())
    for value in values:
        del value["timestamp"]  # Go programs that know only the reference's keys leave out more than that
    assert [getattr(message, "content", None) for message in read_messages(values, (user, results))[0]] == [
        user.content,
        None,
    ]
    values[0]["content"], values[1]["content"] = "other", [{"text": "other"}]
    (changed, edited), _ = read_messages(values, (user, results))
    assert isinstance(changed, UserMessage) and changed.content == (Text("other"), image)
    assert isinstance(edited, ToolMessage) and edited.results[0] == ToolResult("c", "edit", (Text("other"),))


def test_a_conversation_beyond_measure_is_read_in_part_and_that_is_said() -> None:
    messages, problems = read_messages([{"content": "x"}] * 10_002)
    assert len(messages) == 10_000 and len(problems) == 1 and "message 10001" in problems[0]
    many = {"role": "user", "content": [{"text": "x"}] * 4000}
    messages, problems = read_messages([many] * 20)
    assert len(messages) == 13 and len(problems) == 1
