"""The last line of a text that is still being written: markup that was begun is drawn as if it were ended.

So a word that will be bold is bold from its first letter on, and its marks do not come and go. Owns nothing that
lasts: the next line is drawn as it is.
"""

import re

# The beginning of a line that may become anything, such as the line below a heading: nothing to read in it yet.
_UNDECIDED = re.compile(r"\s*(?:\d{1,3}[.)]?|[-=*_`~#>+|:\s]*)\s*")
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"\]\([^()\s]*$")
_PAIRS = ("**", "~~")


def mended(line: str) -> str:
    """What to draw of it."""
    if _UNDECIDED.fullmatch(line):
        return ""
    if line.startswith(("  ", "\t")):  # within an item it may be code
        return line
    bare = _CODE.sub("", line)
    if "`" in bare:
        return line.rstrip("`") if line.endswith("`") else line + "`"
    if _LINK.search(bare):
        return line + ")"
    for mark in _PAIRS:
        before, found, begun = bare.rpartition(mark)
        if found and before.count(mark) % 2 == 0:
            if not begun.strip(mark[0]):
                return line.rstrip(mark[0])
            if not begun[0].isspace():
                return line.rstrip(" " + mark[0]) + mark
    return line
