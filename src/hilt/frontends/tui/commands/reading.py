"""`/help` and `/skills`: things to read."""

import asyncio
import re
from collections.abc import Iterable

from hilt.context.skills import read_skill
from hilt.frontends.terminal import one_line
from hilt.frontends.tui.commands.desk import Desk
from hilt.frontends.tui.dialogs.page import Page
from hilt.frontends.tui.dialogs.picker import Item, Picker
from hilt.registry.snapshot import OwnedCommand

KEYS = (
    ("Enter", "send; while something runs, it waits in a queue"),
    ("Ctrl-J, Shift-Enter", "a new line"),
    ("↑ ↓", "what was sent before; ↑ in an empty input takes back what waits"),
    ("Esc", "close what is open, clear notes, cancel what runs, clear the input"),
    ("Ctrl-C twice", "leave; Ctrl-D in an empty input too"),
    ("Shift-Tab", "when to be asked before tools run: ask, accept-edits, yolo"),
    ("Ctrl-O", "unfold or fold what tools returned, and thinking"),
    ("PgUp PgDn, wheel", "scroll; Ctrl-Home and Ctrl-End for the two ends"),
    ("F6", "from panel to panel and back to the input"),
    ("@", "a file of this project"),
    ("!command", "run it yourself; !!command without telling the model"),
    ("Ctrl-Z", "suspend; fg goes on"),
    ("Ctrl-L", "draw everything anew"),
)

_CELL = 300
"""Characters of what an extension says of something of its own."""


async def help_(desk: Desk, _: str = "") -> None:
    snapshot = desk.session.parts.registry.snapshot()
    own = [_command(one) for one in snapshot.commands.values() if one.owner == "hilt"]
    others = [_command(one) for one in snapshot.commands.values() if one.owner != "hilt"]
    shortcuts = [(key, f"{one.shortcut.description} ({one.owner})") for key, one in snapshot.shortcuts.items()]
    parts = [*_table("key", [*KEYS, *shortcuts]), *_table("command", own)]
    if others:
        parts += _table("command of an extension", others)
    await desk.ask(Page("help", "\n".join(parts), desk.look))


async def skills(desk: Desk, _: str = "") -> None:
    known = {skill.name: skill for skill in desk.keeping.skills}
    items = [Item(skill.name, skill.name, skill.description, group=skill.source) for skill in known.values()]
    hint = "put your own in .hilt/skills/<name>/SKILL.md"
    while name := await desk.ask(Picker("skills", items, desk.look, hint=hint)):
        content = await asyncio.to_thread(read_skill, known[name])
        await desk.ask(Page(name, content.body, desk.look))


def _command(one: OwnedCommand) -> tuple[str, str]:
    owner = f" ({one.owner})" if one.owner != "hilt" else ""
    return f"/{one.command.name} {one.command.usage}", f"{one.command.description}{owner}"


def _table(heading: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    """As Markdown, in which what extensions say of themselves stays in its cell."""
    body = [f"| {_cell(first)} | {_cell(second)} |" for first, second in rows]
    return [f"| {heading} | what it does |", "|---|---|", *body, ""]


def _cell(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~&!])", r"\\\1", one_line(text, _CELL))
