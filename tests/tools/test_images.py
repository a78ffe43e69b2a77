import base64
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.model.content import Image
from hilt.tools.images import Picture, examine, is_image
from support.properties import patient
from tools.kit import Bench


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int = 3, height: int = 2) -> bytes:
    pixels = zlib.compress(b"\0" * 100)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def jpeg(width: int = 3, height: int = 2) -> bytes:
    thumbnail = segment(0xE1, b"Exif\0\0\xff\xd8\xff\xc0\xff\xd9")
    size = segment(0xC2, struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\0")
    table = segment(0xC4, b"\x00\xff\xd9")
    first = segment(0xDA, b"\x01\x01\0\0\x3f\0") + b"abc\xff\x00de\xff\xd0fg"
    second = segment(0xDA, b"\x01\x01\0\0\x3f\0") + b"hij"
    return b"\xff\xd8" + thumbnail + size + first + table + b"\xff" + second + b"\xff\xd9"


def webp(*parts: tuple[bytes, bytes]) -> bytes:
    body = b"WEBP" + b"".join(k + struct.pack("<I", len(b)) + b + b"\0" * (len(b) % 2) for k, b in parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def animated(width: int, height: int) -> bytes:
    canvas = bytes([2, 0, 0, 0]) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return webp((b"VP8X", canvas), (b"ANIM", bytes(6)), (b"ANMF", bytes(17)))


GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
LOSSY = base64.b64decode("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
LOSSLESS = base64.b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
WHOLE = [
    (png(), Picture("image/png", 3, 2)),
    (jpeg(), Picture("image/jpeg", 3, 2)),
    (GIF, Picture("image/gif", 1, 1)),
    (LOSSY, Picture("image/webp", 1, 1)),
    (LOSSLESS, Picture("image/webp", 1, 1)),
    (animated(300, 7), Picture("image/webp", 300, 7)),
]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize(("data", "picture"), WHOLE)
def test_whole_images_are_known_with_their_size(data: bytes, picture: Picture) -> None:
    assert examine(data) == picture
    assert examine(data + b"something after the end") == picture


@pytest.mark.parametrize(("data", "picture"), WHOLE)
def test_an_image_cut_off_anywhere_is_none(data: bytes, picture: Picture) -> None:
    for length in range(len(data)):
        assert isinstance(examine(data[:length]), str), length


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not PNG"),
        (b"text", "not PNG"),
        (b"\x89PNG\r\n\x1a\n" + chunk(b"IEND", b"") + bytes(40), "header"),
        (png(0, 4), "0 x 4"),
        (png().replace(b"IDAT", b"tEXt"), "no pixels"),
        (png().replace(chunk(b"IEND", b""), b""), "truncated"),
        (jpeg(3, 0), "3 x 0"),
        (b"\xff\xd8\xff\xd9", "no pixels"),
        (b"\xff\xd8\xff\xe0\0\x02rubbish", "malformed at byte 6"),
        (b"\xff\xd8" + segment(0xC0, b"\x08") + b"\xff\xd9", "size is missing"),
        (GIF[:13] + b"\0" * 6 + b";", "no pixels"),
        (GIF[:19] + b"?" + GIF[20:], "malformed at byte 19"),
        (webp(), "no pixels"),
        (webp((b"VP8X", bytes(10))), "no pixels"),
        (webp((b"VP8 ", b"\x01" + LOSSY[21:])), "malformed"),
        (webp((b"VP8L", b"?" + LOSSLESS[21:])), "malformed"),
        (b"RIFF\x0c\0\0\0WEBPVP8 \xff\0\0\0", "longer than the file"),
    ],
)
def test_what_is_wrong_with_an_image_is_said(data: bytes, reason: str) -> None:
    said = examine(data)
    assert isinstance(said, str)
    assert reason in said


@patient
@given(st.sampled_from([b"", *(data[:cut] for data, _ in WHOLE for cut in (8, 12, 16, 25))]), st.binary())
def test_no_bytes_at_all_make_it_fail(head: bytes, rest: bytes) -> None:
    examined = examine(head + rest)
    assert isinstance(examined, (Picture, str))
    if isinstance(examined, Picture):
        assert is_image(head + rest)
        assert examined.width > 0
        assert examined.height > 0


@patient
@given(st.sampled_from(WHOLE), st.data())
def test_no_damage_makes_it_fail(whole: tuple[bytes, Picture], draw: st.DataObject) -> None:
    data = bytearray(whole[0])
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    assert isinstance(examine(bytes(data)), (Picture, str))


@pytest.mark.parametrize(("data", "picture"), WHOLE)
async def test_the_content_decides_what_an_image_is_read_as(bench: Bench, data: bytes, picture: Picture) -> None:
    (bench.root / "wrong-name.png").write_bytes(data)
    output = await bench.call("read", path="wrong-name.png")
    assert output.content == (Image(picture.mime_type, data),)
    assert (output.details["width"], output.details["height"]) == (picture.width, picture.height)


async def test_a_truncated_image_is_refused_with_the_reason(bench: Bench) -> None:
    (bench.root / "half.png").write_bytes(png()[:-4])
    assert "the PNG is truncated" in await bench.refusal("read", path="half.png")


async def test_an_image_over_eight_thousand_pixels_is_refused_with_its_size(bench: Bench) -> None:
    (bench.root / "fits.png").write_bytes(png(8_000, 8_000))
    assert len((await bench.call("read", path="fits.png")).content) == 1
    for width, height in ((8_001, 1), (1, 8_001)):
        (bench.root / "big.png").write_bytes(png(width, height))
        message = await bench.refusal("read", path="big.png")
        assert f"{width} x {height} pixels; at most 8000" in message


async def test_an_image_over_five_megabytes_is_refused_with_its_size(bench: Bench) -> None:
    size = 5 * 1024 * 1024
    (bench.root / "fits.png").write_bytes(png().ljust(size, b"\0"))
    (bench.root / "big.png").write_bytes(png().ljust(size + 1, b"\0"))
    assert len((await bench.call("read", path="fits.png")).content) == 1
    assert f"image of {size + 1} bytes" in await bench.refusal("read", path="big.png")


async def test_text_named_like_an_image_is_read_as_text(bench: Bench) -> None:
    (bench.root / "a.png").write_text("not an image\n")
    assert await bench.text("read", path="a.png") == "not an image\n"
