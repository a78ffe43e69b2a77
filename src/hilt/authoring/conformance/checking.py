"""Checks one extension by all rules: in conversation with hilt, and with a host that has no extras."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from hilt.authoring.conformance.lines import check_announced, check_registrations, check_schema
from hilt.authoring.conformance.probing import PROBES, Probe, Probing
from hilt.authoring.conformance.rules import Findings, Report
from hilt.authoring.dialogue import Dialogue
from hilt.authoring.greeting import Played
from hilt.authoring.stage import find, started
from hilt.authoring.values import Value, brief
from hilt.errors import Departure, ExtensionStartError
from hilt.model.extensions import Dialect
from hilt.packages.choices import Choices

_PATIENCE = 5.0
_MOMENT = 0.1
"""Seconds in which one ends that does not stay."""
_CANARY = "HILT_CONFORMANCE"
_NO_CHOICES: Mapping[str, Choices] = MappingProxyType({})


async def check(
    path: Path,
    cwd: Path,
    calls: Mapping[str, Value] = MappingProxyType({}),
    *,
    choices: Mapping[str, Choices] = _NO_CHOICES,
    patience: float = _PATIENCE,
) -> Report:
    """`calls` are the tools that may be called, with their arguments. Raises `ManifestError`, `StartError`."""
    found = find(cwd / path, cwd, choices)
    checking = _Checking(cwd / path, calls, choices, patience)
    opened = await checking.with_hilt()
    if opened:
        await checking.with_poor_host(found.manifest.dialect)
    return Report(found.name, found.manifest.dialect, checking.findings.all())


class _Checking:
    def __init__(self, path: Path, calls: Mapping[str, Value], choices: Mapping[str, Choices], patience: float) -> None:
        self._path = path
        self._calls = calls
        self._choices = choices
        self._patience = patience
        self._secret = f"canary-{os.urandom(8).hex()}"
        self._probing: Probing | None = None
        """Knows from one process to the next what it can be asked."""
        self.findings = Findings()

    async def with_hilt(self) -> bool:
        """All probes; after one that ended it, the next ones ask a new process. Whether it can be talked to."""
        left = list(PROBES)
        while left:
            if not await self._session(Played(), left):
                return False
        return True

    async def with_poor_host(self, dialect: Dialect) -> None:
        poor = Played("zot" if dialect == "frames" else "piglet")
        await self._session(poor, [Probing.poverty])

    async def _session(self, host: Played, probes: list[Probe]) -> bool:
        """One process, and as many of the probes as it lives through. Whether it opened the conversation."""
        opening = "handshake" if host.name == "hilt" else "poor-host"
        async with started(self._path, choices=self._choices, more={_CANARY: self._secret}) as actor:
            dialogue = Dialogue(actor, host)
            try:
                await dialogue.open()
            except ExtensionStartError as error:
                self.findings.failed(opening, error.message)
                return False
            self._look_at_opening(dialogue)
            await dialogue.until(lambda: None, _MOMENT)
            stayed = await self._put(probes, dialogue)
            self._look_at_lines(dialogue)
            if not stayed:
                await dialogue.until(lambda: dialogue.over or None, self._patience)  # until it is known how it ended
                self.findings.failed(opening, f"right after the opening, {dialogue.end}")
        return stayed

    async def _put(self, probes: list[Probe], dialogue: Dialogue) -> bool:
        """Takes those from the list that could be asked. Whether any could."""
        probing = self._probing or Probing(dialogue, self.findings, self._calls, self._patience)
        self._probing = probing
        probing.meet(dialogue)
        before = len(probes)
        while probes and not dialogue.over:
            try:
                await probes[0](probing)
            except Departure:
                break  # it was gone before it could be asked, so the next process is
            probes.pop(0)
        return len(probes) < before

    def _look_at_opening(self, dialogue: Dialogue) -> None:
        findings, said = self.findings, dialogue.offered
        findings.passed("handshake")
        findings.passed("name")
        if said.name != dialogue.actor.found.manifest.name:
            findings.failed("name", f"{said.name!r}, and the manifest says {dialogue.actor.found.manifest.name!r}")
        if dialogue.actor.dialect == "frames":
            findings.passed("ready")
            if not said.ready:
                findings.failed("ready", "it did not, within 3 s")
        check_registrations(findings, said.registered)

    def _look_at_lines(self, dialogue: Dialogue) -> None:
        findings, actor = self.findings, dialogue.actor
        findings.passed("json-lines")
        for problem in dialogue.problems:
            findings.failed("json-lines", problem)
        check_schema(findings, actor.dialect, dialogue.lines.came)
        if dialogue.host.name != "hilt":
            check_announced(findings, actor.dialect, dialogue.lines.came, dialogue.host.announced(actor.dialect))
        self._look_at_answers(dialogue)
        findings.passed("no-secrets")
        if self._secret in actor.complaints():
            findings.failed("no-secrets", f"its log has the value of ${_CANARY}, which nobody asked for")
        for value in dialogue.lines.came:
            if self._secret in brief(value, 1_000_000):
                findings.failed("no-secrets", f"it sends the value of ${_CANARY}: {brief(value)}")

    def _look_at_answers(self, dialogue: Dialogue) -> None:
        self.findings.passed("once")
        for id_, count in dialogue.answers.items():
            if id_ not in dialogue.asked:
                self.findings.failed("once", f"it answered {id_!r}, which nobody asked")
            elif count > 1:
                self.findings.failed("once", f"{dialogue.asked[id_]} was answered {count} times")
