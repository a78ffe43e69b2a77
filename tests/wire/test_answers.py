"""What an extension's answers ask for."""

import pytest
from msgspec import Raw

from hilt.model.actions import Display, Insert, Noop, OpenPanel, Prompt, ToolPrompt
from hilt.model.extensions import Panel
from hilt.model.verdicts import Allow, Block, Interceptable, ReplaceText, Rewrite, SystemPrompt, Verdict
from hilt.wire import frames_answers as answers
from hilt.wire.frames import decode
from hilt.wire.frames_answers import CommandAnswer, CommandFailed
from hilt.wire.frames_types import CommandResponse, EventInterceptResponse
from hilt.wire.limits import SYSTEM_PROMPT_LIMIT
from hilt.wire.line import Malformed


@pytest.mark.parametrize(
    ("members", "answer"),
    [
        ("", Noop()),
        (',"action":"noop","prompt":"x"', Noop()),
        (',"action":"prompt","prompt":" do it "', Prompt(" do it ")),
        (',"action":"prompt","prompt":" \\n"', Noop()),
        (',"action":"prompt"', Noop()),
        (',"action":"insert","insert":"a\\nb"', Insert("a\nb")),
        (',"action":"display","display":"d"', Display("d")),
        (',"action":"open_panel","open_panel":{"id":"p"}', OpenPanel(Panel("p"))),
        (',"action":"open_panel"', Noop()),
        (',"action":"tool_prompt","tool_name":"t","tool_args":{"a":1},"prompt":"p"', ToolPrompt("t", {"a": 1}, "p")),
        (',"action":"tool_prompt","tool_name":"t"', ToolPrompt("t", {}, "")),
        (',"action":"tool_prompt"', CommandFailed("tool_prompt without a tool_name")),
        (
            ',"action":"tool_prompt","tool_name":"t","tool_args":[1]',
            CommandFailed("tool_args: it must be a JSON object"),
        ),
        (',"action":"display","display":"d","error":"bad args"', CommandFailed("bad args")),
        (',"action":"explode"', CommandFailed("unknown action explode")),
    ],
)
def test_a_commands_answer_is_carried_out_as_its_action_says(members: str, answer: CommandAnswer) -> None:
    frame = decode(f'{{"type":"command_response","id":"1"{members}}}'.encode())
    assert isinstance(frame, CommandResponse)
    assert answers.command_answer(frame) == answer


@pytest.mark.parametrize(
    ("event", "members", "verdict"),
    [
        ("tool_call", "", Allow()),
        ("tool_call", ',"block":true,"reason":"no"', Block("no")),
        ("tool_call", ',"block":true', Block("tool call refused by extension guard")),
        ("tool_call", ',"modified_args":{"a":1}', Rewrite({"a": 1})),
        ("tool_call", ',"modified_args":{}', Rewrite({})),
        ("tool_call", ',"modified_args":null', Allow()),
        ("tool_call", ',"block":true,"reason":"no","modified_args":{"a":1}', Block("no")),
        ("tool_call", ',"replace_text":"x","system_prompt":"x","reason":"unused"', Allow()),
        ("turn_start", ',"block":true', Block("turn blocked by extension guard")),
        ("turn_start", ',"modified_args":{"a":1},"replace_text":"x"', Allow()),
        ("assistant_message", ',"replace_text":"x"', ReplaceText("x")),
        ("assistant_message", ',"replace_text":""', Allow()),
        ("assistant_message", ',"block":true,"replace_text":"x"', Block("message suppressed by extension guard")),
        ("before_agent_start", ',"system_prompt":"be brief","block":true', SystemPrompt("be brief")),
        ("before_agent_start", ',"system_prompt":""', SystemPrompt("")),
        ("before_agent_start", ',"block":true', Allow()),
    ],
)
def test_an_interceptors_answer_decides_only_about_what_it_was_asked(
    event: Interceptable, members: str, verdict: Verdict
) -> None:
    frame = decode(f'{{"type":"event_intercept_response","id":"1"{members}}}'.encode())
    assert isinstance(frame, EventInterceptResponse)
    assert answers.verdict(frame, event) == verdict


@pytest.mark.parametrize("args", [b"[1]", b'"ls"', b"7", b'{"a":1e999}', b"[" * 100_000 + b"]" * 100_000])
def test_rewritten_arguments_nobody_can_use_are_malformed_rather_than_allowed(args: bytes) -> None:
    read = answers.verdict(EventInterceptResponse("1", modified_args=Raw(args)), "tool_call")
    assert isinstance(read, Malformed)
    assert (read.type, read.id) == ("event_intercept_response", "1")
    assert read.reason.startswith("modified_args: ")


def test_a_system_prompt_is_taken_up_to_the_limit_and_not_beyond() -> None:
    largest = "é" * (SYSTEM_PROMPT_LIMIT // 2)
    assert answers.verdict(EventInterceptResponse("1", system_prompt=largest), "before_agent_start") == SystemPrompt(
        largest
    )
    read = answers.verdict(EventInterceptResponse("1", system_prompt=largest + "x"), "before_agent_start")
    assert isinstance(read, Malformed)
