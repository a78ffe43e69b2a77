"""`hilt ext replay`: a trace played to an extension again, and what it does differently."""

import argparse
import asyncio
from pathlib import Path
from typing import Any

import msgspec

from hilt.authoring.differences import told
from hilt.authoring.replay import Finding, Replayed, replay
from hilt.authoring.stage import find, started
from hilt.authoring.traces import Numbered, process_of, read_trace
from hilt.authoring.values import brief
from hilt.cli.ext.secrets import secrets
from hilt.cli.ext.site import Site, Told, existing, named
from hilt.packages.discovery import PROJECT

_SIGNS = {"changed": "~", "missing": "-", "new": "+", "exit": "!", "stopped": "!"}
_LOGGED = 5


def replay_trace(site: Site, options: argparse.Namespace) -> Told:
    file = named(options.file)
    against = existing(options.against)
    every = read_trace(file)
    names = {line.extension.removeprefix(PROJECT) for line in every} - {""}
    name = options.extension or (names.pop() if len(names) == 1 else find(against, site.cwd).name)
    lines = process_of(every, name, options.process)
    outcome = asyncio.run(_play(site, against, lines, options))
    value: dict[str, Any] = {"trace": str(file), "extension": name, "against": str(against)}
    value |= {"ok": not outcome.findings, **msgspec.to_builtins(outcome, enc_hook=repr)}
    text = _text(outcome, f"{name} from {file} against {against}")
    return Told(value, text, code=1 if outcome.findings else 0)


async def _play(site: Site, against: Path, lines: list[Numbered], options: argparse.Namespace) -> Replayed:
    async with started(against, site.cwd, choices=site.config.extensions) as actor:
        return await replay(lines, actor, options.timeout, secrets(site), options.ignore)


def _text(outcome: Replayed, what: str) -> str:
    lines = [f"replayed {what}: {outcome.sent} lines sent, {outcome.same} as they were"]
    for one in outcome.findings:
        lines += _finding(one)
    lines += [f"  note: {note}" for note in outcome.notes]
    if outcome.findings and outcome.log:
        lines += ["the end of its log:", *(f"  {line}" for line in outcome.log[-_LOGGED:])]
    count = len(outcome.findings)
    lines.append(f"{count} difference{'s' * (count != 1)}" if count else "no difference")
    return "\n".join(lines)


def _finding(one: Finding) -> list[str]:
    where = f"line {one.line}: " if one.line else ""
    if one.kind == "new":
        return [f"+ {one.what}, which is not in the trace: {brief(one.now)}"]
    shown = [f"    {line}" for difference in one.differences for line in told(difference)]
    return [f"{_SIGNS[one.kind]} {where}{one.what}", *shown]
