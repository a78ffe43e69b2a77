"""Params and results are read as the reference's decoder reads them, and what is wrong is named."""

from typing import Any

import pytest
from msgspec import UNSET, Raw, Struct

from hilt.errors import FrameError
from hilt.wire import jsonrpc_services as s
from hilt.wire import jsonrpc_types as t
from hilt.wire.jsonrpc_reading import read, shaped, twice


def raw(text: str) -> Raw:
    return Raw(text.encode())


def test_results_of_compiled_go_extensions_are_read() -> None:
    result = read(
        raw('{"content":[{"Type":"image","Text":"","Data":"AA==","Mime":"image/png"}],"isError":false}'),
        t.ToolExecuteResult,
    )
    assert result == t.ToolExecuteResult((t.Block("image", data="AA==", mime="image/png"),))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"NAME":"n","Priority":5}', t.RegisterMessageHook("n", 5)),
        ('{"name":"n","priority":5.0}', t.RegisterMessageHook("n", 5)),
        ('{"name":"n","priority":null,"more":[{}]}', t.RegisterMessageHook("n")),
        ('{"Name":"other","name":"n","NAME":"third"}', t.RegisterMessageHook("n")),
        ('{"name":null,"Name":"n"}', t.RegisterMessageHook("n")),
        ('{"events":null,"name":"n"}', t.RegisterEventHandler("n")),
        ('{"Action":{"TYPE":"quit","Payload":null}}', t.ActionResult(t.Action("quit"))),
        ('{"action":null}', t.ActionResult()),
        ('{"OVERRIDES":{"p/M":{"CONTEXTWINDOW":7.0,"Name":null}}}', s.WriteModels({"p/M": s.ModelOverride(None, 7)})),
        ('{"Choices":[null,"a"]}', s.AskUser("", ("", "a"))),
        ('{"items":[null,{"ID":"i"}]}', s.ShowPicker("", (s.PickerItem(), s.PickerItem("i")))),
        ('{"allow":false,"systemprompt":""}', t.InterceptorEventResult(allow=False, system_prompt="")),
        ('{"systemPrompt":null}', t.InterceptorEventResult()),
    ],
)
def test_what_is_not_exact_is_read_as_it_was_meant(text: str, value: Struct) -> None:
    assert read(raw(text), type(value)) == value


@pytest.mark.parametrize("absent", [UNSET, raw("null"), raw("{}")])
def test_absent_params_are_all_defaults(absent: Raw) -> None:
    assert read(absent, s.ListTools) == s.ListTools()
    assert read(absent, t.InterceptorEventResult) == t.InterceptorEventResult()


def test_free_form_parts_are_left_as_they_are() -> None:
    args = {"Type": 5.0, "TYPE": None, "nested": [{"Args": {"a": 1.0}}]}
    read_ = read(raw('{"Name":"x","args":{"Type":5.0,"TYPE":null,"nested":[{"Args":{"a":1.0}}]}}'), s.ExecuteTool)
    assert read_ == s.ExecuteTool("x", args)
    assert type(read_.args["Type"]) is float
    published = read(raw('{"TOPIC":"t","data":{"Topic":null}}'), s.Publish)
    assert published == s.Publish("t", {"Topic": None})


def test_broken_characters_are_replaced() -> None:
    assert read(Raw(b'{"text":"\xff\\ud800"}'), t.ShowMessage) == t.ShowMessage("��")


@pytest.mark.parametrize(
    ("text", "shape", "member"),
    [
        ('{"name":5}', t.RegisterTool, "`name`: Expected `str`, got `int`"),
        ('{"content":[{"type":"text"},{"type":"text","text":7}]}', t.ToolExecuteResult, "`content[1].text`"),
        ('{"content":"x"}', t.ToolExecuteResult, "`content`: Expected `array`, got `str`"),
        ('{"priority":5.5}', t.RegisterInterceptor, "`priority`"),
        ('{"priority":true}', t.RegisterInterceptor, "`priority`"),
        ('{"isError":"yes"}', t.ToolExecuteResult, "`isError`"),
        ('{"overrides":{"p/m":{"maxTokens":"9"}}}', s.WriteModels, "maxTokens"),
        ('{"args":[1]}', s.ExecuteTool, "`args`: Expected `object`, got `array`"),
        ("[1]", s.ExecuteTool, "Expected `object`, got `array`"),
        ('"x"', s.ExecuteTool, "Expected `object`, got `str`"),
        ('{"id":null}', t.CancelRequest, "`id`"),
        ("{}", t.CancelRequest, "`id`"),
        ('{"a":' * 100_000, s.Publish, "deep"),
        ("{", s.Publish, "truncated"),
        ('{"data":1e999}', s.Publish, "range"),
        ('{"data":NaN}', s.Publish, "malformed"),
    ],
)
def test_what_is_wrong_is_named(text: str, shape: type[Struct], member: str) -> None:
    with pytest.raises(FrameError) as caught:
        read(raw(text), shape)
    assert member in caught.value.message


def test_lists_too_long_to_be_put_right_are_read_exactly_or_not_at_all() -> None:
    exact: list[Any] = ["x"] * 5000
    assert len(shaped({"keys": exact}, s.ConfigGet).keys) == 5000
    with pytest.raises(FrameError, match="content"):
        shaped({"content": [{"Type": "text"}] * 5000}, t.ToolExecuteResult)


@pytest.mark.parametrize(
    ("text", "member"),
    [
        ('{"allow":true,"allow":false}', "allow"),
        ('{"allow":false,"ALLOW":true}', "allow"),
        ('{"allow":false,"\\u0061llow":true}', "allow"),
        ('{"allow":true,"args":{"allow":1,"args":2}}', ""),
        ('{"allow":true,"x":1,"x":2}', ""),
        ("null", ""),
        ('["allow","allow"]', ""),
    ],
)
def test_an_answer_that_says_two_things_under_one_name_is_noticed(text: str, member: str) -> None:
    assert twice(raw(text), ("allow", "args")) == member
