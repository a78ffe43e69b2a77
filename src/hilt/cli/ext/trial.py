"""Starting extensions one after another, only to see whether they come up and what they offer."""

import asyncio
from pathlib import Path

import msgspec
from msgspec import Struct

from hilt.cli.ext.agreeing import progress
from hilt.cli.ext.listing import Row
from hilt.cli.ext.picking import Only
from hilt.cli.ext.site import Site
from hilt.errors import PackageError, UsageError
from hilt.extensions.agent import House, Places, Surroundings
from hilt.extensions.host import RunningExtensions
from hilt.extensions.memory import Memory
from hilt.model.actions import Action
from hilt.model.content import Args
from hilt.model.contributions import ToolOutput
from hilt.model.events import Event, Noticed
from hilt.model.extensions import ExtensionStatus
from hilt.packages.discovery import Found
from hilt.packages.finder import Finder
from hilt.packages.sightings import remember
from hilt.providers.vendors import KEYS
from hilt.registry.registry import Registry
from hilt.transport.process import started

_PATIENCE = 130.0
"""Seconds; a manifest may ask for 120 to start in."""


class Trial(Struct, frozen=True):
    status: ExtensionStatus
    notices: tuple[str, ...]
    """What the user would have been told."""


def try_out(site: Site, finder: Finder, found: tuple[Found, ...]) -> list[Trial]:
    """In the order given, one at a time, telling which one it is at; what was seen is remembered."""
    places = Places(site.home.root, site.home.logs, site.home.data, site.home.outputs, site.home.environments)
    trials = asyncio.run(_each(site, places, finder, found))
    try:
        remember(site.home.seen, [trial.status for trial in trials])
    except PackageError:
        pass  # the home cannot be written: the list knows less afterwards, and that is all
    return trials


def try_staged(site: Site, found: Found, beside: Path) -> Trial:
    """One that is not installed yet: what it leaves of itself lies there, too, and goes with it."""
    places = Places(site.home.root, beside / "logs", beside / "data", beside / "outputs", site.home.environments)
    [trial] = asyncio.run(_each(site, places, site.finder(), (found,)))
    return trial


def tried(site: Site, rows: list[Row]) -> list[Row]:
    """The rows, with what came of starting those that would run."""
    finder = site.finder()
    trials = {trial.status.name: trial.status for trial in try_out(site, finder, finder.all().found)}
    return [_seen(row, trials[row.name]) if row.name in trials else row for row in rows]


def _seen(row: Row, status: ExtensionStatus) -> Row:
    offered = {"tools": status.tools, "commands": status.commands, "guards": status.guards, "also": status.also}
    return msgspec.structs.replace(
        row,
        version=row.version or status.version,
        state=status.state,
        reason=status.reason,
        start_ms=status.start_ms,
        contributes={kind: list(names) for kind, names in offered.items() if names},
    )


async def _each(site: Site, places: Places, finder: Finder, found: tuple[Found, ...]) -> list[Trial]:
    trials = []
    for one in found:
        progress(f"starting {one.name}…")
        trials.append(await _try(site, places, finder, one))
    return trials


async def _try(site: Site, places: Places, finder: Finder, found: Found) -> Trial:
    nobody = _Nobody()
    surroundings, memory = Surroundings("", "", str(site.cwd)), Memory(site.home.descriptions)
    house = House(nobody, started, places, surroundings, lambda: "trial", attended=False, memory=memory, keys=KEYS)
    host = RunningExtensions(Only(found, finder), house, Registry(), settling=_PATIENCE)
    async with host.running():
        await host.settled()
        [status] = host.statuses()
    return Trial(status, tuple(nobody.notices))


class _Nobody:
    """There is no agent: what an extension asks for is refused or left undone."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    async def apply(self, actions: tuple[Action, ...], source: str) -> None:
        pass

    async def slash(self, text: str, source: str) -> None:  # noqa: ARG002
        raise UsageError("there are no commands: it is only being tried")

    async def call_tool(self, name: str, args: Args, source: str, chain: tuple[str, ...]) -> ToolOutput:  # noqa: ARG002
        return ToolOutput.of("there are no tools: it is only being tried", is_error=True)

    async def tell(self, event: Event) -> None:
        if isinstance(event, Noticed) and event.level == "warn":
            self.notices.append(event.message)
