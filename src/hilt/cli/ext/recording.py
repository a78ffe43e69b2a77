"""`hilt ext test --record`: a fixture of a run of the agent with one extension, or of a trace of an earlier one."""

import argparse
import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from hilt.authoring.fixtures import read_fixture
from hilt.authoring.recording import fixture_of, fixture_text, loosened
from hilt.authoring.stage import find
from hilt.authoring.traces import process_of, read_trace
from hilt.authoring.trying import Outcome, try_fixture
from hilt.authoring.values import Value
from hilt.cli.ext.prompting import flags_with
from hilt.cli.ext.site import Site, Told, named
from hilt.errors import UsageError
from hilt.extensions.trace_line import Traced
from hilt.packages.discovery import Found


def record(site: Site, path: Path, options: argparse.Namespace) -> Told:
    file = named(options.record)
    if file.exists():
        raise UsageError(f"{file} is there already", hint="name another file, or remove that one")
    if bool(options.origin) == bool(options.fixtures):
        hint = "such as --record tests/hi.jsonl -- 'say hi', or --record tests/hi.jsonl --from trace.jsonl"
        raise UsageError("--record needs either a prompt behind -- or --from TRACE", hint=hint)
    found = find(path, site.cwd, site.config.extensions)
    if options.origin:
        lines = read_trace(origin := named(options.origin))
        about = f"as recorded in {origin.name}"
    else:
        lines = asyncio.run(_traced(found, options))
        about = f"as recorded: {options.fixtures[0]}"
    values = fixture_of((line for _, line in process_of(lines, found.name)), about)
    loose, left = _written(site, path, file, values)
    told = [f"wrote {file}: {len(values) - 1 - len(left)} steps"]
    told += [f"  line {line}: played again, what came of it was otherwise, so nothing is expected" for line in loose]
    told += [f"  left out, for it cannot be played again: {step}" for step in left]
    return Told({"file": str(file), "loosened": loose, "left_out": left}, "\n".join(told))


async def _traced(found: Found, options: argparse.Namespace) -> list[Traced]:
    """Prompts and slash commands one after the other, with this extension alone."""
    from hilt.cli.wiring import assemble
    from hilt.frontends.oneshot import perform

    with TemporaryDirectory(prefix="hilt-record-") as scratch:
        trace = Path(scratch, "trace.jsonl")
        flags = flags_with(found, "-p", "--trace", str(trace), script=options.script)
        async with assemble(flags, can_ask=False) as app:
            for prompt in options.fixtures:
                await perform(app.session, prompt)
        return read_trace(trace)


def _written(site: Site, path: Path, file: Path, values: list[Value]) -> tuple[list[int], list[str]]:
    """Write it, and play it at once. What does not come out the same is not a matter of the extension: the lines of
    which nothing is expected, and what was left out for it cannot even be asked again."""
    loose: list[int] = []
    left: list[str] = []
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        while True:
            file.write_text(fixture_text(values))
            outcome = asyncio.run(try_fixture(path, read_fixture(file), site.cwd, site.config.extensions))
            line = _to_blame(outcome)
            if line is None:
                return loose, left
            if line in loose:
                left.append(fixture_text([values.pop(line - 1)]).rstrip("\n"))
                loose = [one - (one > line) for one in loose if one != line]
            else:
                values[line - 1] = loosened(values[line - 1])
                loose.append(line)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}", hint="name a file you may write") from error


def _to_blame(outcome: Outcome) -> int | None:
    """The line at which it failed. Raises `UsageError` when that is none of its steps."""
    if outcome.state == "passed":
        return None
    line = outcome.where.rpartition(":")[2]
    if not line.isdecimal():
        raise UsageError(f"it was recorded, but cannot be played again: {outcome.message}")
    return int(line)
