"""Confining a program with Landlock: it gives up rights of its own before it starts, which needs nobody's permission.

Alone, where there is no bubblewrap, it holds a program to the same map of places. Inside bubblewrap it keeps the
program from executing others, from what is hidden among what is not, and from sockets of others. The rights
are given up by `landlock_start`, a process of its own; here is worked out which.

Executing is not loading: a program may still load the code of another through the dynamic loader, and then runs it
with nothing but its own rights.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from hilt.transport.layout import Kind, Layout
from hilt.transport.runtimes import Runtime

START = Path(__file__).with_name("landlock_start.py")

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_EVERY_FIRST = (1 << 13) - 1
_READ = _READ_FILE | _READ_DIR
_OWN: tuple[Kind, ...] = ("fresh", "dev", "proc")
"""Inside bubblewrap these are not what they are outside, so their entries here say nothing."""
_DEVICES = ("null", "zero", "full", "random", "urandom")
_TCP = 0b11
_SCOPES = 0b11
"""Sockets without a file, and signals: both only to processes that are confined together with it."""
_HAS_REFER, _HAS_TRUNCATE, _HAS_NETWORK, _HAS_IOCTL, _HAS_SCOPES = 2, 3, 4, 5, 6
"""Since which version of the interface."""

_known: int | None = None


def version() -> int:
    """Which of its interfaces the kernel has; 0 for none, or when it is switched off."""
    global _known
    if _known is None:
        import ctypes  # costs some milliseconds, and only confined programs need it

        try:
            _known = max(0, ctypes.CDLL(None).syscall(444, None, 0, 1)) if sys.platform == "linux" else 0
        except (OSError, AttributeError):
            _known = 0
    return _known


class _Taken(Struct, frozen=True):
    """What is taken away, in the words of `landlock_start`."""

    files: int = 0
    network: int = 0
    scopes: int = 0
    sockets: Literal["any", "unnamed", "none"] = "any"


def inside(program: Runtime, made: Layout, *, programs: bool) -> tuple[str, ...]:
    """What to start in its place within bubblewrap, which takes care of all but what the coarse layout leaves open."""
    handled = 0 if programs else _EXECUTE
    pairs: list[tuple[int, Path]] = []
    if made.rebuilt:
        handled |= _handled(version()) & ~(_READ_DIR | _EXECUTE)  # what could be listed is covered
        everything = dict.fromkeys(_OWN, handled & ~_EXECUTE)
        # Only for what mounts cannot do: they see to it that what is not writable is not.
        pairs += _grants(made, {"ro": _READ_FILE, "rw": handled & ~_EXECUTE, **everything}, made.rebuilt)
    if not programs:
        pairs += ((_EXECUTE | (handled & _READ_FILE), path) for path in program.executed)
    return _command(_Taken(handled, 0, _scopes(), "unnamed" if _filters() else "any"), pairs, program.argv)


def alone(program: Runtime, made: Layout, data: Path, *, network: bool, programs: bool) -> tuple[str, ...]:
    """What to start in its place, without anything else around it."""
    handled = _handled(version())
    run = _EXECUTE if programs else 0
    pairs = [
        *_grants(made, {"ro": _READ | run, "rw": (handled & ~_EXECUTE) | run, "proc": _READ}, made.places),
        *((handled & (_READ_FILE | _WRITE_FILE | _IOCTL), Path("/dev", name)) for name in _DEVICES),
        *((_EXECUTE | _READ_FILE, path) for path in program.executed),
    ]
    taken = _Taken(
        handled,
        0 if network or version() < _HAS_NETWORK else _TCP,
        _scopes(),
        "any" if not _filters() else "unnamed" if network else "none",
    )
    return _command(taken, pairs, program.argv, str(data))  # /tmp is everybody's


def gaps_inside(*, network: bool, programs: bool) -> tuple[str, ...]:
    found = []
    if not programs and not version():
        found.append("it can run other programs")
    if not version() or not _filters():
        found.append("it can talk to your other programs through sockets that lie where it may read")
        if network and version() < _HAS_SCOPES:
            found.append("it can talk to your other programs through sockets without a file")
    return tuple(found)


def gaps_alone(*, network: bool) -> tuple[str, ...]:
    """What it does not hold a program to."""
    found = [
        "it sees which other programs run and which files exist",
        "it can change the modes and dates of your files",
    ]
    if version() < _HAS_TRUNCATE:
        found.append("it can cut files short that it may not write")
    if not network and not _filters():
        found.append("it can use the network" if version() < _HAS_NETWORK else "it can send datagrams to the network")
    if not _filters():
        found.append("it can talk to your other programs through their sockets")
    if version() < _HAS_SCOPES:
        found.append("it can send signals to your other programs")
    return tuple(found)


def _scopes() -> int:
    return _SCOPES if version() >= _HAS_SCOPES else 0


def _filters() -> bool:
    return os.uname().machine in ("x86_64", "aarch64")  # whose system calls `landlock_start` knows


def _handled(abi: int) -> int:
    later = ((_HAS_REFER, _REFER), (_HAS_TRUNCATE, _TRUNCATE), (_HAS_IOCTL, _IOCTL))
    return _EVERY_FIRST | sum(right for since, right in later if abi >= since)


def _grants(made: Layout, rights: Mapping[Kind, int], divided: Iterable[Path]) -> Iterator[tuple[int, Path]]:
    """A right holds for everything below a place, so one in which others must not have it is given entry by entry."""
    above = {outer for path in divided for outer in path.parents}
    for path, kind in made.places.items():
        if kind in rights:
            whole = [path] if kind in _OWN else _undivided(path, made, above)
            yield from ((rights[kind], one) for one in whole)


def _undivided(path: Path, made: Layout, above: set[Path]) -> Iterator[Path]:
    if path not in above:
        yield path
        return
    try:
        entries = sorted(Path(entry.path) for entry in os.scandir(path) if not entry.is_symlink())
    except OSError:
        return
    for entry in entries:
        if entry not in made.places:
            yield from _undivided(entry, made, above)


def _command(
    taken: _Taken, pairs: Iterable[tuple[int, Path]], argv: tuple[str, ...], temporary: str = ""
) -> tuple[str, ...]:
    lost = (str(taken.files), str(taken.network), str(taken.scopes), taken.sockets, temporary)
    given = [word for access, path in pairs for word in (str(access), str(path))]
    return (sys.executable, "-I", "-S", str(START), *lost, *given, "--", *argv)
