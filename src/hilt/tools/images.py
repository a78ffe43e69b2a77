"""Is this an image that a model can be given? Reads the structure; decodes no pixels.

A broken image would make a provider refuse the whole conversation, now and at every later turn, so
what is truncated or malformed is told apart here. The content decides the kind: names lie.
"""

import re
from typing import TypeAlias

from msgspec import Struct

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
_GIF = (b"GIF87a", b"GIF89a")
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_STANDALONE = frozenset({0x01, *range(0xD0, 0xD8)})
_JPEG_END, _JPEG_SCAN = 0xD9, 0xDA
# Inside a scan 0xFF is followed by 0 when it is data and by D0 to D7 when it only resets the decoder.
_AFTER_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")


class Picture(Struct, frozen=True):
    mime_type: str
    width: int
    height: int


Examined: TypeAlias = Picture | str
"""A picture, or the reason why it is none."""


def is_image(head: bytes) -> bool:
    """Whether a file that begins like this is meant to be an image."""
    return head.startswith((_PNG, _JPEG, *_GIF)) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


def examine(data: bytes) -> Examined:
    """Tell what picture these bytes are, all of them. Never raises."""
    if data.startswith(_PNG):
        mime_type, size = "image/png", _png(data)
    elif data.startswith(_JPEG):
        mime_type, size = "image/jpeg", _jpeg(data)
    elif data.startswith(_GIF):
        mime_type, size = "image/gif", _gif(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        mime_type, size = "image/webp", _webp(data)
    else:
        return "it is not PNG, JPEG, GIF or WebP"
    if isinstance(size, str):
        return size
    width, height = size
    return Picture(mime_type, width, height) if width and height else f"its size is {width} x {height} pixels"


_Size: TypeAlias = tuple[int, int] | str


def _png(data: bytes) -> _Size:
    if data[8:16] != b"\0\0\0\x0dIHDR" or len(data) < 33:
        return "the PNG header is missing or cut off"
    at, pixels = len(_PNG), False
    while at + 12 <= len(data):
        kind = data[at + 4 : at + 8]
        at += 12 + _big(data, at, 4)
        if at > len(data):
            break
        pixels = pixels or kind == b"IDAT"
        if kind == b"IEND":
            return (_big(data, 16, 4), _big(data, 20, 4)) if pixels else "the PNG holds no pixels"
    return "the PNG is truncated: its end is missing"


def _jpeg(data: bytes) -> _Size:
    at = 2
    size: tuple[int, int] | None = None
    scanned = False
    while at + 1 < len(data):
        if data[at] != 0xFF:
            return f"the JPEG is malformed at byte {at}"
        marker = data[at + 1]
        if marker == 0xFF:  # filling between segments
            at += 1
            continue
        if marker == _JPEG_END:
            return size if size and scanned else "the JPEG holds no pixels"
        if marker in _JPEG_STANDALONE:
            at += 2
            continue
        length = _big(data, at + 2, 2)
        if length < 2 or at + 2 + length > len(data):
            break
        if marker in _JPEG_SIZES and size is None:
            if length < 8:
                return "the JPEG is malformed: its size is missing"
            size = (_big(data, at + 7, 2), _big(data, at + 5, 2))
        at += 2 + length
        if marker == _JPEG_SCAN:
            scanned = True
            following = _AFTER_SCAN.search(data, at)
            if following is None:
                break
            at = following.start()
    return "the JPEG is truncated: its end is missing"


def _gif(data: bytes) -> _Size:
    if len(data) < 13:
        return "the GIF header is cut off"
    at, pixels = 13 + _gif_colours(data[10]), False
    while at < len(data):
        match data[at]:
            case 0x3B:
                return (_little(data, 6, 2), _little(data, 8, 2)) if pixels else "the GIF holds no pixels"
            case 0x21:
                at = _gif_blocks(data, at + 2)
            case 0x2C if at + 9 < len(data):
                pixels = True
                at = _gif_blocks(data, at + 10 + _gif_colours(data[at + 9]) + 1)
            case 0x2C:
                break
            case _:
                return f"the GIF is malformed at byte {at}"
    return "the GIF is truncated: its end is missing"


def _gif_colours(flags: int) -> int:
    """How many bytes the table takes that these flags announce."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _gif_blocks(data: bytes, at: int) -> int:
    """Where the blocks that begin here end; beyond the data when they do not."""
    while at < len(data) and data[at]:
        at += data[at] + 1
    return at + 1


def _webp(data: bytes) -> _Size:
    end = _little(data, 4, 4) + 8
    if end > len(data):
        return f"the WebP is truncated: {len(data)} of its {end} bytes are there"
    at, pixels = 12, False
    size: _Size | None = None
    while at + 8 <= end:
        kind, body, length = data[at : at + 4], at + 8, _little(data, at + 4, 4)
        if body + length > end:
            return "the WebP is truncated: a part is longer than the file"
        size = size or _webp_size(kind, data[body : body + min(length, 10)])
        pixels = pixels or kind in (b"VP8 ", b"VP8L", b"ANMF")
        at = body + length + length % 2
    return size if size and pixels else "the WebP holds no pixels"


def _webp_size(kind: bytes, body: bytes) -> _Size:
    """The size that the first part of a WebP tells, in one of three ways."""
    if kind == b"VP8X" and len(body) == 10:
        return _little(body, 4, 3) + 1, _little(body, 7, 3) + 1
    if kind == b"VP8L" and len(body) >= 5 and body[0] == 0x2F:
        bits = _little(body, 1, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and len(body) == 10 and body[3:6] == b"\x9d\x01\x2a" and not body[0] & 1:
        return _little(body, 6, 2) & 0x3FFF, _little(body, 8, 2) & 0x3FFF
    return "the WebP is malformed: it does not begin with its size"


def _big(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "big")


def _little(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "little")
