"""`demo`: says what it is, understands a few requests, and never calls what it was not offered."""

import asyncio
import socket
import time
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hilt.model.content import Args, Text, ToolCall, text_of
from hilt.model.conversation import AssistantMessage, Message, ToolMessage, ToolResult, UserMessage, now, user_text
from hilt.model.models import ModelInfo
from hilt.model.stream import Completed, ModelRequest, TextDelta, ToolSpec
from hilt.providers.demo import Demo, answer

MODEL = ModelInfo("demo", "demo")
STRING = {"type": "string"}


def tool(name: str, required: list[str], /, **properties: dict[str, Any]) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return ToolSpec(name, "", schema)


BUILT_IN = (
    tool("read", ["path"], path=STRING, offset={"type": "integer"}, limit={"type": "integer"}),
    tool("write", ["path", "content"], path=STRING, content=STRING),
    tool("edit", ["path", "edits"], path=STRING, edits={"type": "array", "items": {"type": "object"}}),
    tool("bash", ["command"], command=STRING, timeout={"type": "integer"}),
)
EXTENSION = (
    tool("weather", ["city"], city=STRING, units={"enum": ["metric", "imperial"]}),
    tool("add", ["a", "b"], a={"type": "integer"}, b={"type": "number"}),
    tool("word_count", ["text"], text=STRING),
    tool("greet", ["name", "language"], name=STRING, language=STRING),
    tool("deploy", ["env", "force"], env={"enum": ["prod", "staging"]}, force={"type": "boolean"}),
    tool("echo", ["text"], text=STRING, times={"type": "integer"}),
    tool("label", ["tags"], tags={"type": "array", "items": STRING}),
    tool("total", ["values"], values={"type": "array", "items": {"type": "number"}}),
    tool("todo_list", []),
)
ALL = BUILT_IN + EXTENSION


def asked(*messages: Message | str, tools: tuple[ToolSpec, ...] = ALL, system: str = "") -> ModelRequest:
    return ModelRequest(
        MODEL, system, tuple(user_text(each) if isinstance(each, str) else each for each in messages), tools
    )


def called(text: str, tools: tuple[ToolSpec, ...] = ALL) -> tuple[str, Args] | None:
    calls = [block for block in answer(asked(text, tools=tools)) if isinstance(block, ToolCall)]
    assert len(calls) <= 1
    return (calls[0].name, calls[0].args) if calls else None


def said(*messages: Message | str, tools: tuple[ToolSpec, ...] = ALL, system: str = "") -> str:
    content = answer(asked(*messages, tools=tools, system=system))
    assert not any(isinstance(block, ToolCall) for block in content)
    return text_of(content)


def after(text: str, *results: str | None) -> list[Message]:
    """The conversation in which the demo's calls for this message came back so; None is a refusal."""
    messages: list[Message] = [user_text(text)]
    for result in results:
        content = answer(asked(*messages))
        call = next(block for block in content if isinstance(block, ToolCall))
        messages.append(AssistantMessage(content, now()))
        shown = (Text("permission denied by the user" if result is None else result),)
        messages.append(ToolMessage((ToolResult(call.id, call.name, shown, is_error=result is None),), now()))
    return messages


@pytest.mark.parametrize(
    ("text", "name", "args"),
    [
        ("list the files", "bash", {"command": "ls -la"}),
        ("What files are in this directory?", "bash", {"command": "ls -la"}),
        ("list the files in src/my app", "bash", {"command": "ls -la src/my"}),
        ("list the files in `my app`", "bash", {"command": "ls -la 'my app'"}),
        ("list the files in -la;rm", "bash", {"command": "ls -la './-la;rm'"}),
        ("read README.md", "read", {"path": "README.md"}),
        ("please read the file src/app.py.", "read", {"path": "src/app.py"}),
        ("read Makefile", "read", {"path": "Makefile"}),
        ("what is in x.py?", "read", {"path": "x.py"}),
        ("what's in `odd name`", "read", {"path": "odd name"}),
        ("show me the contents of setup.cfg", "read", {"path": "setup.cfg"}),
        ("run `ls -la | head -1`", "bash", {"command": "ls -la | head -1"}),
        ('run "make test"', "bash", {"command": "make test"}),
        ('run "echo then there"', "bash", {"command": "echo then there"}),
        ("`date`", "bash", {"command": "date"}),
        ("run `rm x` then list the files", "bash", {"command": "rm x"}),
        ("read .gitignore", "read", {"path": ".gitignore"}),
        ('write "hi there" to notes.txt', "write", {"path": "notes.txt", "content": "hi there"}),
    ],
)
def test_it_lists_reads_writes_and_runs(text: str, name: str, args: Args) -> None:
    assert called(text) == (name, args)


@pytest.mark.parametrize(
    ("text", "name", "args"),
    [
        ("what is the weather in New York?", "weather", {"city": "New York"}),
        ("weather Paris", "weather", {"city": "Paris"}),
        ("the weather for city=Oslo, units: imperial", "weather", {"city": "Oslo", "units": "imperial"}),
        ("city: Oslo", "weather", {"city": "Oslo"}),
        ("tell me about the city Rome", "weather", {"city": "Rome"}),
        ("run the `weather` tool for Rome", "weather", {"city": "Rome"}),
        ("add 2 and 3", "add", {"a": 2, "b": 3}),
        ("add b=-2.5 a=7", "add", {"a": 7, "b": -2.5}),
        ('word count of "a b c"', "word_count", {"text": "a b c"}),
        ("use WORD_COUNT on 'one two'", "word_count", {"text": "one two"}),
        ("greet Ada in French", "greet", {"name": "Ada", "language": "French"}),
        ('greet language=fr name="Ada Lovelace"', "greet", {"name": "Ada Lovelace", "language": "fr"}),
        ('run greet with name "Ada" and language "de"', "greet", {"name": "Ada", "language": "de"}),
        ("deploy to prod", "deploy", {"env": "prod", "force": False}),
        ("deploy to staging with force", "deploy", {"env": "staging", "force": True}),
        ('deploy {"env": "prod", "force": true}', "deploy", {"env": "prod", "force": True}),
        ("echo hello world", "echo", {"text": "hello world"}),
        ("echo it's fine", "echo", {"text": "it's fine"}),
        ('echo "again" times 3', "echo", {"text": "again", "times": 3}),
        ('label it with "red" and "blue"', "label", {"tags": ["red", "blue"]}),
        ("label tags=red,blue", "label", {"tags": ["red", "blue"]}),
        ("total of 1, 2.5 and 3", "total", {"values": [1, 2.5, 3]}),
        ("show the todo list", "todo_list", {}),
    ],
)
def test_a_named_tool_or_argument_is_called_with_what_the_message_gives(text: str, name: str, args: Args) -> None:
    assert called(text) == (name, args)


def test_a_schema_made_of_references_and_alternatives_is_understood() -> None:
    schema = {
        "type": "object",
        "properties": {"size": {"$ref": "#/$defs/Size"}, "count": {"anyOf": [{"type": "null"}, {"type": "integer"}]}},
        "required": ["size", "count"],
        "$defs": {"Size": {"enum": ["small", "large"], "type": "string"}},
    }
    assert called("order 3 large", (ToolSpec("order", "", schema),)) == ("order", {"size": "large", "count": 3})


def test_a_schema_that_refers_to_the_network_is_never_fetched_and_never_called() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        elsewhere = {"$ref": f"http://127.0.0.1:{listener.getsockname()[1]}/schema"}
        schema = {"type": "object", "properties": {"a": elsewhere, "b": STRING}, "required": ["b"]}
        assert called("use remote b=1", (ToolSpec("remote", "", schema),)) is None
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_schema_that_refers_to_itself_is_given_up() -> None:
    endless = {"properties": {"a": {"$ref": "#/properties/a"}}, "required": ["a"], "type": "object"}
    called("use endless a=1", (ToolSpec("endless", "", endless),))


def test_a_number_too_long_to_be_one_is_not_taken_for_one() -> None:
    assert called(f"add {'9' * 5000} and 2") is None


def test_arguments_that_cannot_be_found_are_asked_for_by_name() -> None:
    assert "edits=…" in said("edit foo.py")
    assert "`add a=… b=…`" in said("add something")


@pytest.mark.parametrize("text", ["hello", "what can you do?", "show mercy", "use the path wisely", "", "run away"])
def test_anything_else_gets_a_sentence_about_what_it_can_do(text: str) -> None:
    reply = said(text)
    assert "read README.md" in reply and "backticks" in reply and "hilt login" in reply


def test_only_offered_tools_are_called() -> None:
    only_echo = (tool("echo", ["text"], text=STRING),)
    for text in ("list the files", "read a.txt", "run `ls`"):
        assert called(text, only_echo) is None
        assert "no tool" in said(text, tools=only_echo)


def test_the_first_reply_of_a_conversation_says_that_it_is_not_a_language_model() -> None:
    opening = answer(asked("read a.txt"))
    assert "not a language model" in text_of(opening)
    assert "not a language model" in said(*after("read a.txt", "text of a"))
    assert "not a language model" in said("hello")
    later = [*after("read a.txt", "text"), AssistantMessage((Text("done"),), now()), user_text("hello")]
    assert "not a language model" not in said(*later)


def test_requests_joined_by_then_are_called_one_after_the_other() -> None:
    text = "list the files, then read a.txt. And then run `wc a.txt`"
    calls = [
        call
        for message in after(text, "a.txt", "content", "1 2 3")
        if isinstance(message, AssistantMessage)
        for call in message.content
        if isinstance(call, ToolCall)
    ]
    assert [(call.name, call.args) for call in calls] == [
        ("bash", {"command": "ls -la"}),
        ("read", {"path": "a.txt"}),
        ("bash", {"command": "wc a.txt"}),
    ]
    assert len({call.id for call in calls}) == 3
    reply = said(*after(text, "listing", "content", "1 2 3"))
    assert all(result in reply for result in ("listing", "content", "1 2 3"))


def test_a_result_is_answered_with_its_beginning() -> None:
    reply = said(*after("read a.txt", "first line\n" + "more\n" * 5000 + "the end"))
    assert "first line" in reply and "the end" not in reply and "more characters" in reply
    assert len(reply) < 2000


def test_a_refused_call_is_reported_with_its_reason_and_the_rest_is_left() -> None:
    reply = said(*after("run `rm x` then list the files", None))
    assert "failed or was refused" in reply and "permission denied by the user" in reply
    assert "not called" in reply


def test_the_newest_message_counts_and_a_summary_does_not() -> None:
    messages = [*after("read a.txt", "text of a"), AssistantMessage((Text("done"),), now()), user_text("read b.txt")]
    content = answer(asked(*messages))
    assert [block.args for block in content if isinstance(block, ToolCall)] == [{"path": "b.txt"}]
    summary = UserMessage((Text("read old.txt"),), now(), summary=True)
    assert answer(asked(summary, user_text("read new.txt")))[-1] == ToolCall("demo_1", "read", {"path": "new.txt"})
    assert not any(isinstance(block, ToolCall) for block in answer(asked(summary)))


def test_a_request_for_a_summary_gets_the_same_one_every_time() -> None:
    record = "--- user ---\nbuild the thing\n" + "\n".join(f"line {n}" for n in range(500)) + "\nit works now"
    first = said(f"{record}\n\nWrite the summary.", tools=())
    assert first == said(f"{record}\n\nWrite the summary.", tools=())
    assert "build the thing" in first and "it works now" in first and len(first) < 3000
    assert "backticks" in said("hello", tools=())


@pytest.mark.parametrize("noise", [" ", "“", "list ", "city is ", "then ", ". ", "'a ", "{", "/", "In A"])
def test_a_message_of_any_length_is_answered_at_once(noise: str) -> None:
    started = time.process_time()
    answer(asked(noise * 500_000))
    assert time.process_time() - started < 2


async def test_it_streams_words_and_counts_characters_by_four() -> None:
    items = [item async for item in Demo().stream(asked("hello" * 8, system="s" * 40))]
    done = items[-1]
    assert isinstance(done, Completed) and done.stop == "end"
    pieces = [item.delta for item in items if isinstance(item, TextDelta)]
    assert "".join(pieces) == text_of(done.content) and len(pieces) > 10
    assert (done.usage.input, done.usage.output) == (20, len(text_of(done.content)) // 4)


async def test_it_can_be_cancelled_between_words() -> None:
    seen = 0

    async def read_until_cancelled() -> None:
        nonlocal seen
        async with asyncio.timeout(None) as scope:
            async for _ in Demo().stream(asked("hello")):
                seen += 1
                scope.reschedule(asyncio.get_running_loop().time())

    with pytest.raises(TimeoutError):
        await read_until_cancelled()
    assert 0 < seen < 20


async def test_a_call_stops_for_the_tool() -> None:
    items = [item async for item in Demo().stream(asked("read a.txt"))]
    assert isinstance(items[-1], Completed) and items[-1].stop == "tool_use"


words = st.sampled_from(
    [
        "read", "list", "run", "then", "files", "in", "for", "of", "the", "city", "size", "count", "`ls`",
        '"two words"', "'it'", "it's", "3", "-4.5", "9e9", "large", "=", ":", ",", ".", "{", "}", '{"size":1}',
        "alpha", "beta", "alpha_beta", "size=3", "count:large", "yes", "no", "/etc/x", "a.txt", "\ud800", "é",
        "漢字", "-", "",
    ]
)  # fmt: skip
messages = st.lists(words | st.text(max_size=5), max_size=12).map(" ".join)
names = st.sampled_from(["city", "size", "count", "alpha_beta", "path", "x"])
simple = st.sampled_from(
    [
        {"type": "string"}, {"type": "string", "minLength": 4}, {"type": "string", "pattern": "^[a-z]+$"},
        {"type": "integer"}, {"type": "integer", "minimum": 3}, {"type": "number", "maximum": 0},
        {"type": "boolean"}, {"enum": ["large", 3, None]}, {"const": "alpha"}, {"type": ["null", "string"]},
        {"type": "array", "items": {"type": "integer"}}, {"type": "object"}, {"anyOf": [{"type": "integer"}]},
        {"$ref": "#/$defs/x"}, {"$ref": "http://127.0.0.1:1/"}, {"type": "nonsense"}, {}, True, 7, None,
    ]
)  # fmt: skip
schemas = st.fixed_dictionaries(
    {"type": st.sampled_from(["object", "string"])},
    optional={
        "properties": st.dictionaries(names, simple, max_size=3) | st.none(),
        "required": st.lists(names, max_size=3, unique=True) | st.just("size"),
        "additionalProperties": st.booleans(),
        "$defs": st.just({"x": {"$ref": "#/$defs/x"}}),
    },
)
tools = st.lists(
    st.builds(ToolSpec, st.sampled_from(["alpha", "alpha_beta", "read", "bash", "beta", ""]), st.just(""), schemas),
    max_size=3,
    unique_by=lambda spec: spec.name,
).map(tuple)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=200)
@given(messages, tools)
def test_whatever_is_said_only_offered_tools_are_called_and_with_valid_arguments(
    text: str, offered: tuple[ToolSpec, ...]
) -> None:
    content = answer(asked(text, tools=offered))
    assert content
    text_of(content).encode()  # what cannot be encoded cannot be shown
    for call in (block for block in content if isinstance(block, ToolCall)):
        (schema,) = [spec.schema for spec in offered if spec.name == call.name]
        assert jsonschema_rs.is_valid(schema, call.args)
