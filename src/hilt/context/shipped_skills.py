"""The skills that come with hilt.

They are listed here as well as in their own front matter, which takes a reader of YAML: 25 ms at every start, for a
text that never changes. A test holds the two equal.
"""

from collections.abc import Iterable
from pathlib import Path

from hilt.context.skills import Skill

_FOLDER = Path(__file__).with_name("shipped")

SHIPPED = (
    Skill(
        "hilt-extensions",
        "Write, test and install an extension of hilt, the agent you run in - a tool, slash command, guard, panel, "
        "model or hook. Use it whenever the user wants hilt itself to do something new "
        '("write me an extension that…").',
        _FOLDER / "hilt-extensions" / "SKILL.md",
        "built in",
    ),
)


def with_shipped(found: Iterable[Skill]) -> tuple[Skill, ...]:
    """Those of the user's, and of hilt's own those whose names are free."""
    skills: dict[str, Skill] = {}
    for skill in (*found, *SHIPPED):
        skills.setdefault(skill.name, skill)
    return tuple(skills.values())
