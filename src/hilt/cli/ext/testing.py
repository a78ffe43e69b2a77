"""`hilt ext test`: an extension's fixtures, and the tests in its own language, run one after the other."""

import argparse
import asyncio
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from hilt.authoring.fixtures import Fixture, read_fixture
from hilt.authoring.stage import find
from hilt.authoring.suites import run_suite, suites
from hilt.authoring.trying import Outcome, fixtures_of, try_fixture
from hilt.cli.ext.site import Site, Told, existing, named
from hilt.errors import UsageError
from hilt.frontends.terminal import clean

_ILLEGAL = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKS = {"passed": "ok  ", "failed": "FAIL", "skipped": "skip"}


def test(site: Site, options: argparse.Namespace) -> Told:
    path = existing(options.path)
    if options.record:
        from hilt.cli.ext.recording import record

        return record(site, path, options)
    if options.origin:
        raise UsageError("--from goes with --record", hint="--record FILE --from TRACE")
    chosen = [existing(one) for one in options.fixtures]
    fixtures = [read_fixture(file) for file in chosen or fixtures_of(path)]
    find(path, site.cwd, site.config.extensions)  # that there is none is no failure of a test
    outcomes = asyncio.run(_run(site, path, fixtures, alone=bool(chosen), quiet=options.json))
    if not outcomes:
        hint = 'write tests/NAME.jsonl, such as {"call":"TOOL","args":{},"result":{"$contains":"…"}}'
        raise UsageError(f"{options.path}: there is nothing to test", hint=hint)
    if options.junit:
        _write_junit(named(options.junit), outcomes)
    failed = any(outcome.state == "failed" for outcome in outcomes)
    return Told({"outcomes": [_as_json(one) for one in outcomes]}, _summary(outcomes), 1 if failed else 0)


async def _run(site: Site, path: Path, fixtures: list[Fixture], *, alone: bool, quiet: bool) -> list[Outcome]:
    outcomes = []
    async for outcome in _each(site, path, fixtures, alone=alone):
        outcomes.append(outcome)
        if not quiet:
            sys.stdout.write(clean(_told(outcome, site.cwd)))
            sys.stdout.flush()
    return outcomes


async def _each(site: Site, path: Path, fixtures: list[Fixture], *, alone: bool) -> AsyncIterator[Outcome]:
    for fixture in fixtures:
        yield await try_fixture(path, fixture, site.cwd, site.config.extensions)
    if not alone:
        for suite in await suites(path):
            yield await run_suite(suite)


def _told(outcome: Outcome, cwd: Path) -> str:
    """One line; of one that failed, why, indented."""
    where = outcome.where.removeprefix(f"{cwd}/")
    about = f"  {outcome.about}" if outcome.about else ""
    took = "" if outcome.state == "skipped" else f"  ({outcome.seconds:.2f} s)"
    why = "".join(f"      {line}\n" for line in outcome.message.split("\n")) if outcome.message else ""
    return f"{_MARKS[outcome.state]}  {where}{about}{took}\n{why}"


def _summary(outcomes: list[Outcome]) -> str:
    counts = {state: sum(outcome.state == state for outcome in outcomes) for state in _MARKS}
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)


def _as_json(outcome: Outcome) -> dict[str, object]:
    told: dict[str, object] = msgspec.to_builtins(outcome)
    return {**told, "seconds": round(outcome.seconds, 3)}


def _write_junit(file: Path, outcomes: list[Outcome]) -> None:
    """As most services that run tests read it. Raises `UsageError`."""
    suite = ET.Element("testsuite", name="hilt ext test", tests=str(len(outcomes)))
    for state, word in (("failed", "failures"), ("skipped", "skipped")):
        suite.set(word, str(sum(outcome.state == state for outcome in outcomes)))
    suite.set("time", f"{sum(outcome.seconds for outcome in outcomes):.3f}")
    for outcome in outcomes:
        case = ET.SubElement(suite, "testcase", name=outcome.name, classname=outcome.about, file=outcome.where)
        case.set("time", f"{outcome.seconds:.3f}")
        if outcome.state != "passed":
            kind = "failure" if outcome.state == "failed" else "skipped"
            told = clean(outcome.message)
            ET.SubElement(case, kind, message=told.partition("\n")[0]).text = told
    for element in suite.iter():
        element.attrib = {name: _legal(value) for name, value in element.attrib.items()}
        element.text = _legal(element.text) if element.text else None
    try:
        file.write_bytes(ET.tostring(suite, encoding="utf-8", xml_declaration=True) + b"\n")
    except OSError as error:
        raise UsageError(f"--junit {file}: {error.strerror or error}", hint="name a file you may write") from error


def _legal(text: str) -> str:
    """Without what no XML can hold."""
    return _ILLEGAL.sub("", text)
