"""Tool results between the wire and the model."""

import base64

import pytest
from msgspec import Raw

from hilt.model.content import Image, ResultBlock, Text
from hilt.model.contributions import ToolOutput
from hilt.wire import frames_results as results
from hilt.wire import limits
from hilt.wire.frames import encode
from hilt.wire.frames_types import Block, ToolResult
from hilt.wire.line import LINE_LIMIT

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))


def output(*blocks: Block, is_error: bool = False) -> ToolOutput:
    return results.tool_output(ToolResult("1", blocks, is_error), "ext", "tool")


def image(data: str, mime_type: str = "image/png") -> Block:
    return Block("image", mime_type=mime_type, data=data)


@pytest.mark.parametrize("blocks", [(), (Block("text", ""),), (Block("text"), Block("text"))])
def test_a_result_without_content_says_so(blocks: tuple[Block, ...]) -> None:
    assert output(*blocks) == ToolOutput((Text("(extension returned no content)"),))


def test_text_comes_through_and_empty_text_is_dropped() -> None:
    assert output(Block("text", "a"), Block("text"), Block("text", "b"), is_error=True) == ToolOutput(
        (Text("a"), Text("b")), is_error=True
    )


@pytest.mark.parametrize("encode_image", [base64.b64encode, base64.encodebytes])
@pytest.mark.parametrize("ending", ["", "\r\n"])
def test_an_image_is_decoded_also_when_its_lines_are_wrapped(encode_image: object, ending: str) -> None:
    assert callable(encode_image)
    assert output(image(encode_image(PNG).decode() + ending)) == ToolOutput((Image("image/png", PNG),))


@pytest.mark.parametrize("data", ["!!!", "AAA", "AA AA", "=AAA", "é", "", "\n"])
def test_an_undecodable_image_becomes_an_error_that_names_extension_and_tool(data: str) -> None:
    answer = output(Block("text", "before"), image(data))
    assert answer.is_error
    first, second = answer.content
    assert first == Text("before")
    assert isinstance(second, Text)
    assert second.text.startswith("extension ext/tool returned undecodable image: ")


def test_an_image_of_a_kind_models_do_not_take_becomes_an_error() -> None:
    answer = output(image("AAAA", "image/tiff"))
    assert answer.is_error
    assert isinstance(answer.content[0], Text) and "image/tiff" in answer.content[0].text


def test_an_image_is_taken_up_to_the_limit_and_not_beyond() -> None:
    largest = output(image(base64.b64encode(bytes(limits.IMAGE_LIMIT)).decode()))
    assert not largest.is_error
    larger = output(image(base64.b64encode(bytes(limits.IMAGE_LIMIT + 1)).decode()))
    assert larger.is_error
    assert isinstance(larger.content[0], Text) and "5,000,001" in larger.content[0].text


def test_an_unknown_kind_of_block_is_named() -> None:
    assert output(Block("video", data="AAAA")) == ToolOutput((Text('[unknown block type "video" from extension ext]'),))
    assert len(str(output(Block("v" * 100_000)))) < 1000


def test_more_blocks_than_the_limit_are_left_out_and_counted() -> None:
    answer = output(*[Block("text", "x")] * (limits.BLOCK_LIMIT + 5))
    assert len(answer.content) == limits.BLOCK_LIMIT + 1
    assert answer.content[-1] == Text("[5 more blocks from extension ext were left out]")


def test_structured_content_and_tools_to_activate_go_into_the_details() -> None:
    frame = ToolResult("1", (Block("text", "x"),), activate_tools=("a",), structured_content=Raw(b'{"n":[1]}'))
    answer = results.tool_output(frame, "ext", "tool")
    assert answer.details == {"activate_tools": ["a"], "structured_content": {"n": [1]}}


def test_structured_content_that_cannot_be_represented_is_reported_and_the_rest_kept() -> None:
    frame = ToolResult("1", (Block("text", "x"),), structured_content=Raw(b"1e999"))
    answer = results.tool_output(frame, "ext", "tool")
    assert answer.content[0] == Text("x")
    assert "structured content" in str(answer.content[1])
    assert not answer.details


def test_a_result_for_a_calling_extension_keeps_its_blocks() -> None:
    frame = results.call_result("7", "read", ToolOutput((Text("a"), Image("image/png", PNG)), is_error=True))
    assert frame.content == (Block("text", "a"), image(base64.b64encode(PNG).decode()))
    assert (frame.id, frame.name, frame.is_error, frame.truncated) == ("7", "read", True, False)


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ((Text("x" * limits.RELAY_LIMIT),), limits.RELAY_LIMIT),
        ((Text("x" * (limits.RELAY_LIMIT + 1)),), limits.RELAY_LIMIT),
        ((Text("y" + "é" * limits.RELAY_LIMIT),), limits.RELAY_LIMIT - 1),
        ((Text("x" * (limits.RELAY_LIMIT - 4)), Image("image/png", b"123456"), Text("ab")), limits.RELAY_LIMIT - 2),
        ((Text("x" * limits.RELAY_LIMIT), Text("more"), Text("")), limits.RELAY_LIMIT),
    ],
)
def test_a_long_result_is_cut_for_extensions_and_says_so(content: tuple[ResultBlock, ...], kept: int) -> None:
    frame = results.call_result("7", "read", ToolOutput(content))
    assert sum(len(block.text.encode()) for block in frame.content) == kept
    assert frame.truncated == (content != (Text("x" * limits.RELAY_LIMIT),))


def test_a_result_of_many_blocks_is_cut_for_extensions_and_says_so() -> None:
    whole = results.result_summary([Text("x")] * limits.RELAY_BLOCKS, is_error=False)
    assert (len(whole.content), whole.truncated) == (limits.RELAY_BLOCKS, False)
    cut = results.result_summary([Text("x")] * (limits.RELAY_BLOCKS + 1), is_error=True)
    assert (len(cut.content), cut.truncated, cut.is_error) == (limits.RELAY_BLOCKS, True, True)


def test_even_text_that_needs_an_escape_for_each_byte_fits_a_line() -> None:
    frame = results.call_result("7", "read", ToolOutput((Text("\x01" * limits.RELAY_LIMIT * 2),)))
    assert len(encode(frame)) < LINE_LIMIT


def test_a_lone_surrogate_in_a_result_does_no_harm() -> None:
    assert encode(results.call_result("7", "read", ToolOutput((Text("a\ud800"),))))
