"""Skills: folders with a `SKILL.md` that the model can load when the work calls for it.

Owns finding them, reading their front matter and listing them for the prompt. Loading one in a turn
is the `skill` tool's.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from msgspec import Struct

from hilt.context.excerpt import read_excerpt

_FRONT_MATTER_LIMIT = 16 * 1024
_BODY_LIMIT = 64 * 1024
_MOST_PER_PLACE = 200
_MOST_FILES = 50
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1024
_HEADING = (
    "Skills hold instructions for particular kinds of work. When one fits the task, load it with the skill tool first:"
)


class Skill(Struct, frozen=True):
    name: str
    description: str
    path: Path
    """Its `SKILL.md`."""
    source: str
    """Where it was found, for people: `project`, `global (claude)`…"""


class Found(Struct, frozen=True):
    skills: tuple[Skill, ...]
    problems: tuple[str, ...]
    """One line each, naming the file."""


class SkillContent(Struct, frozen=True):
    body: str
    files: tuple[str, ...]
    """What else lies in the skill's folder, as relative paths."""


def find_skills(home: Path, cwd: Path, user_home: Path) -> Found:
    """Every skill within reach; of two with the same name the first place wins."""
    places = (
        (cwd / ".hilt" / "skills", "project"),
        (cwd / ".zot" / "skills", "project (zot)"),
        (home / "skills", "global"),
        (cwd / ".claude" / "skills", "project (claude)"),
        (user_home / ".claude" / "skills", "global (claude)"),
        (cwd / ".agents" / "skills", "project (agents)"),
        (user_home / ".agents" / "skills", "global (agents)"),
        (user_home / ".config" / "agents" / "skills", "global (agents)"),
    )
    skills: dict[str, Skill] = {}
    problems: list[str] = []
    for place, source in places:
        for folder in _folders(place, problems):
            skill = _load(folder, source, problems)
            if skill is not None:
                skills.setdefault(skill.name, skill)
    return Found(tuple(skills.values()), tuple(dict.fromkeys(problems)))


def manifest(skills: Iterable[Skill], user_home: Path | None = None) -> str:
    """What the system prompt says about the skills; empty when there are none."""
    home = user_home or Path(os.path.expanduser("~"))  # noqa: PTH111 - never fails, unlike Path.home
    rows = [
        f"- {skill.name} [{_shortened(skill.path, home)}]: {skill.description or '(no description)'}"
        for skill in sorted(skills, key=lambda skill: skill.name)
    ]
    return "\n".join([_HEADING, *rows]) if rows else ""


def read_skill(skill: Skill) -> SkillContent:
    """The skill's text without its front matter, as it is on disk now. Raises `OSError`."""
    excerpt = read_excerpt(skill.path, _BODY_LIMIT)
    if excerpt is None:
        raise FileNotFoundError(2, "it is no longer there")
    _, body = _split(excerpt.text)
    if excerpt.cut:
        body += (
            f"\n\n[cut: {skill.path} has {excerpt.size} bytes, the first {_BODY_LIMIT} are shown; read has the rest]"
        )
    return SkillContent(body, tuple(sorted(islice(_files(skill.path.parent, ""), _MOST_FILES))))


def _shortened(path: Path, home: Path) -> str:
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _folders(place: Path, problems: list[str]) -> list[Path]:
    try:
        with os.scandir(place) as entries:
            names = [entry.name for entry in islice(entries, _MOST_PER_PLACE + 1)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        problems.append(f"{place}: {error.strerror or error}")
        return []
    if len(names) > _MOST_PER_PLACE:
        problems.append(f"{place}: more than {_MOST_PER_PLACE} entries, the rest is not looked at")
    return [place / name for name in sorted(names[:_MOST_PER_PLACE])]


def _load(folder: Path, source: str, problems: list[str]) -> Skill | None:
    path = folder / "SKILL.md"
    try:
        excerpt = read_excerpt(path, _FRONT_MATTER_LIMIT)
    except OSError as error:
        problems.append(f"{path}: {error.strerror or error}")
        return None
    if excerpt is None:
        return None
    front, _ = _split(excerpt.text)
    fields: Mapping[str, str] = {}
    if front is None and excerpt.text.startswith("---"):
        problems.append(f"{path}: the front matter does not end with a line of --- within {_FRONT_MATTER_LIMIT} bytes")
    elif front:
        try:
            fields = _parse(front)
        except ValueError as error:
            problems.append(f"{path}: the front matter is not usable: {error}")
    name = _one_line(fields.get("name", ""), _LONGEST_NAME) or _one_line(folder.name, _LONGEST_NAME)
    return Skill(name, _one_line(fields.get("description", ""), _LONGEST_DESCRIPTION), path, source)


def _split(text: str) -> tuple[str | None, str]:
    """Front matter, or None when there is none, and the rest."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return None, text
    for index, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return "\n".join(lines[1:index]), "\n".join(lines[index + 1 :])
    return None, text


def _parse(front: str) -> Mapping[str, str]:
    """The plain values of a YAML mapping. Raises `ValueError` with a sentence."""
    import yaml  # 30 ms, and only a skill with front matter needs it

    # The base loaders keep every value a string: `name: no` is not False.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        document = yaml.load(front, Loader=loader)  # noqa: S506 - base loaders build strings, lists and dicts only
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    if document in (None, ""):
        return {}
    if isinstance(document, dict):
        return {key: value for key, value in document.items() if isinstance(key, str) and isinstance(value, str)}
    raise ValueError("expected `name: value` lines")


def _one_line(text: str, longest: int) -> str:
    """Printable, on one line and not too long: it goes into a list in the prompt."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _files(folder: Path, prefix: str, depth: int = 0) -> Iterator[str]:
    """Files below a skill's folder, a few levels deep; linked folders are not entered, so no loop is."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(islice(entries, _MOST_PER_PLACE), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            if depth < 3 and not entry.name.startswith("."):
                yield from _files(folder / entry.name, f"{prefix}{entry.name}/", depth + 1)
        elif prefix or entry.name != "SKILL.md":
            yield prefix + entry.name
