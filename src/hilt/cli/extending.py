"""Extensions for a session: where they are looked for, and the host that runs them."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from hilt.agent.session import Session
from hilt.cli.home import Home
from hilt.errors import PackageError
from hilt.frontends.rpc_approver import RpcApprover
from hilt.model.extensions import ExtensionStatus

if TYPE_CHECKING:
    from hilt.packages.choices import Choices
    from hilt.packages.discovery import Untrusted
    from hilt.packages.finder import Finder
    from hilt.packages.trust.screening import Gate

PROJECT_PLACES = (".hilt/extensions", ".zot/extensions", ".piglet/extensions")


class Wanted(Struct, frozen=True):
    """Which extensions a run asks for."""

    flags: tuple[str, ...]
    only_flags: bool
    home: Home
    cwd: Path
    choices: Mapping[str, "Choices"]
    watch: bool
    one_shot: bool
    trust: bool
    """What comes with the project may run, whatever it is, for this once."""

    def any(self) -> bool:
        """Whether there could be some. Most runs end here: what runs extensions takes 20 ms to import."""
        places = (self.home.extensions, *(self.cwd / place for place in PROJECT_PLACES))
        # Unlike Path.is_dir, this says no of what one may not even look at.
        there = any(os.path.isdir(place) for place in places)  # noqa: PTH112
        return bool(self.flags) or (not self.only_flags and there)

    def finder(self) -> "Finder":
        from hilt.packages.finder import Finder
        from hilt.packages.trust.screening import Gate
        from hilt.packages.trust.store import TrustStore

        path = os.environ.get("PATH", os.defpath)
        return Finder(
            flags=self.flags,
            user=self.home.extensions,
            projects=tuple(self.cwd / place for place in PROJECT_PLACES),
            only_flags=self.only_flags,
            path=path,
            cwd=self.cwd,
            choices=self.choices,
            lock=self.home.lock,
            gate=Gate(TrustStore(self.home.trust), self.cwd, self.home.trusted, path, self.trust),
        )


@asynccontextmanager
async def extended(session: Session, wanted: Wanted, approver: RpcApprover | None) -> AsyncIterator[None]:
    """Run the session's extensions for the life of the block; it begins before they have started."""
    # One that lasts may be told later to look again; one shot will not be.
    if wanted.one_shot and not wanted.any():
        yield
        return
    from hilt.agent.guests import Guests
    from hilt.extensions.agent import House, Places
    from hilt.extensions.handshake import Surroundings
    from hilt.extensions.host import ExtensionHost
    from hilt.providers.vendors import PROVIDERS
    from hilt.transport.orphans import adopt_orphans
    from hilt.transport.process import started

    info, finder = session.active.info, wanted.finder()
    house = House(
        agent=Guests(session),
        open=started,
        places=Places(
            wanted.home.root, wanted.home.logs, wanted.home.data, wanted.home.outputs, wanted.home.environments
        ),
        surroundings=Surroundings(info.provider, info.id, session.parts.cwd),
        attended=not wanted.one_shot,
        consent=partial(_consent, finder.gate, approver) if approver else None,
        keys=tuple(name for vendor in PROVIDERS.values() for name in vendor.env),
    )
    host = ExtensionHost(
        finder,
        house,
        session.parts.registry,
        session.parts.log.meta.id,
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
                        yield
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


async def _consent(gate: "Gate", approver: RpcApprover, barred: "tuple[Untrusted, ...]") -> bool:
    """Ask whoever is at the other end, once, and keep a yes. Raises `HiltError`."""
    from hilt.packages.trust.trusting import accept, propose

    proposal = await asyncio.to_thread(propose, gate, barred)
    if not proposal.entries:
        raise PackageError("; ".join(proposal.problems), hint="remove or correct what cannot be trusted")
    if not await approver.confirm(str(gate.folder), proposal.commands, proposal.text):
        return False
    await asyncio.to_thread(accept, gate, proposal)
    return True
