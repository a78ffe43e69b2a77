"""Pictures: decoded within bounds, drawn where the terminal can, in words elsewhere."""

import re
import struct
import zlib
from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.frontends.tui.drawing.images import fitted, half_blocks, in_words, mode_of, placeholders
from hilt.frontends.tui.drawing.png import Pixels, Unreadable, decode
from hilt.frontends.tui.look import DARK, Look
from hilt.frontends.tui.transcript.answer import Answer
from hilt.frontends.tui.transcript.gallery import KNOWN, Gallery
from hilt.frontends.tui.transcript.said import Said
from hilt.model.content import Image
from support.properties import patient

LOOK = Look.of(DARK)
BELOW = (0, 0, 0)
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(width: int, height: int, lines: bytes, kind: int = 2, palette: bytes = b"", depth: int = 8) -> bytes:
    """From filtered lines."""
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"PLTE", palette) if palette else b""]
    return b"\x89PNG\r\n\x1a\n" + b"".join([*parts, chunk(b"IDAT", zlib.compress(lines)), chunk(b"IEND", b"")])


def plain(width: int, height: int, colour: bytes = b"\xff\x00\x00") -> bytes:
    return png(width, height, (b"\0" + colour * width) * height)


def filtered(kind: int, line: bytes, above: bytes, step: int) -> bytes:
    """As the format defines its filters."""
    out = []
    for at, value in enumerate(line):
        left = line[at - step] if at >= step else 0
        up, corner = above[at], above[at - step] if at >= step else 0
        paeth = min((abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner))
        out.append((value - (0, left, up, (left + up) // 2, paeth[2])[kind]) & 255)
    return bytes([kind, *out])


@patient
@given(
    st.sampled_from(sorted(CHANNELS)), st.integers(1, 6), st.lists(st.integers(0, 4), min_size=1, max_size=6), st.data()
)
def test_every_filter_and_kind_is_decoded(kind: int, width: int, filters: list[int], data: st.DataObject) -> None:
    step = CHANNELS[kind]
    samples = [data.draw(st.binary(min_size=width * step, max_size=width * step)) for _ in filters]
    above, lines = bytes(width * step), b""
    for name, line in zip(filters, samples, strict=True):
        lines, above = lines + filtered(name, line, above, step), line
    palette = bytes(range(256)) * 3
    pixels = decode(png(width, len(filters), lines, kind, palette), width, len(filters), BELOW)
    for y, line in enumerate(samples):
        for x in range(width):
            sample = line[x * step : x * step + step]
            alpha = sample[-1] if kind in (4, 6) else 255
            colour = {1: sample * 3, 2: sample[:1] * 3, 3: sample, 4: sample[:3]}[step]
            if kind == 3:
                colour = palette[3 * sample[0] : 3 * sample[0] + 3]
            assert pixels.at(x, y) == tuple(value * alpha // 255 for value in colour)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GIF89a" + bytes(60),
        plain(4, 4)[:40],
        plain(4, 4)[:-30],
        png(4, 4, b"\x07" + bytes(12)),
        png(4, 4, bytes(3)),
        png(4, 4, bytes(99), depth=16),
        png(4, 4, b"\0\1\2\3\4" * 4, kind=3, palette=b"\0\0\0"),
        png(4, 4, bytes(99), kind=5),
        plain(4, 4).replace(b"IDAT", b"JDAT"),
    ],
)
def test_what_is_no_picture_or_too_large_is_not_decoded(data: bytes) -> None:
    with pytest.raises(Unreadable):
        decode(data, 2, 2, BELOW)


def test_a_picture_of_too_many_pixels_is_not_even_begun() -> None:
    with pytest.raises(Unreadable, match="too large"):
        decode(png(2_000, 1_001, bytes(2_000 * 1_001 * 3 + 1_001)), 2, 2, BELOW)


def test_a_bomb_is_unpacked_row_by_row() -> None:
    """16 MB of zeros in 16 KB: only what the header promises is ever unpacked."""
    pixels = decode(png(4, 4, bytes(16_000_000)), 4, 4, BELOW)
    assert pixels.rgb == bytes(48)


def test_decoding_ends_when_nobody_wants_it_any_more() -> None:
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1
        if checks == 5:
            raise Unreadable("enough")

    with pytest.raises(Unreadable, match="enough"):
        decode(plain(10, 100), 10, 10, BELOW, check)


def test_two_pixels_share_a_cell() -> None:
    pixels = Pixels(1, 3, bytes([1, 2, 3, 4, 5, 6, 7, 8, 9]))
    first, second = half_blocks(pixels)
    [segment] = first
    assert segment.text == "▀"
    assert segment.style
    assert (segment.style.color.triplet, segment.style.bgcolor.triplet) == ((1, 2, 3), (4, 5, 6))  # type: ignore[union-attr]  # both are set
    assert second.cell_length == 1


@pytest.mark.parametrize(
    ("size", "cells"), [((640, 480), (40, 15)), ((10, 10), (10, 5)), ((4_000, 10), (40, 1)), ((1, 9_000), (1, 15))]
)
def test_a_picture_keeps_its_shape_within_bounds(size: tuple[int, int], cells: tuple[int, int]) -> None:
    assert fitted(*size) == cells


def test_words_say_what_a_picture_is() -> None:
    assert in_words("image/png", (640, 480), 34_900) == "[image: png, 640 x 480, 34 KB]"
    assert in_words("image/webp", None, 3_000_000) == "[image: webp, 2.9 MB]"


@pytest.mark.parametrize(
    ("env", "mode"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM": "xterm-ghostty"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "ghostty"}, "kitty"),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1", "TMUX": "x"}, "blocks"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "blocks"),
        ({"TERM": "xterm-256color"}, "words"),
        ({"TERM": "dumb", "KITTY_WINDOW_ID": "1"}, "words"),
        ({"TERM": "xterm-kitty", "NO_COLOR": "1"}, "words"),
        ({}, "words"),
    ],
)
def test_a_terminal_is_known_by_what_it_says_of_itself(env: dict[str, str], mode: str) -> None:
    assert mode_of(env) == mode


def shown(said: Said) -> list[str]:
    return [strip.text for strip in said.rows(60, LOOK)]


async def test_blocks_show_a_picture_where_colours_are_all_there_is() -> None:
    written: list[str] = []
    changed: list[None] = []
    said = Said("", images=(Image("image/png", plain(8, 4)),))
    await Gallery("blocks", written.append, lambda: changed.append(None)).prepare([said], "#102030")
    assert [row.rstrip() for row in shown(said)] == ["┃ [image: png, 8 x 4, 75 bytes]", "┃ ▀▀▀▀▀▀▀▀", "┃ ▀▀▀▀▀▀▀▀"]
    assert (written, len(changed), said.version) == ([], 1, 1)


@pytest.mark.parametrize("data", [b"\xff\xd8\xff junk", plain(2_000, 1_500), png(8, 4, b"\x09"), b"hello \x1b[2J"])
async def test_what_cannot_be_shown_stays_words(data: bytes) -> None:
    said = Said("", images=(Image("image/png", data),))
    await Gallery("blocks", print, lambda: None).prepare([said], "default")
    assert len(shown(said)) == 1
    await Gallery("words", print, lambda: None).prepare([said], "default")
    assert len(shown(said)) == 1


async def test_a_picture_that_takes_too_long_stays_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt.frontends.tui.transcript.gallery.SECONDS", 0.0)
    said = Said("", images=(Image("image/png", plain(8, 4)),))
    await Gallery("blocks", print, lambda: None).prepare([said], "#000000")
    assert len(shown(said)) == 1


async def test_a_huge_picture_is_not_sent() -> None:
    written: list[str] = []
    header = plain(1_200, 1_200)[:33]
    data = header + chunk(b"IDAT", bytes(4_400_000)) + chunk(b"IEND", b"")
    await Gallery("kitty", written.append, lambda: None).prepare([Said("", images=(Image("image/png", data),))], "red")
    assert written == []


async def test_a_terminal_that_can_is_sent_the_picture_and_nothing_else() -> None:
    written: list[str] = []
    data = png(80, 40, b"".join(b"\0" + bytes([x * y % 256 for x in range(240)]) for y in range(40)))
    said = Said("", images=(Image("image/png", data),))
    gallery = Gallery("kitty", written.append, lambda: None)
    await gallery.prepare([said], "#000000")
    parts = [re.fullmatch(r"\x1b_G([a-zA-Z0-9=,]+);([A-Za-z0-9+/=]{1,4096})\x1b\\", one) for one in written]
    assert all(parts)
    found = [part for part in parts if part]
    assert b64decode("".join(part[2] for part in found)) == data
    assert found[0][1].startswith("a=T,U=1,f=100,t=d,i=")
    assert all("q=2" in part[1] for part in found), "no answer comes back as if it were typed"
    assert [part[1][-1] for part in found] == [*["1"] * (len(found) - 1), "0"]
    assert len(shown(said)) == 1 + 10
    assert all(row.cell_length == 40 for row in placeholders(7, 40, 10))
    written.clear()
    gallery.close()
    assert written == [f"\x1b_Ga=d,d=I,i={re.findall('i=([0-9]+)', found[0][1])[0]},q=2\x1b\\"]


@pytest.mark.parametrize("data", [b"\xff\xd8\xff junk", plain(4, 4)[:-12], b"\x1b_Ga=d\x1b\\"])
async def test_a_terminal_is_never_sent_what_is_no_whole_picture(data: bytes) -> None:
    written: list[str] = []
    await Gallery("kitty", written.append, lambda: None).prepare([Said("", images=(Image("image/png", data),))], "red")
    assert written == []


async def test_a_terminal_keeps_few_pictures_and_those_that_leave_can_come_again() -> None:
    written: list[str] = []
    gallery = Gallery("kitty", written.append, lambda: None)
    said = [Said("", images=(Image("image/png", plain(2, 2)),)) for _ in range(3 * KNOWN)]
    for one in said:
        one.pictures[0].asked = True
    await gallery.prepare(said, "#000000")
    assert len([one for one in written if "a=d" in one]) == 2 * KNOWN
    assert [one.pictures[0].asked for one in said] == [False] * (2 * KNOWN) + [True] * KNOWN
    assert len(shown(said[0])) == 1
    assert len(shown(said[-1])) == 2


async def test_what_is_laid_out_beside_can_be_asked_for_again_when_more_of_it_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for patience in ("_PATIENCE", "_IN_SIGHT"):
        monkeypatch.setattr(f"hilt.frontends.tui.transcript.answer.{patience}", 0.0)
    changed: list[None] = []
    gallery = Gallery("words", print, lambda: changed.append(None))
    answer = Answer()
    for _ in range(3):
        answer.feed("A paragraph of some length, again and again.\n\n" * 1_500)
        answer.rows(60, LOOK)
        assert answer.unready
        answer.asked = True
        await gallery.prepare([answer], "#000000")
        assert not answer.unready
        assert not answer.asked
        assert len(answer.rows(60, LOOK)) > 1_000
    assert len(changed) == 3
