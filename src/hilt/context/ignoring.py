"""Ignore files: what they say of a path, at every level of a project.

Owns how the files of one folder go together and how levels override each other; what a pattern means is pathspec's
business. The files are strangers': none can hang or fill the process, nor cost more than a moment for each path.
"""

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from hilt.context.excerpt import read_excerpt

OWN_NAMES = (".ignore", ".hiltignore")
"""Those that git does not know."""
NAMES = (".gitignore", *OWN_NAMES)
"""A later one overrides an earlier one of the same folder."""

_LARGEST = 64 * 1024
_MOST_PATTERNS = 1000
_LONGEST = 1000
_STARS, _DOUBLE_STARS = 2, 2
_WARNED_OF = re.compile(r"\[.*?(?:\[|--|&&|~~|\|\|)")
"""Sets of which Python says, on stderr, that they may come to mean something else."""


class Rules(Struct, frozen=True):
    """The ignore files of one folder."""

    prefix: int
    """How much of a path leads to the folder."""
    patterns: tuple[tuple[re.Pattern[str], bool], ...]
    """The last one first; each with whether what it matches is left out."""


Chain: TypeAlias = tuple[Rules, ...]
"""The rules that hold in a folder, the outermost first."""


def below(chain: Chain, root: Path, folder: str, names: Sequence[str] = NAMES) -> Chain:
    """The rules that hold in a folder, given those of the one around it. `folder` ends with a slash, or is empty."""
    lines = [line for name in names for line in _lines(root / folder / name)]
    if not lines:
        return chain
    return (*chain, Rules(len(folder), _patterns(lines)))


def ignored(chain: Chain, path: str) -> bool:
    """Whether a path is to be left out; a folder's ends with a slash. What is inside one that is, is not asked for."""
    for rules in reversed(chain):
        rest = path[rules.prefix :]
        for pattern, verdict in rules.patterns:
            if pattern.fullmatch(rest):
                return verdict
    return False


def _lines(path: Path) -> list[str]:
    try:
        excerpt = read_excerpt(path, _LARGEST)
    except OSError:
        return []
    if excerpt is None:
        return []
    lines = (line.rstrip("\r") for line in excerpt.text.split("\n"))
    patterns = (line for line in lines if line and line[0] != "#")
    return [line for line in islice(patterns, _MOST_PATTERNS) if not _costly(line) and not _WARNED_OF.search(line)]


def _costly(line: str) -> bool:
    """Matching tries every way in which the stars can share a name: with many of them that takes minutes."""
    segments = line.split("/")
    stars = max(segment.count("*") for segment in segments)
    return len(line) > _LONGEST or stars > _STARS or segments.count("**") > _DOUBLE_STARS


def _patterns(lines: Sequence[str]) -> tuple[tuple[re.Pattern[str], bool], ...]:
    from pathspec import GitIgnoreSpec  # 40 ms, and many projects have no ignore file that git does not read for us

    found: list[tuple[re.Pattern[str], bool]] = []
    for line in lines:
        try:
            patterns = GitIgnoreSpec.from_lines([line]).patterns
        except (ValueError, re.error):
            continue  # it hides nothing
        found += [(_whole(one.regex), one.include) for one in patterns if one.regex and one.include is not None]
    return tuple(reversed(found))


def _whole(found: re.Pattern[str]) -> re.Pattern[str]:
    """Made to match the whole path of what the pattern names.

    As it comes it also matches everything in a folder of that name. We have been there: the folder had its say, and
    a pattern that allows it must not allow what others forbid inside.
    """
    text = found.pattern
    if not text.startswith("^"):
        text = f".*{text}"  # anything, or any folder
    elif "ps_d" not in found.groupindex:
        text = f"{text}.+"  # what is in a folder, without the folder
    return re.compile(text, re.DOTALL)
