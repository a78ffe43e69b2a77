"""The composition root: from flags, files and the environment to a running session."""

import argparse
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from hilt.agent.bus import Bus
from hilt.agent.interception import GuardRules
from hilt.agent.parts import ActiveModel, Parts
from hilt.agent.permissions import Permissions
from hilt.agent.prompt import PromptParts, system_prompt
from hilt.agent.questions import Questions
from hilt.agent.retry import RetryPolicy
from hilt.agent.session import Session
from hilt.cli.chooser import Chooser
from hilt.cli.extending import Sources, extended
from hilt.cli.ground import Ground
from hilt.cli.opening import existing_log, new_log
from hilt.cli.wanted import Wanted
from hilt.commands.builtin import CommandParts, builtin_commands
from hilt.context.instructions import find_instructions, read_system
from hilt.context.shipped_skills import with_shipped
from hilt.context.skills import Skill, find_skills, manifest
from hilt.frontends.approver import UserApprover
from hilt.home import Home
from hilt.model.contributions import Tool
from hilt.model.masking import Mask
from hilt.model.models import ModelInfo
from hilt.registry.registry import Registry
from hilt.registry.snapshot import Owner
from hilt.sessions.journal import Journal
from hilt.sessions.log import SessionLog
from hilt.sessions.records import ModelRecord
from hilt.sessions.store import SessionStore
from hilt.sessions.undo import FileHistory
from hilt.tools import builtin_tools
from hilt.tools.jail import Jail
from hilt.tools.shell import Shell
from hilt.tools.workspace import Workspace

if TYPE_CHECKING:
    from hilt.extensions.services.answering import Services
    from hilt.extensions.trace import Trace

BUILTIN = Owner("hilt", builtin=True)


class App(Struct, frozen=True):
    """A session and what its face needs beside it."""

    session: Session
    questions: Questions
    store: SessionStore
    models: Callable[[], list[ModelInfo]]
    mask: Mask
    skills: tuple[Skill, ...] = ()
    services: "Services | None" = None
    """What can be asked of the host; None where nobody could."""


@asynccontextmanager
async def assemble(
    options: argparse.Namespace, *, can_ask: bool, tell: Callable[..., None] | None = None, keyless: bool = False
) -> AsyncIterator[App]:
    """Build everything, run the session for the life of the block, and take it all down in order.

    What the user should know about it is said by `tell`, or on stderr. `keyless`: a key that is missing can be given
    later.
    """
    ground = Ground.survey(options, tell)
    wanted = _wanted(ground, one_shot=not can_ask)
    trace = _trace(ground) if options.trace else None
    registry, bus = Registry(), Bus()
    chooser = Chooser(ground, registry, bus, lambda: session.extensions, extensible=wanted.any(), keyless=keyless)
    log, active = _open(ground, chooser)
    journal = Journal(log, ground.store, ground.mask, ground.config.durability)
    with closing(journal):
        questions = Questions(bus)
        approver = UserApprover(questions) if can_ask else None
        jail = Jail(ground.cwd, on=options.jail or ground.config.jail)
        history = FileHistory(journal, ground.home.snapshots)
        skills = _skills(ground)
        workspace = Workspace(
            ground.cwd,
            jail,
            _outputs(ground.home),
            lambda call, path: ground.tell(history.remember(call, path)),
            conceal=lambda path: _conceal(path, ground.mask),
        )
        shell = Shell()
        offered = builtin_tools(workspace, shell, skills)
        parts = Parts(
            registry=registry,
            journal=journal,
            active=active,
            cwd=str(ground.cwd),
            system=_system(ground, skills),
            permissions=Permissions(options.permissions or ground.config.permissions or "yolo", approver),
            jail=jail,
            undo=lambda: _undo(history),
            switch=chooser.switch,
            shell=next(tool for tool in offered if tool.name == "bash"),
            one_shot=not can_ask,
        )
        session = Session(_as_configured(parts, ground), bus)
        async with shell, trace.writing() if trace else nullcontext():
            tools = _chosen_tools(ground, offered)
            commands = builtin_commands(_command_parts(ground, session, skills, chooser.models))
            sources = Sources(session, ground, chooser, history, questions if can_ask else None, trace)
            with registry.publish(BUILTIN, (*tools, *commands)):
                try:
                    async with extended(sources, wanted, approver) as services, session.running():
                        yield App(session, questions, ground.store, chooser.models, ground.mask, skills, services)
                finally:
                    await session.active.provider.aclose()


def _as_configured(parts: Parts, ground: Ground) -> Parts:
    """With what the flags and the files say of how the loop works."""
    options, config = ground.options, ground.config
    return structs.replace(
        parts,
        retry=RetryPolicy(config.retry.attempts, config.retry.base_delay),
        reasoning=options.reasoning or config.reasoning,
        max_steps=options.max_steps or config.max_steps,
        compact_at=config.compact_at,
        guards=GuardRules(options.strict_guards, config.guards.on_failure, config.guards.by_name),
    )


def _wanted(ground: Ground, *, one_shot: bool) -> Wanted:
    options = ground.options
    return Wanted(
        flags=tuple(options.ext),
        only_flags=options.no_ext,
        home=ground.home,
        cwd=ground.cwd,
        choices=ground.config.extensions,
        watch=options.watch_ext,
        one_shot=one_shot,
        trust=options.trust,
    )


def _trace(ground: Ground) -> "Trace":
    """Before there is a session: a file that cannot be written is a mistake of the user. Raises `UsageError`."""
    from hilt.extensions.trace import Trace  # hardly anybody wants one
    from hilt.extensions.trace_line import Secrets
    from hilt.packages.environment import secrets_of

    secrets = Secrets((ground.mask, Mask(secrets_of(os.environ))))
    return Trace.open(Path(ground.options.trace), secrets, ground.tell)


def _open(ground: Ground, chooser: Chooser) -> tuple[SessionLog, ActiveModel]:
    """The session to go on with or a new one, and the model that answers in it."""
    options, config = ground.options, ground.config
    log = existing_log(options, ground.store, ground.cwd, ground.mask, config.durability)
    active = chooser.start(log)
    info = active.info
    log = log or new_log(options, ground.store, ground.cwd, info, ground.mask, config.durability)
    ground.tell(active.notice, *log.recovered, *ground.credentials.warnings)
    if log.model != (info.provider, info.id):
        log.append(ModelRecord(info.provider, info.id))
    return log, active


def _command_parts(
    ground: Ground, session: Session, skills: tuple[Skill, ...], models: Callable[[], list[ModelInfo]]
) -> CommandParts:
    return CommandParts(
        registry=session.parts.registry,
        cwd=str(ground.cwd),
        journal=session.parts.journal,
        store=ground.store,
        skills=skills,
        models=models,
        model=lambda: session.active.info,
        usage=lambda: session.transcript.usage,
        extensions=lambda: session.extensions,
    )


def _skills(ground: Ground) -> tuple[Skill, ...]:
    if ground.options.no_skill:
        return ()
    found = find_skills(ground.home.root, ground.cwd, Path.home())
    ground.tell(*found.problems)
    return with_shipped(found.skills)


def _system(ground: Ground, skills: tuple[Skill, ...]) -> str:
    found = find_instructions(ground.home.root, ground.cwd)
    return system_prompt(
        PromptParts(
            cwd=ground.cwd,
            base=ground.options.system_prompt or read_system(ground.home.root) or "",
            appended=ground.options.append_system_prompt,
            instructions=[(str(instructions.path), instructions.text) for instructions in found],
            skills=manifest(skills) if skills else "",
        )
    )


def _chosen_tools(ground: Ground, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    options = ground.options
    if options.no_tools:
        return ()
    if options.tools is None:
        return tools
    wanted = [name.strip() for name in options.tools.split(",") if name.strip()]
    known = {tool.name: tool for tool in tools}
    if unknown := [name for name in wanted if name not in known]:
        ground.tell(f"--tools: no built-in tool is called {', '.join(unknown)}; they are {', '.join(known)}")
    return tuple(known[name] for name in wanted if name in known)


def _outputs(home: Home) -> Path:
    """Where commands write; elsewhere when the home cannot be written, so that they run all the same."""
    if os.access(home.root, os.W_OK):
        return home.outputs
    import tempfile

    return Path(tempfile.mkdtemp(prefix="hilt-outputs-"))


def _conceal(path: Path, mask: Mask) -> None:
    """Blank the keys in a file that is going to be kept."""
    try:
        content = path.read_bytes()
        if (hidden := mask.line(content)) != content:
            path.write_bytes(hidden)
    except OSError:
        path.unlink(missing_ok=True)  # better no file than one with a key in it


def _undo(history: FileHistory) -> str:
    outcomes = history.undo()
    lines = [f"{o.action} {o.path}" + (f": {o.note}" if o.note else "") for o in outcomes]
    return "\n".join(lines) or "there is nothing to undo"
