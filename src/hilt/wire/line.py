"""A line of JSON, whatever dialect it is of: how long it may be, how it is made sound, and one that cannot be used.

Cutting a stream into lines is the transport's business, what a line says is the dialect's.
"""

import re

import msgspec
from msgspec import Struct

from hilt.errors import FrameError

LINE_LIMIT = 4 * 1024 * 1024
"""Lines are shorter than this, newline included: a Go extension goes deaf at a longer one."""

HEAD = 4096
"""How much of a bad line is searched for its type and id."""

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""All that decoding can raise."""

_BOM = b"\xef\xbb\xbf"
_LONE_ESCAPE = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F][0-9a-fA-F]{2})"
)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Unknown(Struct, frozen=True):
    """A sound line of a type nobody here knows; the host goes on as if it had not come."""

    type: str
    raw: bytes


class Malformed(Struct, frozen=True):
    """A line that cannot be used, and what could still be read of it."""

    reason: str
    type: str = ""
    id: str | int = ""
    """Empty when it could not be read. Whoever waits for it can be told at once."""


def strip_bom(first_line: bytes) -> bytes:
    """Some editors and runtimes begin a stream with a byte order mark; only its first line may have one."""
    return first_line.removeprefix(_BOM)


def scrub(text: str) -> str:
    """The same text with U+FFFD for every lone surrogate, which no UTF-8 can carry."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def mend(line: bytes) -> bytes:
    """Make the characters sound: U+FFFD for bytes that are not UTF-8 and for each lone `\\ud800`."""
    try:
        line.decode()
    except UnicodeDecodeError:
        line = line.decode("utf-8", "replace").encode()
    if b"\\ud" in line or b"\\uD" in line:
        # Once an escaped backslash is spelt otherwise, every `\` left begins an escape.
        line = _LONE_ESCAPE.sub(rb"\\ufffd", line.replace(rb"\\", rb"\u005c"))
    return line


def reason_of(error: Exception) -> str:
    """What is wrong with a line, of which decoding raised one of the `UNREADABLE`."""
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def within_limit(line: bytes, what: str) -> bytes:
    """The line, if it can be read at the other end. Raises `FrameError`."""
    if len(line) + 1 >= LINE_LIMIT:
        raise FrameError(
            f"{what} would be a line of {len(line) + 1:,} bytes; extensions can read {LINE_LIMIT - 1:,}",
            hint="Pass large data through a file and send its path.",
        )
    return line
