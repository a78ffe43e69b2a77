"""The composition root: from flags, files and the environment to a running session."""

import argparse
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

from msgspec import Struct

from hilt.agent.bus import Bus
from hilt.agent.interception import GuardRules
from hilt.agent.permissions import Permissions
from hilt.agent.prompt import PromptParts, system_prompt
from hilt.agent.retry import RetryPolicy
from hilt.agent.session import ActiveModel, Parts, Session
from hilt.cli.config import PROJECT_CONFIG, Config, load_config
from hilt.cli.extending import extended
from hilt.cli.home import Home
from hilt.cli.logfile import log_to
from hilt.cli.opening import existing_log, new_log
from hilt.cli.wanted import Wanted
from hilt.commands.builtin import CommandParts, builtin_commands
from hilt.context.instructions import find_instructions, read_system
from hilt.context.skills import Skill, find_skills, manifest
from hilt.errors import ConfigError, UsageError
from hilt.frontends.rpc_approver import RpcApprover
from hilt.frontends.terminal import clean, hanging
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


class Ground(Struct, frozen=True):
    """What a run stands on before there is a session: places, standing choices, keys."""

    options: argparse.Namespace
    home: Home
    cwd: Path
    config: Config
    credentials: Credentials
    catalogue: Catalogue
    store: SessionStore
    mask: Mask

    @classmethod
    def survey(cls, options: argparse.Namespace) -> "Ground":
        home = Home.find()
        try:
            home.prepare()
        except ConfigError as error:
            _tell(f"{error.message}: nothing of this run will be saved ({error.hint})")
        credentials = Credentials(home.auth)
        mask = Mask((*credentials.all_secrets(), options.api_key.strip()))
        log_to(home.log, mask)
        return cls(
            options,
            home,
            Path.cwd(),
            _config(home, Path.cwd()),
            credentials,
            Catalogue.load(home.models),
            SessionStore(home.sessions),
            mask,
        )


@asynccontextmanager
async def assemble(options: argparse.Namespace, *, can_ask: bool) -> AsyncIterator[App]:
    """Build everything, run the session for the life of the block, and take it all down in order."""
    ground = Ground.survey(options)
    chooser = Chooser(ground)
    log, active = _open(ground, chooser)
    with closing(log):
        bus = Bus()
        approver = RpcApprover(bus)
        jail = Jail(ground.cwd, on=options.jail or ground.config.jail)
        history = FileHistory(log, ground.home.snapshots)
        skills = _skills(ground)
        session = Session(
            Parts(
                registry=Registry(),
                log=log,
                active=active,
                cwd=str(ground.cwd),
                system=_system(ground, skills),
                permissions=Permissions(
                    options.permissions or ground.config.permissions or "yolo", approver if can_ask else None
                ),
                jail=jail,
                undo=lambda: _undo(history),
                switch=chooser.switch,
                retry=RetryPolicy(ground.config.retry.attempts, ground.config.retry.base_delay),
                reasoning=options.reasoning or ground.config.reasoning,
                max_steps=options.max_steps or ground.config.max_steps,
                guards=GuardRules(options.strict_guards, ground.config.guards.on_failure, ground.config.guards.by_name),
                one_shot=not can_ask,
            ),
            bus,
        )
        async with Shell() as shell:
            workspace = Workspace(
                ground.cwd,
                jail,
                _outputs(ground.home),
                lambda call, path: _tell(history.remember(call, path)),
                conceal=lambda path: _conceal(path, ground.mask),
            )
            tools = _chosen_tools(options, builtin_tools(workspace, shell, skills))
            commands = builtin_commands(_command_parts(ground, session, skills))
            with session.parts.registry.publish(BUILTIN, (*tools, *commands)):
                try:
                    wanted = _wanted(ground, one_shot=not can_ask)
                    async with extended(session, wanted, approver if can_ask else None), session.running():
                        yield App(session, approver, ground.store, ground.catalogue.all, ground.mask)
                finally:
                    await session.active.provider.aclose()


def _config(home: Home, cwd: Path) -> Config:
    config = load_config(home.config)
    if not (cwd / PROJECT_CONFIG).exists():
        return config
    from hilt.cli.narrowing import narrowed  # 5 ms, and few projects have such a file

    return narrowed(config, cwd / PROJECT_CONFIG, _tell)


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


def _open(ground: Ground, chooser: "Chooser") -> tuple[SessionLog, ActiveModel]:
    """The session to go on with or a new one, and the model that answers in it."""
    options, config = ground.options, ground.config
    log = existing_log(options, ground.store, ground.cwd, ground.mask, config.durability)
    choice = chooser.start(log)
    active = ActiveModel(choice.open(), choice.info)
    log = log or new_log(options, ground.store, ground.cwd, choice.info, ground.mask, config.durability)
    _tell(choice.notice, *log.recovered, *ground.credentials.warnings)
    if log.model != (choice.info.provider, choice.info.id):
        log.append(ModelRecord(choice.info.provider, choice.info.id))
    return log, active


def _command_parts(ground: Ground, session: Session, skills: tuple[Skill, ...]) -> CommandParts:
    return CommandParts(
        registry=session.parts.registry,
        cwd=str(ground.cwd),
        log=session.parts.log,
        store=ground.store,
        skills=skills,
        models=ground.catalogue.all,
        model=lambda: session.active.info,
        usage=lambda: session.transcript.usage,
        extensions=lambda: session.extensions,
    )


class Chooser:
    """Which model answers: at the start by flags and files, later by name."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._first = ""
        """The provider that the flags' key and address are for."""

    def start(self, log: SessionLog | None) -> Choice:
        """A resumed session goes on with its model, unless a flag says otherwise or it cannot be had."""
        options, config = self._ground.options, self._ground.config
        provider, model = log.model if log else ("", "")
        if provider in ("", *LOCAL):
            provider, model = config.provider, config.model
        choice = self._choose(options.provider, options.model, provider, model, flags=True)
        self._first = choice.info.provider
        return choice

    def switch(self, model: str, current: ActiveModel) -> ActiveModel:
        """The model of this name, from the provider in use if it has it, else from the one that does."""
        here = current.info.provider
        serving = self._ground.catalogue.providers_of(model)
        named = canonical(model.replace(":", "/").partition("/")[0])
        anything_goes = here == "ollama" or (bool(self._ground.options.base_url) and here not in LOCAL)
        stay = here in serving or here == named or (anything_goes and not serving and named not in PROVIDERS)
        if stay and here in LOCAL:
            return ActiveModel(current.provider, self._ground.catalogue.find(here, model))
        if not stay and not serving and named not in PROVIDERS:
            raise UsageError(f'unknown model "{model}" (provider="{here}")', hint="`hilt models` lists the known ones")
        # Another vendor must not be shown the key or the address that were given for this one.
        choice = self._choose(here if stay else "", model, "", "", flags=stay and here == self._first)
        for secret in self._ground.credentials.all_secrets():
            self._ground.mask.add(secret)  # one may have been stored since the start
        return ActiveModel(choice.open(), choice.info, choice.notice)

    def _choose(
        self, provider: str, model: str, configured_provider: str, configured_model: str, *, flags: bool
    ) -> Choice:
        options, config = self._ground.options, self._ground.config
        if not configured_provider and provider:
            configured_provider = provider
        # An address belongs to the provider it was configured for: another's key must not be sent there.
        own = canonical(configured_provider) == canonical(config.provider)
        return choose(
            provider=provider,
            model=model,
            api_key=options.api_key if flags else "",
            base_url=options.base_url if flags else "",
            script=Path(options.script) if options.script and flags else None,
            credentials=self._ground.credentials,
            catalogue=self._ground.catalogue,
            configured_provider=configured_provider,
            configured_model=configured_model,
            configured_base_url=config.base_url if own else "",
        )


def _skills(ground: Ground) -> tuple[Skill, ...]:
    if ground.options.no_skill:
        return ()
    found = find_skills(ground.home.root, ground.cwd, Path.home())
    _tell(*found.problems)
    return tuple(found.skills)


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


def _tell(*notices: str) -> None:
    for notice in filter(None, notices):
        sys.stderr.write(clean(f"hilt: {hanging(notice)}\n"))
