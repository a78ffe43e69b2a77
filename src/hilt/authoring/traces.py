"""Traces as they are read again: line by line from a file, whose conversation each is, and how they read best.

What stands in a line, and how it gets there, is the business of `hilt.extensions.trace`.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from hilt.authoring.exchange import Id, role_of, said
from hilt.authoring.values import DEEPEST, Value, brief, clipped, is_deeper
from hilt.errors import UsageError
from hilt.extensions.trace_line import Traced
from hilt.packages.discovery import PROJECT

Numbered: TypeAlias = tuple[int, Traced]
"""With the number of the line in the trace."""
_DECODER = msgspec.json.Decoder(Traced)
_SHOWN = 100
"""Characters of a frame beside its type and id."""


def read_trace(path: Path) -> list[Traced]:
    """All lines; the last one may be torn, for hilt may have been killed. Raises `UsageError`."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint="`hilt --trace FILE` writes one") from error
    *lines, torn = text.split(b"\n")
    traced = [parsed(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    try:
        return [*traced, _DECODER.decode(torn)] if torn else traced
    except msgspec.DecodeError:
        return traced


def parsed(line: bytes, where: str) -> Traced:
    """One line. Raises `UsageError`."""
    try:
        return _readable(_DECODER.decode(line), line)
    except (msgspec.DecodeError, RecursionError) as error:
        hint = "a trace has a JSON object on each line, with time, at, extension, direction, frame…"
        raise UsageError(f"{where}: this is no line of a trace: {error}", hint=hint) from error


def is_of(line: Traced, name: str) -> bool:
    """Whether it is about the extension of this name, which may have come with the project."""
    return line.extension in (name, f"{PROJECT}{name}")


def _readable(traced: Traced, line: bytes) -> Traced:
    """One that is nested too deeply to be compared is taken for text, of which the trace has not all."""
    if line.count(b"[") + line.count(b"{") <= DEEPEST or not is_deeper(traced.frame, DEEPEST):
        return traced
    return msgspec.structs.replace(traced, frame=None, raw=clipped(line.decode("utf-8", "replace")), cut=len(line))


def of_extension(lines: Sequence[Traced], name: str) -> list[Traced]:
    """What was said to and by it, and that lines are missing. Raises `UsageError` when it said and heard nothing."""
    found = [line for line in lines if not line.extension or is_of(line, name)]
    if not any(line.extension for line in found):
        raise _nothing_of(name, lines)
    return found


def process_of(lines: Sequence[Traced], name: str, pid: int = 0) -> list[Numbered]:
    """What was said to and by one process of this extension: this one, or the longest. Raises `UsageError`."""
    processes: list[list[Numbered]] = []
    running: dict[int, list[Numbered]] = {}
    for number, line in enumerate(lines, 1):
        if not is_of(line, name):
            continue
        if line.pid not in running or (isinstance(line.frame, dict) and line.frame.get("type") == "started"):
            running[line.pid] = []  # a number may come again, in another run
            processes.append(running[line.pid])
        running[line.pid].append((number, line))
    if not processes:
        raise _nothing_of(name, lines)
    wanted = [one for one in processes if not pid or one[0][1].pid == pid]
    if not wanted:
        pids = ", ".join(str(one[0][1].pid) for one in processes)
        raise UsageError(f"{name} has no process {pid} in the trace", hint=f"it has {pids}")
    return max(wanted, key=len)


def _nothing_of(name: str, lines: Iterable[Traced]) -> UsageError:
    others = sorted({line.extension for line in lines} - {""})
    hint = f"it has {', '.join(others)}" if others else "no extension was started while it was written"
    return UsageError(f'there is nothing of extension "{name}" in the trace', hint=hint)


class Asked(Struct, frozen=True):
    what: str
    at: float


class Narrator:
    """Tells lines of one extension to people, each on a line of text; knows what answers refer to."""

    def __init__(self) -> None:
        self._asked: dict[tuple[bool, Id], Asked] = {}
        """By whether hilt asked, and by id."""

    def tell(self, line: Traced) -> str:
        if line.direction == "lifecycle":
            return f"{line.at:9.1f} ms  ●  {_happened(line)}"
        by_host = line.direction == "to_extension"
        cut = f"  [{line.cut:,} bytes in all]" if isinstance(line.cut, int) else ""
        if not isinstance(line.frame, dict):
            raw = line.raw if isinstance(line.raw, str) else msgspec.json.encode(line.frame).decode()
            words = ["no frame:", raw[:_SHOWN]]
        else:
            words = self._words(line.frame, line.at, by_host=by_host)
        return f"{line.at:9.1f} ms  {'→' if by_host else '←'}  {'  '.join(filter(None, words))}{cut}"

    def _words(self, frame: Value, at: float, *, by_host: bool) -> list[str]:
        role = role_of(frame)
        rest = said(frame)
        words = [role.what, "" if role.id is None else str(role.id)]
        if role.part == "question" and role.id is not None:
            self._asked[by_host, role.id] = Asked(role.what, at)
        elif role.id is not None and (asked := self._asked.pop((not by_host, role.id), None)):
            words = [f"{asked.what} = {role.what}" if "jsonrpc" in frame else role.what, str(role.id)]
            words.append(f"({at - asked.at:.1f} ms)")
        return [*words, brief(rest, _SHOWN) if rest not in ({}, None) else ""]


def _happened(line: Traced) -> str:
    match line.frame:
        case {"type": "started"}:
            return f"{line.extension} started, process {line.pid}"
        case {"type": "exit", "how": str(how), **rest}:
            lost = rest.get("events_lost")
            return f"{line.extension} {how}" + (f"; {lost} events never reached it" if lost else "")
        case {"type": "lost", "lines": count}:
            return f"{count} lines are missing here: the disk was too slow"
        case other:
            return brief(other)
