"""Which program a bare word means: looked for on PATH, where nobody but the user can have put one.

Owns the rules by which a directory or a file is passed over. A project must not be able to bring its own `python3`,
and nobody else on the machine either; what is passed over is told, lest somebody search for a file that is there.
"""

import os
import stat
from pathlib import Path

from msgspec import Struct

from hilt.packages.members import shown


class Lookup(Struct, frozen=True):
    found: str | None
    """Its path, absolute, as PATH has it."""
    passed: tuple[str, ...]
    """Those of the name that were passed over before it was found, each with the reason."""

    @property
    def but(self) -> str:
        """To be said after "is not on PATH"."""
        return f", but for what is not safe to run: {'; '.join(self.passed)}" if self.passed else ""


def on_path(word: str, path: str, cwd: Path | None = None) -> str | None:
    """The program of that name, if there is one; `look_up` says more."""
    return look_up(word, path, cwd).found


def look_up(word: str, path: str, cwd: Path | None = None) -> Lookup:
    """`cwd` is the project that one works in; without one, where this process stands."""
    project = _project(cwd)
    passed = []
    for folder in path.split(os.pathsep):
        candidate = Path(folder, word)
        # What relative entries find depends on where one stands.
        if not candidate.is_absolute() or not os.access(candidate, os.X_OK) or not candidate.is_file():
            continue
        if reason := _objection(candidate, project):
            passed.append(f"{shown(candidate)} {reason}")
        else:
            return Lookup(str(candidate), tuple(passed))
    return Lookup(None, tuple(passed))


def _project(cwd: Path | None) -> str | None:
    try:
        project = os.path.realpath(cwd or Path.cwd())
    except OSError:
        return None  # it has been removed, so nothing lies in it
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - never fails, unlike Path.expanduser
    # A home directory is nobody's project, and where many keep their programs; nor is the root of the disk.
    return None if Path(home).is_relative_to(project) else project


def _objection(candidate: Path, project: str | None) -> str:
    """Why it may not be what the user means by the word; empty if nothing speaks against it."""
    real = Path(os.path.realpath(candidate))
    # A link's own directory counts as well as that of the file it leads to: either could be changed.
    places = (Path(os.path.realpath(candidate.parent)), real)
    if project and any(place.is_relative_to(project) for place in places):
        return "lies in the project"
    try:
        if real.stat().st_mode & stat.S_IWOTH:
            return "can be changed by anybody"
        for place in (places[0], real.parent):
            if open_place := _open_to_all(place):
                return f"lies in {shown(open_place)}, where anybody can put files"
    except OSError as error:
        return f"cannot be looked at: {error.strerror or error}"
    return ""


def _open_to_all(directory: Path) -> Path | None:
    if directory.stat().st_mode & stat.S_IWOTH:
        return directory
    for above in directory.parents:
        # What lies in a sticky one, such as /tmp, is still its owner's.
        if above.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
            return above
    return None
