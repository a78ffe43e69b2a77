"""Fixtures, tried: each against a process of its own, in a directory of its own, one after the other."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Literal, TypeAlias

from msgspec import Struct

from hilt.authoring.dialogue import Dialogue
from hilt.authoring.fixtures import Fixture
from hilt.authoring.scripted import ScriptedHost
from hilt.authoring.stage import Actor, find, started
from hilt.authoring.values import clipped
from hilt.errors import Departure, ExtensionStartError, FixtureError, HiltError
from hilt.extensions.trace_line import Secrets
from hilt.model.masking import Mask
from hilt.packages.choices import Choices
from hilt.packages.environment import secrets_of

State: TypeAlias = Literal["passed", "failed", "skipped"]
_TAIL = 12
"""Lines of the log that a failure shows."""
FOLDERS = ("tests", "fixtures")


class Outcome(Struct, frozen=True):
    name: str
    where: str
    """The file, and the line when one is to blame."""
    state: State
    seconds: float = 0.0
    about: str = ""
    message: str = ""
    """Why it failed or was skipped; may have several lines."""


def fixtures_of(path: Path) -> list[Path]:
    """Those that lie beside an extension: `tests/*.jsonl` and `fixtures/*.jsonl`."""
    root = path if path.is_dir() else path.parent
    return [file for folder in FOLDERS for file in sorted((root / folder).glob("*.jsonl")) if file.is_file()]


async def try_fixture(
    path: Path, fixture: Fixture, cwd: Path, choices: Mapping[str, Choices] = MappingProxyType({})
) -> Outcome:
    """Raises `ManifestError` and `StartError` when there is no extension to be tried."""
    began = time.monotonic()
    where, about = str(fixture.path), fixture.about
    place = cwd / path
    speaks = find(place, cwd, choices).manifest.dialect
    if fixture.dialect and fixture.dialect != speaks:
        reason = f"it is for the {fixture.dialect} dialect, and this one speaks {speaks}"
        return Outcome(fixture.name, where, "skipped", 0.0, about, reason)
    with TemporaryDirectory(prefix="hilt-test-", ignore_cleanup_errors=True) as scratch:
        project = Path(scratch)
        _write(project, fixture)
        async with started(place, project, choices=choices) as actor:
            host = ScriptedHost(dialogue := Dialogue(actor, fixture.host), fixture)
            try:
                await dialogue.open()
                await host.play()
            except (Departure, ExtensionStartError) as error:
                line = f":{host.step.line}" if host.step else ""
                told = _told(error, host, dialogue, actor)
                return Outcome(fixture.name, where + line, "failed", time.monotonic() - began, about, told)
    return Outcome(fixture.name, where, "passed", time.monotonic() - began, about)


def _write(project: Path, fixture: Fixture) -> None:
    for name, text in fixture.files.items():
        try:
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text)
        except OSError as error:
            what = f"{fixture.path}:1: files: {clipped(repr(name))} cannot be written: {error.strerror}"
            raise FixtureError(what, hint="a name is that of a file or of a directory, and not too long") from error


def _told(error: HiltError, host: ScriptedHost, dialogue: Dialogue, actor: Actor) -> str:
    """The step, what was otherwise, and what else may explain it."""
    lines = [host.step.text] if host.step else []
    lines += error.message.split("\n")
    if error.hint:
        lines.append(f"hint: {error.hint}")
    if host.step:  # else they are what is told
        lines += dialogue.problems
    lines += dialogue.remarks
    if log := [] if isinstance(error, ExtensionStartError) else actor.log()[-_TAIL:]:
        lines += ["its log:", *(f"  {line}" for line in log)]
    return Secrets((Mask(secrets_of(os.environ)),)).hide("\n".join(lines))
