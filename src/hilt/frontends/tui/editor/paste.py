"""What is pasted: made harmless, and recognised when it is files that were dropped on the terminal.

Chips are made of it elsewhere, and where a paste begins and ends is known to `keyboard`.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

from hilt.frontends.terminal import clean

Dropped: TypeAlias = tuple[Path, bool]
"""A path, and whether it is a directory's."""

_SLICE = 32_768
"""Characters that are cleaned at once: a millisecond, in which nothing else runs."""
_DROPPED = 8_192
"""Characters that the paths of dropped files may take."""
_FILES = 32


def cleaned(pasted: str) -> str:
    """As it goes into the input: line feeds, tabs and text."""
    return "".join(map(clean, _slices(pasted.replace("\r\n", "\n").replace("\r", "\n"))))


def _slices(text: str) -> Iterator[str]:
    """Cut behind a line where there is one, so that what belongs together is cleaned together."""
    start = 0
    while start < len(text):
        end = start + _SLICE
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        yield text[start:end]
        start = end


def dropped(pasted: str) -> list[Dropped]:
    """The files whose paths this is, as terminals write them when files are dropped: quoted, or with backslashes.

    Only whole paths count: a word may be the name of a file by chance. Looks at the disk, which may take its time.
    """
    text = pasted.strip()
    if len(text) > _DROPPED or not text.startswith(("/", "~/", "'", '"', "file://")):
        return []
    return _existing([text]) or _existing(_words(text))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []  # a quote without its partner


def _existing(words: list[str]) -> list[Dropped]:
    """All of them, or none."""
    found = [one for word in words[: _FILES + 1] if (one := _found(word))]
    return found if len(found) == len(words) <= _FILES else []


def _found(word: str) -> Dropped | None:
    if word.startswith("file://"):
        word = unquote(word.removeprefix("file://").removeprefix("localhost"))
    if not word.startswith(("/", "~/")):
        return None
    try:
        path = Path(word).expanduser()
        return (path, path.is_dir()) if path.exists() else None
    except (OSError, ValueError, RuntimeError):
        return None  # too long, a NUL in it, or no home
