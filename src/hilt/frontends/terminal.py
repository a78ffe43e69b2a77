"""The one choke point before a terminal: text from models, tools and files, made harmless.

Everything that can move the cursor, set the title, reach the clipboard or reorder what is read
is taken out; colours may stay when asked.
"""

import re

_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
_CSI = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
_ESCAPE = r"\x1b[ -/]*[0-~]?"
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
# Directional marks, overrides and isolates, zero-width and tag characters, the byte-order mark: what is read must
# be what is there. Joiners stay: emoji need them.
_INVISIBLE = (
    "[\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_HARMFUL = re.compile(f"(?P<sgr>\x1b\\[[0-9;:]*m)|{_STRING}|{_CSI}|{_ESCAPE}|{_CONTROL}|{_INVISIBLE}")


def clean(text: str, *, colour: bool = False) -> str:
    """Plain text, line breaks and tabs; with `colour` also SGR sequences, which end with their line."""
    if not colour:
        return _HARMFUL.sub("", text)
    return "\n".join(map(_closed, _HARMFUL.sub(lambda found: found["sgr"] or "", text).split("\n")))


def _closed(line: str) -> str:
    """A colour left on would paint whatever hilt itself says next."""
    last = line.rpartition("\x1b[")
    return line if not last[1] or last[2].startswith(("m", "0m")) else line + "\x1b[0m"


def one_line(text: str, width: int) -> str:
    """The beginning of a text on one line, with an ellipsis where it is cut."""
    flat = " ".join(clean(text[: width * 4]).split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"
