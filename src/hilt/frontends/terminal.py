"""The one choke point before a terminal: text from models, tools, extensions and files, made harmless.

What commands a terminal is taken out, and what hides or reorders text is written out as ‹U+202E›: what is read is what
is there. Each call stands for itself, also on a piece of a stream: the character that begins a command never
gets through, so the rest of it, in whatever call it comes, is plain text.
"""

import os
import re
from functools import cache

MARK = "◈"
"""Begins what hilt itself asks. No text that went through here can draw it."""

_SURROGATES = "\ud800-\udfff"
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
# What Unicode calls default-ignorable (direction marks and isolates, zero-width characters, joiners, fillers, variation
# selectors, tags, the soft hyphen), and the separators and annotation marks that terminals do not draw either.
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HIDDEN = f"[{_CONTROLS}{_UNSEEN}{_SURROGATES}{MARK}]"

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
    emoji = (
        "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u25c7\u25c9-\u27bf"
        "\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
    )
    mongolian = "\u1820-\u18aa"
    south_east = "\u1000-\u109f\u1780-\u17b3\u17b6-\u17d3"
    joining = f"\u0620-\u06ff\u0710-\u077f\u07c0-\u07ff\u0840-\u08ff\u0900-\u0dff{south_east}{mongolian}"
    unspaced = f"\u0e00-\u0eff{south_east}"
    virama = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca"
    places = (
        f"(?:(?<=[{emoji}])|(?<=[{emoji}]\ufe0f))\u200d(?=[{emoji}])",
        f"(?<=[{emoji}])[\ufe0e\ufe0f]",
        "(?<=[#*0-9])\ufe0f(?=\u20e3)",
        f"(?<=[{joining}])[\u200c\u200d](?=[{joining}])",
        f"(?<=[{virama}])[\u200c\u200d]",
        f"(?<=[{unspaced}])\u200b(?=[{unspaced}])",
        f"(?<=[{mongolian}])[\u180b-\u180f]",
    )
    return re.compile("|".join(places))
