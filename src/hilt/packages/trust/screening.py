"""What of a project may run: only what the user trusted, and only as it was then.

A trusted extension runs from a private copy, whose bytes are the ones that were hashed: what happens to the project's
own files between the check and the start, or later, makes no difference. Before that, nothing is written anywhere.
"""

import errno
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from hilt.errors import ManifestError, PackageError
from hilt.packages.discovery import Found, Problem, Untrusted
from hilt.packages.layout import LEFT_OUT
from hilt.packages.manifest import Manifest, read_manifest, resolve_exec
from hilt.packages.members import shown
from hilt.packages.trees import Changes, Tree, changes, copy_tree, read_tree, remove_tree
from hilt.packages.trust.store import Folder, Trusted, TrustStore

_NAMED = 5
"""Files, in a sentence."""
_UNUSED = 86400.0
"""Seconds after which a copy that nobody trusts any more is deleted: something may still run from it."""
_ATTEMPTS = 5
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
"""What a rename says of a place where something is."""


class Gate(Struct, frozen=True):
    store: TrustStore
    folder: Path
    """The project."""
    copies: Path
    """Where trusted extensions are kept, a directory each, named by the hash of what is in it."""
    path: str
    """Where programs are looked for."""
    open: bool = False
    """The user said that this run trusts whatever is there."""

    def screen(self, found: Iterable[Found]) -> tuple[list[Found], list[Untrusted], list[Problem]]:
        """What may run, what may not, and what cannot, each in the order given."""
        admitted: list[Found] = []
        barred: list[Untrusted] = []
        problems: list[Problem] = []
        trusted: Folder | None = None
        for one in found:
            if trusted is None:
                trusted = self._trusted(problems)
            try:
                verdict = self._judge(one, trusted)
            except (PackageError, ManifestError) as error:
                problems.append(Problem(shown(one.where), error.message, error.hint, one.name, one.manifest.dialect))
                continue
            if isinstance(verdict, Found):
                admitted.append(verdict)
            else:
                barred.append(verdict)
        if admitted:
            self.sweep()
        return admitted, barred, problems

    def again(self, found: Found) -> Found:
        """The same for one that is started anew. Raises `ManifestError`."""
        try:
            verdict = self._judge(found, self.store.of(self.folder))
        except PackageError as error:
            raise ManifestError(error.message, hint=error.hint, extension=found.name) from error
        if isinstance(verdict, Untrusted):
            hint = "`hilt ext trust` shows it and asks"
            raise ManifestError(f"{shown(found.where)}: {verdict.reason}", hint=hint, extension=found.name)
        return verdict

    def within(self, found: Found) -> str:
        """How the store knows it."""
        return os.path.relpath(found.where, self.folder)

    def copy_of(self, entry: Trusted) -> Path:
        """Where it lies as it was when it was trusted, if it has been copied since."""
        return self.copies / entry.tree

    def check(self, manifest: Manifest, argv: tuple[str, ...], directory: Path) -> None:
        """Raise `ManifestError` if it would run files that lie in the project, but are not its own.

        They would not be in the copy, and could change without anybody's being asked.
        """
        own, project = os.path.realpath(directory), os.path.realpath(self.folder)
        # A word that was looked up has been judged already, and whoever works in his home has programs there.
        for word in argv if "/" in manifest.exec else argv[1:]:
            # It is started in its own directory, so that is where other words lead from.
            real = Path(os.path.realpath(directory / word))
            if real.is_relative_to(own):
                continue
            if word.startswith(f"{directory}/") or real.is_relative_to(project):
                raise ManifestError(
                    f"{shown(word)} is not one of the extension's own files, so trust in those does not cover it",
                    hint="keep what it runs in its own directory",
                    extension=manifest.name,
                )

    def sweep(self) -> None:
        """Delete copies of what is trusted nowhere any more, but for those that were lately in use."""
        try:
            kept, latest = self.store.trees(), time.time() - _UNUSED
            for copy in self.copies.iterdir():
                if copy.name not in kept and copy.lstat().st_mtime < latest:
                    remove_tree(copy)
        except (OSError, ManifestError):
            pass  # there are none, or another hilt is at it; what is left now is deleted another time

    def _trusted(self, problems: list[Problem]) -> Folder:
        try:
            return self.store.of(self.folder)
        except ManifestError as error:
            problems.append(Problem("", error.message, error.hint))
            return {}

    def _judge(self, found: Found, trusted: Folder) -> Found | Untrusted:
        entry = trusted.get(self.within(found))
        if entry is None and not self.open:
            return Untrusted(found, "it came with this folder, and you have not trusted it")
        with self._copied(found) as (copy, tree):
            if entry and entry.tree != tree.hash:
                if not self.open:
                    difference = told(changes(entry.files, tree.files))
                    return Untrusted(found, f"it changed since you trusted it: {difference}", known=True)
                entry = None
            return self._admit(found, self._keep(copy, tree), entry)

    @contextmanager
    def _copied(self, found: Found) -> Iterator[tuple[Path, Tree]]:
        copy = self.copies / _new_name()
        try:
            self.copies.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                yield copy, copy_tree(found.where, copy)
            finally:
                remove_tree(copy)
        except OSError as error:
            raise PackageError(
                f"{shown(found.where)} cannot be copied to {self.copies}: {error.strerror or error}",
                hint="check the disk and the directory's rights",
            ) from error

    def _keep(self, copy: Path, tree: Tree) -> Path:
        """The copy in its place, or one of an earlier time if it is still the same. Raises `OSError`."""
        final = self.copies / tree.hash
        for _ in range(_ATTEMPTS):
            if _same(final, tree):
                os.utime(final)
                return final
            try:
                if os.path.lexists(final):
                    final.rename(self.copies / _new_name())  # and swept later: something may run from it
                copy.rename(final)
            except FileNotFoundError:
                pass  # another hilt has moved it away
            except OSError as error:
                if error.errno not in _TAKEN:  # another hilt was quicker
                    raise
        raise PackageError(f"{final} is being changed by somebody", hint="find out who writes to hilt's own directory")

    def _admit(self, found: Found, directory: Path, entry: Trusted | None) -> Found:
        manifest = read_manifest(directory)
        if manifest.name != found.manifest.name:
            raise ManifestError(f"{shown(found.where)} was changed while it was read", hint="try again")
        # Consent was given to this extension in this folder, so no grant for another of its name counts.
        choices = msgspec.structs.replace(found.choices, grants=entry.grants if entry else ())
        argv = resolve_exec(manifest, directory, self.path)
        self.check(manifest, argv, directory)
        return msgspec.structs.replace(
            found,
            manifest=manifest,
            directory=directory,
            argv=argv,
            choices=choices,
            origin=found.where,
            consented=entry is not None,  # the question showed it; without one, nobody was asked
        )


def told(difference: Changes) -> str:
    """In a few words."""
    parts = []
    for what, paths in (("changed", difference.changed), ("added", difference.added), ("gone", difference.removed)):
        if paths:
            more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
            parts.append(f"{', '.join(map(shown, paths[:_NAMED]))}{more} {what}")
    return "; ".join(parts)


def _new_name() -> str:
    return f".{os.getpid()}-{os.urandom(8).hex()}"


def _same(directory: Path, tree: Tree) -> bool:
    """Whether it holds this and nothing else: what a tree leaves out has no place in a copy. Raises `OSError`."""
    try:
        if read_tree(directory).hash != tree.hash:
            return False
    except PackageError:
        return False
    for above, folders, files in os.walk(directory):
        for name in LEFT_OUT.intersection((*folders, *files)):
            remove_tree(Path(above, name))  # compiled by an interpreter, or planted by somebody: it is made anew
    return True
