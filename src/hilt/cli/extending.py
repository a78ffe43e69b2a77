"""Extensions for a session: where they are looked for, and the host that runs them."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from hilt.agent.session import Session
from hilt.cli.home import Home

if TYPE_CHECKING:
    from hilt.packages.discovery import Discovery


class Wanted(Struct, frozen=True):
    """Which extensions a run asks for."""

    flags: tuple[str, ...]
    only_flags: bool
    home: Home
    cwd: Path
    watch: bool
    one_shot: bool

    def any(self) -> bool:
        """Whether there could be some. Most runs end here: what runs extensions takes 20 ms to import."""
        return bool(self.flags) or (not self.only_flags and (self.home.extensions.is_dir() or self.project.is_dir()))

    @property
    def project(self) -> Path:
        return self.cwd / ".hilt" / "extensions"

    def discover(self) -> "Discovery":
        from hilt.packages.discovery import discover

        return discover(
            self.flags,
            self.home.extensions,
            self.project,
            only_flags=self.only_flags,
            path=os.environ.get("PATH", os.defpath),
            cwd=self.cwd,
        )


@asynccontextmanager
async def extended(session: Session, wanted: Wanted) -> AsyncIterator[None]:
    """Run the session's extensions for the life of the block; it begins before they have started."""
    # One that lasts may be told later to look again; one shot will not be.
    if wanted.one_shot and not wanted.any():
        yield
        return
    from hilt.agent.guests import Guests
    from hilt.extensions.agent import House, Places
    from hilt.extensions.handshake import Surroundings
    from hilt.extensions.host import ExtensionHost
    from hilt.transport.orphans import adopt_orphans
    from hilt.transport.process import started

    info = session.active.info
    house = House(
        agent=Guests(session),
        open=started,
        places=Places(wanted.home.logs, wanted.home.data, wanted.home.outputs),
        surroundings=Surroundings(info.provider, info.id, session.parts.cwd),
        attended=not wanted.one_shot,
    )
    host = ExtensionHost(
        wanted.discover,
        house,
        session.parts.registry,
        session.parts.log.meta.id,
        path=os.environ.get("PATH", os.defpath),
        settling=5.0 if wanted.one_shot else 3.0,
        watch=wanted.watch,
    )
    async with asyncio.TaskGroup() as group:
        orphans = group.create_task(adopt_orphans(), name="orphans") if sys.platform == "linux" else None
        try:
            with session.bus.subscribed(host):
                async with host.running():
                    session.extensions = host
                    yield
        finally:
            if orphans:
                orphans.cancel()
