"""Messages without their large images, for a line has an end: a description stands where the image was.

Owns the description, and which images are sent as they are. A description that comes back is the image again, so that
nobody loses one who reads a conversation and writes it back.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from hilt.model.content import Image, ResultBlock, Text
from hilt.model.conversation import AssistantMessage, Message, ToolMessage, UserMessage
from hilt.wire.jsonrpc_bare import Bare, BareToolResult, BareUser, ImageBlock, TextBlock
from hilt.wire.jsonrpc_blocks import image_block

IMAGES_ROOM = 2 * 1024 * 1024
"""Characters of base64 that one line has for images; the rest of it is for what was said."""

_DESCRIBED = "[an image of type "


def light(parts: Iterable[Bare], room: int = IMAGES_ROOM) -> tuple[Bare, ...]:
    """The newest images as they are, as long as there is room for them, and the others described."""
    kept: list[Bare] = []
    for part in reversed(tuple(parts)):
        room -= _weight(part)
        kept.append(part if room >= 0 else without_images(part))
    return tuple(reversed(kept))


def without_images(part: Bare, largest: int = 0) -> Bare:
    """Those that are no larger stay."""
    match part:
        case BareUser() if part.blocks:
            return structs.replace(part, blocks=tuple(_described(block, largest) for block in part.blocks))
        case BareToolResult():
            return structs.replace(part, content=tuple(_described(block, largest) for block in part.content))
    return part


def with_images(messages: Iterable[Message], known: Iterable[Message]) -> Iterator[Message]:
    """The messages with those images of the `known` ones in them of which they have a description."""
    messages = tuple(messages)
    if not any(_is_description(block) for message in messages for block in _blocks(message)):
        yield from messages
        return
    images = [block for message in known for block in _blocks(message) if isinstance(block, Image)]
    by_description = {description(image_block(image)): image for image in images}
    for message in messages:
        yield _restored(message, by_description)


def description(block: ImageBlock) -> str:
    """No two images of a conversation have the same."""
    check = zlib.crc32(block.data.encode())
    return f"{_DESCRIBED}{block.mime_type}, {len(block.data) * 3 // 4:,} bytes, {check:08x}]"


def _described(block: TextBlock | ImageBlock, largest: int) -> TextBlock | ImageBlock:
    if isinstance(block, ImageBlock) and len(block.data) > largest:
        return TextBlock(description(block))
    return block


def _weight(part: Bare) -> int:
    match part:
        case BareUser():
            blocks = part.blocks
        case BareToolResult():
            blocks = part.content
        case _:
            return 0
    return sum(len(block.data) for block in blocks if isinstance(block, ImageBlock))


def _blocks(message: Message) -> Iterator[ResultBlock]:
    match message:
        case UserMessage():
            yield from message.content
        case ToolMessage():
            for result in message.results:
                yield from result.content
        case AssistantMessage():
            pass


def _is_description(block: ResultBlock) -> bool:
    return isinstance(block, Text) and block.text.startswith(_DESCRIBED)


def _restored(message: Message, images: Mapping[str, Image]) -> Message:
    def again(block: ResultBlock) -> ResultBlock:
        return images.get(block.text, block) if isinstance(block, Text) else block

    match message:
        case UserMessage():
            return structs.replace(message, content=tuple(map(again, message.content)))
        case ToolMessage():
            results = (structs.replace(one, content=tuple(map(again, one.content))) for one in message.results)
            return ToolMessage(tuple(results), message.time)
        case AssistantMessage():
            return message
