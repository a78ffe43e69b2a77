"""Tool results, from the wire to the model's values and back.

What the model sees of a very long text, and where the rest of it goes, is decided by whoever has a
disk at hand: `MODEL_TEXT_LIMIT` is the number to decide by.
"""

import binascii
from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from hilt.errors import FrameError
from hilt.model.content import Image, ResultBlock, Text
from hilt.model.contributions import ToolOutput
from hilt.wire.frames_types import Block, CallResult, ResultSummary, ToolResult
from hilt.wire.freeform import unpack

MODEL_TEXT_LIMIT = 256 * 1024
"""Bytes of text one result may put before the model."""

IMAGE_LIMIT = 5 * 1000 * 1000
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What model APIs take. A picture they refuse would spoil every later request of the session."""

BLOCK_LIMIT = 1024
"""Blocks one result may have."""

RELAY_LIMIT = 256 * 1024
RELAY_BLOCKS = 128
"""How much of a result, in bytes and in blocks, is passed on to extensions."""

NO_CONTENT = "(extension returned no content)"


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
    content: list[ResultBlock] = []
    is_error = result.is_error
    for block in result.content[:BLOCK_LIMIT]:
        if block.type == "text":
            if block.text:
                content.append(Text(block.text))
        elif block.type == "image":
            image = image_of(block.mime_type, block.data, f"extension {extension}/{tool}")
            is_error = is_error or isinstance(image, Text)
            content.append(image)
        else:
            content.append(Text(f'[unknown block type "{block.type[:64]}" from extension {extension}]'))
    if (left := len(result.content) - BLOCK_LIMIT) > 0:
        content.append(Text(f"[{left:,} more blocks from extension {extension} were left out]"))
    details: dict[str, Any] = {}
    if result.activate_tools:
        details["activate_tools"] = list(result.activate_tools)
    if result.structured_content is not UNSET:
        try:
            details["structured_content"] = unpack(result.structured_content)
        except FrameError as error:
            content.append(Text(f"[structured content from extension {extension} is unusable: {error.message}]"))
    return ToolOutput(tuple(content) or (Text(NO_CONTENT),), is_error, details)


def call_result(call_id: str, name: str, output: ToolOutput) -> CallResult:
    """The answer to an extension's `call_tool`."""
    content, truncated = _blocks(output.content)
    return CallResult(call_id, name, content, output.is_error, truncated)


def result_summary(content: Iterable[ResultBlock], *, is_error: bool) -> ResultSummary:
    """What observers of tool results are shown."""
    blocks, truncated = _blocks(content)
    return ResultSummary(blocks, is_error, truncated)


def image_of(mime_type: str, encoded: str, who: str) -> Image | Text:
    """The image in base64, or a text that says why it cannot be used."""
    if mime_type not in IMAGE_TYPES:
        return Text(f"{who} returned an image of type {mime_type[:64]!r}; models take {', '.join(IMAGE_TYPES)}")
    try:
        # Line breaks inside are common (MIME wraps at 76); anything else foreign is damage.
        data = binascii.a2b_base64(encoded.replace("\r", "").replace("\n", ""), strict_mode=True)
    except ValueError as error:
        return Text(f"{who} returned undecodable image: {error}")
    if not data:
        return Text(f"{who} returned undecodable image: it is empty")
    if len(data) > IMAGE_LIMIT:
        return Text(f"{who} returned an image of {len(data):,} bytes; {IMAGE_LIMIT:,} is the limit")
    return Image(mime_type, data)


def _blocks(content: Iterable[ResultBlock]) -> tuple[tuple[Block, ...], bool]:
    """As much as may be passed on, and whether that is less than all."""
    blocks: list[Block] = []
    room, truncated = RELAY_LIMIT, False
    for part in content:
        if len(blocks) == RELAY_BLOCKS:
            return tuple(blocks), True
        if isinstance(part, Image):
            encoded = binascii.b2a_base64(part.data, newline=False).decode()
            if len(encoded) > room:
                truncated = True
                continue
            room -= len(encoded)
            blocks.append(Block("image", mime_type=part.mime_type, data=encoded))
        else:
            text = part.text.encode(errors="replace")
            kept = text[:room].decode(errors="ignore")  # a character cut in two is left out
            truncated = truncated or len(text) > room
            room -= min(len(text), room)
            if kept or not text:
                blocks.append(Block("text", kept))
    return tuple(blocks), truncated
