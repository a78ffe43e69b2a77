"""What the model gets of a tool's answer: within bounds, with the rest of it on disk."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from hilt.model.content import Image, ResultBlock, Text
from hilt.model.contributions import ToolOutput
from hilt.wire.limits import MODEL_TEXT_LIMIT

_REASON = 10_000
"""Characters of why something failed: the model reads them, and so does the user."""


def brief(reason: str) -> str:
    """In an extension's own words, of which there may be a whole line."""
    return reason if len(reason) <= _REASON else f"{reason[:_REASON]}…"


def is_short(output: ToolOutput) -> bool:
    """One text, as nearly always, that is surely not too long: a character has four bytes at most."""
    content = output.content
    return len(content) == 1 and type(content[0]) is Text and len(content[0].text) <= MODEL_TEXT_LIMIT // 4


async def bounded(output: ToolOutput, tool: str, outputs: Path) -> ToolOutput:
    """The output as it is, unless its text is longer than a model should read."""
    texts = [block.text.encode(errors="replace") for block in output.content if isinstance(block, Text)]
    size = sum(map(len, texts))
    if size <= MODEL_TEXT_LIMIT:
        return output
    path = outputs / f"ext-{tool}-{os.urandom(6).hex()}.txt"
    try:
        await asyncio.to_thread(_keep, path, b"\n".join(texts))
        where = f"the whole text is in {path}"
    except OSError as error:
        where = f"the rest could not be saved: {error.strerror}"
    note = Text(f"[cut: {size:,} bytes of text, {MODEL_TEXT_LIMIT:,} are shown; {where}]")
    return structs.replace(output, content=(*_first(output.content), note))


def _first(content: Sequence[ResultBlock]) -> list[ResultBlock]:
    room = MODEL_TEXT_LIMIT
    kept: list[ResultBlock] = []
    for block in content:
        if isinstance(block, Image):
            kept.append(block)
        elif room > 0:
            text = block.text.encode(errors="replace")
            kept.append(Text(text[:room].decode(errors="ignore")))  # a character cut in two is left out
            room -= len(text)
    return kept


def _keep(path: Path, text: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(text)
