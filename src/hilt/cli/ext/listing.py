"""`hilt ext list` and `info`: what there is, from files alone unless somebody asks for more."""

import argparse
import shlex
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hilt.cli.ext.site import Site, Told, every, found_in, tell
from hilt.errors import ManifestError
from hilt.frontends.terminal import clean, hanging
from hilt.packages.discovery import PROJECT, Discovery, Found, Problem, Untrusted, log_name
from hilt.packages.install.lock import Entry
from hilt.packages.install.verifying import strays
from hilt.packages.manifest import Manifest, read_manifest
from hilt.packages.members import shown
from hilt.packages.permissions import CONSENTED, meaning
from hilt.packages.sightings import Sighting, known_as, sightings

_PREFIXES = {"commands": "/", "guards": "guards "}
_HEADERS = ("name", "version", "state", "dialect", "source", "pinned", "sandbox", "offers")


class Row(Struct, frozen=True, omit_defaults=True):
    """One extension, as `--json` gives it."""

    name: str
    version: str
    dialect: str
    state: str
    """`stopped` for one that would run; what it was last seen as is in `reason`."""
    source: str
    enabled: bool
    pinned: bool
    sandbox: str
    contributes: dict[str, list[str]]
    """As last seen; empty for one that never ran."""
    directory: str
    commit: str = ""
    origin: str = ""
    """What it was installed from."""
    reason: str = ""
    description: str = ""
    start_ms: int | None = None
    tokens_used: int = 0
    """By models beside the conversation, when it last ran."""


def show_all(site: Site, options: argparse.Namespace) -> Told:
    discovery = site.finder().all()
    rows = _rows(site, discovery)
    told = "\n".join(row.reason for row in rows)
    for problem in discovery.problems:
        if problem.message not in told:
            tell(problem.message)  # it is about no single extension, or about one that lost its name to another
    if options.live:
        from hilt.cli.ext.trial import tried

        rows = tried(site, rows)
    failing = any(row.state == "failed" for row in rows)
    value = [_plain(row) for row in rows]
    text = _table(rows) if rows else "no extensions yet; `hilt ext install PATH|URL` gets one"
    return Told(value, text, code=1 if failing and options.live else 0)


def show_one(site: Site, options: argparse.Namespace) -> Told:
    discovery = site.finder().all()
    row = next((row for row in _rows(site, discovery) if row.name == options.name), None)
    if row is None:
        raise site.no_such(options.name)
    found = next((one for one in map(found_in, every(discovery)) if one.name == row.name), None)
    value = _plain(row) | {"log": str(site.home.logs / log_name(row.name))}
    if found:
        value |= _rights(found) | {"unpinned": _unpinned(site, found) if row.pinned else []}
    told = ((name, _said(name, item)) for name, item in value.items() if item not in ("", [], {}, None))
    lines = (("" if at else name, line) for name, said in told for at, line in enumerate(said))
    return Told(value, "\n".join(f"{name:12}{hanging(line)}" for name, line in lines))


def _unpinned(site: Site, found: Found) -> list[str]:
    """What it has in its directory that it may change."""
    try:
        return [shown(path) for path in strays(site.installed()[found.directory.name], found.directory)]
    except OSError:
        return []  # gone, or out of reach: whoever starts it says so


def _rows(site: Site, discovery: Discovery) -> list[Row]:
    entries, seen = site.installed(), sightings(site.home.seen)
    rows = [_row(one, entries, seen) for one in every(discovery)]
    known = {row.name for row in rows}
    return [*rows, *(_broken(one, entries) for one in discovery.problems if one.name and one.name not in known)]


def _row(one: Found | Untrusted, entries: dict[str, Entry], seen: Any) -> Row:
    found = found_in(one)
    manifest = found.manifest
    sighting = seen.get(known_as(found.name, found.source, str(found.where)), Sighting())
    entry = entries.get(found.directory.name) if found.source == "user" else None
    state, reason = _state(one, found, sighting)
    return Row(
        name=found.name,
        version=manifest.version or sighting.version,
        dialect=manifest.dialect,
        state=state,
        source=found.source,
        enabled=found.runs,
        pinned=bool(entry and entry.kind != "link"),
        sandbox=found.sandbox,
        contributes=_contributes(sighting),
        directory=str(found.where),
        commit=entry.commit if entry else "",
        origin=entry.origin if entry else "",
        reason=reason,
        description=manifest.description,
        start_ms=sighting.start_ms,
        tokens_used=sighting.tokens_used,
    )


def _state(one: Found | Untrusted, found: Found, sighting: Sighting) -> tuple[str, str]:
    if isinstance(one, Untrusted):
        return "untrusted", f"{one.reason}; `hilt ext trust` asks"
    if not found.runs:
        by_user = found.choices.enabled is False
        why = "config.toml switches it off" if by_user else 'its manifest says "enabled": false'
        return "disabled", f"{why}; `hilt ext enable {found.name}` switches it on"
    if sighting.state == "failed":
        return "failed", f"when it last ran: {sighting.reason}"
    return "stopped", ""


def _broken(problem: Problem, entries: dict[str, Entry]) -> Row:
    entry, manifest = entries.get(problem.name), _manifest(problem)
    return Row(
        name=problem.name,
        version=manifest.version if manifest else entry.version if entry else "",
        dialect=manifest.dialect if manifest else "",
        state="failed",
        source="project" if problem.name.startswith(PROJECT) else "user",
        enabled=True,
        pinned=bool(entry and entry.kind != "link"),
        sandbox="",
        contributes={},
        directory=problem.where,
        commit=entry.commit if entry else "",
        origin=entry.origin if entry else "",
        reason=f"{problem.message} ({problem.hint})" if problem.hint else problem.message,
    )


def _manifest(problem: Problem) -> Manifest | None:
    """What it says of itself, where not that is what is wrong."""
    try:
        return read_manifest(Path(problem.where))
    except ManifestError:
        return None


def _contributes(sighting: Sighting) -> dict[str, list[str]]:
    offered = {"tools": sighting.tools, "commands": sighting.commands, "guards": sighting.guards, "also": sighting.also}
    return {kind: list(names) for kind, names in offered.items() if names}


def _rights(found: Found) -> dict[str, Any]:
    asked, rights = found.manifest.permissions, found.permissions
    return {
        "permissions": "full access" if asked is None else list(asked),
        "grants": list(found.choices.grants),
        "revoked": list(rights.revoked),
        "needs_grant": [one for one in asked or () if one.partition(":")[0] in CONSENTED and not rights.allows(one)],
        "off": list(found.choices.off),
        "command": list(found.argv),
    }


def _plain(row: Row) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(row)
    return plain


def _said(name: str, item: Any) -> list[str]:
    """In lines, the first of which stands beside the name."""
    match item:
        case bool():
            return ["yes" if item else "no"]
        case dict():
            return [f"{kind}: {', '.join(names)}" for kind, names in item.items()]
        case list() if name == "command":
            return [shlex.join(item)]
        case list() if name in ("off", "unpinned"):
            return [", ".join(item)]
        case list():
            return [f"{one} ({meaning(one)})" for one in item]
    return [str(item)]


def _table(rows: list[Row]) -> str:
    cells = [_HEADERS, *map(_cells, rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(_HEADERS))]
    lines = []
    for at, row in enumerate(cells):
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if at and rows[at - 1].reason:
            lines.append(hanging(f"    {rows[at - 1].reason}"))
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    offered = ((kind, name) for kind, names in row.contributes.items() for name in names)
    offers = ", ".join(_PREFIXES.get(kind, "") + name for kind, name in offered)
    pinned = row.commit[:9] or ("yes" if row.pinned else "-")
    state = row.state if row.start_ms is None or row.state != "ready" else f"{row.state} {row.start_ms} ms"
    cells = (row.name, row.version, state, row.dialect, row.source, pinned, row.sandbox, offers)
    return tuple(" ".join(cell.split()) or "-" for cell in map(clean, cells))
