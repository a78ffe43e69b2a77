"""What is shown before something changes, the yes to it, and what follows from that yes."""

import os
import sys
from typing import Any

import msgspec

from hilt.cli.configuring import Value, amended, choose
from hilt.cli.ext.site import Site, Told
from hilt.frontends.consent import ask
from hilt.frontends.terminal import clean, one_line, visible
from hilt.packages.checkup import checkup
from hilt.packages.choices import NONE, Choices
from hilt.packages.disclosure import disclosure
from hilt.packages.discovery import Found
from hilt.packages.install.installing import Staged
from hilt.packages.install.seeding import seeds
from hilt.packages.manifest import Manifest, SandboxLevel
from hilt.packages.members import shown
from hilt.packages.permissions import CONSENTED

_COUNTED = 76
"""Columns for a count that goes on in place, where there are as many."""


def about(site: Site, one: Staged, choices: Choices, *, seeded: bool = False) -> str:
    """All that is to be known of one before it is kept. `seeded`: it will be given the files it begins with."""
    final = site.home.extensions / one.name
    found = Found(one.manifest, final, one.command, "user", 0, choices=choices)
    lines = [disclosure(found, one.command, one.tree, one.oddities), f"  from      {one.entry.origin}"]
    if one.entry.commit:
        lines.append(f"  commit    {one.entry.commit}")
    if seeded:
        data = site.home.data / one.name
        lines += [f"  copies    {src} to {data / to}, unless that exists" for src, to in seeds(one.manifest, one.where)]
    lines += [f"  state     {path}, which it may change: it is not pinned" for path in sorted(one.state)]
    # Told as they will be: the place it has just now means nothing to anybody. Its size has been told.
    found_out = (finding for finding in checkup(one.where, site.path) if finding.check != "size")
    wrong = (finding for finding in found_out if finding.level in ("warn", "error"))
    lines += [f"  wrong     {finding.message.replace(shown(one.where), shown(final))}" for finding in wrong]
    return "\n".join(lines)


def choices_for(site: Site, manifest: Manifest, sandbox: SandboxLevel | None = None) -> Choices:
    """The user's choices about it once it was agreed to: what was shown and is had by name only is granted then.

    Raises `ConfigError` when they could not be kept: better before anything is changed.
    """
    mine: Choices = site.config.extensions.get(manifest.name, NONE)
    named = [permission for permission in manifest.permissions or () if permission.partition(":")[0] in CONSENTED]
    grants = tuple(dict.fromkeys((*mine.grants, *named)))
    choices = msgspec.structs.replace(mine, grants=grants, sandbox=sandbox or mine.sandbox)
    amended(site.home.config, manifest.name, _news(mine, choices))
    return choices


def keep_choices(site: Site, name: str, choices: Choices) -> None:
    if news := _news(site.config.extensions.get(name, NONE), choices):
        choose(site.home.config, name, news)


def _news(before: Choices, after: Choices) -> dict[str, Value]:
    news: dict[str, Any] = {"grants": after.grants, "sandbox": after.sandbox}
    return {key: value for key, value in news.items() if value != getattr(before, key)}


def agreed(question: str, details: str, *, yes: bool) -> bool:
    """What was agreed to beforehand is shown all the same: whoever reads the output later can tell what it was."""
    if yes:
        if details:
            sys.stderr.write(visible(details) + "\n")
        return True
    return ask(question, details)


def declined(name: str, text: str) -> Told:
    return Told({"name": name, "changed": False}, text, code=1)


def progress(line: str) -> None:
    """What is being done. Of a count, only the end stays: every step of it would fill the screen."""
    if "%" not in line or line.endswith("done."):
        sys.stderr.write(clean(f"{line}\n"))
    elif sys.stderr.isatty():
        # One that fills its line would leave it there, and the next count would go on below.
        width = max(1, min(_COUNTED, (os.get_terminal_size(sys.stderr.fileno()).columns or 80) - 1))
        sys.stderr.write(f"{one_line(line, width):{width}}\r")
    sys.stderr.flush()
