"""Extensions for a session: the host that runs them, for as long as it lasts."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from hilt.agent.questions import Questions
from hilt.agent.session import Session
from hilt.cli.chooser import Chooser
from hilt.cli.ground import Ground
from hilt.cli.wanted import Wanted
from hilt.errors import PackageError
from hilt.frontends.approver import UserApprover
from hilt.model.extensions import ExtensionStatus
from hilt.sessions.undo import FileHistory

if TYPE_CHECKING:
    from hilt.extensions.services.answering import Services
    from hilt.extensions.trace import Trace
    from hilt.packages.choices import Choices
    from hilt.packages.discovery import Untrusted
    from hilt.packages.trust.screening import Gate


class Sources(Struct, frozen=True):
    """What stands behind all that extensions can ask for."""

    session: Session
    ground: Ground
    chooser: Chooser
    history: FileHistory
    questions: Questions | None
    """None where nobody can be asked."""
    trace: "Trace | None" = None
    """Where what is said goes as well."""


@asynccontextmanager
async def extended(sources: Sources, wanted: Wanted, approver: UserApprover | None) -> AsyncIterator["Services | None"]:
    """Run the session's extensions for the life of the block; it begins before they have started.

    Gives what they, and others, can ask for; None where nobody could.
    """
    # One that lasts may be told later to look again; one shot will not be.
    if wanted.one_shot and not wanted.any():
        yield None
        return
    from hilt.agent.guests import Guests
    from hilt.cli.facilities import facilities, minds_of
    from hilt.extensions.agent import House, Places, Surroundings
    from hilt.extensions.host import RunningExtensions
    from hilt.extensions.memory import Memory
    from hilt.providers.vendors import KEYS
    from hilt.transport.orphans import adopt_orphans
    from hilt.transport.process import started

    session, minds = sources.session, minds_of(sources)
    choices = dict(wanted.choices)
    finder = structs.replace(wanted, choices=choices).finder()
    info = session.active.info
    house = House(
        agent=Guests(session),
        open=started,
        places=Places(
            wanted.home.root, wanted.home.logs, wanted.home.data, wanted.home.outputs, wanted.home.environments
        ),
        surroundings=Surroundings(info.provider, info.id, session.parts.cwd),
        session_id=lambda: session.parts.log.meta.id,
        attended=not wanted.one_shot,
        memory=Memory(wanted.home.descriptions),
        consent=partial(_consent, finder.gate, approver) if approver else None,
        keep=partial(_keep, sources.ground, choices),
        keys=KEYS,
        facilities=facilities(sources, minds),
        trace=sources.trace,
    )
    host = RunningExtensions(
        finder,
        house,
        session.parts.registry,
        settling=5.0 if wanted.one_shot else 3.0,
        watch=wanted.watch,
    )
    async with asyncio.TaskGroup() as group:
        orphans = group.create_task(adopt_orphans(), name="orphans") if sys.platform == "linux" else None
        try:
            with session.bus.subscribed(host):
                async with host.running():
                    session.extensions = host
                    try:
                        async with minds.working():
                            yield host.services
                    finally:
                        # What could not even be read has no source, and was not seen.
                        _remember(wanted.home.seen, tuple(one for one in host.statuses() if one.source))
        finally:
            if orphans:
                orphans.cancel()


def _remember(seen: Path, statuses: tuple[ExtensionStatus, ...]) -> None:
    from hilt.packages.sightings import remember

    try:
        remember(seen, statuses)
    except PackageError:
        pass  # the home cannot be written, which has been said; `hilt ext list` knows less, and that is all


def _keep(ground: Ground, choices: "dict[str, Choices]", name: str, on: bool) -> None:
    """As `hilt ext enable` and `disable` do, and for those who look at the choices of this session. Raises `HiltError`.

    What a project takes away of its own stays taken away.
    """
    from hilt.cli.config import PROJECT_CONFIG, load_config
    from hilt.cli.configuring import choose
    from hilt.cli.narrowing import narrowed
    from hilt.packages.choices import NONE

    choose(ground.home.config, name, {"enabled": on})
    config = load_config(ground.home.config)
    if (project := ground.cwd / PROJECT_CONFIG).exists():
        config = narrowed(config, project, lambda _: None)  # what is wrong with it was said at the start
    chosen: Choices = config.extensions.get(name, NONE)
    choices[name] = structs.replace(choices.get(name, NONE), enabled=chosen.enabled)


async def _consent(gate: "Gate", approver: UserApprover, barred: "tuple[Untrusted, ...]") -> bool:
    """Ask whoever is at the other end, once, and keep a yes. Raises `HiltError`."""
    from hilt.packages.trust.trusting import accept, propose

    proposal = await asyncio.to_thread(propose, gate, barred)
    if not proposal.entries:
        raise PackageError("; ".join(proposal.problems), hint="remove or correct what cannot be trusted")
    if not await approver.confirm(str(gate.folder), proposal.commands, proposal.text):
        return False
    await asyncio.to_thread(accept, gate, proposal)
    return True
