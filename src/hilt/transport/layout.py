"""What a confined program sees of the file system: a map from places to how they are there for it.

Both means of Linux work from the same map. A directory that holds something hidden is rebuilt: it is empty but for
its other entries of this moment, one by one. Laying something over what is hidden would not do: what does not exist
yet cannot be covered, and a cover falls off when the user's own programs replace the file beneath it.

Mounts by the hundred take long, rights do not. So `coarse` has covers instead, for when Landlock holds the rest.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct, field

from hilt.transport.policy import Policy
from hilt.transport.runtimes import hops, real_path

Kind: TypeAlias = Literal["ro", "rw", "empty", "void", "fresh", "dev", "proc"]
"""`empty`: nothing but what the map has in it, and not writable; `void`: the same of a file. `fresh`: empty, writable,
and nobody else's."""

_ROOT = Path("/")
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/sys"),
    "/var/lib/ca-certificates",
)
_RUN = ("current-system", "opengl-driver", "resolvconf", "systemd/resolve", "NetworkManager/resolv.conf")
"""What a program needs of /run; the rest is sockets of the user's other programs."""
_FRESH = ("/tmp", "/var/tmp")  # noqa: S108  their names, not files in them
MOUNTS, RIGHTS = 250, 4000
"""How many entries of a rebuilt directory a start can bear, as the one or the other: mounts slow each other down."""


class Layout(Struct, frozen=True):
    places: dict[Path, Kind] = field(default_factory=dict)
    """By real path; each holds for everything below it, up to the next."""
    links: dict[Path, str] = field(default_factory=dict)
    """Symbolic links that must be made, because they lie where it is `empty`."""
    rebuilt: dict[Path, Kind] = field(default_factory=dict)
    """The directories that hold something hidden, and how they were there before."""
    entries: set[Path] = field(default_factory=set)
    """The places that are in the map only as entries of those."""
    hidden: set[Path] = field(default_factory=set)

    def kind(self, path: Path) -> Kind:
        """How a real path is there, if it exists."""
        return next(self.places[one] for one in (path, *path.parents) if one in self.places)

    def visible(self, path: Path) -> bool:
        return self.kind(path) in ("ro", "rw")

    def coarse(self) -> "Layout":
        """The same with few places: whole directories, and covers over those of them that are hidden.

        For Landlock there is no way to except something from a private place, so what was rebuilt there stays so.
        """
        whole = {path: kind for path, kind in self.rebuilt.items() if not self._within_private(path)}
        places = {
            path: whole.get(path, kind)
            for path, kind in self.places.items()
            if not (path in self.entries and path.parent in whole and path not in whole)
        }
        open_ = Layout(places)
        reachable = {path: _mode(path, follow=False) for path in self.hidden if open_.visible(path.parent)}
        covers: dict[Path, Kind] = {
            path: "empty" if stat.S_ISDIR(mode) else "void"
            for path, mode in reachable.items()
            if mode and not stat.S_ISLNK(mode)  # what a link leads to is hidden by itself
        }
        made = Layout(_told_once(places | covers))
        made.links.update({path: target for path, target in self.links.items() if not made.visible(path.parent)})
        return made

    def _within_private(self, path: Path) -> bool:
        return any(self.places.get(above) == "fresh" for above in path.parents)


def layout(policy: Policy, needed: Sequence[Path], most: int = RIGHTS) -> Layout:
    """Looks at the file system as it is now. What is needed to start the program is added where nothing hides it.

    Of a directory that is rebuilt, no more than so many entries are there; directories come first.
    """
    made = Layout()
    hidden = _outermost(policy.hidden)
    for path, kind in _base(policy):
        _add(made, path, kind)
    for path, kind in _granted(policy):
        _add(made, path, kind)
    code, data = real_path(policy.code), real_path(policy.data)
    granted = {real_path(path) for path in policy.writable or ()}
    own: dict[Path, Kind] = {real_path(path): "ro" for path in policy.own}
    own[code] = "rw" if code in granted else "ro"
    own[data] = "rw"  # also when it is the same
    made.places.update(own)
    for path in needed:
        if not made.visible(real_path(path)):
            _add(made, path, "ro")
    _hide(made, hidden, most)
    made.places.update({path: kind for path, kind in own.items() if _within(path, hidden)})
    for path in (policy.code, policy.data, *policy.own, *needed):
        _lead(made, path)
    return Layout(_told_once(made.places), made.links, made.rebuilt, made.entries, hidden)


def _told_once(places: dict[Path, Kind]) -> dict[Path, Kind]:
    """Without those that only repeat what holds for them anyway. A writable one does more: it cannot be renamed."""
    made = Layout(places)
    return {path: kind for path, kind in places.items() if path == _ROOT or not kind == "ro" == made.kind(path.parent)}


def _base(policy: Policy) -> Iterator[tuple[Path, Kind]]:
    """Without regard to what was granted by name."""
    if policy.writable is None:
        yield _ROOT, "rw"
        yield Path("/sys"), "ro"
    elif policy.readable is None or policy.level == "standard":
        yield _ROOT, "ro"
    else:
        yield _ROOT, "empty"
        for name in _SYSTEM:
            yield Path(name), "ro"
    if policy.writable is not None and policy.readable is not None:
        closed = (path for path in (policy.home, *policy.closed) if real_path(path) != _ROOT)
        yield from ((path, "empty") for path in _outermost(closed))
    yield Path("/dev"), "dev"
    yield Path("/proc"), "proc"
    for name in (*_FRESH, "/dev/shm"):  # noqa: S108  its name, not a file in it
        yield Path(name), "fresh"
    yield Path("/run"), "empty"
    for name in _RUN:
        yield Path("/run", name), "ro"


def _granted(policy: Policy) -> Iterator[tuple[Path, Kind]]:
    for path in policy.readable or ():
        yield path, "ro"
    for path in policy.writable or ():
        yield path, "rw"


def _add(made: Layout, path: Path, kind: Kind) -> None:
    real = real_path(path)
    if not _mode(real) and made.visible(real.parent):
        return  # nothing can be mounted where nothing is, unless the place around it is made up anyway
    made.places[real] = kind
    _lead(made, path)


def _lead(made: Layout, path: Path) -> None:
    """Make the links on the way to a path, where they are not there anyhow."""
    for link, target in hops(path):
        if not made.visible(link.parent):
            made.links[link] = target


def _outermost(hidden: Iterable[Path]) -> set[Path]:
    """Where they really lie; of a link, both it and what it leads to. Those inside others do not matter."""
    every = set()
    for path in hidden:
        every.add(real_path(path.parent) / path.name)
        every.add(real_path(path))
    return {path for path in every if not any(one in every for one in path.parents)}


def _within(path: Path, hidden: set[Path]) -> bool:
    return path in hidden or any(one in hidden for one in path.parents)


def _hide(made: Layout, hidden: set[Path], most: int) -> None:
    """The directories that hold something hidden, or would hold it if it existed: the outer ones first."""
    for path in [one for one in made.places if _within(one, hidden)]:
        del made.places[path]
    holders = {_existing(path.parent) for path in hidden}
    for holder in sorted(holders, key=lambda one: len(one.parts)):
        if made.visible(holder):
            _pin(made, holder)
            _rebuild(made, holder, hidden, most)


def _existing(path: Path) -> Path:
    return next(one for one in (path, *path.parents) if stat.S_ISDIR(_mode(one)))


def _mode(path: Path, *, follow: bool = True) -> int:
    """0 for what does not exist, or is out of the user's own reach."""
    try:
        return path.stat(follow_symlinks=follow).st_mode
    except OSError:
        return 0


def _pin(made: Layout, holder: Path) -> None:
    """Directories on the way become mounts of their own: else they could be renamed, and others put in their place."""
    if made.kind(holder) == "rw":
        for one in holder.parents:
            if one not in made.places and made.kind(one) == "rw":
                made.places[one] = "rw"


def _rebuild(made: Layout, holder: Path, hidden: set[Path], most: int) -> None:
    kind = made.kind(holder)
    made.places[holder] = "empty"
    made.rebuilt[holder] = kind
    for entry, mode in _entries(holder)[:most]:
        if entry in made.places or entry in hidden:
            continue
        if stat.S_ISLNK(mode):
            made.links[entry] = os.readlink(entry)  # noqa: PTH115  as it is written
        elif stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            made.places[entry] = kind
            made.entries.add(entry)


def _entries(directory: Path) -> list[tuple[Path, int]]:
    """The directories first. Without what cannot be looked at: it could not be mounted either."""
    found = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                try:
                    found.append((Path(entry.path), entry.stat(follow_symlinks=False).st_mode))
                except OSError:
                    continue
    except OSError:
        return []
    found.sort(key=lambda one: (not stat.S_ISDIR(one[1]), one[0]))
    return found
