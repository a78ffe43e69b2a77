"""The system prompt: identity, what the user adds, instructions, skills, and where and when we are."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct, field

from hilt.model.contributions import PromptSection

IDENTITY = """\
You are hilt, a coding agent working in the user's terminal. Through your tools you read, write and edit files
and run shell commands in the user's working directory; other tools may come from extensions.

Act rather than describe: look at the files before you speak of them, make the change, and check that it works
by running what the project offers. Prefer `edit` for changes and `write` for new files over shell redirection. When a
tool refuses or fails, read its message and adapt; never claim that something was done which was not.

Your answers are shown as Markdown in a terminal: be concise, name files with their paths, and leave out filler.
"""


class PromptParts(Struct, frozen=True):
    cwd: Path
    base: str = ""
    """Replaces the built-in identity when given."""
    appended: Sequence[str] = ()
    instructions: Sequence[tuple[str, str]] = ()
    """(path, text) pairs, the most general first."""
    skills: str = ""
    """The manifest of skills, ready to show; empty when there is none."""
    today: datetime = field(default_factory=lambda: datetime.now().astimezone())


def system_prompt(parts: PromptParts) -> str:
    sections = [parts.base.strip() or IDENTITY.strip()]
    sections += [text.strip() for text in parts.appended if text.strip()]
    sections += [
        f"Instructions from {path} (later ones take precedence):\n\n{text.strip()}"
        for path, text in parts.instructions
        if text.strip()
    ]
    if parts.skills:
        sections.append(parts.skills.strip())
    sections.append(f"Current date: {parts.today:%Y-%m-%d}\nCurrent working directory: {parts.cwd}")
    return "\n\n".join(sections)


def with_contributions(system: str, sections: Iterable[PromptSection], instructions: Iterable[str]) -> str:
    """With what extensions add to it, and what their tools want to be known."""
    return "\n\n".join((system, *(f"# {one.title}\n\n{one.content}" for one in sections), *instructions))
