"""Which extension a verb is about, where it takes a path as well as a name."""

import os

from hilt.cli.ext.site import Site, existing
from hilt.errors import ExtensionError, ManifestError, UsageError
from hilt.packages.discovery import Discovery, Found, find_at
from hilt.packages.finder import Finder


class Only:
    """Finds that one and no other."""

    def __init__(self, found: Found, finder: Finder) -> None:
        self.found = found
        self.again = finder.again

    def all(self) -> Discovery:
        return Discovery((self.found,), (), ())


def pick(site: Site, target: str) -> Only:
    """The one of this name that is installed, or else the one at this path. Raises `HiltError` for one that cannot run.

    What looks like a path is one: `./weather` is never an installed `weather`.
    """
    finder = site.finder()
    if not _like_a_path(target):
        discovery = finder.all()
        if found := _installed(discovery, target):
            return Only(found, finder)
        if not os.path.lexists(target):
            raise site.no_such(target)
    return Only(find_at(existing(target), site.path, site.config.extensions), finder)


def _like_a_path(target: str) -> bool:
    return os.sep in target or target in ("", ".", "..") or target.startswith("~")


def _installed(discovery: Discovery, name: str) -> Found | None:
    for found in discovery.found:
        if found.name == name:
            return found
    if any(found.name == name for found in discovery.disabled):
        raise UsageError(f"{name} is disabled", hint=f"`hilt ext enable {name}` lets it run")
    for barred in discovery.untrusted:
        if barred.found.name == name:
            raise ExtensionError(name, f"{name} does not run: {barred.reason}", hint="`hilt ext trust` shows it first")
    for problem in discovery.problems:
        if problem.name == name:
            raise ManifestError(problem.message, hint=problem.hint, extension=name)
    return None
