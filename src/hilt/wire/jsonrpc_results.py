"""Tool results, from the jsonrpc wire to the model's values and back.

What a result may put before the model does not depend on who sends it: that is `results`. What interceptors make of a
result is here too; what they decide before is `jsonrpc_verdicts`.
"""

import binascii
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, structs

from hilt.errors import FrameError
from hilt.model.content import Image, ResultBlock, Text
from hilt.model.contributions import Finished, ToolOutput
from hilt.wire.jsonrpc_reading import shaped
from hilt.wire.jsonrpc_types import Block, InterceptorAfter, InterceptorAfterResult, ToolExecuteResult
from hilt.wire.limits import BLOCK_LIMIT, MODEL_TEXT_LIMIT
from hilt.wire.results import NO_CONTENT, Piece, image_of, received

IMAGE_ROOM = 512 * 1024
"""Characters of base64 an interceptor is sent with one result: it gets everything twice, and a line has an end."""

_CODED = "[error:"


def tool_output(result: ToolExecuteResult, extension: str, tool: str) -> ToolOutput:
    """What the model gets for this answer. Anything unusable becomes text that says so.

    An answer with an error code is an error, whatever else it says: one that passes for a success would be seen
    by nobody who counts failures.
    """
    content = result.content
    if len(content) == 1 and not result.error_code and content[0].type == "text":
        text = content[0].text
        # A character has four bytes at most.
        if 0 < len(text) <= MODEL_TEXT_LIMIT // 4:
            return ToolOutput((Text(text),), result.is_error)
    got, spoilt = received([_piece(block) for block in result.content], extension, tool)
    is_error = result.is_error or bool(result.error_code) or spoilt
    output = ToolOutput(got or (Text(NO_CONTENT),), is_error)
    return _coded(output, result.error_code, result.error_hint) if result.error_code else output


def after_params(name: str, finished: Finished) -> InterceptorAfter:
    """What an interceptor is shown of a result.

    Interceptors written for the reference look for the content in `details`, so it is there as well.
    """
    output = finished.output
    blocks = _blocks(output.content)
    details = {"content": msgspec.to_builtins(blocks), **output.details}
    return InterceptorAfter(name, finished.tool_name, details, finished.call_id, blocks, output.is_error)


def after_output(result: InterceptorAfterResult, sent: InterceptorAfter, finished: Finished) -> ToolOutput:
    """The result as the interceptor wants it. Raises `FrameError` when that cannot be told.

    `content` counts before `details`, and of the details only what is not as it was sent.
    """
    output = finished.output
    content, details = output.content, output.details
    given = {"output": result.details} if isinstance(result.details, str) else result.details
    if isinstance(given, dict):
        content = _from_details(given, sent.details, content)
        if not isinstance(result.details, str):
            carriers = {"content", "output"} - output.details.keys()
            details = {key: value for key, value in given.items() if key not in carriers}
    elif given is not None:
        raise FrameError("`details` must be a text or an object")
    if result.content is not None:
        content = _changed(output.content, result.content, "content")
    is_error = output.is_error if result.is_error is UNSET else result.is_error
    return ToolOutput(content, is_error, details)


def _coded(output: ToolOutput, code: str, hint: str) -> ToolOutput:
    """By convention the first line says the code, and the hint has a line of its own."""
    first, rest = output.content[0], output.content[1:]
    if not isinstance(first, Text):
        first, rest = Text(""), output.content
    if not first.text.startswith(_CODED):
        said = "" if first.text == NO_CONTENT else first.text
        text = f"{_CODED}{code}] {said}".rstrip() + (f"\nhint: {hint}" if hint else "")
        output = structs.replace(output, content=(Text(text), *rest))
    details = {**output.details, "error_code": code} | ({"error_hint": hint} if hint else {})
    return structs.replace(output, details=details)


def _piece(block: Block) -> Piece:
    # As the reference does: what is no image is a text, if it has one.
    kind = "text" if block.text and block.type != "image" else block.type
    return Piece(kind, block.text, block.mime, block.data)


def _blocks(content: Iterable[ResultBlock]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    room = IMAGE_ROOM
    for index, part in enumerate(content):
        if isinstance(part, Text):
            blocks.append(Block("text", part.text))
            continue
        encoded = binascii.b2a_base64(part.data, newline=False).decode()
        if len(encoded) <= room:
            room -= len(encoded)
            blocks.append(Block("image", data=encoded, mime=part.mime_type))
        else:
            blocks.append(Block("image", mime=part.mime_type, index=index))
    return tuple(blocks)


def _from_details(
    given: dict[str, Any], sent: dict[str, Any], content: tuple[ResultBlock, ...]
) -> tuple[ResultBlock, ...]:
    for member in ("content", "output"):
        value = given.get(member)
        if value is not None and value != sent.get(member):
            return _changed(content, value, f"details.{member}")
    return content


def _changed(content: tuple[ResultBlock, ...], value: Any, member: str) -> tuple[ResultBlock, ...]:
    """A text takes the place of all text, and the images stay; blocks take the place of everything."""
    if isinstance(value, str):
        first = next((place for place, block in enumerate(content) if isinstance(block, Text)), 0)
        images = [block for block in content if isinstance(block, Image)]
        before = [block for block in content[:first] if isinstance(block, Image)]
        return (*before, Text(value), *images[len(before) :])
    if not isinstance(value, list):
        raise FrameError(f"`{member}` must be a text or a list of blocks")
    if len(value) > BLOCK_LIMIT:
        raise FrameError(f"`{member}` has {len(value):,} blocks; {BLOCK_LIMIT:,} is the limit")
    try:
        blocks: tuple[Block, ...] = shaped(value, tuple[Block, ...])
    except FrameError as error:
        raise FrameError(f"`{member}`: {error.message}") from None
    return tuple(_block(block, content) for block in blocks)


def _block(block: Block, content: tuple[ResultBlock, ...]) -> ResultBlock:
    if block.type != "image":
        return Text(block.text)
    if block.index is not UNSET and not block.data and 0 <= block.index < len(content):
        return content[block.index]
    return image_of(block.mime, block.data, "an interceptor")
