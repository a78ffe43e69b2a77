"""What the model gets of a tool's answer, and what interceptors make of it."""

import base64
import json
from typing import Any

import pytest

from hilt.errors import FrameError
from hilt.model.content import Image, ResultBlock, Text
from hilt.model.contributions import Finished, ToolOutput
from hilt.wire.jsonrpc import request
from hilt.wire.jsonrpc_reading import shaped
from hilt.wire.jsonrpc_results import after_output, after_params, tool_output
from hilt.wire.jsonrpc_types import InterceptorAfterResult, ToolExecuteResult

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
ENCODED = base64.b64encode(PNG).decode()
LARGE = Image("image/png", bytes(600_000))


def output(value: dict[str, Any]) -> ToolOutput:
    return tool_output(shaped(value, ToolExecuteResult), "demo", "add")


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def test_texts_and_images_become_blocks() -> None:
    blocks = [{"Type": "text", "Text": "2"}, {"Type": "image", "Data": ENCODED, "Mime": "image/png"}]
    assert output({"content": blocks}) == ToolOutput((Text("2"), Image("image/png", PNG)))


def test_an_error_of_the_extension_is_an_error() -> None:
    assert output(text("boom", isError=True)) == ToolOutput((Text("boom"),), is_error=True)
    assert output(text("fine", isError=False)) == ToolOutput((Text("fine"),))


def test_a_coded_error_says_its_code_and_its_hint() -> None:
    told = output(text("boom", isError=True, errorCode="CUSTOM_X", errorHint="do y"))
    assert told == ToolOutput(
        (Text("[error:CUSTOM_X] boom\nhint: do y"),),
        is_error=True,
        details={"error_code": "CUSTOM_X", "error_hint": "do y"},
    )
    told = output(text("boom", isError=True, errorCode="TIMEOUT"))
    assert told == ToolOutput((Text("[error:TIMEOUT] boom"),), is_error=True, details={"error_code": "TIMEOUT"})


def test_a_code_makes_it_an_error_whatever_else_is_said() -> None:
    assert output(text("boom", errorCode="TIMEOUT")).is_error
    assert output(text("boom", errorCode="TIMEOUT", isError=False)).is_error


def test_a_text_that_says_its_code_already_is_left_as_it_is() -> None:
    told = output(text("[error:TIMEOUT] late", errorCode="TIMEOUT", errorHint="h"))
    assert told.content == (Text("[error:TIMEOUT] late"),)
    assert told.details == {"error_code": "TIMEOUT", "error_hint": "h"}


def test_a_code_is_told_also_where_there_is_no_text() -> None:
    assert output({"errorCode": "TIMEOUT", "errorHint": "h"}).content == (Text("[error:TIMEOUT]\nhint: h"),)
    image = {"type": "image", "data": ENCODED, "mime": "image/png"}
    assert output({"content": [image], "errorCode": "TIMEOUT"}).content == (
        Text("[error:TIMEOUT]"),
        Image("image/png", PNG),
    )


def test_what_is_no_image_is_a_text_if_it_has_one() -> None:
    assert output({"content": [{"text": "a"}, {"type": "markdown", "text": "b"}]}).content == (Text("a"), Text("b"))
    assert output({"content": [{"type": "video", "data": "x"}]}).content == (
        Text('[unknown block type "video" from extension demo]'),
    )


def test_an_image_nobody_can_show_is_an_error() -> None:
    told = output({"content": [{"type": "image", "data": ENCODED, "mime": "image/tiff"}]})
    assert told.is_error and isinstance(told.content[0], Text) and "image/tiff" in told.content[0].text


def test_an_answer_without_content_is_said_to_be_one() -> None:
    assert output({"content": None}) == ToolOutput((Text("(extension returned no content)"),))


# After-interceptors


def finished(*content: ResultBlock, is_error: bool = False, **details: Any) -> Finished:
    return Finished("call_1", "add", ToolOutput(content, is_error, details))


def shown(done: Finished) -> dict[str, Any]:
    params: dict[str, Any] = json.loads(request(1, "interceptor/after", after_params("gate", done)))["params"]
    return params


def after(done: Finished, answer: Any) -> ToolOutput:
    return after_output(shaped(answer, InterceptorAfterResult), after_params("gate", done), done)


def test_an_interceptor_is_shown_the_result_itself_also_where_the_reference_puts_it() -> None:
    params = shown(finished(Text("2"), Image("image/png", PNG), is_error=True, exit_code=3))
    blocks = [{"type": "text", "text": "2"}, {"type": "image", "data": ENCODED, "mime": "image/png"}]
    assert params == {
        "name": "gate",
        "toolName": "add",
        "details": {"content": blocks, "exit_code": 3},
        "callId": "call_1",
        "content": blocks,
        "isError": True,
    }


@pytest.mark.parametrize("answer", [{}, None, {"details": None}, {"details": None, "content": None}])
def test_an_answer_that_says_nothing_changes_nothing(answer: Any) -> None:
    done = finished(Text("2"), LARGE, exit_code=3)
    assert after(done, answer) == done.output


def test_details_sent_back_as_they_were_change_nothing() -> None:
    for done in (finished(Text("2"), LARGE, exit_code=3), finished(Text("2")), finished(output="o", content="c")):
        assert after(done, {"details": shown(done)["details"]}) == done.output


@pytest.mark.parametrize(
    "details",
    [
        "short",
        {"content": "short", "exit_code": 3},
        {"output": "short", "exit_code": 3},
        {
            "content": [{"type": "text", "text": "short"}, {"type": "image", "data": ENCODED, "mime": "image/png"}],
            "exit_code": 3,
        },
        {"content": [{"Text": "short"}, {"Type": "image", "Data": ENCODED, "Mime": "image/png"}], "exit_code": 3},
    ],
)
def test_a_text_in_the_details_that_comes_back_changed_is_the_result(details: Any) -> None:
    done = finished(Text("long"), Image("image/png", PNG), exit_code=3)
    told = after(done, {"details": details})
    assert told.content == (Text("short"), Image("image/png", PNG))
    assert told.details == {"exit_code": 3}


def test_a_text_takes_the_place_of_all_text_and_images_stay_where_they_were() -> None:
    image = Image("image/png", PNG)
    done = finished(image, Text("a"), LARGE, Text("b"))
    assert after(done, {"content": "c"}).content == (image, Text("c"), LARGE)
    assert after(finished(image), {"content": "c"}).content == (Text("c"), image)


def test_the_tools_own_facts_can_be_changed() -> None:
    done = finished(Text("2"), exit_code=3)
    details = shown(done)["details"] | {"exit_code": 4, "seen": True}
    assert after(done, {"details": details}) == ToolOutput((Text("2"),), details={"exit_code": 4, "seen": True})


def test_content_that_is_given_outright_counts_before_details() -> None:
    told = after(finished(Text("2")), {"details": "x", "content": [{"type": "text", "text": "y"}], "isError": True})
    assert told == ToolOutput((Text("y"),), is_error=True)
    assert not after(finished(Text("2"), is_error=True), {"isError": False}).is_error


def test_a_large_image_is_not_sent_and_stands_for_itself_when_it_comes_back() -> None:
    done = finished(Text("long"), LARGE)
    sent = shown(done)["content"]
    assert sent[1] == {"type": "image", "mime": "image/png", "index": 1}
    told = after(done, {"content": [{"type": "text", "text": "short"}, sent[1]]})
    assert told.content == (Text("short"), LARGE)
    assert isinstance(after(done, {"content": [{"type": "image", "mime": "image/png", "index": 9}]}).content[0], Text)


@pytest.mark.parametrize(
    "answer",
    [
        {"details": 7},
        {"details": [1]},
        {"content": 7},
        {"content": [{"text": 7}]},
        {"isError": 7},
        {"content": [{"text": "x"}] * 1025},
    ],
)
def test_an_answer_that_cannot_be_used_is_refused(answer: Any) -> None:
    with pytest.raises(FrameError, match=r"details|content|isError"):
        after(finished(Text("2")), answer)
