"""`hilt ext conformance`: does an extension, or another host, keep to the protocol? With a score, and the reasons."""

import argparse
import asyncio
import sys
from collections import Counter
from typing import Any

import msgspec

from hilt.authoring.conformance.hosting import Heard
from hilt.authoring.conformance.rules import Finding, Report
from hilt.cli.ext.arguments import arguments
from hilt.cli.ext.site import Site, Told, existing
from hilt.errors import UsageError
from hilt.frontends.terminal import clean
from hilt.model.masking import MASK
from hilt.packages.environment import tokens_hidden


def check(site: Site, options: argparse.Namespace) -> Told:
    if bool(options.path) == bool(options.host):
        raise UsageError("name an extension, or a host with --host", hint="`hilt ext conformance --help` shows both")
    if options.host:
        if options.call:
            raise UsageError("--call goes with an extension", hint="leave it out")
        return _check_host(options)
    if options.without or options.only:
        raise UsageError("--without and --only go with --host", hint="leave them out")
    from hilt.authoring.conformance.checking import check as check_extension

    path, calls = existing(options.path), dict(map(_call, options.call))
    report = asyncio.run(check_extension(path, site.cwd, calls, choices=site.config.extensions))
    return Told(_as_json(report), tokens_hidden(_told(report), MASK), 0 if report.conforms else 1)


def _call(text: str) -> tuple[str, dict[str, Any]]:
    tool, _, given = text.partition("=")
    if not tool:
        raise UsageError(f"--call {text}: a tool and a JSON object", hint="--call 'add={\"a\":1}'")
    return tool, arguments(given or "{}", f"--call {tool}")


def _told(report: Report) -> str:
    lines = [f"{report.name} ({report.dialect}): {report.passed} of {report.applicable} rules"]
    lines += [line for finding in report.failed for line in _explained(finding)]
    skipped = [finding.rule.id for finding in report.findings if finding.state == "not applicable"]
    if skipped:
        lines.append(f"not applicable: {', '.join(skipped)}")
    if not report.failed:
        lines.append("nothing to complain about")
    return "\n".join(lines)


def _explained(finding: Finding) -> list[str]:
    rule = finding.rule
    offences = [f"      {line}" for offence in finding.offences for line in offence.split("\n")]
    return ["", f"{rule.level}  {rule.id}: {rule.says}", *offences, f"      why: {rule.why}", f"      fix: {rule.fix}"]


def _as_json(report: Report) -> dict[str, Any]:
    rules = [
        {
            "rule": finding.rule.id,
            "level": finding.rule.level,
            "state": finding.state,
            "says": finding.rule.says,
            "offences": [tokens_hidden(offence, MASK) for offence in finding.offences],
            **({"why": finding.rule.why, "fix": finding.rule.fix} if finding.state == "failed" else {}),
        }
        for finding in report.findings
    ]
    score = {"passed": report.passed, "applicable": report.applicable, "conforms": report.conforms}
    return {"name": report.name, "dialect": report.dialect, **score, "rules": rules}


# A host


def _check_host(options: argparse.Namespace) -> Told:
    from hilt.authoring.conformance.hosting import needs
    from hilt.authoring.hosts import by_command

    if unknown := sorted(set(options.without) - needs()):
        known = ", ".join(sorted(needs()))
        raise UsageError(f"--without {unknown[0]}: nothing needs that", hint=f"there are {known}")
    played = asyncio.run(_play(by_command(options.host), options))
    if not played:
        raise UsageError(
            f"--only {options.only[0]}: no conversation is called so", hint="names are in spec/transcripts"
        )
    failed = [one for one in played if one.state == "failed"]
    value = {"conversations": [msgspec.to_builtins(one) for one in played], "needs": _by_need(played)}
    return Told(value, _host_score(played), 1 if failed else 0)


async def _play(opener: Any, options: argparse.Namespace) -> list[Heard]:
    from hilt.authoring.conformance.hosting import check_host

    played = []
    async for one in check_host(opener, options.without, options.only):
        played.append(one)
        if not options.json and one.state == "failed":
            why = "".join(f"      {line}\n" for line in one.message.split("\n"))
            sys.stdout.write(clean(f"FAIL  {one.name}: {one.about}\n{why}"))
            sys.stdout.flush()
    return played


def _by_need(played: list[Heard]) -> dict[str, dict[str, int]]:
    """The score of each need; `basic` is what every host has."""
    counts: dict[str, Counter[str]] = {}
    for one in played:
        for need in one.needs or ("basic",):
            counts.setdefault(need, Counter())[one.state] += 1
    return {need: dict(counts[need]) for need in sorted(counts)}


def _host_score(played: list[Heard]) -> str:
    lines = []
    for need, counts in _by_need(played).items():
        tried = counts.get("passed", 0) + counts.get("failed", 0)
        score = f"{counts.get('passed', 0)} of {tried}" if tried else "left out"
        lines.append(f"{need:24} {score}")
    counts = Counter(one.state for one in played)
    tried = counts["passed"] + counts["failed"]
    left = f", {counts['left out']} left out" if counts["left out"] else ""
    return "\n".join([*lines, f"{counts['passed']} of {tried} conversations{left}"])
