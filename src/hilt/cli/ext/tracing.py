"""`hilt ext trace`: what hilt and one extension say to each other, as it is said or from a file."""

import argparse
import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from hilt.authoring.traces import Narrator, is_of, of_extension, parsed, read_trace
from hilt.cli.ext.growing import Growing
from hilt.cli.ext.picking import pick
from hilt.cli.ext.prompting import flags_with
from hilt.cli.ext.site import Site, Told, named
from hilt.errors import HiltError, UsageError
from hilt.extensions.trace_line import Traced
from hilt.frontends.encode import json_line
from hilt.frontends.terminal import clean, json_for_stdout
from hilt.packages.discovery import Found

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
    path = named(options.file)
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
    from hilt.cli.wiring import assemble
    from hilt.frontends.oneshot import perform

    flags = flags_with(found, "-p", "--trace", str(path), script=options.script)
    show = _Show(found.name, silent=options.json)
    growing = Growing(path, lambda line: show.lines([parsed(line.encode(), str(path))]), _MOST)
    async with asyncio.TaskGroup() as group:
        following = group.create_task(growing.follow())
        async with assemble(flags, can_ask=False) as app:
            outcome = await perform(app.session, " ".join(options.prompt) or "hi")
            statuses = app.session.extensions.statuses()
        following.cancel()
    growing.look()
    failed = [f"extension {one.name}: {one.reason}" for one in statuses if one.state == "failed"]
    trouble = failed[0] if failed else outcome.error
    return Told(show.shown, f"hilt: {trouble}" if trouble else "", code=1 if trouble else 0)
