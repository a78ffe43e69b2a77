"""What interceptors of the jsonrpc dialect are asked, and what their answers decide."""

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from hilt.errors import FrameError
from hilt.model.verdicts import Allow, Block, Interceptable, Question, ReplaceText, Rewrite, SystemPrompt, Verdict
from hilt.wire.jsonrpc import request
from hilt.wire.jsonrpc_verdicts import before_params, before_verdict, event_params, event_verdict


def raw(text: str) -> Raw:
    return Raw(text.encode())


def test_a_question_about_a_call_names_the_interceptor() -> None:
    question = Question("tool_call", tool_id="c", tool_name="add", tool_args={"a": 1}, origin="other")
    line = request(6, "interceptor/before", before_params("gate", question))
    assert json.loads(line)["params"] == {
        "name": "gate",
        "toolName": "add",
        "args": {"a": 1},
        "callId": "c",
        "origin": "other",
    }


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ('{"allow":true}', Allow()),
        ('{"allow":true,"args":null}', Allow()),
        ('{"allow":true,"args":{"a":1}}', Allow()),  # Go programs always send them back
        ('{"allow":true,"args":{"a":1.0}}', Allow()),
        ('{"allow":true,"args":{"a":2}}', Rewrite({"a": 2})),
        ('{"Allow":true,"ARGS":{}}', Rewrite({})),
        ('{"allow":false,"args":{"a":2},"preview":"too dangerous"}', Block("too dangerous")),
        ('{"allow":false}', Block("blocked by interceptor: gate")),
        ("{}", Block("blocked by interceptor: gate")),
        ("null", Block("blocked by interceptor: gate")),
    ],
)
def test_an_answer_about_a_call_is_a_verdict(answer: str, verdict: Verdict) -> None:
    assert before_verdict(raw(answer), "gate", {"a": 1}) == verdict


def test_no_answer_at_all_forbids() -> None:
    assert before_verdict(UNSET, "gate", {}) == Block("blocked by interceptor: gate")


@pytest.mark.parametrize(
    "answer",
    [
        '{"allow":"yes"}',
        '{"allow":true,"args":[1]}',
        '{"allow":1}',
        "[true]",
        '{"allow":false,"allow":true}',
        '{"allow":false,"ALLOW":true}',
        '{"allow":true,"args":{},"Args":{"a":1}}',
    ],
)
def test_an_answer_nobody_can_act_on_is_refused(answer: str) -> None:
    with pytest.raises(FrameError, match=r"allow|args|object"):
        before_verdict(raw(answer), "gate", {})


def test_a_question_about_an_event_says_what_belongs_to_it() -> None:
    question = Question(
        "before_agent_start", system_prompt="", session_id="s", run_id="r", cwd="/w", provider="p", model="m"
    )
    params: dict[str, Any] = json.loads(request(6, "interceptor/event", event_params("gate", question)))["params"]
    assert params == {
        "name": "gate",
        "event": "before_agent_start",
        "systemPrompt": "",
        "sessionId": "s",
        "runId": "r",
        "cwd": "/w",
        "provider": "p",
        "model": "m",
    }
    params = json.loads(request(6, "interceptor/event", event_params("g", Question("turn_start", step=2))))["params"]
    assert params == {"name": "g", "event": "turn_start", "step": 2}


@pytest.mark.parametrize(
    ("event", "answer", "verdict"),
    [
        ("turn_start", "{}", Allow()),
        ("turn_start", "null", Allow()),
        ("turn_start", '{"allow":true,"text":"x","systemPrompt":"y"}', Allow()),
        ("turn_start", '{"allow":false,"reason":"late"}', Block("late")),
        ("turn_start", '{"allow":false}', Block("blocked by interceptor: gate")),
        ("assistant_message", '{"text":"x"}', ReplaceText("x")),
        ("assistant_message", '{"text":""}', Allow()),
        ("assistant_message", '{"allow":false,"text":"x","reason":"no"}', Block("no")),
        ("before_agent_start", '{"systemPrompt":""}', SystemPrompt("")),
        ("before_agent_start", '{"allow":false,"systemPrompt":"x"}', SystemPrompt("x")),
        ("before_agent_start", '{"systemPrompt":null}', Allow()),
    ],
)
def test_an_answer_about_an_event_is_a_verdict(event: Interceptable, answer: str, verdict: Verdict) -> None:
    assert event_verdict(raw(answer), "gate", event) == verdict


@pytest.mark.parametrize("answer", ['{"allow":"no"}', '{"allow":true,"Allow":false}', '{"text":"a","text":"b"}'])
def test_an_answer_about_an_event_must_be_clear(answer: str) -> None:
    with pytest.raises(FrameError, match=r"allow|text"):
        event_verdict(raw(answer), "gate", "turn_start")


def test_a_system_prompt_beyond_measure_is_refused() -> None:
    with pytest.raises(FrameError, match="limit"):
        event_verdict(raw(json.dumps({"systemPrompt": "x" * (1024 * 1024 + 1)})), "gate", "before_agent_start")
