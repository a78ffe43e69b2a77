"""Which extensions there are, and who keeps a name that two of them claim: decided before anything runs.

Owns the places, their order and the choice. What a manifest may say is `manifest`'s business, whether a project is
trusted and when something is started is the host's. Nothing here raises for what a stranger put on the disk, except
`find_again`, whose caller has an older version to go on with.
"""

import os
import stat
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from hilt.errors import ManifestError
from hilt.packages.manifest import MANIFEST, Manifest, as_name, on_path, read_manifest, resolve_exec, shown

Source: TypeAlias = Literal["flag", "user", "project"]

_MOST_PER_PLACE = 1000
_FLAG_HINT = "--ext takes the directory of an extension, or a program"


class Found(Struct, frozen=True):
    manifest: Manifest
    directory: Path
    """Absolute; where it runs. Links are not resolved: people see the path they know."""
    argv: tuple[str, ...]
    """Empty for one that does not run: nothing is looked up for it."""
    source: Source
    order: int
    """Its place among all that have a name to themselves, disabled ones too."""
    file: Path | None = None
    """The program itself, when a flag named one without a manifest."""

    @property
    def runs(self) -> bool:
        """A flag names an extension, so it runs whatever its manifest says."""
        return self.source == "flag" or self.manifest.enabled


class Problem(Struct, frozen=True):
    """Something that will not run, and why."""

    where: str
    message: str
    """Says the place by itself."""
    hint: str = ""
    name: str = ""
    """The extension's, or what its directory or file suggests."""


class Discovery(Struct, frozen=True):
    found: tuple[Found, ...]
    """In the order in which they are loaded."""
    disabled: tuple[Found, ...]
    problems: tuple[Problem, ...]


class _Candidate(Struct, frozen=True):
    directory: Path
    source: Source
    file: Path | None = None

    @property
    def where(self) -> Path:
        return self.file or self.directory


def discover(flags: Sequence[str], user: Path, project: Path, *, only_flags: bool, path: str, cwd: Path) -> Discovery:
    """Look through the flags, then `user` and `project`: two directories of extensions, which need not exist."""
    search = _Search(path)
    for flag in flags:
        search.flag(flag, cwd)
    if not only_flags:
        search.place(user, "user")
        search.place(project, "project")
    return Discovery(tuple(search.found), tuple(search.disabled), tuple(search.problems))


def find_again(found: Found, path: str) -> Found:
    """The same extension as it is on the disk now; it may have been disabled. Raises `ManifestError`."""
    again = _load(_Candidate(found.directory, found.source, found.file), found.order, path)
    manifest, name = found.directory / MANIFEST, found.manifest.name
    if again.manifest.name != name:
        raise ManifestError(
            f'{shown(manifest)}: "name" is now "{again.manifest.name}", it was "{name}"',
            hint="start hilt anew to load it by its new name, or change it back",
            extension=name,
        )
    if not again.manifest.exec:
        raise ManifestError(f'{shown(manifest)}: "exec" is gone', hint="name the program to run", extension=name)
    return again


class _Search:
    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: set[str] = set()
        self._owners: dict[str, Path] = {}
        """By lower-case name, for it becomes a file name and not every file system tells case apart."""
        self.found: list[Found] = []
        self.disabled: list[Found] = []
        self.problems: list[Problem] = []

    def flag(self, flag: str, cwd: Path) -> None:
        try:
            candidate = _named(flag, cwd)
        except ManifestError as error:
            self.problems.append(Problem(shown(flag), error.message, error.hint))
        else:
            self._add(candidate)

    def place(self, place: Path, source: Source) -> None:
        try:
            directories = _subdirectories(place.absolute())
        except FileNotFoundError:
            return  # most people have none
        except OSError as error:
            self._complain(place, f"cannot be read: {error.strerror or error}")
            return
        if len(directories) > _MOST_PER_PLACE:
            self._complain(place, f"holds more than {_MOST_PER_PLACE} entries, and only so many are looked at")
        for directory in directories[:_MOST_PER_PLACE]:
            self._look_into(directory, source)

    def _look_into(self, directory: Path, source: Source) -> None:
        try:
            (directory / MANIFEST).lstat()
        except (FileNotFoundError, NotADirectoryError):
            if directory.is_symlink() and not directory.exists():
                self._complain(directory, "is a link that leads nowhere", as_name(directory.name))
        except OSError as error:
            self._complain(directory, f"cannot be read: {error.strerror or error}", as_name(directory.name))
        else:
            self._add(_Candidate(directory, source))

    def _complain(self, where: Path, why: str, name: str = "") -> None:
        self._refuse(where, f"{shown(where)} {why}", "correct it, or remove what is not needed", name)

    def _refuse(self, where: Path, message: str, hint: str, name: str) -> None:
        self.problems.append(Problem(shown(where), message, hint, name))
        # It keeps its name all the same, lest a project's extension take the place of a guard that is broken.
        self._owners.setdefault(name.lower(), where)

    def _add(self, candidate: _Candidate) -> None:
        real = os.path.realpath(candidate.where)
        if real in self._seen:
            return
        self._seen.add(real)
        try:
            found = _load(candidate, len(self.found) + len(self.disabled), self._path)
        except ManifestError as error:
            name = error.extension or as_name(candidate.file.stem if candidate.file else candidate.directory.name)
            self._refuse(candidate.where, error.message, error.hint, name)
            return
        if not found.manifest.exec:
            return
        owner = self._owners.setdefault(found.manifest.name.lower(), candidate.where)
        if owner is candidate.where:
            (self.found if found.runs else self.disabled).append(found)
        elif found.runs:
            self._conflict(found.manifest.name, owner, candidate.where)

    def _conflict(self, name: str, owner: Path, loser: Path) -> None:
        message = f'conflict: "{name}" is the name of {shown(owner)} already, so {shown(loser)} is not loaded'
        hint = "rename one of them, or leave one out"
        self.problems.append(Problem(shown(loser), message, hint, name))


def _named(flag: str, cwd: Path) -> _Candidate:
    """What a flag names. Raises `ManifestError`."""
    if not flag or "\0" in flag:
        raise ManifestError(f'--ext "{shown(flag)}" names nothing', hint=_FLAG_HINT)
    place = cwd / os.path.expanduser(flag)  # noqa: PTH111 - never fails, unlike Path.expanduser
    # `a/..` need not be where it seems to be when `a` is a link, so only the file system can shorten it.
    place = Path(os.path.realpath(place)) if ".." in place.parts else place.absolute()
    try:
        mode = place.stat().st_mode
    except OSError as error:
        raise ManifestError(f"--ext {shown(place)}: {error.strerror or error}", hint=_FLAG_HINT) from error
    if stat.S_ISDIR(mode):
        return _Candidate(place, "flag")
    if not stat.S_ISREG(mode):
        raise ManifestError(f"--ext {shown(place)} is neither a directory nor a file", hint=_FLAG_HINT)
    return _Candidate(place.parent, "flag", None if place.name == MANIFEST else place)


def _subdirectories(place: Path) -> list[Path]:
    """What may be directories of extensions, also links to them. Raises `OSError`."""
    with os.scandir(place) as entries:
        # Bounded, for a project may hold anything; sorted, so that the order is not the file system's.
        names = [entry.name for entry in islice(entries, _MOST_PER_PLACE + 1)]
    return [place / name for name in sorted(names) if not name.startswith(".")]


def _load(candidate: _Candidate, order: int, path: str) -> Found:
    """Raises `ManifestError`."""
    directory, source, file = candidate.directory, candidate.source, candidate.file
    if file:
        manifest = Manifest(_stem(file), exec=str(file))
        return Found(manifest, directory, _command(file, path), source, order, file)
    manifest = read_manifest(directory)
    found = Found(manifest, directory, (), source, order)
    if not manifest.exec or not found.runs:
        return found
    return Found(manifest, directory, resolve_exec(manifest, directory, path), source, order)


def _stem(file: Path) -> str:
    if name := as_name(file.stem):
        return name
    raise ManifestError(
        f"{shown(file)}: there is no letter or digit in its name to name an extension by", hint="rename the file"
    )


def _command(file: Path, path: str) -> tuple[str, ...]:
    if not os.access(file, os.F_OK):
        raise ManifestError(f"{shown(file)}: there is no such file", hint=_FLAG_HINT)
    if os.access(file, os.X_OK):
        return (str(file),)
    if file.suffix == ".py":
        return (on_path("python3", path) or sys.executable, str(file))
    raise ManifestError(f"{shown(file)} is not executable", hint=f"chmod +x {shown(file)}")
