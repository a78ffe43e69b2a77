"""Text on its way to and from bytes: what cannot be encoded, and what is too long to show."""

import re


def to_bytes(text: str) -> tuple[bytes, int]:
    """UTF-8, and how many unpaired surrogates became U+FFFD because no encoding has them."""
    try:
        return text.encode(), 0
    except UnicodeEncodeError:
        clean, count = re.subn("[\ud800-\udfff]", "\ufffd", text)
        return clean.encode(), count


def clip(text: str, lines: int, size: int) -> str:
    """The beginning of a text, within so many lines and bytes, saying what is left out."""
    if len(text) * 4 <= size and text.count("\n") < lines:
        return text
    rows = text.split("\n")
    kept: list[str] = []
    for row in rows[:lines]:
        size -= len(row.encode()) + 1
        if size < 0:
            break
        kept.append(row)
    if len(kept) == len(rows):
        return text
    return "\n".join([*kept, f"... [{len(rows) - len(kept)} more lines]"])
