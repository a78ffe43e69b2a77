"""`hilt ext import`: copies of what is installed for another agent; theirs stay as they are."""

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from hilt.cli.configuring import choose
from hilt.cli.ext.agreeing import about, agreed, choices_for, keep_choices
from hilt.cli.ext.installing import prepared
from hilt.cli.ext.site import Site, Told
from hilt.errors import HiltError
from hilt.packages.choices import sandbox_of
from hilt.packages.discovery import Found
from hilt.packages.install.installing import Staged
from hilt.packages.install.sources import Directory
from hilt.packages.install.state import data_in
from hilt.packages.manifest import Default, manifest_file, read_manifest
from hilt.packages.members import shown

_LARGEST_CONFIG = 256 * 1024
_PINNED = (
    "What else lies in their directories is pinned: one that changes it does not start again, until "
    "`hilt ext update NAME --state PATH` lets it."
)
_CORRECT = "correct it, or move it away for the time being: then all of them are imported switched on"


def bring_in(site: Site, options: argparse.Namespace) -> Told:
    place = _zot() if options.origin == "zot" else _piglet()
    if not place.is_dir():
        nothing = {"from": options.origin, "imported": [], "problems": []}
        return Told(nothing, f"{options.origin} has no extensions here: {place}")
    off = _switched_off(place) if options.origin == "piglet" else frozenset()
    problems: list[str] = []
    with ExitStack() as stack:
        ready = [one for one in (_prepare(site, path, stack, problems) for path in _directories(place)) if one]
        text = "\n\n".join(about(site, one, choices_for(site, one.manifest)) for one in ready)
        if any(one.entry.lived_in for one in ready):
            text += f"\n\n{_PINNED}\n"
        question = f"Copy {', '.join(one.name for one in ready)} from {place}?"
        if ready and not agreed(question, text, yes=options.yes):
            return Told({"from": options.origin, "imported": [], "problems": problems}, "nothing was copied", code=1)
        names = [one.name for one in ready if _kept(site, one, problems, on=one.name not in off)]
    told = [f"imported {name}" + (" (switched off, as it was there)" if name in off else "") for name in names]
    told += [f"not imported: {problem}" for problem in problems]
    value = {"from": options.origin, "imported": names, "problems": problems}
    return Told(value, "\n".join(told) or f"{place} holds no extensions", code=1 if problems and not names else 0)


def _prepare(site: Site, path: Path, stack: ExitStack, problems: list[str]) -> Staged | None:
    """What cannot write beside its code has no state there."""
    try:
        manifest = read_manifest(path)
        unconfined = sandbox_of(manifest, choices_for(site, manifest), stranger=False) == "off"
        staged = prepared(site, Directory(path), str(path), yes=True, fresh=True, lived_in=unconfined)
        return stack.enter_context(staged)
    except HiltError as error:
        problems.append(f"{shown(path.name)}: {error.message}")
        return None


def _kept(site: Site, one: Staged, problems: list[str], *, on: bool) -> bool:
    """What is wrong with one is no reason to leave the others behind."""
    try:
        one.keep()
        _take_along(site, one)
        keep_choices(site, one.name, choices_for(site, one.manifest))
        if not on:
            choose(site.home.config, one.name, {"enabled": False})
    except HiltError as error:
        problems.append(f"{one.name}: {error.message}")
        return False
    return True


def _take_along(site: Site, one: Staged) -> None:
    """There, what an extension keeps lies beside its code; here it may have a directory of its own."""
    home = site.home.extensions / one.name
    if Found(one.manifest, home, (), "user", 0, choices=choices_for(site, one.manifest)).keeps_beside:
        return
    from msgspec import structs

    from hilt.packages.install.seeding import seed

    belongings = tuple(Default(path, path) for path in data_in(one.manifest, one.tree.files))
    seed(structs.replace(one.manifest, defaults=belongings), home, site.home.data / one.name)


def _directories(place: Path) -> list[Path]:
    return sorted(path for path in place.iterdir() if path.is_dir() and manifest_file(path))


def _zot() -> Path:
    if explicit := os.environ.get("ZOT_HOME"):
        return Path(explicit) / "extensions"
    if state := os.environ.get("XDG_STATE_HOME"):
        return Path(state, "zot", "extensions")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "zot" / "extensions"
    return Path.home() / ".local" / "state" / "zot" / "extensions"


def _piglet() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base, "piglet", "extensions")


def _switched_off(place: Path) -> frozenset[str]:
    """The names that its configuration lists as disabled. Raises `HiltError` where that cannot be told: what somebody
    switched off must not run here because of a slip in a file."""
    from hilt.packages.members import Members, read_file, yaml_members

    config = place.parent / "config.yaml"
    if not config.exists():
        return frozenset()
    try:
        data = read_file(config, _LARGEST_CONFIG, "a mapping")
        members = Members(yaml_members(config, data, "a mapping") if data.strip() else {})
    except HiltError as error:
        raise HiltError(f"{error.message}; it says which extensions are switched off", hint=_CORRECT) from error
    names = members.texts("disabled_extensions")
    for message, _ in members.wrong.values():
        raise HiltError(f"{shown(config)}: {message}", hint=_CORRECT)
    return frozenset(names)
