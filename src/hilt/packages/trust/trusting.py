"""Putting the question whether a folder's extensions may run, and keeping the answer."""

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from hilt.errors import HiltError, ManifestError
from hilt.packages.diffing import differences
from hilt.packages.disclosure import disclosure, listed
from hilt.packages.discovery import Found, Untrusted
from hilt.packages.manifest import MANIFEST, manifest_bytes, manifest_file, parse_manifest, resolve_exec
from hilt.packages.members import shown
from hilt.packages.oddities import oddities_of
from hilt.packages.permissions import CONSENTED
from hilt.packages.trees import Changes, File, Tree, changes, read_tree
from hilt.packages.trust.screening import Gate
from hilt.packages.trust.store import Trusted

_LARGEST_COMPARED = 32 * 1024
_MOST_COMPARED = 256 * 1024
"""Bytes of one file, and of all: comparing lines can take a time that grows with the square of them."""
_COPIED = "Each runs from a private copy of its files as they are now."


class Proposal(Struct, frozen=True):
    """What would be trusted, exactly: should it change after it was shown, it will not be."""

    entries: dict[str, Trusted]
    commands: tuple[tuple[str, tuple[str, ...]], ...]
    """Name and command line of each."""
    text: str
    problems: tuple[str, ...] = ()
    """Of those that cannot be trusted whatever is answered."""


def propose(gate: Gate, barred: Iterable[Untrusted]) -> Proposal:
    """Read them all, once: what is shown and what is kept must be the same. Nothing is written.

    Raises `ManifestError` when it cannot be told what was trusted before.
    """
    known = gate.store.of(gate.folder)
    entries: dict[str, Trusted] = {}
    commands: list[tuple[str, tuple[str, ...]]] = []
    texts, problems = [], []
    for one in barred:
        within = gate.within(one.found)
        try:
            _nameable(gate.folder.resolve() / within)
            found, tree = _as_it_is(gate, one.found)
            text = disclosure(found, found.argv, tree, oddities_of(found.where, tree))
            if before := known.get(within):
                text += f"\n  changed since you trusted it:\n{_difference(gate, before, found.where, tree)}"
            _still(found.where, tree)
        except (HiltError, OSError) as error:
            problems.append(f"{one.found.name} cannot be trusted: {error}")
            continue
        texts.append(text)
        commands.append((found.name, found.argv))
        entries[within] = Trusted(
            tree.hash, dict(tree.files), found.manifest.permissions, _by_consent(found), datetime.now(UTC).isoformat()
        )
    text = "\n\n".join((*texts, *problems, *([_COPIED] if texts else ())))
    return Proposal(entries, tuple(commands), text, tuple(problems))


def accept(gate: Gate, proposal: Proposal) -> None:
    """Raises `PackageError` or `ManifestError`, and then nothing has changed."""
    gate.store.add(gate.folder, proposal.entries)


def _as_it_is(gate: Gate, found: Found) -> tuple[Found, Tree]:
    """The extension by a manifest that is part of the tree: the one that was found may have been replaced since."""
    from hashlib import sha256

    tree = read_tree(found.where)
    path = manifest_file(found.where) or found.where / MANIFEST
    data = manifest_bytes(path)
    real = os.path.relpath(os.path.realpath(path), os.path.realpath(found.where))
    if real not in tree.files or tree.files[real].sha256 != sha256(data).hexdigest():
        raise _changing(found.where)
    manifest = parse_manifest(path, data)
    if manifest.name != found.manifest.name:
        raise _changing(found.where)
    copy = gate.copies / tree.hash  # from where it would run
    gate.check(manifest, resolve_exec(manifest, copy, gate.path), copy)
    argv = resolve_exec(manifest, found.where, gate.path)
    return msgspec.structs.replace(found, manifest=manifest, argv=argv), tree


def _nameable(where: Path) -> None:
    """The store is written in UTF-8, and must not mistake one place for another."""
    try:
        str(where).encode()
    except UnicodeEncodeError:
        raise ManifestError(f"the name of {shown(where)} is not UTF-8", hint="rename it") from None


def _still(where: Path, tree: Tree) -> None:
    """Remarks and differences are made of the files themselves, so these must not have moved meanwhile."""
    if read_tree(where).hash != tree.hash:
        raise _changing(where)


def _changing(where: Path) -> ManifestError:
    return ManifestError(f"{shown(where)} was changed while it was read", hint="try again")


def _difference(gate: Gate, before: Trusted, where: Path, tree: Tree) -> str:
    """Every file that differs, and the lines, as far as the old ones are still there."""
    difference = changes(before.files, tree.files)
    old = gate.copy_of(before)
    try:
        kept = read_tree(old).hash == before.tree
    except HiltError:
        kept = False
    if not kept:
        return listed(difference)
    taken = _comparable(difference, before.files, tree.files)
    compared = Changes(*(tuple(one for one in paths if one in taken) for paths in msgspec.structs.astuple(difference)))
    lines = [line for line in differences(old, where, compared).split("\n") if line]
    every = sorted({*difference.added, *difference.removed, *difference.changed})
    lines += [f"{path}: not shown line by line, for it is too long" for path in every if path not in taken]
    return "\n".join((listed(difference), *(f"    {line}" for line in lines)))


def _comparable(difference: Changes, old: Mapping[str, File], new: Mapping[str, File]) -> set[str]:
    left = _MOST_COMPARED
    taken: set[str] = set()
    for path in (*difference.changed, *difference.added, *difference.removed):
        sizes = [files[path].size for files in (old, new) if path in files]
        if max(sizes) <= _LARGEST_COMPARED and sum(sizes) <= left:
            left -= sum(sizes)
            taken.add(path)
    return taken


def _by_consent(found: Found) -> tuple[str, ...]:
    """What is had by consent alone, and was asked for: it was shown, and agreed to with the rest."""
    return tuple(one for one in found.manifest.permissions or () if one.partition(":")[0] in CONSENTED)
