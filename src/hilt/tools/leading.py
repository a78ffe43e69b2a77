"""Where a word of a shell command leads, seen from the folder in which the command stands.

Owns the question whether a word is a path at all: most words are options, patterns and prose. Which
words are asked about is `leaving`'s.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field

_HARMLESS = re.compile(r"/dev/(null|stdin|stdout|stderr|tty|fd/\d+)")
_HOME = re.compile(r"\$HOME(?!\w)|\$\{HOME\}")
_TILDE = re.compile(r"~[\w.-]*(/|\Z)", re.ASCII)
_UNKNOWN = re.compile(r"[$`]")
_OPTION_VALUE = re.compile(r"[\w-][\w.-]*=(.+)", re.DOTALL)  # --flag=/path, of=/path
_ATTACHED_VALUE = re.compile(r"-\w(/.+|\.\./?.*)", re.DOTALL)  # -C/path
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_FILE_URL = re.compile(r"file://(localhost)?(?=/)")
_PROSE = re.compile(r".*\s|[sy]/", re.DOTALL)
"""Sentences and scripts of sed; they hold slashes and dots without being paths."""


class Place(Struct):
    """Where the command stands while its words are read."""

    cwd: Path
    root: Path
    outer: list[Path] = field(default_factory=list)
    """The folders to return to when a subshell ends."""

    def target(self, word: str) -> Path | None:
        """The path a word plainly names, or None when only a shell could tell."""
        word = _at_home(word)
        if _UNKNOWN.search(word):
            return None
        try:
            return Path(os.path.realpath(self.cwd / word))
        except ValueError:
            return None  # no path has such letters

    def outside(self, word: str) -> bool:
        """Whether this path is not inside the root. Of a path with a variable the part before it decides."""
        if _HARMLESS.fullmatch(word):
            return False
        path = self.target(_known(_at_home(word)))
        return path is not None and not path.is_relative_to(self.root)

    def plainly_outside(self, word: str) -> bool:
        """Whether this word, which may be no path at all, leads out by `..`, `~`, `$HOME` or from `/`."""
        return any(self._leads_out(path) for path in _paths_in(word))

    def _leads_out(self, word: str) -> bool:
        path = _at_home(word)
        if path != word:
            return self.outside(path)
        if path.startswith("/"):
            return _is_there(path) and not self._named_inside(path) and self.outside(path)
        parts = path.split("/")
        if ".." not in parts or (_PROSE.match(path) and parts[0] != ".." and not _exists(self.cwd / parts[0])):
            return False
        return self.outside(path)

    def _named_inside(self, path: str) -> bool:
        """Inside by its name alone: what a link there leads to is the same as for the relative path."""
        return ".." not in path.split("/") and Path(path).is_relative_to(self.root)


def _paths_in(word: str) -> Iterator[str]:
    """The word itself and what it may hold as the value of an option."""
    if local := _FILE_URL.match(word):
        yield word[local.end() :]
    elif not _URL.match(word):
        if value := _OPTION_VALUE.fullmatch(word) or _ATTACHED_VALUE.fullmatch(word):
            yield from _paths_in(value[1])
        if not word.startswith("-"):
            yield word


def _at_home(word: str) -> str:
    word = _HOME.sub("~", word, count=1) if _HOME.match(word) else word
    # Only where it can be a user's name: looking up others may fail.
    return os.path.expanduser(word) if _TILDE.match(word) else word  # noqa: PTH111 - Path.expanduser fails without a home


def _known(path: str) -> str:
    """The folder before the first variable. The root folder tells nothing: `/$` is mostly a pattern."""
    unknown = _UNKNOWN.search(path)
    if unknown is None:
        return path
    folder = path[: unknown.start()].rpartition("/")[0]
    return folder if folder else path


def _is_there(path: str) -> bool:
    """Whether an absolute word is a path: it exists, or could be made. `/foo/d` is more often a pattern."""
    known = _known(path)
    if known != path or _exists(Path(path)):
        return _exists(Path(known))
    folder = path.rpartition("/")[0]
    if not folder.strip("/"):  # everything with one slash is below the root folder: `// note` is no path there
        return not path.startswith("//") and not _PROSE.match(path) and not _UNKNOWN.search(path)
    return _exists(Path(folder))


def _exists(path: Path) -> bool:
    return os.path.lexists(path)
