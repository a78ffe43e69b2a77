"""What an extension costs: its round trip, its start and its memory, beside the least that any extension would.

Owns how that is measured. Both are started as hilt starts them and asked line by line, in turns and in several rounds,
so that noise falls on both; the ratio says more than the figures, which are this machine's.
"""

import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from msgspec import Struct

from hilt.authoring.exchange import Id
from hilt.authoring.greeting import Offered, greet
from hilt.authoring.speaking import tongue
from hilt.authoring.speaking.tongue import Answer, Asked
from hilt.authoring.stage import Actor, find, started
from hilt.errors import ExtensionFailure, ExtensionGone, ExtensionTimeout, UsageError
from hilt.packages.choices import Choices
from hilt.packages.discovery import Found
from hilt.transport.processes import family
from hilt.wire.faults import METHOD_NOT_FOUND

AT_ONCE = 8
ROUNDS = 5
_WARMING = 20
_BUDGET = 5.0
"""Seconds for each kind of call in each round; a slow tool is called less often than was asked for."""
_PATIENCE = 60.0
"""Seconds for an answer, where the manifest allows as many."""
_NOBODY = "hilt-bench-no-such-tool"
"""Asking for it does nothing, and is answered all the same."""
_BARE = Path(__file__).with_name("bare_echo.py")


class Spread(Struct, frozen=True):
    """In milliseconds."""

    count: int
    least: float
    p50: float
    p95: float
    p99: float
    most: float

    @classmethod
    def of(cls, seconds: list[float]) -> "Spread":
        ordered = sorted(round(one * 1000, 4) for one in seconds)

        def at(share: float) -> float:
            return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

        return cls(len(ordered), ordered[0], at(0.5), at(0.95), at(0.99), ordered[-1])


class Figures(Struct, frozen=True):
    start: Spread
    """From before the process to its being ready."""
    call: Spread
    """One after the other."""
    at_once: Spread
    """Each of `AT_ONCE` that are under way at any time."""
    memory: int | None
    """Bytes resident after all calls, of all its processes; None where the system does not tell."""


class Ratios(Struct, frozen=True):
    """To the bare one: the median of all rounds, with the least and the most."""

    start: tuple[float, float, float]
    call: tuple[float, float, float]
    at_once: tuple[float, float, float]


class Benched(Struct, frozen=True):
    name: str
    question: str
    """What it was asked."""
    measured: Figures
    bare: Figures
    """The same of a Python script that has nothing but the standard library."""
    ratios: Ratios


async def bench(
    path: Path, cwd: Path, tool: str, args: Mapping[str, Any], calls: int, choices: Mapping[str, Choices]
) -> Benched:
    """Without a `tool`, it is asked for one that it does not have: the cheapest question that all of them answer.

    Raises `ManifestError`, `UsageError` for a tool that there is not, `ExtensionError` when it does not start or fails.
    """
    with TemporaryDirectory(prefix="hilt-bench-") as scratch:
        bare_one = _bare(Path(scratch), find(path, cwd, choices))
        theirs, ours = _Runs(path, cwd, choices), _Runs(bare_one, cwd, {})
        async with ours.talking() as bare, theirs.talking() as measured:
            measured.check(tool)
            wanted = tool or _NOBODY
            await bare.warm(_NOBODY, {})
            await measured.warm(wanted, args)
            for number in range(ROUNDS):
                for caller in _in_turns(number, bare, measured):
                    asked = (wanted, args) if caller is measured else ("echo", args)
                    await caller.round(*asked, max(calls // ROUNDS, 1))
            theirs_memory, ours_memory = _resident(measured.actor.pid), _resident(bare.actor.pid)
        for number in range(ROUNDS):
            for runs in _in_turns(number, ours, theirs):
                await runs.start_once()
        return Benched(
            measured.actor.name,
            f"tool {tool}" if tool else "a tool that it does not have",
            theirs.figures(measured, theirs_memory),
            ours.figures(bare, ours_memory),
            Ratios(
                _ratios(theirs.starts, ours.starts),
                _ratios(_medians(measured.calls), _medians(bare.calls)),
                _ratios(_medians(measured.volleys), _medians(bare.volleys)),
            ),
        )


def _in_turns(number: int, one: Any, other: Any) -> tuple[Any, Any]:
    """Each comes first every other time."""
    return (other, one) if number % 2 else (one, other)


def _medians(rounds: list[list[float]]) -> list[float]:
    return [median(one) for one in rounds]


def _ratios(measured: list[float], bare: list[float]) -> tuple[float, float, float]:
    each = [one / other for one, other in zip(measured, bare, strict=True)]
    return (round(median(each), 3), round(min(each), 3), round(max(each), 3))


def _bare(folder: Path, other: Found) -> Path:
    """Run by the same Python as the other, where it has one, and as confined: both take their time."""
    directory = folder / "bare"
    directory.mkdir()
    shutil.copy(_BARE, directory)
    python = other.argv[0] if Path(other.argv[0]).name.startswith("python") else sys.executable
    manifest: dict[str, Any] = {"name": "bare", "exec": python, "args": [_BARE.name]}
    if other.sandbox != "off":
        manifest |= {"permissions": [], "sandbox": other.sandbox}
    (directory / "extension.json").write_bytes(msgspec.json.encode(manifest))
    return directory


def _resident(leader: int) -> int | None:
    """Bytes, of all its processes together."""
    sizes = []
    for process in family(leader):
        try:
            resident = Path(f"/proc/{process.pid}/statm").read_bytes().split()[1]
        except (OSError, IndexError):
            continue  # it has just ended
        sizes.append(int(resident) * os.sysconf("SC_PAGE_SIZE"))
    return sum(sizes) if sizes else None


class _Runs:
    """One of the two, started again and again."""

    def __init__(self, path: Path, cwd: Path, choices: Mapping[str, Choices]) -> None:
        self._path = path
        self._cwd = cwd
        self._choices = choices
        self.starts: list[float] = []

    @asynccontextmanager
    async def talking(self) -> AsyncIterator["_Caller"]:
        async with started(self._path, self._cwd, choices=self._choices) as actor:
            yield _Caller(actor, await greet(actor))

    async def start_once(self) -> None:
        began = time.perf_counter()
        async with started(self._path, self._cwd, choices=self._choices) as actor:
            there = time.perf_counter() - began
            offered = await greet(actor)
            # Not all say that they are ready, and are waited for: the last thing they said was it, then.
            self.starts.append(there + offered.lines[-1].at)

    def figures(self, caller: "_Caller", memory: int | None) -> Figures:
        calls, volleys = (list(chain.from_iterable(rounds)) for rounds in (caller.calls, caller.volleys))
        return Figures(Spread.of(self.starts), Spread.of(calls), Spread.of(volleys), memory)


class _Caller:
    """Asks one process, and times the answers."""

    def __init__(self, actor: Actor, offered: Offered) -> None:
        self.actor = actor
        self._tools = list(offered.of_kind("tool"))
        self._tongue = tongue(actor.dialect)
        self._patience = min(actor.found.manifest.tool_timeout_ms / 1000, _PATIENCE)
        self._next = self._tongue.next_id(self._tongue.first_id())
        self.calls: list[list[float]] = []
        """A list for each round, in seconds."""
        self.volleys: list[list[float]] = []

    def check(self, tool: str) -> None:
        if tool and tool not in self._tools:
            known = ", ".join(self._tools) or "none"
            raise UsageError(f'{self.actor.name} has no tool "{tool[:80]}"', hint=f"its tools are: {known}")

    async def warm(self, tool: str, args: Mapping[str, Any]) -> None:
        await self._volley(tool, args, _WARMING, 1)

    async def round(self, tool: str, args: Mapping[str, Any], calls: int) -> None:
        self.calls.append(await self._volley(tool, args, calls, 1))
        self.volleys.append(await self._volley(tool, args, calls, AT_ONCE))

    async def _volley(self, tool: str, args: Mapping[str, Any], calls: int, width: int) -> list[float]:
        """So many calls, never more than `width` of them under way."""
        took: list[float] = []
        under_way: dict[Id, float] = {}
        asked, began = 0, time.perf_counter()
        while asked < calls or under_way:
            enough = time.perf_counter() - began > _BUDGET
            if enough and not under_way:
                break
            while asked < calls and len(under_way) < width and not (enough and asked):
                self._next = self._tongue.next_id(self._next)
                under_way[self._next] = time.perf_counter()
                self.actor.send(self._tongue.call(self._next, tool, dict(args)))
                asked += 1
            answer = await self._answer(tool, under_way)
            took.append(time.perf_counter() - under_way.pop(answer.id))
            self._refuse_failure(tool, answer)
        return took

    async def _answer(self, tool: str, under_way: Collection[Id]) -> Answer:
        deadline = time.perf_counter() + self._patience  # for all it says: one may talk without end and answer nothing
        while True:
            try:
                line = await self.actor.receive(max(0.0, deadline - time.perf_counter()))
            except TimeoutError:
                raise ExtensionTimeout(
                    self.actor.name,
                    f"{self.actor.name} did not answer a call of {tool} within {self._patience:g} s",
                    hint="it must answer every call, also of a tool that it does not have",
                ) from None
            if line is None:
                log = "\n".join(self.actor.log()[-10:])
                raise ExtensionGone(self.actor.name, f"{self.actor.name} ended while it was asked", hint=log)
            heard = self._tongue.heard(line.value or {})
            if isinstance(heard, Answer) and heard.id in under_way:
                return heard
            if isinstance(heard, Asked):
                self.actor.send(self._tongue.refuse(heard, METHOD_NOT_FOUND, "this host only measures"))

    def _refuse_failure(self, tool: str, answer: Answer) -> None:
        if tool == _NOBODY:
            return
        if (result := self._tongue.called(answer.value)).failed:
            raise ExtensionFailure(
                self.actor.name, f"{tool} failed: {result.text[:500]}", hint="give arguments that work, with --args"
            )
