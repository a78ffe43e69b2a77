"""The user's directory of extensions: how one is put there, replaced or taken away, so that it can be told afterwards.

Every change is written down in the lock before it begins. Whatever ends the process in the middle, `repair` finds from
what lies there whether the change had happened, and ends it or undoes it: a name stands for the old or for the new,
with the entry that belongs to it. What is put there, and whether it may be, is `installing`'s business.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from hilt.errors import PackageError
from hilt.packages import keeping
from hilt.packages.install.lock import Entry, Lock, Pending
from hilt.packages.install.verifying import verify
from hilt.packages.members import shown
from hilt.packages.trees import DIRECTORY, discard

_STAGING, _ASIDE = ".staging-", ".aside-"


class Shelf(Struct, frozen=True):
    extensions: Path
    lock: Path

    @contextmanager
    def changing(self) -> Iterator[Lock]:
        """Alone among all processes, with the lock as it is once nothing half-done is left. Raises `PackageError`."""
        with keeping.alone(self.lock), self._writable():
            self.extensions.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = self._repaired(Lock.load(self.lock))
            self._sweep()
            yield lock

    def repair(self) -> None:
        """End or undo what another process left half-done. Costs one look at the lock when there is nothing."""
        if Lock.load(self.lock).pending:
            with self.changing():
                pass

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A private directory on the same file system, gone with the block."""
        import fcntl

        with self.changing():
            place = self.extensions / f"{_STAGING}{os.urandom(8).hex()}"
            place.mkdir(mode=0o700)
            fd = os.open(place, DIRECTORY)
            # Held as long as somebody works in it: the system lets go of it for whoever dies.
            fcntl.flock(fd, fcntl.LOCK_EX)
        try:
            with self._writable():
                yield place
        finally:
            discard(place)
            os.close(fd)

    def put(self, lock: Lock, name: str, fresh: Path, entry: Entry) -> None:
        """Move it in under that name, in place of what is there."""
        final = self.extensions / name
        aside = f"{_ASIDE}{os.urandom(8).hex()}" if os.path.lexists(final) else ""
        lock.with_pending(Pending(name, aside, entry)).save(self.lock)
        try:
            if aside:
                final.rename(self.extensions / aside)
            fresh.rename(final)
            lock.with_entry(name, entry).save(self.lock)
        except BaseException:
            self._undo(lock, final, aside, fresh)
            raise
        if aside:
            discard(self.extensions / aside)

    def take(self, lock: Lock, name: str) -> None:
        """Away with it, whether or not there is anything, and with its entry."""
        final, aside = self.extensions / name, f"{_ASIDE}{os.urandom(8).hex()}"
        lock.with_pending(Pending(name, aside)).save(self.lock)
        try:
            if os.path.lexists(final):
                final.rename(self.extensions / aside)
            lock.without(name).save(self.lock)
        except BaseException:
            self._undo(lock, final, aside)
            raise
        discard(self.extensions / aside)

    def _undo(self, lock: Lock, final: Path, aside: str, fresh: Path | None = None) -> None:
        if fresh and not os.path.lexists(fresh) and os.path.lexists(final):
            final.rename(fresh)
        if aside and os.path.lexists(self.extensions / aside):
            (self.extensions / aside).rename(final)
        # Should this fail as well, what lies there now says all the same that nothing was changed.
        lock.save(self.lock)

    def _repaired(self, lock: Lock) -> Lock:
        pending = lock.pending
        if pending is None:
            return lock
        settled = lock.with_pending(None)
        final, aside = self.extensions / pending.name, self.extensions / pending.aside
        if pending.aside and os.path.lexists(aside):
            # Moved away already: it happened if what was to follow is there.
            if pending.entry is None:
                settled = settled.without(pending.name)
            elif os.path.lexists(final):
                settled = settled.with_entry(pending.name, pending.entry)
            else:
                aside.rename(final)
        elif pending.entry and not pending.aside and _is(pending.entry, final):
            settled = settled.with_entry(pending.name, pending.entry)
        settled.save(self.lock)
        return settled

    def _sweep(self) -> None:
        """What processes that are gone have left. Nothing is half-done any more, so nothing is needed of it."""
        for name in os.listdir(self.extensions):  # noqa: PTH208 - names are all that is needed
            if name.startswith(_ASIDE) or (name.startswith(_STAGING) and _abandoned(self.extensions / name)):
                discard(self.extensions / name)

    @contextmanager
    def _writable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = f" ({shown(error.filename)})" if isinstance(error.filename, str) else ""
            raise PackageError(
                f"{shown(self.extensions)} cannot be changed{where}: {error.strerror or error}",
                hint="check the disk and the rights of the directory",
            ) from error


def _is(entry: Entry, final: Path) -> bool:
    """Whether it is what was to be put there, and not something of the user's."""
    if entry.kind == "link":
        return final.is_symlink() and str(final.readlink()) == entry.url
    return final.is_dir() and not final.is_symlink() and not verify(entry, final)


def _abandoned(staging: Path) -> bool:
    import fcntl

    try:
        fd = os.open(staging, DIRECTORY)
    except OSError:
        return True  # nobody works in what is no directory
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True
