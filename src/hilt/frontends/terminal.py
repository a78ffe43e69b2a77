"""The one choke point before a terminal: text from models, tools and files, made harmless.

Everything that can move the cursor, set the title, reach the clipboard or reorder what is read
is taken out; colours may stay when asked.
"""

import re

_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
_CSI = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
_ESCAPE = r"\x1b[ -/]*[0-~]?"
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
# Directional overrides and isolates, zero-width spaces and the byte-order mark; joiners stay: emoji need them.
_INVISIBLE = "[\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
_HARMFUL = re.compile(f"(?P<sgr>\x1b\\[[0-9;:]*m)|{_STRING}|{_CSI}|{_ESCAPE}|{_CONTROL}|{_INVISIBLE}")


def clean(text: str, *, colour: bool = False) -> str:
    """Plain text, line breaks and tabs; with `colour` also SGR sequences."""
    return _HARMFUL.sub(lambda found: (found["sgr"] or "") if colour else "", text)


def one_line(text: str, width: int) -> str:
    """The beginning of a text on one line, with an ellipsis where it is cut."""
    flat = " ".join(clean(text[: width * 4]).split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"
