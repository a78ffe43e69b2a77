"""Which extensions there are, and who keeps a name that two of them claim: decided before anything runs.

Owns the places, their order and the choice. What a manifest may say is `manifest`'s business, whether what was found
may run is `screening`'s. Nothing here raises for what a stranger put on the disk, except `find_again`, whose caller
has an older version to go on with.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from hilt.errors import ManifestError
from hilt.model.extensions import Dialect
from hilt.packages.choices import NONE, Choices, permissions_of, sandbox_of
from hilt.packages.manifest import (
    MANIFESTS,
    YAML_MANIFEST,
    Manifest,
    SandboxLevel,
    as_name,
    manifest_file,
    read_manifest,
    resolve_exec,
)
from hilt.packages.members import shown
from hilt.packages.permissions import Permissions

Source: TypeAlias = Literal["flag", "user", "project"]

PROJECT = "project:"

_MOST_PER_PLACE = 1000
_MOST_READ = 512 * 1024
"""Bytes of a project's manifests: nobody should have to wait for what a stranger put into a folder one enters."""
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
    choices: Choices = NONE
    origin: Path | None = None
    """Where it lies, when it runs from a copy."""
    consented: bool = False
    """The user was told that it has full access, and agreed: by an installation or by trusting the folder. Whoever
    names it on the command line needs no telling. One that was put among the others by hand was never asked about."""
    left_out: bool = False
    """It would run, but `HILT_ONLY_EXT` does not name it."""

    @property
    def name(self) -> str:
        """Who it is to everybody. What comes with a project can never be taken for one of the user's own."""
        return _known_as(self.manifest.name, self.source)

    @property
    def where(self) -> Path:
        """The place that people know."""
        return self.file or self.origin or self.directory

    @property
    def runs(self) -> bool:
        """A flag names an extension, so it runs whatever its manifest and the user's standing choices say."""
        if self.source == "flag":
            return True
        return self.manifest.enabled if self.choices.enabled is None else self.choices.enabled

    @property
    def keeps_beside(self) -> bool:
        """Its data lies beside its code: where it may write there, and always did."""
        beside = self.manifest.dialect == "frames" and self.manifest.data_dir == "shared"
        return beside and self.source != "project" and self.sandbox == "off"

    @property
    def permissions(self) -> Permissions:
        return permissions_of(self.manifest, self.choices, consented=self.consented)

    @property
    def sandbox(self) -> SandboxLevel:
        return sandbox_of(self.manifest, self.choices, stranger=self.source == "project")


class Problem(Struct, frozen=True):
    """Something that will not run, and why."""

    where: str
    message: str
    """Says the place by itself."""
    hint: str = ""
    name: str = ""
    """The extension's, or what its directory or file suggests."""
    dialect: Dialect = "frames"


class Untrusted(Struct, frozen=True):
    """One that came with the project and that nobody has allowed to run, as it is now."""

    found: Found
    reason: str
    known: bool = False
    """It was trusted once, and has changed since."""


class Discovery(Struct, frozen=True):
    found: tuple[Found, ...]
    """In the order in which they are loaded."""
    disabled: tuple[Found, ...]
    problems: tuple[Problem, ...]
    untrusted: tuple[Untrusted, ...] = ()


class _Candidate(Struct, frozen=True):
    directory: Path
    source: Source
    file: Path | None = None

    @property
    def where(self) -> Path:
        return self.file or self.directory


def discover(
    flags: Sequence[str],
    user: Path,
    projects: Sequence[Path],
    *,
    only_flags: bool,
    path: str,
    cwd: Path,
    choices: Mapping[str, Choices] = MappingProxyType({}),
) -> Discovery:
    """Look through the flags, then `user` and `projects`: directories of extensions, which need not exist."""
    search = _Search(path, choices)
    for flag in flags:
        search.flag(flag, cwd)
    if not only_flags:
        search.place(user, "user")
        for project in projects:
            search.place(project, "project")
    return Discovery(tuple(search.found), tuple(search.disabled), tuple(search.problems))


def find_at(place: Path, path: str, choices: Mapping[str, Choices] = MappingProxyType({})) -> Found:
    """The one that lies there, in a directory or as a file, and no other. Raises `ManifestError`."""
    search = _Search(path, choices)
    search.flag(str(place), Path())
    for problem in search.problems:
        raise ManifestError(problem.message.removeprefix("--ext "), hint=problem.hint, extension=problem.name)
    for found in search.found:
        return found
    raise ManifestError(f"{shown(place)}: there is no program to run", hint='name one in the manifest: "exec"')


def find_again(found: Found, path: str) -> Found:
    """The same extension as it is on the disk now; it may have been disabled. Raises `ManifestError`."""
    directory = found.origin or found.directory
    candidate = _Candidate(directory, found.source, found.file)
    again = _load(candidate, found.order, path, {found.name: found.choices})
    name = found.manifest.name
    if again.manifest.name != name:
        raise ManifestError(
            f'{shown(found.where)}: "name" is now "{again.manifest.name}", it was "{name}"',
            hint="start hilt anew to load it by its new name, or change it back",
            extension=name,
        )
    if not again.manifest.exec:
        raise ManifestError(f'{shown(found.where)}: "exec" is gone', hint="name the program to run", extension=name)
    return again


class _Search:
    def __init__(self, path: str, choices: Mapping[str, Choices]) -> None:
        self._path = path
        self._choices = choices
        self._seen: set[str] = set()
        self._read = 0
        """Bytes of the project's manifests."""
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
            self._complain(place, source, f"cannot be read: {error.strerror or error}")
            return
        if len(directories) > _MOST_PER_PLACE:
            self._complain(place, source, f"holds more than {_MOST_PER_PLACE} entries, and only so many are looked at")
        for directory in directories[:_MOST_PER_PLACE]:
            if self._read > _MOST_READ:
                self._complain(place, source, f"holds manifests of more than {_MOST_READ} bytes: the rest is not read")
                return
            self._look_into(directory, source)

    def _look_into(self, directory: Path, source: Source) -> None:
        try:
            if file := manifest_file(directory):
                if source == "project" and file.exists():
                    self._read += file.stat().st_size
                self._add(_Candidate(directory, source))
            elif directory.is_symlink() and not directory.exists():
                self._complain(directory, source, "is a link that leads nowhere", as_name(directory.name))
        except OSError as error:
            self._complain(directory, source, f"cannot be read: {error.strerror or error}", as_name(directory.name))

    def _complain(self, where: Path, source: Source, why: str, name: str = "") -> None:
        self._refuse(where, source, f"{shown(where)} {why}", "correct it, or remove what is not needed", name)

    def _refuse(
        self, where: Path, source: Source, message: str, hint: str, name: str, dialect: Dialect = "frames"
    ) -> None:
        self.problems.append(Problem(shown(where), message, hint, name and _known_as(name, source), dialect))
        # It keeps its name all the same, lest a project's extension take the place of a guard that is broken.
        self._owners.setdefault(name.lower(), where)

    def _add(self, candidate: _Candidate) -> None:
        real = os.path.realpath(candidate.where)
        if real in self._seen:
            return
        self._seen.add(real)
        try:
            found = self._load(candidate)
        except ManifestError as error:
            name = error.extension or as_name(candidate.file.stem if candidate.file else candidate.directory.name)
            self._refuse(candidate.where, candidate.source, error.message, error.hint, name, _dialect(candidate))
            return
        if not found.manifest.exec:
            return
        owner = self._owners.setdefault(found.manifest.name.lower(), candidate.where)
        if owner is candidate.where:
            (self.found if found.runs else self.disabled).append(found)
        elif found.runs:
            self._conflict(found, owner)

    def _load(self, candidate: _Candidate) -> Found:
        return _load(candidate, len(self.found) + len(self.disabled), self._path, self._choices)

    def _conflict(self, loser: Found, owner: Path) -> None:
        name = f'"{loser.manifest.name}"'
        message = f"conflict: {name} is the name of {shown(owner)} already, so {shown(loser.where)} is not loaded"
        hint = "rename one of them, or leave one out"
        self.problems.append(Problem(shown(loser.where), message, hint, loser.name))


def _dialect(candidate: _Candidate) -> Dialect:
    """Of one whose manifest could not be made sense of."""
    file = None if candidate.file else manifest_file(candidate.directory)
    return "jsonrpc" if file and file.name == YAML_MANIFEST else "frames"


def _known_as(name: str, source: Source) -> str:
    return f"{PROJECT}{name}" if source == "project" else name


def log_name(name: str) -> str:
    """The file that holds what an extension says on stderr, and what hilt remarks about it."""
    return f"ext-{name}.log"


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
    return _Candidate(place.parent, "flag", None if place.name in MANIFESTS else place)


def _subdirectories(place: Path) -> list[Path]:
    """What may be directories of extensions, also links to them. Raises `OSError`."""
    with os.scandir(place) as entries:
        # Bounded, for a project may hold anything; sorted, so that the order is not the file system's.
        names = [entry.name for entry in islice(entries, _MOST_PER_PLACE + 1)]
    return [place / name for name in sorted(names) if not name.startswith(".")]


def _load(candidate: _Candidate, order: int, path: str, choices: Mapping[str, Choices]) -> Found:
    """Raises `ManifestError`."""
    directory, source, file = candidate.directory, candidate.source, candidate.file
    if file:
        from hilt.packages.scripts.script import read_script, script_command  # 8 ms, and most have a manifest

        if not os.access(file, os.F_OK):
            raise ManifestError(f"{shown(file)}: there is no such file", hint=_FLAG_HINT)
        script = read_script(file)
        own = choices.get(script.manifest.name, NONE)
        return Found(script.manifest, directory, script_command(script, path), source, order, file, own, consented=True)
    manifest = read_manifest(directory)
    found = Found(manifest, directory, (), source, order, consented=source == "flag")
    found = msgspec.structs.replace(found, choices=choices.get(found.name, NONE))
    if not manifest.exec or not found.runs:
        return found  # it is not started, so it does not matter what is on PATH
    return msgspec.structs.replace(found, argv=resolve_exec(manifest, directory, path))
