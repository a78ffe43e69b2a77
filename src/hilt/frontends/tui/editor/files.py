"""Files of the project in the input: `@src/main.py`, and `@"a name with spaces"`.

Owns how a path is written there and which are offered. Which files there are is known to whoever searches them.
"""

import re
from typing import Protocol

from hilt.frontends.terminal import clean
from hilt.frontends.tui.editor.offers import Choice, Offer

SHOWN = 12
_BEGUN = r'(?:^|(?<=\s))@(?:"(?P<quoted>[^"]*)|(?P<plain>[^\s"]*))$'


class Files(Protocol):
    """The files of a project."""

    async def refresh(self) -> None: ...

    def match(self, query: str, limit: int = SHOWN) -> list[str]: ...


def begun(before: str) -> tuple[int, str] | None:
    """Where before the cursor a path begins, and what of it is there."""
    found = re.search(_BEGUN, before) if "@" in before else None
    return (found.start(), found["quoted"] or found["plain"] or "") if found else None


def for_files(before: str, files: Files) -> Offer | None:
    """`before` is the line up to the cursor."""
    at = begun(before)
    if at is None:
        return None
    start, query = at
    # What would not be drawn as it is cannot be chosen: nobody would know what was put in.
    names = [name for name in files.match(query, SHOWN) if "\n" not in name and clean(name) == name]
    # One that was typed to its end is not in the way of sending.
    return Offer("file", start, [Choice(written(name), name, runs=name == query) for name in names])


def written(name: str) -> str:
    """As it stands in the input. After a directory one can go on typing."""
    quoted = f'@"{name}"' if " " in name or "\t" in name else f"@{name}"
    return quoted if name.endswith("/") else f"{quoted} "
