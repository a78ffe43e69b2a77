"""`hilt ext trace`: what hilt and one extension say to each other, as it is said or from a file."""

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from hilt.authoring.traces import Narrator, is_of, of_extension, parsed, read_trace
from hilt.cli.ext.picking import pick
from hilt.cli.ext.site import Site, Told
from hilt.errors import HiltError, UsageError
from hilt.extensions.trace_line import Traced
from hilt.frontends.encode import json_line
from hilt.frontends.terminal import clean, json_for_stdout
from hilt.packages.discovery import Found
from hilt.packages.finder import ONLY

_LOOK = 0.05
"""Seconds between two looks at a trace that is being written."""
_MOST = 64 * 1024 * 1024


def trace(site: Site, options: argparse.Namespace) -> Told:
    if options.file:
        return _of_file(site, options)
    if options.follow:
        raise UsageError("--follow needs a trace to follow", hint="add --file FILE, which `hilt --trace FILE` writes")
    found = pick(site, options.target).found
    with TemporaryDirectory(prefix="hilt-trace-") as scratch:
        return asyncio.run(_run(found, Path(scratch, "trace.jsonl"), options))


# From a file


def _of_file(site: Site, options: argparse.Namespace) -> Told:
    path = Path(os.path.expanduser(options.file))  # noqa: PTH111 - never fails, unlike Path.expanduser
    name = _name(site, options.target)
    if options.follow:
        _follow(path, name, as_json=options.json)
    lines = of_extension(read_trace(path), name)
    narrator = Narrator()
    return Told(lines, "\n".join(map(narrator.tell, lines)))


def _name(site: Site, target: str) -> str:
    """Who is meant. One that was traced may be gone by now, so its name alone is enough."""
    try:
        return pick(site, target).found.name
    except HiltError:
        return target


def _follow(path: Path, name: str, *, as_json: bool) -> None:
    """Until interrupted."""
    from hilt.cli.ext.logs import pieces

    read_trace(path)  # says what is wrong with it
    show = _Show(name, as_json=as_json)
    for lines in pieces(path):
        show.lines(parsed(line.encode(), str(path)) for line in lines if line)


class _Show:
    def __init__(self, name: str, *, as_json: bool = False, silent: bool = False) -> None:
        self._name = name
        self._as_json = as_json
        self._silent = silent
        self._narrator = Narrator()
        self.shown: list[Traced] = []
        """What was kept silent about."""

    def lines(self, lines: Iterable[Traced]) -> None:
        fresh = [line for line in lines if not line.extension or is_of(line, self._name)]
        if self._silent:
            self.shown += fresh
            return
        for line in fresh:
            told = json_for_stdout(json_line(line)).decode() if self._as_json else clean(self._narrator.tell(line))
            sys.stdout.write(f"{told}\n")
        sys.stdout.flush()


# One prompt


async def _run(found: Found, path: Path, options: argparse.Namespace) -> Told:
    """Run a prompt with this extension alone, and show what is said as it comes."""
    from hilt.cli.flags import parse
    from hilt.cli.wiring import assemble
    from hilt.frontends.oneshot import perform

    model = ["--provider", "script", "--script", options.script] if options.script else ["--provider", "demo"]
    only = ["--no-ext", "--ext", str(found.where)] if found.source == "flag" else []
    flags = parse(["-p", "--no-session", "--trace", str(path), *model, *only])
    if not only:
        os.environ[ONLY] = found.name
    growing, show = _Growing(path), _Show(found.name, silent=options.json)
    async with asyncio.TaskGroup() as group:
        following = group.create_task(_show_growing(growing, show))
        async with assemble(flags, can_ask=False) as app:
            outcome = await perform(app.session, " ".join(options.prompt) or "hi")
            statuses = app.session.extensions.statuses()
        following.cancel()
    show.lines(growing.more())
    failed = [f"extension {one.name}: {one.reason}" for one in statuses if one.state == "failed"]
    trouble = failed[0] if failed else outcome.error
    return Told(show.shown, f"hilt: {trouble}" if trouble else "", code=1 if trouble else 0)


class _Growing:
    """A trace that is being written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def more(self) -> list[Traced]:
        """The whole lines that have come since the last look."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                whole, newline, _ = file.read(_MOST).rpartition(b"\n")
        except FileNotFoundError:
            return []
        self._at += len(whole) + len(newline)
        return [parsed(line, str(self._path)) for line in whole.split(b"\n") if line]


async def _show_growing(growing: _Growing, show: _Show) -> None:
    while True:
        show.lines(growing.more())
        await asyncio.sleep(_LOOK)
