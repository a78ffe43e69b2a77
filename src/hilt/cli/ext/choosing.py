"""`hilt ext enable`, `disable`, `grant` and `revoke`: the user's standing choices, kept in `config.toml`.

What is granted to an extension of a project is kept with the trust in it instead: it must not hold for another
project's that has the same name.
"""

import argparse
from pathlib import Path

import msgspec

from hilt.cli.config import load_config
from hilt.cli.configuring import choose
from hilt.cli.ext.site import Site, Told
from hilt.errors import ManifestError, UsageError
from hilt.packages.choices import NONE, Choices
from hilt.packages.discovery import PROJECT
from hilt.packages.manifest import is_name, read_manifest
from hilt.packages.members import quoted
from hilt.packages.permissions import KNOWN, meaning, problem
from hilt.packages.trust.screening import Gate


def enable(site: Site, options: argparse.Namespace) -> Told:
    return _switch(site, options.name, on=True)


def disable(site: Site, options: argparse.Namespace) -> Told:
    return _switch(site, options.name, on=False)


def grant(site: Site, options: argparse.Namespace) -> Told:
    name, permission = _checked(site, options)
    if name.startswith(PROJECT):
        _grant_here(site, name, permission, given=True)
    else:
        grants = dict.fromkeys((*_mine(site, name).grants, permission))
        _keep(site, name, grants=tuple(grants), revoked=_without(_mine(site, name).revoked, permission))
    kind = permission.partition(":")[0]
    if kind != permission and kind in _mine(site, name).revoked:
        text = f"noted, but you revoked all of {kind}: `hilt ext grant {name} {kind}` takes that back"
        return Told({"name": name, "permission": permission, "granted": False}, text, code=1)
    return _done(site, name, permission, f"{name} may now {meaning(permission)}", granted=True)


def revoke(site: Site, options: argparse.Namespace) -> Told:
    name, permission = _checked(site, options)
    if name.startswith(PROJECT):
        _grant_here(site, name, permission, given=False)
    revoked = dict.fromkeys((*_mine(site, name).revoked, permission))
    _keep(site, name, grants=_without(_mine(site, name).grants, permission), revoked=tuple(revoked))
    return _done(site, name, permission, f"{name} may no longer {meaning(permission)}", granted=False)


def _switch(site: Site, name: str, *, on: bool) -> Told:
    if not is_name(name.removeprefix(PROJECT)) or not site.knows(name):
        raise site.no_such(name)
    choose(site.home.config, name, {"enabled": on})
    state = "enabled" if on else "disabled"
    return Told({"name": name, "enabled": on}, f"{name} is {state}")


def _mine(site: Site, name: str) -> Choices:
    """As they stand in the user's own file, without what a project takes away."""
    chosen: Choices = load_config(site.home.config).extensions.get(name, NONE)
    return chosen


def _keep(site: Site, name: str, **values: tuple[str, ...]) -> None:
    mine = _mine(site, name)
    if news := {key: value for key, value in values.items() if value != getattr(mine, key)}:
        choose(site.home.config, name, news)


def _without(permissions: tuple[str, ...], permission: str) -> tuple[str, ...]:
    return tuple(one for one in permissions if one != permission)


def _checked(site: Site, options: argparse.Namespace) -> tuple[str, str]:
    """It need not be installed: one that is only named by --ext has rights, too."""
    name, permission = options.name, options.permission
    if not is_name(name.removeprefix(PROJECT)):
        raise site.no_such(name)
    if wrong := problem(permission):
        raise UsageError(f'"{quoted(permission)}" {wrong}', hint=f"the permissions are {KNOWN}")
    return name, permission


def _grant_here(site: Site, name: str, permission: str, *, given: bool) -> None:
    gate = site.finder().gate
    for within, entry in gate.store.of(gate.folder).items():
        if _name_of(gate, within) == name.removeprefix(PROJECT):
            others = _without(entry.grants, permission)
            changed = msgspec.structs.replace(entry, grants=(*others, permission) if given else others)
            gate.store.add(gate.folder, {within: changed})
            return
    raise UsageError(f"{name} is not trusted in this folder", hint="`hilt ext trust` shows what is here and asks")


def _name_of(gate: Gate, within: str) -> str:
    try:
        return read_manifest(gate.folder / Path(within)).name
    except ManifestError:
        return ""


def _done(site: Site, name: str, permission: str, text: str, *, granted: bool) -> Told:
    note = "" if site.knows(name) else f"\nno {name} is installed: it holds for one that --ext names"
    value = {"name": name, "permission": permission, "granted": granted}
    return Told(value, f"{text}, from its next start on{note}")
