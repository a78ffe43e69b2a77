"""Whatever arrives is read as something, and what was written is what is read."""

import json
from datetime import UTC, datetime
from typing import Any, get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw, Struct, UnsetType, structs

from hilt.errors import FrameError
from hilt.model.content import Image, Text, Thinking, ToolCall
from hilt.model.conversation import AssistantMessage, Message, ToolMessage, ToolResult, Usage, UserMessage
from hilt.wire.jsonrpc import Fault, Malformed, Notice, Reply, Request, decode, fault, notice, peek, reply, request
from hilt.wire.jsonrpc_messages import bare, read_messages, wrapped
from hilt.wire.jsonrpc_methods import METHODS
from hilt.wire.jsonrpc_provider import completed
from hilt.wire.jsonrpc_reading import read, value_of
from hilt.wire.jsonrpc_verdicts import before_verdict
from support.properties import patient
from wire.jsonrpc_examples import EXAMPLES, SAMPLES

INTEGERS = st.integers(-(2**63), 2**63 - 1)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | INTEGERS | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(WORDS, JSON, max_size=3)
READ = (Request, Notice, Reply, Malformed)
LINES = [line.encode() for line in SAMPLES]
SHAPES = sorted(
    {shape for method in METHODS.values() for shape in (method.params, method.result) if shape is not None},
    key=lambda shape: shape.__name__,
)


# The envelope


@patient
@given(INTEGERS, WORDS.filter(bool), JSON)
def test_what_is_written_is_what_is_read(id_: int, method: str, value: Any) -> None:
    asked = decode(request(id_, method, {"value": value}))
    assert isinstance(asked, Request)
    assert (asked.id, asked.method, value_of(asked.params)) == (id_, method, {"value": value})
    told = decode(notice(method, {"value": value}))
    assert isinstance(told, Notice) and (told.method, value_of(told.params)) == (method, {"value": value})
    answer = decode(reply(id_, value))
    assert isinstance(answer, Reply) and (answer.id, value_of(answer.result)) == (id_, value)


@patient
@given(INTEGERS, INTEGERS, WORDS)
def test_a_fault_arrives_as_it_was_sent(id_: int, code: int, message: str) -> None:
    assert decode(fault(id_, code, message)) == Reply(id_, UNSET, Fault(code, message))


@patient
@given(st.binary())
def test_any_bytes_are_read_as_something(line: bytes) -> None:
    assert isinstance(decode(line), READ)
    peek(line)


@patient
@given(st.sampled_from(LINES), st.data())
def test_a_damaged_line_is_read_as_something(line: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, len(line)))
    damaged = line[:start] + data.draw(st.binary(max_size=8)) + line[end:]
    assert isinstance(decode(damaged), READ)
    peek(damaged)


@patient
@given(st.dictionaries(st.sampled_from(["id", "ID", "method", "Method", "params", "result", "error"]) | WORDS, JSON))
def test_any_object_is_read_as_something(members: dict[str, Any]) -> None:
    assert isinstance(decode(json.dumps(members).encode()), READ)


@patient
@given(st.sampled_from(LINES), st.integers(0, 500))
def test_what_is_seen_of_a_cut_line_is_true(line: bytes, length: int) -> None:
    whole = decode(line)
    method, id_ = peek(line[:length])
    assert method in ("", getattr(whole, "method", ""))
    assert id_ in (None, getattr(whole, "id", None))


# Params and results


def values(annotation: Any) -> st.SearchStrategy[Any]:
    if annotation is Any:
        return JSON
    if annotation is UnsetType:
        return st.just(UNSET)
    if annotation is type(None):
        return st.none()
    if annotation is int:
        return INTEGERS
    if annotation is float:
        return NUMBERS
    if annotation is str:
        return WORDS
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return shaped_values(annotation)
    arguments = get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return values(arguments[0])
    if arguments and Ellipsis in arguments:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if annotation is dict or (arguments and arguments[0] is str and len(arguments) == 2 and "dict" in str(annotation)):
        return st.dictionaries(WORDS, values(arguments[1]), max_size=3)
    return st.one_of([values(argument) for argument in arguments]) if arguments else st.from_type(annotation)


def shaped_values(shape: type[Struct]) -> st.SearchStrategy[Any]:
    return st.builds(shape, **{info.name: values(info.type) for info in structs.fields(shape)})


@patient
@given(st.sampled_from(SHAPES).flatmap(shaped_values))
def test_every_value_of_every_method_is_read_as_it_was_written(value: Struct) -> None:
    assert read(Raw(msgspec.json.encode(value)), type(value)) == value


def recased(value: Any, annotation: Any, data: st.DataObject) -> Any:
    """The same with the keys that the type knows in another case, and an unknown one."""
    arguments = get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return recased(value, arguments[0], data)
    if isinstance(annotation, type) and issubclass(annotation, Struct) and isinstance(value, dict):
        known = {info.encode_name: info.type for info in structs.fields(annotation)}
        members = {}
        for key, item in value.items():
            spelt = "".join(letter.upper() if data.draw(st.booleans()) else letter.lower() for letter in key)
            members[spelt] = recased(item, known[key], data)
        return members | {"unknown-": None}
    if isinstance(value, list) and arguments and Ellipsis in arguments:
        return [recased(item, arguments[0], data) for item in value]
    options = [option for option in arguments if option not in (UnsetType, type(None))]
    return recased(value, options[0], data) if len(options) == 1 and Ellipsis not in arguments else value


@patient
@given(st.sampled_from(EXAMPLES), st.data())
def test_keys_in_any_case_are_read_as_the_exact_ones(example: Any, data: st.DataObject) -> None:
    method = METHODS[example.method]
    for shape, text in ((method.params, example.params), (method.result, example.result)):
        if shape is not None:
            odd = recased(json.loads(text), shape, data)
            assert read(Raw(json.dumps(odd).encode()), shape) == read(Raw(text.encode()), shape)


@patient
@given(st.sampled_from(SHAPES), st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_reading_anything_gives_a_value_or_says_what_is_wrong(shape: type[Struct], raw: bytes) -> None:
    try:
        value = read(Raw(raw), shape)
    except FrameError:
        return
    assert isinstance(value, shape)


# Messages

TIMES = st.integers(0, 2**32).map(lambda seconds: datetime.fromtimestamp(seconds / 8, UTC))
TEXTS = st.builds(Text, WORDS)
IMAGES = st.builds(Image, st.just("image/png"), st.binary(min_size=1, max_size=9))
CALLS = st.builds(ToolCall, WORDS.filter(bool), WORDS.filter(bool), OBJECTS, WORDS, WORDS)
THINKING = st.builds(Thinking, WORDS, WORDS, WORDS, st.booleans(), WORDS)
COUNTS = st.integers(0, 2**40)
# The text of a user's message is one string before its images; a provider called hilt stands for none.
USERS = st.builds(
    lambda text, images, *rest: UserMessage((Text(text), *images), *rest),
    WORDS.filter(bool),
    st.lists(IMAGES, max_size=2),
    TIMES,
    st.booleans(),
    WORDS,
)
ASSISTANTS = st.builds(
    AssistantMessage,
    st.lists(TEXTS | THINKING | CALLS, max_size=4).map(tuple),
    TIMES,
    WORDS.filter(lambda provider: provider != "hilt"),
    WORDS,
    st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, st.floats(0, 100)),
    st.sampled_from(["end", "tool_use", "length", "error", "aborted"]),
    WORDS,
    st.none() | WORDS,
)
RESULTS = st.builds(
    ToolResult, WORDS.filter(bool), WORDS, st.lists(TEXTS | IMAGES, max_size=3).map(tuple), st.booleans()
)
TOOLS = st.builds(ToolMessage, st.lists(RESULTS, min_size=1, max_size=3).map(tuple), TIMES)
CONVERSATIONS = st.lists(st.tuples(USERS, ASSISTANTS, TOOLS).flatmap(lambda turn: st.just(list(turn))), max_size=2).map(
    lambda turns: tuple(message for turn in turns for message in turn)
)


@patient
@given(CONVERSATIONS)
def test_a_conversation_comes_back_as_it_was_sent_and_no_message_lacks_what_others_know_it_by(
    messages: tuple[Message, ...],
) -> None:
    for form in (bare(messages), wrapped(messages)):
        assert read_messages(value_of(Raw(msgspec.json.encode(form)))) == (messages, ())
    for message in json.loads(msgspec.json.encode(bare(messages))):
        assert message["timestamp"]
        if message["role"] == "assistant":
            assert message["model"] or message["provider"]


MEMBERS = ("role", "content", "blocks", "type", "data", "toolCallId", "model", "hilt", "usage", "timestamp")


@patient
@given(st.lists(JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(MEMBERS, JSON)), max_size=3))
def test_any_messages_are_read_or_reported(items: list[Any]) -> None:
    messages, problems = read_messages(items)
    results = sum(len(message.results) if isinstance(message, ToolMessage) else 1 for message in messages)
    assert results + len(problems) == len(items)
    bare(messages)


@patient
@given(JSON | st.fixed_dictionaries({"message": st.fixed_dictionaries({"content": JSON})}), st.binary())
def test_any_answer_is_usable_or_refused(value: Any, damage: bytes) -> None:
    for raw in (Raw(json.dumps(value).encode()), Raw(damage)):
        try:
            completed(raw)
        except FrameError:
            pass
        try:
            before_verdict(raw, "gate", {})
        except FrameError:
            pass
