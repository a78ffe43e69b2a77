"""What is right and wrong with one extension as it lies on the disk, without starting it.

Owns the list of checks. Each thing known about manifests, scripts and programs is asked of the module that owns it, so
that nothing is called wrong here which would run, nor right which would not.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from hilt.errors import ManifestError
from hilt.packages.disclosure import size as in_words
from hilt.packages.install.seeding import SEEDS, absent, unfit
from hilt.packages.manifest import (
    MANIFEST,
    YAML_MANIFEST,
    Guard,
    Limits,
    Manifest,
    manifest_file,
    read_manifest,
    resolve_exec,
)
from hilt.packages.members import json_members, quoted, read_file, shown, yaml_members
from hilt.packages.scripts.programs import defects
from hilt.packages.scripts.script import LANGUAGES, Script, hilt_block, read_script, script_command

Level: TypeAlias = Literal["ok", "info", "warn", "error"]

_LARGEST_MANIFEST = 1024 * 1024
_LARGE = 100 * 1024 * 1024
_MOST_FILES = 10_000
_INNER: Mapping[str, tuple[str, ...]] = {"guard": Guard.__struct_fields__, "limits": Limits.__struct_fields__}
_OF_YAML = ("entry", "pipes", "capabilities", "defaults")
_FIELDS = {
    MANIFEST: tuple(field for field in Manifest.__struct_fields__ if field not in ("dialect", *_OF_YAML)),
    YAML_MANIFEST: ("runtime", *(field for field in Manifest.__struct_fields__ if field not in ("dialect", "exec"))),
}
"""By the file, what may stand in it. A script's own block is like the first."""


class Finding(Struct, frozen=True):
    level: Level
    """`error`: it will not run, or not safely. `info` is worth knowing, and nothing is wrong."""
    check: str
    """In a word, what was looked at."""
    message: str
    hint: str = ""
    """What to do about it; empty when there is nothing to do."""


def checkup(place: Path, path: str) -> tuple[Finding, ...]:
    """Look at the directory of an extension, or at one that is a file. `path` is where programs are looked for."""
    place = place.absolute()
    if place.is_dir():
        return (*_directory(place, path), *_tree(place))
    return (*_file(place, path), *_rights(place))


def worst(findings: tuple[Finding, ...]) -> Level:
    order: tuple[Level, ...] = ("ok", "info", "warn", "error")
    return max((finding.level for finding in findings), key=order.index, default="ok")


def _directory(directory: Path, path: str) -> Iterator[Finding]:
    file = _manifest_name(directory)
    try:
        manifest = read_manifest(directory)
    except ManifestError as error:
        yield Finding("error", "manifest", error.message, error.hint)
        yield from _unknown_fields(directory / file, _members(directory / file))
        return
    yield Finding("ok", "manifest", f"{file} can be read, and its fields are in order")
    yield from _unknown_fields(directory / file, _members(directory / file))
    yield from _said(manifest)
    for wrong in unfit(manifest, directory):
        yield Finding("error", "defaults", wrong, SEEDS)
    for missing in absent(manifest, directory):
        yield Finding("warn", "defaults", missing, "add the file, or leave it out of the manifest")
    if manifest.name != directory.name:
        message = f"its name is {manifest.name}, and its directory is {shown(directory.name)}"
        yield Finding("info", "name", message, f"call the directory {manifest.name}, so that both are found alike")
    if not manifest.exec:
        yield Finding("ok", "program", "it has nothing to start: only what others read")
        return
    try:
        argv = resolve_exec(manifest, directory, path)
    except ManifestError as error:
        yield Finding("error", "program", error.message, error.hint)
        return
    yield from _command(argv, directory, path)


def _file(file: Path, path: str) -> Iterator[Finding]:
    try:
        script = read_script(file)
        fields = hilt_block(file)
    except ManifestError as error:
        yield Finding("error", "manifest", error.message, error.hint)
        return
    yield Finding("ok", "manifest", f"{shown(file.name)} can be read, and what it says of itself is in order")
    yield from _unknown_fields(file, fields)
    yield from _said(script.manifest)
    if script.needs_environment:
        message = f"it needs packages in an environment of its own: {', '.join(script.dependencies)}"
        yield Finding("info", "dependencies", message, f"hilt ext install {shown(file)}")
        return
    yield from _script_command(script, file, path)


def _script_command(script: Script, file: Path, path: str) -> Iterator[Finding]:
    try:
        argv = script_command(script, path)
    except ManifestError as error:
        yield Finding("error", "program", error.message, error.hint)
        return
    yield from _command(argv, file.parent, path)


def _manifest_name(directory: Path) -> str:
    try:
        found = manifest_file(directory)
    except OSError:
        found = None
    return found.name if found else MANIFEST


def _members(file: Path) -> Mapping[str, object]:
    """Nothing if it cannot be read: that has been said already."""
    members = yaml_members if file.name == YAML_MANIFEST else json_members
    try:
        return members(file, read_file(file, _LARGEST_MANIFEST, ""), "")
    except ManifestError:
        return {}


def _unknown_fields(file: Path, members: Mapping[str, object]) -> Iterator[Finding]:
    yield from _strange(members, _FIELDS.get(file.name, _FIELDS[MANIFEST]), "")
    for field, known in _INNER.items():
        inner = members.get(field)
        if isinstance(inner, Raw):
            try:
                inner = msgspec.json.decode(inner)
            except (msgspec.MsgspecError, RecursionError):
                continue  # said already
        if isinstance(inner, dict):
            yield from _strange(inner, known, f"{field}.")


def _strange(members: Mapping[str, object], known: tuple[str, ...], within: str) -> Iterator[Finding]:
    import difflib  # 5 ms, and only needed here

    for field in members:
        if field.casefold() in known:
            continue
        meant = difflib.get_close_matches(field.casefold(), known, 1)
        message = f'"{within}{quoted(field)}" is no field that hilt knows, so it is passed over'
        if meant:
            yield Finding("warn", "fields", message, f'did you mean "{within}{meant[0]}"?')
        else:
            yield Finding("info", "fields", message)


def _said(manifest: Manifest) -> Iterator[Finding]:
    if not manifest.enabled:
        yield Finding("info", "enabled", "it is disabled, so it is not started", 'write "enabled": true')
    for field in ("version", "description"):
        if not getattr(manifest, field):
            yield Finding("info", field, f"it has no {field}", f'write "{field}": "…" for those who look at a list')
    if manifest.permissions is None:
        message = "it lists no permissions, so it asks for all that you may do yourself"
        yield Finding("info", "permissions", message, 'write "permissions": [] and add what it needs')


def _command(argv: tuple[str, ...], directory: Path, path: str) -> Iterator[Finding]:
    program = Path(argv[0])
    found = defects(program, path)
    yield from (Finding("error", defect.check, defect.message, defect.hint) for defect in found)
    if not found:
        real = Path(os.path.realpath(program))
        version = f", which is {shown(real)}" if real != program else ""
        yield Finding("ok", "program", f"it is run by {shown(program)}{version}")
    own = _own_file(argv, directory)
    if not own or (own == program and found):
        return
    if not own.exists():
        yield Finding("error", "program", f"{shown(own)}: there is no such file", "correct the name, or add the file")
    elif not _inside(own, directory):
        message = f"{shown(own)} lies outside of {shown(directory)}, so it changes without the extension changing"
        yield Finding("warn", "program", message, "keep what it runs in its own directory")


def _own_file(argv: tuple[str, ...], directory: Path) -> Path | None:
    """The extension's part of the command line: what an interpreter is to run, else the program itself."""
    scripts = (word for word in argv[1:] if not word.startswith("-") and Path(word).suffix in LANGUAGES)
    if script := next(scripts, None):
        return directory / script
    return Path(argv[0]) if _inside(Path(argv[0]), directory) or len(argv) == 1 else None


def _inside(file: Path, directory: Path) -> bool:
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(directory))


def _tree(directory: Path) -> Iterator[Finding]:
    files, size = 0, 0
    for entry in chain((directory,), _walk(directory)):
        try:
            info = entry.lstat()
        except OSError:
            continue  # gone meanwhile
        yield from _writable(entry, info.st_mode)
        files += 1
        size += info.st_size if stat.S_ISREG(info.st_mode) else 0
        if files > _MOST_FILES:
            message = f"it holds more than {_MOST_FILES} files, and only so many were looked at"
            yield Finding("warn", "size", message, "leave out what it does not need to run")
            return
    level: Level = "warn" if size > _LARGE else "info"
    hint = "leave out what it does not need to run" if size > _LARGE else ""
    yield Finding(level, "size", f"{files - 1} files and directories, {in_words(size)}", hint)


def _rights(file: Path) -> Iterator[Finding]:
    for entry in (file.parent, file):
        try:
            yield from _writable(entry, entry.stat().st_mode)
        except OSError:
            continue  # said already


def _walk(directory: Path) -> Iterator[Path]:
    """All that is in it, without following links."""
    for folder, folders, files in os.walk(directory):
        yield from (Path(folder, name) for name in (*folders, *files))


def _writable(entry: Path, mode: int) -> Iterator[Finding]:
    # In a directory with the sticky bit, such as /tmp, others can add files, but not replace one.
    if stat.S_ISLNK(mode) or not mode & stat.S_IWOTH or (stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
        return
    message = f"{shown(entry)} can be written by everybody, so anybody on this machine can change what runs"
    yield Finding("error", "rights", message, f"chmod o-w {shown(entry)}")
