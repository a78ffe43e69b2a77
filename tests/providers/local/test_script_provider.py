"""`script`: a file of answers, checked before it plays and exact while it does."""

import asyncio
import contextlib
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hilt.errors import (
    AuthError,
    BadRequest,
    ConfigError,
    ContextOverflow,
    ProviderError,
    RateLimited,
    Unavailable,
)
from hilt.model.content import Text, Thinking, ToolCall
from hilt.model.conversation import AssistantMessage, Message, ToolMessage, ToolResult, Usage, now, user_text
from hilt.model.models import ModelInfo
from hilt.model.stream import (
    Completed,
    ModelRequest,
    StreamItem,
    TextDelta,
    ThinkingDelta,
    ToolUseArgs,
    ToolUseEnd,
    ToolUseStart,
)
from hilt.providers.script import ENDED, Script


def written(folder: Path, *lines: object) -> Script:
    path = folder / "answers.jsonl"
    path.write_bytes(
        b"\n".join(line.encode() if isinstance(line, str) else msgspec.json.encode(line) for line in lines)
    )
    return Script(path)


def asked(*messages: Message) -> ModelRequest:
    return ModelRequest(ModelInfo("script", "script"), "", messages or (user_text("hello"),))


async def played(script: Script, *messages: Message) -> list[StreamItem]:
    return [item async for item in script.stream(asked(*messages))]


async def read_into(seen: list[StreamItem], script: Script) -> None:
    """For streams that do not end well: what came before is in the list."""
    async for item in script.stream(asked()):
        seen.append(item)  # noqa: PERF401


async def completed(script: Script, *messages: Message) -> Completed:
    last = (await played(script, *messages))[-1]
    assert isinstance(last, Completed)
    return last


def text(words: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": words}]}


def call(name: str = "bash", **more: object) -> dict[str, object]:
    return {"content": [{"type": "tool_call", "name": name, **more}]}


async def test_each_call_takes_the_next_line_and_past_the_end_it_says_so(tmp_path: Path) -> None:
    script = written(tmp_path, text("one"), text("two"))
    assert [(await completed(script)).content for _ in range(4)] == [
        (Text("one"),), (Text("two"),), (Text(ENDED),), (Text(ENDED),),
    ]  # fmt: skip


async def test_blank_lines_and_comments_are_skipped(tmp_path: Path) -> None:
    script = written(tmp_path, "\ufeff# a comment", "", "   ", "// another", text("first"), "\r")
    assert (await completed(script)).content == (Text("first"),)
    assert (await completed(script)).content == (Text(ENDED),)


async def test_text_comes_in_several_deltas_that_make_up_the_whole(tmp_path: Path) -> None:
    words = "several words,\nand a  second line "
    items = await played(written(tmp_path, text(words)))
    pieces = [item.delta for item in items if isinstance(item, TextDelta)]
    assert len(pieces) > 3 and "".join(pieces) == words
    assert isinstance(items[-1], Completed) and items[-1].stop == "end"


async def test_a_huge_text_comes_in_a_bounded_number_of_deltas(tmp_path: Path) -> None:
    items = await played(written(tmp_path, text("a b " * 50_000)))
    assert 100 < len(items) < 300


async def test_thinking_and_tool_calls_are_streamed_and_stop_the_turn_for_the_tool(tmp_path: Path) -> None:
    args = {"command": "ls -la", "n": [1, {"deep": None}]}
    line = {"content": [{"type": "thinking", "text": "hm"}, {"type": "tool_call", "name": "bash", "args": args}]}
    items = await played(written(tmp_path, line))
    done = items[-1]
    assert isinstance(done, Completed) and done.stop == "tool_use"
    thinking, tool = done.content
    assert thinking == Thinking("hm", provider="script")
    assert isinstance(tool, ToolCall) and tool.args == args and tool.id
    assert items[0] == ThinkingDelta("hm")
    assert items[1] == ToolUseStart(tool.id, "bash") and items[-2] == ToolUseEnd(tool.id)
    assert msgspec.json.decode("".join(item.delta for item in items if isinstance(item, ToolUseArgs))) == args


async def test_call_ids_are_unique_within_a_turn_and_within_the_conversation(tmp_path: Path) -> None:
    block = {"type": "tool_call", "name": "a", "id": "same"}
    script = written(tmp_path, {"content": [block, block, {"type": "tool_call", "name": "b"}]})
    earlier = AssistantMessage((ToolCall("same", "a", {}), ToolCall("call_1_3", "b", {})), now())
    done = await completed(script, user_text("x"), earlier)
    ids = [block.id for block in done.content if isinstance(block, ToolCall)]
    assert len({*ids, "same", "call_1_3"}) == 5


async def test_usage_and_stop_are_taken_from_the_line(tmp_path: Path) -> None:
    script = written(tmp_path, text("x") | {"usage": {"input": 7, "output": 3}, "stop": "length"}, text("y"))
    first, second = await completed(script), await completed(script)
    assert (first.usage, first.stop) == (Usage(input=7, output=3), "length")
    assert (second.usage, second.stop) == (Usage(), "end")


async def test_an_error_line_fails_the_turn_with_exactly_its_text_and_is_used_up(tmp_path: Path) -> None:
    script = written(tmp_path, {"error": "the model is on strike"}, text("back"))
    with pytest.raises(ProviderError) as caught:
        await played(script)
    assert str(caught.value) == "the model is on strike" and type(caught.value) is ProviderError
    assert (await completed(script)).content == (Text("back"),)


async def test_an_error_after_content_comes_after_its_deltas(tmp_path: Path) -> None:
    script = written(tmp_path, text("half an") | {"error": {"status": 503}})
    seen: list[StreamItem] = []
    with pytest.raises(Unavailable):
        await read_into(seen, script)
    assert seen == [TextDelta("half "), TextDelta("an")]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequest), (401, AuthError), (403, AuthError), (404, BadRequest), (408, Unavailable),
        (413, ContextOverflow), (418, ProviderError), (422, BadRequest), (429, RateLimited),
        (500, Unavailable), (503, Unavailable), (529, Unavailable),
    ],
)  # fmt: skip
async def test_a_status_becomes_the_error_an_api_would_cause(
    tmp_path: Path, status: int, kind: type[ProviderError]
) -> None:
    script = written(tmp_path, {"error": {"status": status, "message": "no", "retry_after": 1.5}})
    with pytest.raises(kind, match=r"^no$") as caught:
        await played(script)
    assert type(caught.value) is kind
    if isinstance(caught.value, RateLimited | Unavailable):
        assert caught.value.retry_after == 1.5


async def test_a_delay_is_waited_for_and_can_be_cancelled(tmp_path: Path) -> None:
    script = written(tmp_path, text("late") | {"delay_ms": 60_000}, text("slow") | {"delay_ms": 80})
    started = asyncio.get_running_loop().time()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await played(script)
    assert asyncio.get_running_loop().time() - started < 5
    started = asyncio.get_running_loop().time()
    assert (await completed(script)).content == (Text("slow"),)
    assert asyncio.get_running_loop().time() - started >= 0.075


async def test_a_stream_without_delay_still_yields_to_its_canceller(tmp_path: Path) -> None:
    stream = written(tmp_path, text("word " * 150)).stream(asked())
    seen: list[StreamItem] = []

    async def read_until_cancelled() -> None:
        async with asyncio.timeout(None) as scope:
            async for item in stream:
                seen.append(item)
                scope.reschedule(asyncio.get_running_loop().time())

    with pytest.raises(TimeoutError):
        await read_until_cancelled()
    assert 0 < len(seen) < 100


def results(*texts: str) -> ToolMessage:
    return ToolMessage(tuple(ToolResult(f"c{n}", "t", (Text(each),)) for n, each in enumerate(texts)), now())


@pytest.mark.parametrize(
    ("expect", "newest"),
    [
        ({"contains": "lo wor"}, user_text("hello world")),
        ({"role": "user"}, user_text("anything")),
        ({"contains": "second", "role": "tool"}, results("first", "the second")),
        ({"contains": "said", "role": "assistant"}, AssistantMessage((Text("I said"),), now())),
        ({}, user_text("")),
    ],
)
async def test_a_met_expectation_lets_the_line_play(tmp_path: Path, expect: object, newest: Message) -> None:
    script = written(tmp_path, text("fine") | {"expect": expect})
    assert (await completed(script, user_text("older"), newest)).content == (Text("fine"),)


@pytest.mark.parametrize(
    ("expect", "newest"),
    [
        ({"contains": "older"}, user_text("newest")),
        ({"role": "tool"}, user_text("newest")),
        ({"contains": "newest", "role": "user"}, results("newest")),
    ],
)
async def test_an_unmet_expectation_fails_the_turn_and_says_what_was_seen(
    tmp_path: Path, expect: dict[str, str], newest: Message
) -> None:
    script = written(tmp_path, "# the line below is line 2", text("never") | {"expect": expect})
    with pytest.raises(ProviderError) as caught:
        await played(script, user_text("older"), newest)
    message = str(caught.value)
    assert "line 2" in message and "newest" in message
    assert all(wanted in message for wanted in expect.values())


async def test_what_was_seen_is_shown_only_in_part_when_it_is_long(tmp_path: Path) -> None:
    script = written(tmp_path, {"expect": {"contains": "z"}}, {"expect": {"contains": "z"}})
    with pytest.raises(ProviderError) as caught:
        await played(script, user_text("a" * 100_000))
    assert len(str(caught.value)) < 1000
    with pytest.raises(ProviderError, match="nobody"):
        _ = [item async for item in script.stream(ModelRequest(ModelInfo("script", "script"), "", ()))]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"content": [}', "malformed"),
        ('{"contnet": []}', "contnet"),
        ('{"content": [{"type": "text", "text": "x", "colour": 1}]}', "colour"),
        ('{"content": [{"type": "picture"}]}', "picture"),
        ('{"content": [{"type": "tool_call", "name": "x", "args": [1]}]}', "args"),
        ('{"content": [{"type": "tool_call", "name": ""}]}', "name"),
        ('{"usage": {"input": -1}}', "usage.input"),
        ('{"usage": {"tokens": 1}}', "tokens"),
        ('{"delay_ms": "soon"}', "delay_ms"),
        ('{"error": ""}', "error"),
        ('{"error": {"status": 200}}', "status"),
        ('{"expect": {"role": "robot"}}', "user|assistant|tool"),
        ('{"stop": "now"}', "now"),
        ("[]", "object"),
        ('"\\ud800"', "line 3"),
        ('{"content": [{"type": "tool_call", "name": "x", "args": {"a": ' + "[" * 100_000, "line 3"),
    ],
)
def test_a_bad_line_is_reported_with_file_number_and_reason(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        written(tmp_path, "# comment", text("fine"), line)
    assert "answers.jsonl, line 3" in str(caught.value) and told in str(caught.value)
    assert "one turn" in caught.value.hint


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "missing.jsonl", tmp_path, tmp_path / "pipe", Path("nul\0byte")):
        with pytest.raises(ConfigError) as caught:
            Script(path)
        assert str(path) in str(caught.value) and "--script" in caught.value.hint


def test_a_file_beyond_the_limit_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    path.touch()
    os.truncate(path, 65 * 1024 * 1024)
    with pytest.raises(ConfigError, match="larger than 64 MiB"):
        Script(path)


words = st.text('ab {}"\\é\n', max_size=6)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
keys = st.sampled_from(["content", "usage", "delay_ms", "error", "expect", "stop", "type", "text", "name", "args", "x"])
nearly_right = st.dictionaries(keys, json_values | st.lists(st.dictionaries(keys, json_values, max_size=3), max_size=2))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.binary(max_size=40) | nearly_right.map(msgspec.json.encode), max_size=3))
def test_whatever_a_file_holds_it_is_a_script_or_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.jsonl"
    path.write_bytes(b"\n".join(lines))
    with contextlib.suppress(ConfigError):
        Script(path)
