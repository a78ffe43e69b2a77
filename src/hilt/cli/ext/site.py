"""Where a verb acts, and what it has to say."""

import os
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct

from hilt.cli.config import PROJECT_CONFIG, Config, load_config
from hilt.cli.narrowing import narrowed
from hilt.cli.wanted import Wanted
from hilt.errors import UsageError
from hilt.frontends.terminal import clean, hanging
from hilt.home import Home, working_directory
from hilt.packages.discovery import PROJECT, Discovery, Found, Untrusted
from hilt.packages.finder import Finder
from hilt.packages.install.lock import Entry, Lock
from hilt.packages.members import quoted

_LONGEST = 100
"""Letters of a name that is none which are compared with others."""


class Told(Struct, frozen=True):
    value: Any
    """For programs."""
    text: str
    """For people."""
    code: int = 0


class Site(Struct, frozen=True):
    home: Home
    config: Config
    cwd: Path

    @classmethod
    def here(cls) -> "Site":
        home = Home.find()
        home.prepare()
        cwd, config = working_directory(), load_config(home.config)
        if (cwd / PROJECT_CONFIG).exists():
            config = narrowed(config, cwd / PROJECT_CONFIG, tell)
        return cls(home, config, cwd)

    @property
    def path(self) -> str:
        """Where programs are looked for."""
        return os.environ.get("PATH", os.defpath)

    def finder(self) -> Finder:
        return Wanted(
            flags=(),
            only_flags=False,
            home=self.home,
            cwd=self.cwd,
            choices=self.config.extensions,
            watch=False,
            one_shot=True,
            trust=False,
        ).finder()

    def installed(self) -> dict[str, Entry]:
        return dict(Lock.load(self.home.lock).entries)

    def knows(self, name: str) -> bool:
        """Whether there is one of this name, be it broken."""
        return bool(name) and name in self.names()

    def names(self) -> set[str]:
        discovery = self.finder().all()
        return {found_in(one).name for one in every(discovery)} | {one.name for one in discovery.problems}

    def no_such(self, name: str) -> UsageError:
        """That there is none of this name, and which may have been meant."""
        import difflib  # 5 ms, and only for the mistaken

        names = {one.removeprefix(PROJECT): one for one in sorted(self.names()) if one}
        near = difflib.get_close_matches(name[:_LONGEST].removeprefix(PROJECT), names, 1)
        meant = f'did you mean "{names[near[0]]}"? ' if near else ""
        return UsageError(f'there is no extension "{quoted(name)}"', hint=f"{meant}`hilt ext list` shows them")


def tell(notice: str) -> None:
    sys.stderr.write(clean(f"hilt: {hanging(notice)}\n"))


def every(discovery: Discovery) -> tuple[Found | Untrusted, ...]:
    """All that was found and could be read, in the order in which it is loaded."""
    known: list[Found | Untrusted] = [*discovery.found, *discovery.disabled, *discovery.untrusted]
    return tuple(sorted(known, key=lambda one: found_in(one).order))


def found_in(one: Found | Untrusted) -> Found:
    return one.found if isinstance(one, Untrusted) else one


def named(path: str) -> Path:
    """What a path on the command line means, be there something or not."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - never fails, unlike Path.expanduser


def existing(path: str) -> Path:
    """The same for what must be there. Raises `UsageError`."""
    place = named(path).absolute()
    if not path or not os.path.lexists(place):
        message = f'"{quoted(path)}": there is no such file or directory'
        raise UsageError(message, hint="name the directory of an extension, or its file")
    return place
