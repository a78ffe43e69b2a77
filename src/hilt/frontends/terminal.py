"""The one choke point before a terminal: text from models, tools, extensions and files, made harmless.

What commands a terminal is taken out, and what hides or reorders text is written out as ‹U+202E›: what is read is what
is there. Each call stands for itself, also on a piece of a stream: the character that begins a command never
gets through, so the rest of it, in whatever call it comes, is plain text.
"""

import os
import re
from functools import cache

from hilt.model.unseen import CONTROLS, JOINING, MONGOLIAN, PICTURES, SOUTH_EAST, SURROGATES, UNSEEN

MARK = "◈"
"""Begins what hilt itself asks. No text that went through here can draw it."""

_HIDDEN = f"[{CONTROLS}{UNSEEN}{SURROGATES}{MARK}]"

_STRING = r"[^\x07\x1b\n\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"
_CSI = r"[0-?]*[ -/]*[@-~]?"
# One character to look for comes first, and what belongs to it behind: so plain text is passed over at full speed. A
# string without an end loses only its beginning, or it would swallow what hilt itself says behind it.
_HARMFUL = re.compile(
    rf"{_HIDDEN}(?:(?<=\x1b)(?:\[(?P<sgr>[0-9;:]{{0,64}}m)|\[{_CSI}|[\]PX^_]{_STRING}|[ -/]*[0-~]?)"
    rf"|(?<=\x9b){_CSI}|(?<=[\x90\x98\x9d-\x9f]){_STRING}|)"
)


def clean(text: str, *, colour: bool = False) -> str:
    """Plain text, line breaks and tabs; with `colour` also SGR sequences, which end with their line."""
    if not colour:
        return _HARMFUL.sub(_harmless, text)
    return "\n".join(map(_closed, _HARMFUL.sub(_coloured, text).split("\n")))


def visible(text: str) -> str:
    """The same for what somebody is going to approve: nothing is taken out, control characters are written out too."""
    return _hidden().sub(_readable, text)


def one_line(text: str, width: int) -> str:
    """The beginning of a text on one line, with an ellipsis where it is cut."""
    head = text[: width * 4]
    flat = " ".join(clean(head).split())
    whole = len(flat) <= width and len(head) == len(text)
    return flat if whole else flat[: width - 1] + "…"


def hanging(text: str) -> str:
    """hilt's own words, which may quote a stranger's: no further line of them can pass for a line of hilt's."""
    return text.replace("\n", "\n  ")


def json_for_stdout(line: bytes) -> bytes:
    """JSON as it is; at a terminal the same value, with whatever JSON leaves raw and a terminal obeys as \\uXXXX."""
    return _hidden().sub(_in_json, line.decode()).encode() if os.isatty(1) else line


def _harmless(found: re.Match[str]) -> str:
    letter = found[0][0]
    if letter < "\xa0":
        return ""
    return "\ufffd" if "\ud800" <= letter <= "\udfff" else _readable(found)


def _coloured(found: re.Match[str]) -> str:
    shades = found["sgr"]
    return found[0] if shades and not _conceals(shades) else _harmless(found)


def _conceals(shades: str) -> bool:
    """Whether an SGR sequence hides the text behind it: code 8, unless that stands for a colour."""
    codes = iter(shades[:-1].split(";"))
    for code in codes:
        if code.partition(":")[0].lstrip("0") == "8":
            return True
        if code in ("38", "48", "58"):
            parts = {"5": 1, "2": 3}.get(next(codes, ""))
            if parts is None:
                return True  # no colour: terminals differ in what they make of the rest
            for _ in range(parts):
                next(codes, "")
    return False


def _closed(line: str) -> str:
    """A colour left on would paint whatever hilt itself says next."""
    last = line.rpartition("\x1b[")
    return line if not last[1] or last[2].startswith(("m", "0m")) else line + "\x1b[0m"


def _readable(found: re.Match[str]) -> str:
    needed = found[0] >= "\xa0" and _in_place().match(found.string, found.start())
    return found[0] if needed else f"‹U+{ord(found[0]):04X}›"


def _in_json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


@cache  # compiled when it is needed: most runs show nothing of the kind, and it takes milliseconds
def _hidden() -> re.Pattern[str]:
    return re.compile(_HIDDEN)


@cache
def _in_place() -> re.Pattern[str]:
    """An unseen character where it does what its script or its emoji needs.

    What must stand around it is never taken out, so it is still in place when the text comes here again.
    """
    unspaced = f"\u0e00-\u0eff{SOUTH_EAST}"
    virama = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca"
    places = (
        f"(?:(?<=[{PICTURES}])|(?<=[{PICTURES}]\ufe0f))\u200d(?=[{PICTURES}])",
        f"(?<=[{PICTURES}])[\ufe0e\ufe0f]",
        "(?<=[#*0-9])\ufe0f(?=\u20e3)",
        f"(?<=[{JOINING}])[\u200c\u200d](?=[{JOINING}])",
        f"(?<=[{virama}])[\u200c\u200d]",
        f"(?<=[{unspaced}])\u200b(?=[{unspaced}])",
        f"(?<=[{MONGOLIAN}])[\u180b-\u180f]",
    )
    return re.compile("|".join(places))
