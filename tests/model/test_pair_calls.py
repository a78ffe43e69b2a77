"""Every call gets exactly one result and every result has a call, whatever a file or a crash left behind."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from hilt.model.content import Text, ToolCall
from hilt.model.conversation import (
    OUTCOME_UNKNOWN,
    AssistantMessage,
    Message,
    ToolMessage,
    ToolResult,
    UserMessage,
    pair_calls,
    tool_calls,
)
from hilt.model.models import ModelInfo
from hilt.model.stream import ModelRequest
from support.agent import check_pairs
from support.properties import patient

TIME = datetime(2026, 1, 1, tzinfo=UTC)
IDS = st.sampled_from(["a", "b", "c", "d"])
RESULT = st.builds(lambda id_, text: ToolResult(id_, "t", (Text(text),)), IDS, st.sampled_from(["x", "y"]))
USER = st.just(UserMessage((Text("hi"),), TIME))
ASSISTANT = st.lists(IDS, unique=True, max_size=3).map(
    lambda ids: AssistantMessage((Text("so"), *(ToolCall(id_, "t", {}) for id_ in ids)), TIME)
)
TOOLS = st.lists(RESULT, max_size=4).map(lambda results: ToolMessage(tuple(results), TIME))
MESSAGES = st.lists(st.one_of(USER, ASSISTANT, TOOLS), max_size=10)


def call(*ids: str) -> AssistantMessage:
    return AssistantMessage(tuple(ToolCall(id_, "t", {}) for id_ in ids), TIME)


def results(*ids: str) -> ToolMessage:
    return ToolMessage(tuple(ToolResult(id_, "t", (Text(f"of {id_}"),)) for id_ in ids), TIME)


@patient
@given(MESSAGES)
def test_the_answer_is_one_that_every_api_accepts(messages: list[Message]) -> None:
    check_pairs(ModelRequest(ModelInfo("m", "p"), "", tuple(pair_calls(messages))))


@patient
@given(MESSAGES)
def test_pairing_twice_changes_nothing_and_copies_nothing(messages: list[Message]) -> None:
    once = pair_calls(messages)
    twice = pair_calls(once)
    assert len(once) == len(twice)
    assert all(one is two for one, two in zip(once, twice, strict=True))


@patient
@given(MESSAGES)
def test_what_people_and_models_said_is_kept_as_it_was_and_in_order(messages: list[Message]) -> None:
    def spoken(all_: list[Message]) -> list[Message]:
        return [message for message in all_ if not isinstance(message, ToolMessage)]

    assert [id(message) for message in spoken(pair_calls(messages))] == [id(message) for message in spoken(messages)]


@patient
@given(MESSAGES)
def test_a_result_that_followed_its_call_is_never_lost(messages: list[Message]) -> None:
    paired = pair_calls(messages)
    position = 0
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        following = messages[index + 1] if index + 1 < len(messages) else None
        answer = paired[position + 1] if position + 1 < len(paired) else None
        calls = {one.id for one in tool_calls(message)}
        if isinstance(following, ToolMessage) and calls:
            assert isinstance(answer, ToolMessage)
            wanted = {result.call_id for result in following.results if result.call_id in calls}
            known = {result.call_id for result in answer.results if result.content != (Text(OUTCOME_UNKNOWN),)}
            assert wanted <= known
        position += 2 if calls else 1


def test_a_call_without_a_result_gets_one_that_says_its_outcome_is_unknown() -> None:
    first, answer, after = call("a", "b"), results("b"), UserMessage((Text("hi"),), TIME)
    paired = pair_calls([first, answer, after])
    assert [type(message) for message in paired] == [AssistantMessage, ToolMessage, UserMessage]
    assert isinstance(paired[1], ToolMessage)
    made, kept = paired[1].results
    assert (made.call_id, made.is_error, made.content) == ("a", True, (Text(OUTCOME_UNKNOWN),))
    assert kept is answer.results[0]


def test_results_in_several_messages_or_another_order_are_joined_in_the_order_of_the_calls() -> None:
    paired = pair_calls([call("a", "b", "c"), results("c"), results("b", "a")])
    assert isinstance(paired[1], ToolMessage)
    assert [result.call_id for result in paired[1].results] == ["a", "b", "c"]


def test_of_two_results_for_one_call_the_first_counts() -> None:
    first = results("a")
    paired = pair_calls([call("a"), first, ToolMessage((ToolResult("a", "t", (Text("again"),)),), TIME)])
    assert paired[1:] == [first]


def test_results_that_answer_nothing_are_left_out() -> None:
    user = UserMessage((Text("hi"),), TIME)
    assert pair_calls([results("a"), user, results("b"), call("c"), results("c", "z")]) == [
        user,
        call("c"),
        results("c"),
    ]
