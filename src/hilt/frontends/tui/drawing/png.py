"""PNG pictures, decoded and made small, with nothing but the standard library.

Owns the format. What a stranger's file can cost is bounded: by its pixels, by the bytes that it unpacks to, and by the
time that it may take; whatever is beyond that, or odd, has no pixels.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate

MOST_PIXELS = 2_000_000
_PIECE = 16 * 1024
"""Bytes that are unpacked together: what is left of them is copied each time."""
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""By colour type: grey, RGB, palette, grey and RGB with alpha."""


class Unreadable(Exception):
    """No picture that can be shown here."""


@dataclass(frozen=True, slots=True)
class Pixels:
    width: int
    height: int
    rgb: bytes

    def at(self, x: int, y: int) -> tuple[int, int, int]:
        place = 3 * (y * self.width + x)
        return self.rgb[place], self.rgb[place + 1], self.rgb[place + 2]


@dataclass(frozen=True, slots=True)
class _Header:
    width: int
    height: int
    channels: int
    palette: bytes
    kind: int


def decode(
    data: bytes, width: int, height: int, background: tuple[int, int, int], check: Callable[[], None] = lambda: None
) -> Pixels:
    """The picture at this size, which must not be larger than its own. `check` is called for every row, and may raise.

    Raises `Unreadable`.
    """
    header, packed = _read(data)
    if width > header.width or height > header.height:
        raise Unreadable("it is smaller than that")
    wanted = {(2 * y + 1) * header.height // (2 * height): y for y in range(height)}
    columns = [(2 * x + 1) * header.width // (2 * width) for x in range(width)]
    rows: dict[int, bytes] = {}
    for number, row in enumerate(_rows(header, packed)):
        check()
        if number in wanted:
            rows[wanted[number]] = b"".join([bytes(_colour(header, row, x, background)) for x in columns])
            if len(rows) == height:
                break
    if len(rows) < height:
        raise Unreadable("its end is missing")
    return Pixels(width, height, b"".join([rows[y] for y in range(height)]))


def _read(data: bytes) -> tuple[_Header, bytes]:
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR" or len(data) < 33:
        raise Unreadable("it is no PNG")
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    depth, kind, interlaced = data[24], data[25], data[28]
    if not 0 < width * height <= MOST_PIXELS:
        raise Unreadable("it is too large")
    if depth != 8 or kind not in _CHANNELS or interlaced:
        raise Unreadable("pictures of this kind are not decoded")
    palette, packed = b"", []
    at = 8
    while at + 12 <= len(data):
        length, name = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        if name == b"PLTE":
            palette = body
        elif name == b"IDAT":
            packed.append(body)
        at += 12 + length
    return _Header(width, height, _CHANNELS[kind], palette, kind), b"".join(packed)


def _rows(header: _Header, packed: bytes) -> Iterator[bytes]:
    """Each row of samples. No more is ever unpacked than one of them."""
    size = header.width * header.channels
    unpacker = zlib.decompressobj()
    before, rest, at = bytes(size), b"", 0
    for _ in range(header.height):
        line = b""
        while len(line) <= size:
            if not rest:
                rest, at = packed[at : at + _PIECE], at + _PIECE
            if not rest or unpacker.eof:
                raise Unreadable("its end is missing")
            try:
                line += unpacker.decompress(rest, size + 1 - len(line))
            except zlib.error as error:
                raise Unreadable(str(error)) from error
            rest = unpacker.unconsumed_tail
        before = _unfiltered(line[0], line[1:], before, header.channels)
        yield before


def _unfiltered(kind: int, line: bytes, above: bytes, step: int) -> bytes:
    match kind:
        case 0:
            return line
        case 1:
            out = bytearray(len(line))
            for channel in range(step):
                out[channel::step] = bytes([value & 255 for value in accumulate(line[channel::step])])
            return bytes(out)
        case 2:
            return bytes([(value + up) & 255 for value, up in zip(line, above, strict=True)])
        case 3:
            out = bytearray(line)
            for at, value in enumerate(line):
                left = out[at - step] if at >= step else 0
                out[at] = (value + (left + above[at]) // 2) & 255
            return bytes(out)
        case 4:
            return _by_paeth(line, above, step)
    raise Unreadable(f"it has a filter {kind}")


def _by_paeth(line: bytes, above: bytes, step: int) -> bytes:
    """Each sample is the difference to the one of left, above and above left that is nearest to what they foretell."""
    out = bytearray(line)
    for channel in range(step):
        left = corner = 0
        for at in range(channel, len(line), step):
            up = above[at]
            by_left, by_up = abs(up - corner), abs(left - corner)
            by_corner = abs(left + up - 2 * corner)
            across = up if by_up <= by_corner else corner
            guess = left if by_left <= by_up and by_left <= by_corner else across
            left = out[at] = (line[at] + guess) & 255
            corner = up
    return bytes(out)


def _colour(header: _Header, row: bytes, x: int, background: tuple[int, int, int]) -> tuple[int, int, int]:
    at = x * header.channels
    match header.kind:
        case 0:
            return row[at], row[at], row[at]
        case 2:
            return row[at], row[at + 1], row[at + 2]
        case 3:
            entry = header.palette[3 * row[at] : 3 * row[at] + 3]
            if len(entry) < 3:
                raise Unreadable("a colour is missing")
            return entry[0], entry[1], entry[2]
        case 4:
            return _over((row[at], row[at], row[at]), row[at + 1], background)
    return _over((row[at], row[at + 1], row[at + 2]), row[at + 3], background)


def _over(colour: tuple[int, int, int], alpha: int, below: tuple[int, int, int]) -> tuple[int, int, int]:
    red, green, blue = [(one * alpha + other * (255 - alpha)) // 255 for one, other in zip(colour, below, strict=True)]
    return red, green, blue
