"""Which files that come with an extension are its own to change: they are copied like the others, and not pinned.

That is what the user named, and, of one that was taken over from another agent, where it kept things beside its code,
what is data by its name and nothing that it runs by. Whatever could be run stays pinned, whoever names it.
"""

import os
import shlex
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath

from hilt.errors import PackageError
from hilt.packages.install.verifying import runnable
from hilt.packages.manifest import Manifest
from hilt.packages.members import shown
from hilt.packages.trees import Changes, File

_DATA = (
    *(".md", ".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".toml", ".txt", ".csv", ".tsv", ".log", ".bak"),
    *(".db", ".sqlite", ".sqlite3", "-wal", "-shm", "-journal"),
)
_CODE = frozenset({"node_modules", "src", "dist", "vendor", "venv", ".venv", ".github", ".vscode"})
"""Folders whose data belongs to the code in them."""
_PACKAGING = frozenset(
    ["pyproject.toml", "uv.toml", "requirements.txt", "package-lock.json", "composer.json", "Cargo.toml"]
)
_READ_BY_OTHERS = frozenset(["README.md", "CHANGELOG.md", "LICENSE.md", "LICENSE.txt", "theme.json"])
_NAMED = 3


def data_in(manifest: Manifest, files: Mapping[str, File]) -> tuple[str, ...]:
    """What it probably kept there, where that was its data directory, too."""
    return tuple(path for path in sorted(files) if _is_data(path) and not _is_code(path, files[path], manifest))


def named_in(names: Collection[str], manifest: Manifest, files: Mapping[str, File]) -> tuple[str, ...]:
    """What is meant by names of files and folders, without what could be run."""
    meant = (path for path in sorted(files) if any(_within(path, name) for name in names))
    return tuple(path for path in meant if not _is_code(path, files[path], manifest))


def check_named(names: Iterable[str], manifest: Manifest, files: Mapping[str, File]) -> None:
    """Raises `PackageError` that says which of them means nothing that could be left to the extension."""
    for name in names:
        if named_in([name], manifest, files):
            continue
        there = any(_within(path, name) for path in files)
        why = "could be run, or decides what runs, so it stays pinned" if there else "is not among its files"
        hint = "name a file or folder that came with it; what it adds itself it may change in any case"
        raise PackageError(f"{shown(manifest.name)}: {shown(name)} {why}", hint=hint)


def way_out(name: str, manifest: Manifest, difference: Changes, files: Mapping[str, File]) -> str:
    """What to do about files that are not as they were, if they may be the extension's own doing; else nothing."""
    paths = (*difference.changed, *difference.removed)
    if difference.added or any(path not in files or _is_code(path, files[path], manifest) for path in paths):
        return ""
    words = " ".join(f"--state {shlex.quote(shown(path))}" for path in paths[:_NAMED])
    return f"; if it changes that itself, `hilt ext update {name} {words}` lets it"


def _is_data(path: str) -> bool:
    *folders, name = path.split("/")
    return name.endswith(_DATA) and name not in _PACKAGING | _READ_BY_OTHERS and _CODE.isdisjoint(folders)


def _is_code(path: str, file: File, manifest: Manifest) -> bool:
    """Whether it could be run, decides what runs, or is named by the manifest."""
    if file.executable or file.link or runnable(path):
        return True
    # Arguments name files in more than one way: `main.txt`, `--config=rules.json`, `@script.json`.
    words = (manifest.exec, manifest.entry, *(word.rpartition("=")[2].removeprefix("@") for word in manifest.args))
    named = {os.path.normpath(word) for word in words if word}
    return path in named or any(_within(path, folder) for folder in manifest.skills)


def _within(path: str, name: str) -> bool:
    """Whether it is what the name says, or lies below it."""
    return bool(name) and PurePosixPath(path).is_relative_to(os.path.normpath(name))
