"""The blocks of messages on the jsonrpc wire, both ways.

What hilt keeps with a block beyond the reference's members travels under `hilt`; a tool call has `providerMeta` for
that, which Go programs keep. Reading raises `FrameError`, which names the member.
"""

import binascii
from typing import Any

import msgspec
from msgspec import UNSET

from hilt.errors import FrameError
from hilt.model.content import BY_EXTENSION, AssistantBlock, Image, ResultBlock, Text, Thinking, ToolCall
from hilt.wire.freeform import pack
from hilt.wire.jsonrpc_bare import AnyBlock, ImageBlock, TextBlock, ThinkingBlock, ThinkingExtra, ToolCallBlock
from hilt.wire.jsonrpc_reading import shaped
from hilt.wire.line import UNREADABLE
from hilt.wire.results import image_of

BLOCKS_OF_ONE = 4096
"""What is read of one message: reading more would hold up everyone else."""


def assistant_block(block: AssistantBlock) -> TextBlock | ThinkingBlock | ToolCallBlock:
    match block:
        case Text():
            return TextBlock(block.text)
        case Thinking():
            extra = ThinkingExtra(block.state, block.id, block.redacted, block.provider)
            return ThinkingBlock(block.text, UNSET if extra == ThinkingExtra() else extra)
        case ToolCall():
            return ToolCallBlock(block.id, block.name, block.args, _provider_meta(block))


def _provider_meta(call: ToolCall) -> dict[str, Any]:
    own = {"invalid": call.invalid} if call.invalid else {}
    meta: dict[str, Any] = {}
    try:
        if call.state.startswith(BY_EXTENSION):
            meta = msgspec.json.decode(call.state.removeprefix(BY_EXTENSION), type=dict[str, Any])
        elif call.state:
            own["state"] = call.state
    except UNREADABLE:
        own["state"] = call.state  # it only looked like one
    return {**meta, "hilt": own} if own else meta


def result_block(block: ResultBlock) -> TextBlock | ImageBlock:
    return TextBlock(block.text) if isinstance(block, Text) else image_block(block)


def image_block(image: Image) -> ImageBlock:
    return ImageBlock(binascii.b2a_base64(image.data, newline=False).decode(), image.mime_type)


def spoken(block: AnyBlock) -> AssistantBlock:
    if block.type in ("tool_call", "toolCall", "tool_use") or block.id or block.name:
        return _call(block)
    if block.type == "thinking" or block.thinking:
        extra = shaped(block.hilt, ThinkingExtra)
        return Thinking(block.thinking, extra.state, extra.id, extra.redacted, extra.provider)
    if block.mime_type or block.type == "image":
        raise FrameError("`content`: an assistant's message cannot have an image")
    return Text(block.text)


def _call(block: AnyBlock) -> ToolCall:
    if not block.name:
        raise FrameError("`content`: a tool call has no `name`")
    if not isinstance(args := {} if block.arguments is None else block.arguments, dict):
        raise FrameError(f"`content`: the `arguments` of {block.name[:64]!r} must be an object")
    meta = block.provider_meta if isinstance(block.provider_meta, dict) else {}
    own = meta.get("hilt")
    own = own if isinstance(own, dict) else {}
    foreign = {key: value for key, value in meta.items() if key != "hilt"}
    state = BY_EXTENSION + bytes(pack(foreign)).decode() if foreign else own.get("state", "")
    invalid = own.get("invalid", "")
    if not isinstance(state, str) or not isinstance(invalid, str):
        raise FrameError(f"`content`: `providerMeta.hilt` of {block.name[:64]!r} must have strings only")
    return ToolCall(block.id, block.name, args, invalid, state)


def read_blocks(content: Any, member: str) -> list[AnyBlock]:
    match content:
        case None | "":
            return []
        case str():
            return [AnyBlock("text", content)]
        case list() if len(content) > BLOCKS_OF_ONE:
            raise FrameError(f"`{member}` has {len(content):,} blocks; {BLOCKS_OF_ONE:,} is the limit")
        case list():
            return [_block(value, f"{member}[{index}]") for index, value in enumerate(content)]
    raise FrameError(f"`{member}` must be a text or a list of blocks")


def _block(value: Any, place: str) -> AnyBlock:
    try:
        return AnyBlock("text", value) if isinstance(value, str) else shaped(value, AnyBlock)
    except FrameError as error:
        raise FrameError(f"`{place}`: {error.message}") from None


def text_or_image(block: AnyBlock) -> Text | Image:
    mime_type = block.mime_type or block.mime
    return image_of(mime_type, block.data, "an extension") if mime_type else Text(block.text)
