"""Everything about where extensions come from, in one place: found, chosen, screened, and found again."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from hilt.errors import ManifestError, PackageError
from hilt.packages.choices import Choices
from hilt.packages.discovery import Discovery, Found, Problem, discover, find_again
from hilt.packages.members import shown
from hilt.packages.trust.screening import Gate, told

ONLY = "HILT_ONLY_EXT"
"""The variable that names the extensions that may run, with commas between them; empty for none."""


class Finder(Struct, frozen=True):
    flags: tuple[str, ...]
    user: Path
    projects: tuple[Path, ...]
    only_flags: bool
    path: str
    cwd: Path
    choices: Mapping[str, Choices]
    lock: Path
    """What hilt installed, and how it was then."""
    gate: Gate
    """Before what comes with the project."""
    only: frozenset[str] | None = None
    """The names of those that may run beside those named by flags; None for all."""

    def all(self) -> Discovery:
        """Blocks while the files of those that were installed, or that came with the project, are read."""
        raw = discover(
            self.flags,
            self.user,
            self.projects,
            only_flags=self.only_flags,
            path=self.path,
            cwd=self.cwd,
            choices=self.choices,
        )
        raw = self._chosen(raw)
        problems = list(raw.problems)
        mine = [one for one in raw.found if one.source != "project"]
        sound = self._sound(mine, problems)
        admitted, barred, failed = self.gate.screen(one for one in raw.found if one.source == "project")
        return Discovery((*sound, *admitted), raw.disabled, (*problems, *failed), tuple(barred))

    def _chosen(self, raw: Discovery) -> Discovery:
        """Without those that are to be left out for this once."""
        if (only := self.only) is None:
            return raw
        kept = tuple(one for one in raw.found if one.source == "flag" or one.name in only)
        left_out = (msgspec.structs.replace(one, left_out=True) for one in raw.found if one not in kept)
        known = {one.name for one in (*raw.found, *raw.disabled)} | {one.name for one in raw.problems}
        missing = tuple(
            Problem(ONLY, f'{ONLY} names "{shown(name)}", which there is not', "`hilt ext list` shows names")
            for name in sorted(only - known)
        )
        return Discovery(kept, (*raw.disabled, *left_out), (*raw.problems, *missing))

    def again(self, found: Found) -> Found:
        """The same extension as it is on the disk now. Raises `ManifestError`."""
        fresh = find_again(found, self.path)
        if fresh.source == "project":
            return self.gate.again(fresh)
        problems: list[Problem] = []
        for sound in self._sound([fresh], problems):
            return sound
        raise ManifestError(problems[0].message, hint=problems[0].hint, extension=found.name)

    def _sound(self, found: list[Found], problems: list[Problem]) -> list[Found]:
        """Those whose files are as they were installed, and whether anybody agreed to what they may do."""
        if not self.lock.exists():
            return found
        from hilt.packages.install.lock import Lock  # 5 ms, for nothing where nothing was installed
        from hilt.packages.install.shelf import Shelf
        from hilt.packages.install.verifying import verify

        try:
            Shelf(self.user, self.lock).repair()  # what was interrupted must not look like somebody's meddling
            entries = Lock.load(self.lock).entries
        except (PackageError, ManifestError) as error:
            problems.append(Problem(str(self.lock), error.message, error.hint))
            return [one for one in found if one.source == "flag"]
        sound = []
        for one in found:
            # By the place: what it calls itself may be what was changed.
            name = one.directory.name
            entry = entries.get(name) if one.source == "user" else None
            difference = verify(entry, one.directory) if entry and entry.kind != "link" else None
            if entry and difference:
                from hilt.packages.install.state import way_out

                message = f"{shown(one.where)} is not as it was installed: {told(difference)}"
                hint = f"`hilt ext update {name}` shows what it would change, and puts it right"
                hint += way_out(name, one.manifest, difference, entry.tree.files) if one.sandbox == "off" else ""
                problems.append(Problem(shown(one.where), message, hint, name, one.manifest.dialect))
            else:
                # One that is only linked may have given up its list since: to that, nobody has agreed.
                agreed = one.consented or (entry is not None and entry.permissions is None)
                sound.append(msgspec.structs.replace(one, consented=agreed))
        return sound
