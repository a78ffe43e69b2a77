"""What extensions told the model about their tools last time, so that no change goes unnoticed.

Owns a small file, which all extensions of a host share, of what each tool was described as when last seen. When to
look, and whom to tell, is `recollection`'s business.
"""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from hilt.errors import HiltError, PackageError
from hilt.model.contributions import Tool
from hilt.packages.keeping import read, replace
from hilt.packages.members import shown

_LARGEST = 4 * 1024 * 1024
_MOST = 512
"""Tools of one extension that are remembered, also when it does not offer them any more."""
_KEPT = 1024
"""Characters of a description that are kept to show what became of it."""
_CONTEXT, _SHOWN = 20, 80
_WRITING = 2.0
"""Seconds."""


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


class _Question:
    def __init__(self, owner: str, tools: tuple[Tool, ...]) -> None:
        self.offer = (owner, tools)
        self.answer: News | None = None


class Memory:
    """Whoever asks while others are being answered is answered together with all that wait: of fifty that start at
    once each would else write the file anew, and keep the threads that start the next ones busy with it.

    Other hosts may write the file, too: what they lose to each other is a notice.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = asyncio.Lock()
        self._asked: list[_Question] = []

    async def news(self, owner: str, tools: tuple[Tool, ...]) -> News:
        """Compare these tools with what was seen of them last, and keep them instead."""
        question = _Question(owner, tools)
        self._asked.append(question)
        try:
            async with self._turn:
                if question.answer is None:
                    await self._answer([one for one in self._asked if one.answer is None])
        finally:
            self._asked.remove(question)
        return question.answer or News()

    async def _answer(self, questions: list[_Question]) -> None:
        loop = asyncio.get_running_loop()
        try:
            work = loop.run_in_executor(None, remember, self._path, [one.offer for one in questions])
        except RuntimeError as error:  # there is no thread to be had
            unknown = f"whether extensions tell the model what they did before is not known: {error}"
            _tell(questions, _first(unknown, questions))
            return
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait((work,), timeout=_WRITING)  # what is being written is not left behind
            raise
        finally:
            if work.done():
                _tell(questions, work.result())


def _tell(questions: Sequence[_Question], answers: Sequence[News]) -> None:
    for question, answer in zip(questions, answers, strict=True):
        question.answer = answer


def remember(path: Path, offers: Sequence[tuple[str, Iterable[Tool]]]) -> list[News]:
    """Of each owner and its tools: how they differ from last time; they are kept instead. Blocks; never raises."""
    try:
        memory, problem = _recalled(path)
    except HiltError as error:
        return _first(error.message, offers)
    before = dict(memory)
    news = [_renewed(memory, owner, {tool.name: _seen(tool) for tool in tools}) for owner, tools in offers]
    if memory != before:
        try:
            replace(path, _fitting(memory))
        except PackageError as error:
            problem = problem or error.message
    return [msgspec.structs.replace(news[0], problem=problem), *news[1:]]


def _first(problem: str, asked: Sequence[object]) -> list[News]:
    """What is wrong with the file is told once."""
    return [News(problem=problem), *(News() for _ in asked[1:])]


def _renewed(memory: _Memory, owner: str, now: dict[str, Seen]) -> News:
    before = memory.get(owner)
    if before is not None and before.items() >= now.items():
        return News()
    memory.pop(owner, None)  # to come last
    memory[owner] = _newest(before or {}, now)
    return News() if before is None else News(*_compared(before, now))


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
