"""The composition root: from flags, files and the environment to a running session."""

import argparse
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from hilt.agent.bus import Bus
from hilt.agent.permissions import Permissions
from hilt.agent.prompt import PromptParts, system_prompt
from hilt.agent.retry import RetryPolicy
from hilt.agent.session import ActiveModel, Parts, Session
from hilt.cli.config import Config, load_config
from hilt.cli.home import Home
from hilt.cli.logfile import log_to
from hilt.cli.opening import existing_log, new_log
from hilt.commands.builtin import CommandParts, builtin_commands
from hilt.context.instructions import find_instructions, read_system
from hilt.context.skills import Skill, find_skills, manifest
from hilt.errors import UsageError
from hilt.frontends.rpc_approver import RpcApprover
from hilt.model.contributions import Tool
from hilt.model.masking import Mask
from hilt.model.models import ModelInfo
from hilt.providers.catalogue import Catalogue
from hilt.providers.choose import Choice, choose
from hilt.providers.credentials import Credentials
from hilt.providers.vendors import LOCAL, PROVIDERS, canonical
from hilt.registry.registry import Registry
from hilt.registry.snapshot import Owner
from hilt.sessions.log import SessionLog
from hilt.sessions.records import ModelRecord
from hilt.sessions.store import SessionStore
from hilt.sessions.undo import FileHistory
from hilt.tools import builtin_tools
from hilt.tools.jail import Jail
from hilt.tools.shell import Shell
from hilt.tools.workspace import Workspace

BUILTIN = Owner("hilt", builtin=True)


class App(Struct, frozen=True):
    """A session and what its face needs beside it."""

    session: Session
    approver: RpcApprover
    store: SessionStore
    models: Callable[[], list[ModelInfo]]
    mask: Mask


@asynccontextmanager
async def assemble(options: argparse.Namespace, *, can_ask: bool) -> AsyncIterator[App]:
    """Build everything, run the session for the life of the block, and take it all down in order."""
    home, cwd = Home.find(), Path.cwd()
    home.prepare()
    config = load_config(home.config)
    credentials = Credentials(home.auth)
    mask = Mask((*credentials.all_secrets(), options.api_key))
    log_to(home.log, mask)
    catalogue = Catalogue.load(home.models)
    store = SessionStore(home.sessions)
    chooser = Chooser(options, config, credentials, catalogue)

    log = existing_log(options, store, cwd, mask, config.durability)
    choice = chooser.start(log)
    log = log or new_log(options, store, cwd, choice.info, mask, config.durability)
    try:
        _tell(choice.notice, *log.recovered)
        if log.model != (choice.info.provider, choice.info.id):
            log.append(ModelRecord(choice.info.provider, choice.info.id))
        active = ActiveModel(choice.open(), choice.info)
        bus = Bus()
        approver = RpcApprover(bus)
        permissions = Permissions(options.permissions or "yolo", approver if can_ask else None)
        jail = Jail(cwd, on=options.jail)
        history = FileHistory(log, home.snapshots)
        skills = _skills(options, home, cwd)
        registry = Registry()
        parts = Parts(
            registry=registry,
            log=log,
            active=active,
            cwd=str(cwd),
            system=_system(options, home, cwd, skills),
            permissions=permissions,
            jail=jail,
            undo=lambda: _undo(history),
            switch=chooser.switch,
            retry=RetryPolicy(config.retry.attempts, config.retry.base_delay),
            reasoning=options.reasoning or config.reasoning,
            max_steps=options.max_steps or config.max_steps,
        )
        session = Session(parts, bus)
        async with Shell() as shell:
            workspace = Workspace(cwd, jail, home.outputs, lambda call, path: _tell(history.remember(call, path)))
            tools = _chosen_tools(options, builtin_tools(workspace, shell, skills))
            commands = builtin_commands(
                CommandParts(
                    registry=registry,
                    cwd=str(cwd),
                    log=log,
                    store=store,
                    skills=skills,
                    models=catalogue.all,
                    model=lambda: session.active.info,
                    usage=lambda: session.transcript.usage,
                )
            )
            with registry.publish(BUILTIN, (*tools, *commands)):
                async with session.running():
                    yield App(session, approver, store, catalogue.all, mask)
        await session.active.provider.aclose()
    finally:
        log.close()


class Chooser(Struct, frozen=True):
    """Which model answers: at the start by flags and files, later by name."""

    options: argparse.Namespace
    config: Config
    credentials: Credentials
    catalogue: Catalogue

    def start(self, log: SessionLog | None) -> Choice:
        """A resumed session goes on with its model, unless a flag says otherwise or it cannot be had."""
        provider, model = log.model if log else ("", "")
        if provider in ("", "demo", "script"):
            provider, model = self.config.provider, self.config.model
        options = self.options
        return choose(
            provider=options.provider,
            model=options.model,
            api_key=options.api_key,
            base_url=options.base_url,
            script=Path(options.script) if options.script else None,
            credentials=self.credentials,
            catalogue=self.catalogue,
            configured_provider=provider,
            configured_model=model,
            configured_base_url=self.config.base_url,
        )

    def switch(self, model: str, current: ActiveModel) -> ActiveModel:
        """The model of this name, from the provider in use if it has it, else from the one that does."""
        serving = self.catalogue.providers_of(model)
        here = current.info.provider
        anything_goes = here == "ollama" or (bool(self.options.base_url) and here not in LOCAL)
        if here in serving or (anything_goes and not serving):
            return ActiveModel(current.provider, self.catalogue.find(here, model))
        if not serving and canonical(model.replace(":", "/").partition("/")[0]) not in PROVIDERS:
            raise UsageError(f'unknown model "{model}" (provider="{here}")', hint="`hilt models` lists the known ones")
        # Another vendor must not be shown the key or the address that were given for this one.
        choice = choose(
            provider="",
            model=model,
            api_key="",
            base_url="",
            script=None,
            credentials=self.credentials,
            catalogue=self.catalogue,
        )
        return ActiveModel(choice.open(), choice.info, choice.notice)


def _skills(options: argparse.Namespace, home: Home, cwd: Path) -> tuple[Skill, ...]:
    if options.no_skill:
        return ()
    found = find_skills(home.root, cwd, Path.home())
    _tell(*found.problems)
    return tuple(found.skills)


def _system(options: argparse.Namespace, home: Home, cwd: Path, skills: tuple[Skill, ...]) -> str:
    return system_prompt(
        PromptParts(
            cwd=cwd,
            base=options.system_prompt or read_system(home.root) or "",
            appended=options.append_system_prompt,
            instructions=[(str(found.path), found.text) for found in find_instructions(home.root, cwd)],
            skills=manifest(skills) if skills else "",
        )
    )


def _chosen_tools(options: argparse.Namespace, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    if options.no_tools:
        return ()
    if options.tools is None:
        return tools
    wanted = [name.strip() for name in options.tools.split(",") if name.strip()]
    known = {tool.name: tool for tool in tools}
    if unknown := [name for name in wanted if name not in known]:
        _tell(f"--tools: no built-in tool is called {', '.join(unknown)}; they are {', '.join(known)}")
    return tuple(known[name] for name in wanted if name in known)


def _undo(history: FileHistory) -> str:
    outcomes = history.undo()
    lines = [f"{o.action} {o.path}" + (f": {o.note}" if o.note else "") for o in outcomes]
    return "\n".join(lines) or "there is nothing to undo"


def _tell(*notices: str) -> None:
    for notice in filter(None, notices):
        sys.stderr.write(f"hilt: {notice}\n")
