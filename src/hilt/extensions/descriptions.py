"""What extensions tell the model about their tools: nothing that a person could not read, and nothing else than last
time without the user knowing.

Owns the cleaning of such texts, and the memory of them: a small file of what each tool was described as when it was
last seen. What is registered, and whom to tell, is others' business.
"""

import re
import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from hilt.errors import HiltError, PackageError
from hilt.model.contributions import Tool
from hilt.packages.keeping import read, replace
from hilt.packages.members import shown

MEMORY = "descriptions.json"
"""The file of that, in hilt's home."""

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
# Direction marks, zero-width characters, fillers, variation selectors and tags: what Unicode calls default-ignorable,
# and what no screen draws either.
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\ud800-\udfff\U000e0000-\U000e0fff"
)
_DEEPEST = 64
_LARGEST = 4 * 1024 * 1024
_MOST = 512
"""Tools of one extension that are remembered, also when it does not offer them any more."""
_KEPT = 1024
"""Characters of a description that are kept to show what became of it."""
_CONTEXT, _SHOWN = 20, 80

_at_a_time = threading.Lock()
"""Several extensions of one host share the file. Other hosts may, too: what they lose to each other is a notice."""


class Seen(Struct, frozen=True):
    """A tool as it was last described."""

    hash: str
    """Of everything the model is told about it."""
    description: str
    """The beginning of it."""


class Change(Struct, frozen=True):
    tool: str
    difference: str


class News(Struct, frozen=True):
    """How what an extension tells the model differs from last time."""

    changed: tuple[Change, ...] = ()
    added: tuple[str, ...] = ()
    """Tools that were not there before, of an extension that was."""
    problem: str = ""
    """Why it cannot be told, or will not be next time."""


_Memory: TypeAlias = dict[str, dict[str, Seen]]


# What nobody can see


def cleaned(text: str) -> str:
    """The same text without what cannot be seen in it. Joiners and selectors stay where scripts and emoji need them."""
    text = text.replace("\r\n", "\n")
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _hidden().sub("", text)


def hides(text: str) -> bool:
    """Whether there is anything in it that cannot be seen; how lines end is of no interest."""
    return cleaned(text) != text.replace("\r\n", "\n")


def schema_problem(schema: dict[str, Any]) -> str | None:
    """Why it cannot be shown to the model. A name cannot be cleaned: its owner would not know it any more."""
    todo: list[tuple[Any, int]] = [(schema, 1)]
    while todo:
        value, depth = todo.pop()
        if depth > _DEEPEST:
            return f"schema is nested more than {_DEEPEST} deep"
        if isinstance(value, dict):
            if odd := next(filter(hides, value), None):
                return f"schema: the name {ascii(odd)[:_SHOWN]} has invisible characters"
            todo += [(item, depth + 1) for item in value.values()]
        elif isinstance(value, list):
            todo += [(item, depth + 1) for item in value]
    return None


def cleaned_schema(schema: Any) -> Any:
    """The same schema with every text in it cleaned. `schema_problem` comes first: it bounds the depth."""
    match schema:
        case str():
            return cleaned(schema)
        case dict():
            return {name: cleaned_schema(item) for name, item in schema.items()}
        case list():
            return [cleaned_schema(item) for item in schema]
        case _:
            return schema


@cache  # compiled when it is needed: few have such texts
def _hidden() -> re.Pattern[str]:
    drawn = f"[^\x00-\x9f{_UNSEEN}]"
    needed = (
        f"(?<={drawn})[\u200c\u200d](?={drawn})",
        f"(?<={drawn}\ufe0f)\u200d(?={drawn})",
        f"(?<={drawn})[\ufe0e\ufe0f]",
        "(?<=[#*0-9])\ufe0f(?=\u20e3)",
    )
    return re.compile(f"(?!{'|'.join(needed)})[{_CONTROLS}{_UNSEEN}]")


# What it was last time


def remember(path: Path, owner: str, tools: Iterable[Tool]) -> News:
    """Compare these tools with what was seen of them last, and keep them instead. Blocks; never raises."""
    now = {tool.name: _seen(tool) for tool in tools}
    with _at_a_time:
        try:
            memory, problem = _recalled(path)
        except HiltError as error:
            return News(problem=error.message)
        before = memory.pop(owner, None)
        if before is not None and before.items() >= now.items():
            return News(problem=problem)
        memory[owner] = _newest((before or {}), now)
        try:
            replace(path, _fitting(memory))
        except PackageError as error:
            problem = problem or error.message
    return News(*_compared(before, now), problem) if before is not None else News(problem=problem)


def _compared(before: dict[str, Seen], now: dict[str, Seen]) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    changed = (
        Change(name, _difference(before[name].description, seen.description))
        for name, seen in now.items()
        if name in before and before[name].hash != seen.hash
    )
    return tuple(changed), tuple(name for name in now if name not in before)


def _seen(tool: Tool) -> Seen:
    import hashlib  # 2 ms; whoever waits for an extension does not wait for this

    told = (tool.description, tool.instructions, tool.schema)
    return Seen(hashlib.sha256(msgspec.json.encode(told, order="sorted")).hexdigest(), tool.description[:_KEPT])


def _recalled(path: Path) -> tuple[_Memory, str]:
    """What is remembered, and what is wrong with that. Raises `ManifestError` for what cannot be read at all."""
    data = read(path, _LARGEST)
    if not data:
        return {}, ""
    try:
        return msgspec.json.decode(data, type=_Memory), ""
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        lost = "how extensions described their tools before is forgotten, so a change may go unnoticed once"
        return {}, f"{shown(path)} is damaged ({shown(str(error))}): {lost}"


def _newest(before: dict[str, Seen], now: dict[str, Seen]) -> dict[str, Seen]:
    """Those it offers now come last, and stay longest."""
    kept = [*((name, seen) for name, seen in before.items() if name not in now), *now.items()]
    return dict(kept[-_MOST:])


def _fitting(memory: _Memory) -> bytes:
    """All that fits, the extensions that changed last before others."""
    while len(data := msgspec.json.encode(memory)) > _LARGEST:
        del memory[next(iter(memory))]
    return data


def _difference(old: str, new: str) -> str:
    """The place where the two part, in one line."""
    before, now = " ".join(old.split()), " ".join(new.split())
    if before == now:
        return "what it says of its arguments, or far down in its description"
    common = next((at for at, pair in enumerate(zip(before, now, strict=False)) if len(set(pair)) > 1), len(before))
    start = max(0, min(common, len(now)) - _CONTEXT)
    return f'"{_piece(before, start)}" became "{_piece(now, start)}"'


def _piece(text: str, start: int) -> str:
    piece = text[start : start + _SHOWN]
    return ("…" if start else "") + shown(piece) + ("…" if start + _SHOWN < len(text) else "")
