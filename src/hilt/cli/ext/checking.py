"""`hilt ext validate` and `doctor`: what is wrong with extensions, and what to do about it."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hilt.cli.ext.site import Site, Told, every, existing, found_in
from hilt.errors import PackageError
from hilt.frontends.terminal import hanging
from hilt.packages.checkup import Finding, checkup, worst
from hilt.packages.discovery import Discovery, Found, Problem, Untrusted
from hilt.packages.sightings import Sighting, known_as, sightings

if TYPE_CHECKING:
    from hilt.cli.ext.trial import Trial

_SLOW_MS = 2000
_MARKS = {"ok": "ok   ", "info": "info ", "warn": "WARN ", "error": "ERROR"}
"""Without colour, and told apart at a glance."""


def validate(site: Site, options: argparse.Namespace) -> Told:
    place = existing(options.path)
    findings = (*checkup(place, site.path), *_hidden(place))
    value = {"path": str(place), "valid": worst(findings) != "error", "findings": _plain(findings)}
    return Told(value, _report(str(place), findings), code=1 if worst(findings) == "error" else 0)


def doctor(site: Site, options: argparse.Namespace) -> Told:
    finder = site.finder()
    discovery = finder.all()
    known = _known(discovery)
    if options.name and options.name not in known:
        raise site.no_such(options.name)
    names = [options.name] if options.name else list(known)
    from hilt.cli.ext.trial import try_out

    before = sightings(site.home.seen)
    running = tuple(one for one in discovery.found if one.name in names)
    trials = {trial.status.name: trial for trial in try_out(site, finder, running)}
    results: dict[str, tuple[Finding, ...]] = {}
    for name in names:
        findings = [*_static(site, known[name])]
        if name in trials:
            status = trials[name].status
            last = before.get(known_as(status.name, status.source, status.directory), Sighting())
            findings += _lived(trials[name], last)
        results[name] = tuple(findings)
    general = (*_sandbox(), *(() if options.name else _unnamed(discovery, results)))
    bad = any(worst(findings) == "error" for findings in (*results.values(), general))
    value = {
        "extensions": [{"name": name, "findings": _plain(findings)} for name, findings in results.items()],
        "host": _plain(general),
    }
    texts = [_report(name, findings) for name, findings in results.items()]
    return Told(value, "\n\n".join([*(texts or ["no extensions"]), _report("this machine", general)]), code=int(bad))


def _known(discovery: Discovery) -> dict[str, Found | Untrusted | Problem]:
    known: dict[str, Found | Untrusted | Problem] = {}
    for one in every(discovery):
        known[found_in(one).name] = one
    for problem in discovery.problems:
        if problem.name:
            known.setdefault(problem.name, problem)
    return known


def _static(site: Site, one: Found | Untrusted | Problem) -> Iterator[Finding]:
    match one:
        case Problem(message=message, hint=hint):
            yield Finding("error", "loading", message, hint)
        case Untrusted(found=found, reason=reason):
            yield Finding("warn", "trust", reason, "`hilt ext trust` shows what would run and asks")
            yield from checkup(found.where, site.path)
        case Found():
            yield from checkup(one.where, site.path)
            if not one.runs:
                yield Finding("info", "enabled", "it is switched off", f"hilt ext enable {one.name}")


def _lived(trial: "Trial", before: Sighting) -> Iterator[Finding]:
    """What came of starting it."""
    status = trial.status
    if status.state != "ready":
        hint = f"`hilt ext logs {status.name}` shows what it said"
        yield Finding("error", "handshake", f"it {status.reason or status.state}", hint)
        return
    yield Finding("ok", "handshake", f"it was ready after {status.start_ms} ms")
    if (status.start_ms or 0) > _SLOW_MS:
        hint = "do less before it greets the host: what is needed later can be loaded later"
        yield Finding("warn", "start", f"it took {status.start_ms} ms to be ready", hint)
    for mistakes, when in ((status.mistakes, "now"), (before.mistakes, "when it last ran")):
        if mistakes:
            hint = f"`hilt ext logs {status.name}` names each"
            yield Finding("warn", "protocol", f"{mistakes} of its lines could not be used, {when}", hint)
    for notice in trial.notices:
        yield Finding("warn", "protocol", notice)
    if not (status.tools or status.commands or status.guards):
        yield Finding("info", "offers", "it offers no tool, command or guard")


def _unnamed(discovery: Discovery, results: dict[str, tuple[Finding, ...]]) -> Iterator[Finding]:
    """What is about no single extension, or about one that lost its name to another."""
    told = {finding.message for findings in results.values() for finding in findings}
    for problem in discovery.problems:
        if problem.message not in told:
            yield Finding("error", "loading", problem.message, problem.hint)


def _sandbox() -> Iterator[Finding]:
    from hilt.transport.sandbox import available

    means = available()
    good = means.startswith(("bubblewrap", "landlock", "seatbelt"))
    hint = "" if good else "install bubblewrap: extensions that must be confined do not start without"
    yield Finding("ok" if good else "warn", "sandbox", means, hint)


def _hidden(place: Path) -> Iterator[Finding]:
    from hilt.packages.disclosure import remark
    from hilt.packages.oddities import oddities_of
    from hilt.packages.trees import read_tree

    if not place.is_dir():
        return
    try:
        for oddity in oddities_of(place, read_tree(place)):
            yield Finding("warn", "odd", remark(oddity))
    except PackageError as error:
        yield Finding("error", "tree", error.message, error.hint)


def _plain(findings: tuple[Finding, ...]) -> Any:
    return msgspec.to_builtins(findings)


def _report(title: str, findings: tuple[Finding, ...]) -> str:
    lines = [title]
    for finding in findings:
        lines.append(hanging(f"  {_MARKS[finding.level]} {finding.check}: {finding.message}"))
        if finding.hint:
            lines.append(hanging(f"          → {finding.hint}"))
    return "\n".join(lines)
