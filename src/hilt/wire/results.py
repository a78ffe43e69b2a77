"""What tools return, as it stands on every wire and as the model gets it: texts, and images in base64.

What the model sees of a very long text, and where the rest of it goes, is decided by whoever has a disk at hand.
"""

import binascii
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hilt.model.content import Image, ResultBlock, Text
from hilt.wire.limits import BLOCK_LIMIT, IMAGE_LIMIT, IMAGE_TYPES, RELAY_BLOCKS, RELAY_LIMIT

NO_CONTENT = "(extension returned no content)"


class Piece(NamedTuple):
    """One block, as dialects spell it."""

    type: str
    text: str = ""
    mime_type: str = ""
    data: str = ""
    """Base64."""


def received(pieces: Sequence[Piece], extension: str, tool: str) -> tuple[tuple[ResultBlock, ...], bool]:
    """What the model gets, and whether some of it could not be used: then there is text that says so."""
    content: list[ResultBlock] = []
    spoilt = False
    for piece in pieces[:BLOCK_LIMIT]:
        if piece.type == "text":
            if piece.text:
                content.append(Text(piece.text))
        elif piece.type == "image":
            image = image_of(piece.mime_type, piece.data, f"extension {extension}/{tool}")
            spoilt = spoilt or isinstance(image, Text)
            content.append(image)
        else:
            content.append(Text(f'[unknown block type "{piece.type[:64]}" from extension {extension}]'))
    if (left := len(pieces) - BLOCK_LIMIT) > 0:
        content.append(Text(f"[{left:,} more blocks from extension {extension} were left out]"))
    return tuple(content), spoilt


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


def relayed(content: Iterable[ResultBlock]) -> tuple[tuple[Piece, ...], bool]:
    """As much as may be passed on, and whether that is less than all."""
    blocks: list[Piece] = []
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
            blocks.append(Piece("image", mime_type=part.mime_type, data=encoded))
        else:
            text = part.text.encode(errors="replace")
            kept = text[:room].decode(errors="ignore")  # a character cut in two is left out
            truncated = truncated or len(text) > room
            room -= min(len(text), room)
            if kept or not text:
                blocks.append(Piece("text", kept))
    return tuple(blocks), truncated
