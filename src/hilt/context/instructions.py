"""Instruction files: `AGENTS.md` and its like, from the user's own to the folder's.

Owns which files count and in what order. How they enter the prompt is the agent's.
"""

import os
from pathlib import Path

from msgspec import Struct

from hilt.context.excerpt import read_excerpt

_LIMIT = 64 * 1024
_NAMES = ("AGENTS.md", "CLAUDE.md")  # the second only where the first is missing


class Instructions(Struct, frozen=True):
    path: Path
    text: str


def find_instructions(home: Path, cwd: Path) -> tuple[Instructions, ...]:
    """The user's own first, then one file per level from the repository's root down: the deepest has the last word."""
    levels = _levels(cwd)
    candidates: list[tuple[Path, ...]] = [(home / "AGENTS.md",)]
    candidates += [tuple(level / name for name in _NAMES) for level in levels]
    root = os.path.realpath(levels[0])
    seen: set[str] = set()
    found: list[Instructions] = []
    for number, paths in enumerate(candidates):
        for path in paths:
            text = _read(path)
            if text is None:
                continue
            real = os.path.realpath(path)
            if number and not Path(real).is_relative_to(root):
                # Whoever made the project chose where it leads: to your keys, say, which would go to the model.
                text = f"[{path} is a link that leads out of the project, so it is not read]"
            if text and real not in seen:
                found.append(Instructions(path, text))
            seen.add(real)
            break
    return tuple(found)


def read_system(home: Path) -> str | None:
    """The user's own system prompt, when there is one."""
    return _read(home / "SYSTEM.md") or None


def _levels(cwd: Path) -> list[Path]:
    """From the nearest repository's root down to `cwd`; without a repository, `cwd` alone."""
    levels: list[Path] = []
    for level in (cwd, *cwd.parents):
        levels.append(level)
        if (level / ".git").exists():
            return levels[::-1]
    return [cwd]


def _read(path: Path) -> str | None:
    try:
        excerpt = read_excerpt(path, _LIMIT)
    except OSError as error:
        # Said where both the user and the model will see it: silence would look like obedience.
        return f"[{path} could not be read: {error.strerror or error}]"
    if excerpt is None:
        return None
    text = excerpt.text.strip()
    if excerpt.cut:
        text += f"\n\n[cut: {path} has {excerpt.size} bytes, the first {_LIMIT} are shown]"
    return text
