"""What `/help`, `/model`, `/session` and the rest do: each answers with actions or with text to show."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from hilt.commands.ext import USAGE as EXT_USAGE
from hilt.commands.ext import about_extensions
from hilt.context.skills import Skill
from hilt.errors import UsageError
from hilt.model.actions import (
    Action,
    Branch,
    Clear,
    Compact,
    Display,
    OpenSession,
    Prompt,
    Rename,
    SetJail,
    SetLabel,
    SetPermissions,
    SwitchModel,
    ToggleStep,
    Undo,
)
from hilt.model.contributions import Command
from hilt.model.conversation import Usage
from hilt.model.models import ModelInfo
from hilt.model.ports import Extensions
from hilt.registry.registry import Registry
from hilt.sessions import portable
from hilt.sessions.journal import Journal
from hilt.sessions.store import SessionStore
from hilt.sessions.tree import render, tree_of

Answer: TypeAlias = tuple[Action, ...]

STUDY = (
    "Get to know the project in the current directory: read its README, its manifest and the main source files, "
    "then tell me in a few sentences what it is, how it is laid out, and how it is built and tested."
)


class CommandParts(Struct, frozen=True):
    """What the built-in commands look at. They change nothing themselves: they answer with actions."""

    registry: Registry
    cwd: str
    journal: Journal
    store: SessionStore
    skills: Sequence[Skill]
    models: Callable[[], list[ModelInfo]]
    model: Callable[[], ModelInfo]
    usage: Callable[[], Usage]
    extensions: Callable[[], Extensions]


def builtin_commands(parts: CommandParts) -> tuple[Command, ...]:
    async def help_(_: str) -> Answer:
        return _show("\n".join(_help_lines(parts.registry)))

    async def model(args: str) -> Answer:
        if args:
            return (SwitchModel(args),)
        current = parts.model()
        lines = [f"model: {current.id} ({_whose(current)})", "", "others, chosen with /model ID:"]
        others = (info for info in parts.models() if info.provider == current.provider or info.extension)
        lines += [f"  {info.id}  ({_whose(info)})" for info in others]
        return _show("\n".join(lines))

    async def session(args: str) -> Answer:
        return await asyncio.to_thread(_session, parts, args)

    async def sessions(_: str) -> Answer:
        found = await asyncio.to_thread(parts.store.list, parts.cwd)
        lines = [f"{one.id[:8]}  {one.updated.astimezone():%Y-%m-%d %H:%M}  {one.title}" for one in found]
        return _show("\n".join(lines) or "no sessions in this directory yet")

    async def skills(_: str) -> Answer:
        lines = [f"{skill.name} ({skill.source}): {skill.description or '(no description)'}" for skill in parts.skills]
        return _show("\n".join(lines) or "no skills found; put one in .hilt/skills/<name>/SKILL.md")

    async def permissions(args: str) -> Answer:
        match args:
            case "ask" | "accept-edits" | "yolo":
                return (SetPermissions(args),)
            case _:
                raise UsageError("/permissions takes ask, accept-edits or yolo")

    async def cost(_: str) -> Answer:
        usage = parts.usage()
        price = "" if parts.model().price else " (this model's price is unknown and counts as 0)"
        return _show(
            f"input {usage.input}, output {usage.output}, cache read {usage.cache_read}, "
            f"cache write {usage.cache_write} tokens; ${usage.cost_usd:.4f}{price}"
        )

    async def reload_ext(args: str) -> Answer:
        return _show(str(await parts.extensions().reload(args)))

    async def ext(args: str) -> Answer:
        return _show(await about_extensions(parts.extensions(), args))

    async def rename(args: str) -> Answer:
        if not args:
            raise UsageError("/rename needs a title")
        return (Rename(args), Display(f"this session is now called: {args}"))

    return (
        Command("help", "list the commands", help_),
        Command("model", "show the model, or switch to another", model, "[id]"),
        Command("compact", "replace the older part of the conversation by a summary", _always(Compact())),
        Command("clear", "begin an empty conversation; the session keeps the old one", _always(Clear())),
        Command("undo", "put back the files the last change touched", _always(Undo())),
        Command(
            "session",
            "work with this session, or go on in another",
            session,
            "open <id> | tree | branch <entry> | label <entry> | fork | export | import <path>",
            personal=True,
        ),
        Command("sessions", "list the sessions of this directory", sessions),
        Command("rename", "give this session a title", rename, "<title>"),
        Command("skills", "list the skills the model can load", skills),
        Command("ext", "show the extensions, or change which of them run", ext, EXT_USAGE, personal=True),
        Command("reload-ext", "start an extension, or all of them, anew", reload_ext, "[name]"),
        Command("cost", "show tokens and cost of this session", cost),
        Command("permissions", "set when to ask before tools run", permissions, "ask | accept-edits | yolo"),
        Command("yolo", "stop asking before tools run", _always(SetPermissions("yolo"))),
        Command("step", "have every tool call wait for you, or no longer", _always(ToggleStep())),
        Command("jail", "confine the file tools to this directory", _always(SetJail(on=True))),
        Command("unjail", "lift the jail", _always(SetJail(on=False))),
        Command("study", "have the model read up on this project", _always(Prompt(STUDY))),
    )


def _session(parts: CommandParts, args: str) -> Answer:
    verb, _, rest = args.partition(" ")
    rest = rest.strip()
    match verb:
        case "tree":
            return _show("\n".join(render(tree_of(parts.journal.log))) or "this session is empty")
        case "fork":
            path = portable.fork(parts.journal.log, parts.store)
            return _show(f"forked to {path}\nopen it with: hilt --session {path.stem}")
        case "export":
            target = Path(parts.cwd, rest).expanduser() if rest else Path(parts.cwd)
            return _show(f"exported to {portable.export(parts.journal.log, target)}")
        case "import" if rest:
            path = portable.import_(Path(parts.cwd, rest).expanduser(), parts.store, parts.cwd)
            return _show(f"imported as {path}\nopen it with: hilt --session {path.stem}")
        case "open" if rest:
            return (OpenSession(rest),)
        case "branch" if rest:
            entry, _, summary = rest.partition(" ")
            return (Branch(entry, summary.strip()),)
        case "label" if rest:
            entry, _, label = rest.partition(" ")
            return (SetLabel(entry, label.strip()),)
        case _:
            raise UsageError(
                "/session takes open <id>, tree, branch <entry> [summary], label <entry> [text], fork, "
                "export [path] or import <path>"
            )


def _help_lines(registry: Registry) -> list[str]:
    commands = registry.snapshot().commands.values()
    rows = [(f"/{owned.command.name} {owned.command.usage}".rstrip(), owned) for owned in commands]
    width = max((len(head) for head, _ in rows), default=0)
    return [f"{head:<{width}}  {owned.command.description or f'({owned.owner})'}" for head, owned in rows]


def _whose(model: ModelInfo) -> str:
    return f"{model.provider}, by extension {model.extension}" if model.extension else model.provider


def _show(text: str) -> Answer:
    return (Display(text),)


def _always(action: Action) -> Callable[[str], Awaitable[Answer]]:
    async def run(_: str) -> Answer:
        return (action,)

    return run
