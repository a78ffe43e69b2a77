"""`hilt ext install`, `update`, `remove` and `link`: shown first, then done, and only after a yes."""

import argparse
import os
import shlex
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from hilt.cli.ext.agreeing import about, agreed, choices_for, declined, keep_choices, progress
from hilt.cli.ext.site import Site, Told, existing
from hilt.errors import HiltError, PackageError, UsageError
from hilt.packages.choices import Choices
from hilt.packages.diffing import differences
from hilt.packages.disclosure import disclosure, listed
from hilt.packages.discovery import Found
from hilt.packages.install.installing import Difference, Staged, expect_vacant, installed, source_of, staged
from hilt.packages.install.installing import link as put_link
from hilt.packages.install.installing import remove as take_away
from hilt.packages.install.lock import Entry
from hilt.packages.install.seeding import check, seed
from hilt.packages.install.shelf import Shelf
from hilt.packages.install.sources import File, Source, noted, parse_source
from hilt.packages.install.state import check_named
from hilt.packages.install.verifying import strays
from hilt.packages.manifest import Manifest, read_manifest, resolve_exec
from hilt.packages.members import shown
from hilt.packages.permissions import meaning
from hilt.packages.scripts.environments import consent, environment_for, find_environment, remove_environment
from hilt.packages.sightings import remember


def shelf_of(site: Site) -> Shelf:
    return Shelf(site.home.extensions, site.home.lock)


def install(site: Site, options: argparse.Namespace) -> Told:
    source = parse_source(options.source, allow_file=options.allow_file, cwd=site.cwd)
    with prepared(site, source, options.source, yes=options.yes, fresh=True, state=options.state) as one:
        check(one.manifest, one.where)
        check_named(options.state, one.manifest, one.tree.files)
        choices = choices_for(site, one.manifest, options.sandbox)
        if not agreed(f"Install {one.name}?", about(site, one, choices, seeded=True), yes=options.yes):
            return declined(one.name, "nothing was installed")
        _greets(site, one, choices)
        entry = one.keep()
        keep_choices(site, one.name, choices)
    return Told(_facts(one.name, entry, installed=True), _installed(one.name, entry) + _seeded(site, one.manifest))


def update(site: Site, options: argparse.Namespace) -> Told:
    if bool(options.name) == options.all:
        raise UsageError("name one to update, or give --all", hint="`hilt ext list` shows them")
    if options.all and options.state:
        raise UsageError("--state is about one extension", hint="name the one to update")
    if not options.all:
        return _update(site, options.name, yes=options.yes, state=options.state)
    names = [name for name, entry in site.installed().items() if entry.kind != "link"]
    results = [_update_or_tell(site, name, yes=options.yes) for name in names]
    text = "\n".join(result.text for result in results) or "hilt has installed nothing that could be updated"
    return Told([result.value for result in results], text, code=max((result.code for result in results), default=0))


def remove(site: Site, options: argparse.Namespace) -> Told:
    shelf, name = shelf_of(site), options.name
    entry = _known(site, name)
    place = shelf.extensions / name
    question = f"Remove the link to {entry.url}?" if entry.kind == "link" else f"Delete {place} for good?"
    beside = strays(entry, place) if entry.kind != "link" and place.is_dir() else ()
    details = "these files, which it saved beside its code, are deleted too:\n" + "\n".join(beside) if beside else ""
    if not agreed(question, details, yes=options.yes):
        return declined(name, f"{name} stays where it is")
    take_away(shelf, name)
    remove_environment(site.home.environments, name)
    return Told({"name": name, "removed": True}, f"removed {name}")


def link(site: Site, options: argparse.Namespace) -> Told:
    place = Path(os.path.realpath(existing(options.path)))
    if not place.is_dir():
        raise UsageError(f"{options.path} is not a directory", hint="`hilt ext install` takes a single file")
    manifest = read_manifest(noted(place))
    expect_vacant(shelf_of(site), manifest.name)
    choices = choices_for(site, manifest)
    argv = resolve_exec(manifest, place, site.path) if manifest.exec else ()
    found = Found(manifest, place, argv, "user", 0, choices=choices)
    if not agreed(f"Run {found.name} from where it is?", disclosure(found, argv), yes=options.yes):
        return declined(found.name, "nothing was linked")
    entry = put_link(shelf_of(site), place, given=options.path, path=site.path)
    keep_choices(site, found.name, choices)
    return Told(_facts(found.name, entry, installed=True), f"{found.name} runs from {place}, as it is at any time")


@contextmanager
def prepared(
    site: Site,
    source: Source,
    given: str,
    *,
    yes: bool,
    fresh: bool = False,
    state: Collection[str] = (),
    lived_in: bool = False,
) -> Iterator[Staged]:
    """Fetched and checked; whatever was made for it is gone again if the block does not keep it.

    `fresh`: there must be none of its name, which is said before anybody is asked. The last two: see `Entry`.
    """
    with (
        _python_for(site, source, yes=yes, fresh=fresh) as python,
        staged(
            source,
            shelf_of(site),
            given=given,
            path=site.path,
            progress=progress,
            python=python,
            state=state,
            lived_in=lived_in,
        ) as one,
    ):
        if fresh:
            expect_vacant(shelf_of(site), one.name)
        yield one


@contextmanager
def _python_for(site: Site, source: Source, *, yes: bool, fresh: bool) -> Iterator[Path | None]:
    """The interpreter that has what a single file depends on; None for what depends on nothing."""
    from hilt.packages.scripts.script import read_script

    script = read_script(source.path) if isinstance(source, File) else None
    if script is None or not script.needs_environment:
        yield None
        return
    name, root, wanted = script.manifest.name, site.home.environments, (script.dependencies, script.requires_python)
    if fresh:
        expect_vacant(shelf_of(site), name)
    if not find_environment(*wanted, root, name) and not agreed(
        f"Build an environment for {name}?", f"it {consent(script.dependencies)}", yes=yes
    ):
        raise PackageError(f"{name} needs packages that were not installed", hint="nothing was changed")
    try:
        yield environment_for(*wanted, root, name, progress, env=os.environ)
    finally:
        if name not in site.installed():
            remove_environment(root, name)


def _known(site: Site, name: str) -> Entry:
    """What hilt knows of one that it installed."""
    if name not in site.installed() and not site.knows(name):
        raise site.no_such(name)
    return installed(shelf_of(site), name)


def _update_or_tell(site: Site, name: str, *, yes: bool) -> Told:
    """What is wrong with one is no reason to leave the others as they are."""
    try:
        return _update(site, name, yes=yes)
    except UsageError:
        raise
    except HiltError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return Told({"name": name, "updated": False, "error": error.message}, f"{name}: {error.message}{hint}", code=1)


def _update(site: Site, name: str, *, yes: bool, state: Collection[str] = ()) -> Told:
    entry = _known(site, name)
    source = source_of(entry)
    if entry.kind != "git" and not os.path.lexists(entry.url):
        hint = f"put it back; or `hilt ext remove {name}`, and install it from where it is now"
        raise PackageError(f"{shown(entry.url)}, where {name} came from, is gone", hint=hint)
    left = (*entry.state, *state)
    with prepared(site, source, entry.source, yes=yes, state=left, lived_in=entry.lived_in) as one:
        if one.name != name:
            raise PackageError(f'{entry.source} is called "{one.name}" now', hint=f"remove {name}, and install it anew")
        check(one.manifest, one.where)
        check_named(state, one.manifest, one.tree.files)
        difference = one.difference()
        if not difference:
            return Told(_facts(name, entry, updated=False), f"{name} is up to date")
        choices = choices_for(site, one.manifest)
        diff = differences(site.home.extensions / name, one.where, difference.files)
        details = f"{_told(difference)}\n\n{about(site, one, choices, seeded=True)}\n\n{diff}"
        if not agreed(f"Update {name}?", details, yes=yes):
            return declined(name, f"{name} stays as it is")
        _greets(site, one, choices)
        aside = one.replace()
        keep_choices(site, name, choices)
    kept = f"\nkept aside, as they were changed: {', '.join(aside)}" if aside else ""
    now = f" to {one.entry.version}" if one.entry.version else ""
    # Whoever was asked has just read it.
    text = f"{_told(difference)}\n" * yes + f"updated {name}{now}, pinned to {_pin(one.entry)}{kept}"
    text += _seeded(site, one.manifest)
    return Told(_facts(name, one.entry, updated=True) | {"changes": msgspec.to_builtins(difference)}, text)


def _told(difference: Difference) -> str:
    lines = []
    for what, (before, after) in (("version", difference.version), ("commit", difference.commit)):
        if before != after:
            lines.append(f"{what}: {before or '-'} → {after or '-'}")
    before, after = map(shlex.join, difference.command)
    if before != after:
        lines.append(f"runs: {before} → {after}")
    lines += [f"asks for more: {meaning(one)}  [{one}]" for one in difference.permissions_added]
    lines += [f"asks no longer: {meaning(one)}  [{one}]" for one in difference.permissions_removed]
    if difference.confined:
        lines.append("asks for less: what it lists now, in place of full access")
    if difference.full_access:
        lines.append("asks for more: full access (it has no list of permissions any more)")
    if difference.files:
        lines += ["files:", listed(difference.files)]
    lines += [f"its own to change from now on: {path}" for path in difference.released]
    if difference.tampered:
        lines += ["changed here since it was installed, and put right:", listed(difference.tampered)]
    return "\n".join(lines)


def _greets(site: Site, one: Staged, choices: Choices) -> None:
    """A single file says nothing of itself that could be checked: it must answer, or it is no extension."""
    if one.entry.kind != "file":
        return
    from hilt.cli.ext.trial import try_staged

    argv = resolve_exec(one.manifest, one.where, site.path)
    found = Found(one.manifest, one.where, argv, "user", 0, choices=choices)
    status = try_staged(site, found, one.where.parent).status
    if status.state != "ready":
        raise PackageError(
            f"{one.name} is no extension, or does not work: it {status.reason or 'did not start'}",
            hint="nothing was changed; an extension says hello on stdout when it is started",
        )
    remember(site.home.seen, [status])


def _seeded(site: Site, manifest: Manifest) -> str:
    """It is installed, whatever becomes of the files it begins with."""
    data = site.home.data / manifest.name
    try:
        made = seed(manifest, site.home.extensions / manifest.name, data)
    except PackageError as error:
        return f"\n{error.message} ({error.hint})"
    return "".join(f"\ncopied {data / one}" for one in made)


def _facts(name: str, entry: Entry, **more: bool) -> dict[str, Any]:
    facts = {"name": name, "version": entry.version, "source": entry.origin, "kind": entry.kind}
    return facts | {"commit": entry.commit, "tree": entry.tree.hash} | more


def _installed(name: str, entry: Entry) -> str:
    return f"installed {name} {entry.version}".rstrip() + f", pinned to {_pin(entry)}\ntry it: hilt ext doctor {name}"


def _pin(entry: Entry) -> str:
    return f"commit {entry.commit}" if entry.commit else f"its files as they are now ({entry.tree.hash[:12]})"
