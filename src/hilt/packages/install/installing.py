"""Getting an extension onto the user's shelf, replacing it and taking it away again: the operations, as values.

First everything is staged, in a private directory beside the others: fetched, copied or unpacked, checked, and shown to
whoever asks. What was shown is what is kept, by one rename. Nothing here asks or prints. How a change survives being
interrupted is `shelf`'s business.
"""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import assert_never

import msgspec
from msgspec import Struct

from hilt.errors import ManifestError, PackageError
from hilt.packages.install.carrying import carry
from hilt.packages.install.lock import Entry, Kind, Lock
from hilt.packages.install.shelf import Shelf
from hilt.packages.install.sources import Archive, Directory, File, Git, Source
from hilt.packages.install.state import data_in, named_in
from hilt.packages.install.verifying import verify
from hilt.packages.manifest import MANIFEST, Manifest, read_manifest, resolve_exec
from hilt.packages.members import shown
from hilt.packages.oddities import Oddity, oddities_of
from hilt.packages.trees import Changes, Tree, changes, copy_file, copy_tree, read_tree, tree_of


class Difference(Struct, frozen=True):
    """What an update would change, against what the user agreed to."""

    files: Changes
    version: tuple[str, str]
    """Before and after, as are the others."""
    command: tuple[tuple[str, ...], tuple[str, ...]]
    commit: tuple[str, str]
    permissions_added: tuple[str, ...] = ()
    permissions_removed: tuple[str, ...] = ()
    confined: bool = False
    """It has a list now, and had full access before."""
    full_access: bool = False
    """It has no list of permissions any more, and so may do whatever the user may."""
    tampered: Changes = Changes()
    """What of the installed files is not as it was installed, and will be replaced; a copy is kept."""
    released: tuple[str, ...] = ()
    """Installed files that were pinned, and are the extension's own to change from now on."""

    def __bool__(self) -> bool:
        return bool(self.files or self.tampered or self.released or self.command[0] != self.command[1])


class Staged:
    """One that is ready to be kept, and what is to be known of it."""

    def __init__(self, shelf: Shelf, where: Path, tree: Tree, path: str, entry: Entry) -> None:
        self.where = where
        """Its files, until it is kept."""
        self.tree = tree
        """All that comes with it."""
        self.manifest = _manifest(where, entry.source)
        self.state = _state(entry, self.manifest, tree)
        """What of it the extension may change, so that it is not pinned."""
        self.oddities: tuple[Oddity, ...] = oddities_of(where, tree)
        self.command = _command(self.manifest, shelf.extensions / self.manifest.name, path)
        """Exactly what it will be started as; empty for one that only brings files."""
        self._shelf = shelf
        self.entry = msgspec.structs.replace(
            entry,
            version=self.manifest.version,
            permissions=self.manifest.permissions,
            command=self.command,
            tree=_without(tree, self.state),
        )
        """As it will stand in the lock."""

    @property
    def name(self) -> str:
        return self.manifest.name

    def keep(self) -> Entry:
        """Install it. Raises `PackageError` when there is one of that name."""
        with self._shelf.changing() as lock:
            lock = _vacant(self._shelf, lock, self.name)
            self._shelf.put(lock, self.name, self.where, self.entry)
        return self.entry

    def difference(self) -> Difference:
        """Against the installed one of that name. Raises `PackageError` when there is none that hilt installed."""
        return self._difference(self._before(Lock.load(self._shelf.lock)))

    def replace(self) -> tuple[str, ...]:
        """Take the place of the installed one; what was put beside its code is carried over.

        Gives the paths of what could not stay where it was: files that were changed by hand, or that could be run, or
        whose place the new version takes. Copies of them lie in a folder `before-update-…`.
        """
        with self._shelf.changing() as lock:
            entry = self._released(self._before(lock))
            aside = carry(self._shelf.extensions / self.name, entry, self.where, self.entry.tree, self.state)
            self._shelf.put(lock, self.name, self.where, self.entry)
        return aside

    def _before(self, lock: Lock) -> Entry:
        entry = _known(self._shelf, lock, self.name)
        source_of(entry)  # which a link has none of
        return entry

    def _released(self, before: Entry) -> Entry:
        """The installed one as if what is its own now had never been pinned."""
        return msgspec.structs.replace(before, tree=_without(before.tree, self._own(before)))

    def _own(self, before: Entry) -> frozenset[str]:
        return _state(self.entry, self.manifest, before.tree)

    def _difference(self, pinned: Entry) -> Difference:
        before = self._released(pinned)
        old, new = before.permissions, self.manifest.permissions
        return Difference(
            files=changes(before.tree.files, self.entry.tree.files),
            version=(before.version, self.manifest.version),
            command=(before.command, self.command),
            commit=(before.commit, self.entry.commit),
            permissions_added=tuple(one for one in new or () if old is not None and one not in old),
            permissions_removed=tuple(one for one in old or () if new is not None and one not in new),
            confined=new is not None and old is None,
            full_access=new is None and old is not None,
            tampered=verify(before, self._shelf.extensions / self.name),
            released=tuple(sorted(self._own(pinned))),
        )


@contextmanager
def staged(
    source: Source,
    shelf: Shelf,
    *,
    given: str,
    path: str,
    progress: Callable[[str], None] = lambda _: None,
    python: Path | None = None,
    state: Collection[str] = (),
    lived_in: bool = False,
) -> Iterator[Staged]:
    """Get it, check it, and have it removed again at the end of the block unless it was kept.

    `given` is how the user named it, `path` where programs are looked for, `python` the interpreter that has what a
    single file depends on; for `state` and `lived_in` see `Entry`. Raises `PackageError` and `ManifestError`.
    """
    with shelf.staging() as place:
        where = place / "tree"
        commit = _fill(source, where, path, progress, python)
        tree = read_tree(where)
        entry = _entry(source, given, commit)
        entry = msgspec.structs.replace(entry, state=tuple(dict.fromkeys(state)), lived_in=lived_in)
        yield Staged(shelf, where, tree, path, entry)


def source_of(entry: Entry) -> Source:
    """Where an update of it comes from. Raises `PackageError` for a link."""
    place = Path(entry.url)
    match entry.kind:
        case "directory":
            return Directory(place)
        case "file":
            return File(place)
        case "archive":
            return Archive(place)
        case "git":
            return Git(entry.url, entry.ref, local=entry.url.startswith(("/", "file://")))
        case "link":
            raise PackageError(
                f"{shown(entry.url)} is linked, not copied", hint="it is yours to change: there is nothing to update"
            )
        case unknown:
            assert_never(unknown)


def remove(shelf: Shelf, name: str) -> Entry:
    """Take it away with all that lies beside its code, or only the link to it. Raises `PackageError`."""
    with shelf.changing() as lock:
        entry = _known(shelf, lock, name, missing_is_fine=True)
        final = shelf.extensions / name
        if os.path.lexists(final) and not _ours(entry, final):
            raise PackageError(
                f"{shown(final)} is not what hilt put there, so it is left alone",
                hint="move it away first; then only hilt's own note of it is removed",
            )
        shelf.take(lock, name)
    return entry


def link(shelf: Shelf, directory: Path, *, given: str, path: str) -> Entry:
    """Have it run from where it is, as it is at any time: for whoever is writing it. Raises `PackageError`."""
    place = Path(os.path.realpath(directory))
    if place.is_relative_to(os.path.realpath(shelf.extensions)):
        raise PackageError(f"{shown(place)} is among your extensions already", hint="link one from elsewhere")
    manifest = _manifest(place, given)
    entry = Entry(
        kind="link",
        source=given,
        installed=_now(),
        url=str(place),
        version=manifest.version,
        command=_command(manifest, shelf.extensions / manifest.name, path),
        permissions=manifest.permissions,
    )
    with shelf.staging() as staging:
        fresh = staging / "link"
        fresh.symlink_to(place)
        with shelf.changing() as lock:
            lock = _vacant(shelf, lock, manifest.name)
            shelf.put(lock, manifest.name, fresh, entry)
    return entry


def expect_vacant(shelf: Shelf, name: str) -> None:
    """Raises `PackageError` when the name is taken: better before anybody is asked."""
    _vacant(shelf, Lock.load(shelf.lock), name)


def installed(shelf: Shelf, name: str) -> Entry:
    """What the lock says of it. Raises `PackageError` when hilt did not install it."""
    return _known(shelf, Lock.load(shelf.lock), name, missing_is_fine=True)


# Staging


def _fill(
    source: Source,
    where: Path,
    path: str,
    progress: Callable[[str], None],
    python: Path | None,
) -> str:
    """Make `where` of it. The commit, for a repository."""
    match source:
        case Directory():
            # The user named it, so a link at the end of the name is followed; none is, further in.
            place = Path(os.path.realpath(source.path))
            read_manifest(place)  # what is no extension need not be copied whole to find that out
            progress(f"copying {shown(place)}…")
            copy_tree(place, where)
        case File():
            _fill_with_file(source.path, where, path, python)
        case Archive():
            from hilt.packages.install.archives import unpack

            progress(f"unpacking {shown(source.path)}…")
            unpack(source.path, where)
        case Git():
            from hilt.packages.install.git import fetch

            progress(f"fetching {shown(source.url)}…")
            return fetch(source, where, progress)
        case unknown:
            assert_never(unknown)
    return ""


def _fill_with_file(file: Path, where: Path, path: str, python: Path | None) -> None:
    """A directory that holds just this file, and a manifest which says what the file says of itself."""
    from hilt.packages.scripts.script import hilt_block, read_script, script_command

    copy_file(Path(os.path.realpath(file)), where, file.name)
    # The copy is read, not what may become of the original meanwhile.
    with _told_of(where / file.name, shown(file)):
        script = read_script(where / file.name)
        command = script_command(script, path, python)
    runner = command[: command.index(str(where / file.name))]
    rest = command[len(runner) + 1 :]
    own = f"./{file.name}"
    fields = dict(hilt_block(where / file.name)) | {
        "name": script.manifest.name,
        # Looked up again at each start, like any other; but an interpreter of its own is that one.
        "exec": (runner[0] if python else Path(runner[0]).name) if runner else own,
        "args": [*runner[1:], own, *rest] if runner else list(rest),
        "language": script.language,
    }
    (where / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n")


def _manifest(directory: Path, source: str) -> Manifest:
    """Checks the name's grammar, too, before any path is made of it."""
    with _told_of(directory, shown(source)):
        return read_manifest(directory)


@contextmanager
def _told_of(staged: Path, source: str) -> Iterator[None]:
    """The place it has just now means nothing to anybody: what is wrong with it is told of where it came from."""
    try:
        yield
    except ManifestError as error:
        message = error.message.replace(f"{shown(staged)}/", f"{source}: ").replace(shown(staged), source)
        hint = error.hint.replace(shown(staged), source).replace(f'"name": "{staged.name}"', '"name": "demo"')
        raise ManifestError(message, hint=hint, extension=error.extension) from error


def _command(manifest: Manifest, directory: Path, path: str) -> tuple[str, ...]:
    if not manifest.exec:
        return ()
    try:
        return resolve_exec(manifest, directory, path)
    except ManifestError:
        # Not on this machine yet; that is said when it is to be started, and no reason not to have it.
        return (manifest.exec, *manifest.args)


def _state(entry: Entry, manifest: Manifest, tree: Tree) -> frozenset[str]:
    data = data_in(manifest, tree.files) if entry.lived_in else ()
    return frozenset((*data, *named_in(entry.state, manifest, tree.files)))


def _without(tree: Tree, paths: frozenset[str]) -> Tree:
    return tree_of({path: file for path, file in tree.files.items() if path not in paths}) if paths else tree


def _entry(source: Source, given: str, commit: str) -> Entry:
    if isinstance(source, Git):
        return Entry("git", given, _now(), source.url, source.ref, commit)
    kinds: dict[type[Source], Kind] = {Directory: "directory", File: "file", Archive: "archive"}
    return Entry(kinds[type(source)], given, _now(), str(source.path))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# What is there already


def _vacant(shelf: Shelf, lock: Lock, name: str) -> Lock:
    """The lock without an entry for something that is gone. Raises `PackageError` when the name is taken."""
    known = lock.find(name)
    every = os.listdir(shelf.extensions) if shelf.extensions.is_dir() else ()  # noqa: PTH208
    there = [one for one in every if one.lower() == name.lower()]
    if not there:
        return lock.without(known) if known else lock
    if known and lock.entries[known].kind == "link":
        message = f'"{known}" is linked already, to {shown(lock.entries[known].url)}'
        raise PackageError(message, hint=f"`hilt ext remove {known}` removes the link, and nothing else")
    if known:
        raise PackageError(f'"{known}" is installed already', hint=f"`hilt ext update {known}` fetches it anew")
    raise PackageError(
        f"{shown(shelf.extensions / there[0])} is there already, and hilt did not put it there",
        hint="move it away, or rename one of the two",
    )


def _known(shelf: Shelf, lock: Lock, name: str, *, missing_is_fine: bool = False) -> Entry:
    """Never by a name that is none: no path is made of it before it was found in the lock."""
    entry = lock.entries.get(name)
    if entry is None:
        near = lock.find(name)
        hint = f'did you mean "{near}"?' if near else "hilt changes only what it installed: hilt ext list shows that"
        raise PackageError(f'"{shown(name)}" was not installed by hilt', hint=hint)
    if not missing_is_fine and not os.path.lexists(shelf.extensions / name):
        raise PackageError(f'"{name}" is gone from {shown(shelf.extensions)}', hint="install it again")
    if not missing_is_fine and not _ours(entry, shelf.extensions / name):
        raise PackageError(
            f"{shown(shelf.extensions / name)} is not what hilt put there", hint="move it away, and install it again"
        )
    return entry


def _ours(entry: Entry, final: Path) -> bool:
    """Whether it is, however changed, what was installed, and nothing the user put in its place."""
    if entry.kind == "link":
        return final.is_symlink()
    if final.is_symlink() or not final.is_dir():
        return False
    return any(os.path.lexists(final / path) for path in entry.tree.files)
