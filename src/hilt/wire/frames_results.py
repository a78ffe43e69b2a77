"""Tool results, from frames to the model's values and back."""

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from hilt.errors import FrameError
from hilt.model.content import ResultBlock, Text
from hilt.model.contributions import ToolOutput
from hilt.wire.frames_types import Block, CallResult, ResultSummary, ToolResult
from hilt.wire.freeform import unpack
from hilt.wire.limits import MODEL_TEXT_LIMIT
from hilt.wire.results import NO_CONTENT, Piece, received, relayed


def short_text(result: ToolResult) -> ToolOutput | None:
    """The same as `tool_output` for one text that is not long, and None for everything else: most answers are so."""
    content = result.content
    if len(content) != 1 or result.structured_content is not UNSET or result.activate_tools:
        return None
    block = content[0]
    # A character has four bytes at most.
    if block.type != "text" or not 0 < len(block.text) <= MODEL_TEXT_LIMIT // 4:
        return None
    return ToolOutput((Text(block.text),), result.is_error)


def tool_output(result: ToolResult, extension: str, tool: str) -> ToolOutput:
    """What the model gets for this answer. Anything unusable becomes text that says so."""
    pieces = [Piece(block.type, block.text, block.mime_type, block.data) for block in result.content]
    content, spoilt = received(pieces, extension, tool)
    details: dict[str, Any] = {}
    if result.activate_tools:
        details["activate_tools"] = list(result.activate_tools)
    if result.structured_content is not UNSET:
        try:
            details["structured_content"] = unpack(result.structured_content)
        except FrameError as error:
            unusable = f"[structured content from extension {extension} is unusable: {error.message}]"
            content = (*content, Text(unusable))
    return ToolOutput(content or (Text(NO_CONTENT),), result.is_error or spoilt, details)


def call_result(call_id: str, name: str, output: ToolOutput) -> CallResult:
    """The answer to an extension's `call_tool`."""
    pieces, truncated = relayed(output.content)
    return CallResult(call_id, name, tuple(map(_block, pieces)), output.is_error, truncated)


def result_summary(content: Iterable[ResultBlock], *, is_error: bool) -> ResultSummary:
    """What observers of tool results are shown."""
    pieces, truncated = relayed(content)
    return ResultSummary(tuple(map(_block, pieces)), is_error, truncated)


def _block(piece: Piece) -> Block:
    return Block(piece.type, piece.text, piece.mime_type, piece.data)
