"""All extensions of one session: found, started side by side, listed, reloaded, told, stopped."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NoReturn, Protocol

from msgspec import structs

from hilt.errors import HiltError, UsageError
from hilt.extensions import idle
from hilt.extensions.account import Account
from hilt.extensions.agent import House
from hilt.extensions.extension import Extension
from hilt.extensions.frames.fanout import Fanout
from hilt.extensions.methods.happenings import Happenings
from hilt.extensions.services.answering import Services
from hilt.extensions.services.asking import Backing
from hilt.extensions.services.ports import Registered
from hilt.extensions.supervisor import Supervisor
from hilt.extensions.watch import Watch
from hilt.model.conversation import Message
from hilt.model.events import Event, ExtensionChanged, Noticed
from hilt.model.extensions import ExtensionState, ExtensionStatus, Reloaded, no_such_extension
from hilt.packages.discovery import Discovery, Found, Problem, Untrusted
from hilt.packages.manifest import MANIFESTS
from hilt.packages.members import shown
from hilt.registry.registry import Registry

_HEARING = 1.0
"""Seconds for all together."""
_STOPPING = 2.0
"""Seconds, beyond the longest grace, after which what is still being stopped is killed."""


class Finds(Protocol):
    """Where extensions come from; `packages.finder.Finder` is one. Both may block for a while."""

    def all(self) -> Discovery: ...

    def again(self, found: Found) -> Found:
        """The same one as it is on the disk now. Raises `ManifestError`."""


class RunningExtensions:
    """The agent's port `Extensions`. Everything happens within `running`."""

    def __init__(
        self,
        finds: Finds,
        house: House,
        registry: Registry,
        *,
        settling: float = 3.0,
        watch: bool = False,
    ) -> None:
        """`settling`: how many seconds from the start those that are still coming are waited for, where it matters."""
        self._finds = finds
        self._house = house
        self._registry = registry
        self._settling = settling
        self._watching = watch
        self._supervisors: dict[str, Supervisor] = {}
        self._retired: list[Supervisor] = []
        """Those on their way out."""
        self._disabled: tuple[Found, ...] = ()
        self._off: set[str] = set()
        """Those that the user disabled for this session alone."""
        self._accounts: dict[str, Account] = {}
        """Also of those that were stopped: they may be started again."""
        self._problems: tuple[Problem, ...] = ()
        self._untrusted: tuple[Untrusted, ...] = ()
        self._fanout = Fanout(house.session_id(), house.surroundings.cwd)
        self._happenings = Happenings(self._messages)
        self.services: Services | None = None
        """What extensions can ask for; None where nothing stands behind them."""
        if house.facilities:
            self.services = Services(Backing(house.facilities, house.agent, registry.snapshot, self))
            self._house = structs.replace(house, services=self.services)
        self.before_asking = self._fanout.flush
        self._known_conflicts: set[str] = set()
        self._published = asyncio.Event()
        self._started = asyncio.get_running_loop().time()
        self._group: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._watchers: set[asyncio.Task[None]] = set()
        self._reloading = asyncio.Lock()
        self._closing = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator["RunningExtensions"]:
        """Start all that can be found and go on at once; stop them at the end, in a few seconds at most."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            conflicts = group.create_task(self._report_conflicts(), name="extension conflicts")
            discovery = self._look()  # nothing else is waiting yet
            self._untrusted = discovery.untrusted
            for found in discovery.found:
                self._start(found)
            for problem in discovery.problems:
                await self._house.agent.tell(Noticed("warn", idle.told(problem)))
            consent = group.create_task(self._seek_consent(), name="trust of the folder")
            try:
                yield self
            finally:
                conflicts.cancel()
                consent.cancel()
                await self._stop()

    async def __call__(self, event: Event) -> None:
        """A sink of the agent's bus."""
        self._happenings.note(event)
        await self._fanout(event)

    # The port

    def statuses(self) -> tuple[ExtensionStatus, ...]:
        running = {name: supervisor.status() for name, supervisor in self._supervisors.items()}
        unusable = [problem for problem in self._problems if problem.name and problem.name not in running]
        barred = [one for one in self._untrusted if one.found.name not in running]
        return (
            *running.values(),
            *(self._idle(one, "disabled", idle.why_disabled(one)) for one in self._disabled),
            *(self._idle(one.found, "untrusted", f"{one.reason} ({idle.CONSENT})") for one in barred),
            *map(idle.unusable, unusable),
        )

    def _idle(self, found: Found, state: ExtensionState, reason: str) -> ExtensionStatus:
        return idle.status(found, state, reason, self._account(found.name), self._house.places)

    async def reload(self, name: str = "") -> Reloaded:
        return await self._renew({name} if name else None, missing=self._unknown)

    async def enable(self, name: str) -> str:
        if name in self._supervisors:
            return f"{name} is enabled already: {self._supervisors[name].state}"
        if not any(one.name == name for one in self._disabled):
            self._unknown(name)
        async with self._reloading:
            self._off.discard(name)
            await self._keep_choice(name, on=True)
        outcome = await self._renew({name})
        supervisor = self._supervisors.get(name)
        if supervisor is None:
            self._unknown(name)
        problem = "".join(f"; {one}" for one in outcome.problems)
        return f"{name} is enabled, and {supervisor.state}{_because(supervisor.reason)}{problem}"

    async def disable(self, name: str) -> str:
        if any(one.name == name for one in self._disabled):
            return f"{name} is disabled already"
        if name not in self._supervisors and not any(one.found.name == name for one in self._untrusted):
            self._unknown(name)
        async with self._reloading:
            kept = await self._keep_choice(name, on=False)
            supervisor = self._supervisors.get(name)
            if supervisor:
                self._disabled = (*self._disabled, idle.switched_off(supervisor.found))
                self._retire(supervisor)
                await self._gone(supervisor)
        if supervisor is None:
            await self._renew({name})  # it did not run, but is listed as what it is no longer
        await self._house.agent.tell(ExtensionChanged(name, "disabled"))
        return f"{name} is disabled{kept}"

    async def _keep_choice(self, name: str, *, on: bool) -> str:
        """For later sessions too, where that can be; says so where it cannot. Raises `HiltError`."""
        source = next((one.source for one in self.statuses() if one.name == name), "")
        if keep := self._house.keep if source != "flag" else None:
            await asyncio.to_thread(keep, name, on)
            return ""
        if not on:
            self._off.add(name)
        return " for this session: --ext starts it again" if source == "flag" else " for this session"

    async def _renew(self, only: set[str] | None, missing: Callable[[str], None] = lambda _: None) -> Reloaded:
        """Start anew all, or those of these names that there are; the others are `missing`."""
        async with self._reloading:
            discovery = await asyncio.to_thread(self._look)
            found = {one.name: one for one in discovery.found}
            broken = [one for one in self._supervisors.values() if one.name not in found]
            broken = [one for one in broken if not _left(one.found, discovery, renamed=only is None)]
            # Each of these says itself what is wrong, and its process goes on.
            found |= {one.name: one.found for one in broken}
            said = {shown(one.found.where) for one in broken}
            names = [name for name in dict.fromkeys((*self._supervisors, *found)) if only is None or name in only]
            for name in (only or set()).difference(names):
                missing(name)
            wanted = [problem for problem in discovery.problems if only is None or problem.name in only]
            problems = [idle.told(problem) for problem in wanted if problem.where not in said]
            outcome = await self._reload(names, found, problems)
            self._untrusted = discovery.untrusted  # not before: what is trusted now would be nowhere until it starts
            return outcome

    async def settled(self) -> None:
        deadline = self._started + self._settling
        try:
            async with asyncio.timeout_at(deadline):
                for supervisor in tuple(self._supervisors.values()):
                    await supervisor.leaves("starting")
        except TimeoutError:
            pass

    async def caught_up(self) -> None:
        running = [one for supervisor in self._supervisors.values() if (one := supervisor.current)]
        try:
            async with asyncio.timeout(_HEARING), asyncio.TaskGroup() as group:
                for extension in running:
                    group.create_task(extension.caught_up())
        except TimeoutError:
            pass

    def panel_key(self, extension: str, panel_id: str, key: str, text: str = "") -> None:
        if process := self._process(extension):
            process.panel_key(panel_id, key, text)

    def panel_resize(self, extension: str, panel_id: str, width: int, height: int) -> None:
        if process := self._process(extension):
            process.panel_resize(panel_id, width, height)

    def panel_closed(self, extension: str, panel_id: str) -> None:
        if process := self._process(extension):
            process.panel_closed(panel_id)

    # What supervisors tell

    def joined(self, extension: Extension) -> None:
        self._fanout.greet(extension)

    def published(self) -> None:
        running = [one for supervisor in self._supervisors.values() if (one := supervisor.current)]
        self._fanout.listen(running)
        self._happenings.listen(running)
        self._published.set()

    # Starting, reloading, stopping

    def _look(self) -> Discovery:
        discovery = self._finds.all()
        if self._off:
            kept = tuple(one for one in discovery.found if one.name not in self._off)
            off = tuple(idle.switched_off(one) for one in discovery.found if one.name in self._off)
            discovery = structs.replace(discovery, found=kept, disabled=(*discovery.disabled, *off))
        self._disabled, self._problems = discovery.disabled, discovery.problems
        return discovery

    async def _seek_consent(self) -> None:
        """Tell of what came with the folder and does not run; start it once somebody who was asked agrees."""
        if not self._untrusted:
            return
        barred, consent = self._untrusted, self._house.consent
        await self._house.agent.tell(Noticed("warn", idle.barred_here(barred)))
        try:
            if consent and await consent(barred):
                outcome = await self._renew({one.found.name for one in barred})
                for problem in outcome.problems:
                    await self._house.agent.tell(Noticed("warn", problem))
        except HiltError as error:
            # There is nothing that could be agreed to, or the answer could not be kept.
            hint = f" ({error.hint})" if error.hint else ""
            await self._house.agent.tell(Noticed("warn", f"not trusted: {error.message}{hint}"))

    def _start(self, found: Found) -> Supervisor:
        supervisor = Supervisor(found, self._house, self._registry, self, self._account(found.name))
        self._supervisors[supervisor.name] = supervisor
        self._keep(self._running, supervisor.run(), f"supervisor of {supervisor.name}")
        if self._watching:
            self._keep(self._watchers, self._watch(supervisor), f"watch of {supervisor.name}")
        return supervisor

    def _keep(self, tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None], name: str) -> None:
        assert self._group
        task = self._group.create_task(work, name=name)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _reload(self, names: list[str], found: dict[str, Found], problems: list[str]) -> Reloaded:
        stopped = 0
        async with asyncio.TaskGroup() as group:
            replacing = []
            for name in names:
                supervisor = self._supervisors.get(name)
                if supervisor is None:
                    group.create_task(self._start_alone(found[name]))
                elif name in found:
                    replacing.append(group.create_task(supervisor.reload(self._again(found[name]))))
                else:
                    stopped += 1
                    self._retire(supervisor)
        for task in replacing:
            outcome = task.result()
            stopped += outcome.stopped
            if outcome.problem:
                problems.append(outcome.problem)
        loaded = [self._supervisors[name] for name in names if name in self._supervisors]
        ready = sum(supervisor.state == "ready" for supervisor in loaded)
        return Reloaded(stopped, len(loaded), ready, tuple(problems))

    async def _start_alone(self, found: Found) -> None:
        """Start it, and wait until that is done; but not before the last one of its name has gone."""
        for one in self._retired:
            if one.name == found.name:
                await one.over.wait()
        if not self._closing:
            await self._start(found).leaves("starting")

    def _again(self, found: Found) -> Callable[[], Found]:
        return lambda: self._finds.again(found)

    def _retire(self, supervisor: Supervisor) -> None:
        supervisor.stop()
        del self._supervisors[supervisor.name]
        self._retired = [*(one for one in self._retired if one.state != "stopped"), supervisor]
        self.published()

    async def _gone(self, supervisor: Supervisor) -> None:
        """Wait until nothing of it is left that could offer or guard anything; not for ever."""
        try:
            async with asyncio.timeout(supervisor.grace + _STOPPING):
                await supervisor.over.wait()
        except TimeoutError:
            pass

    def _account(self, name: str) -> Account:
        return self._accounts.setdefault(name, Account())

    def _unknown(self, name: str) -> NoReturn:
        for problem in self._problems:
            if problem.name == name:
                raise UsageError(problem.message, hint=problem.hint)
        for one in self._untrusted:
            if one.found.name == name:
                raise UsageError(f"{name} does not run: {one.reason}", hint=idle.CONSENT)
        if any(one.name == name for one in self._disabled):
            raise UsageError(f"{name} is disabled", hint=f"`/ext enable {name}` starts it")
        raise no_such_extension(name, [one.name for one in self.statuses()])

    async def _watch(self, supervisor: Supervisor) -> None:
        found = supervisor.found
        watch = Watch(found)
        while supervisor.state != "stopped":
            await watch.changed()
            if self._supervisors.get(supervisor.name) is not supervisor:
                return
            outcome = await supervisor.reload(self._again(found))
            if supervisor.found.argv != found.argv:  # other files count now
                found = supervisor.found
                watch = Watch(found)
            message = outcome.problem or f"extension {supervisor.name} changed on disk and was reloaded"
            await self._house.agent.tell(Noticed("warn" if outcome.problem else "info", message))

    async def _stop(self) -> None:
        """All at once: the slowest decides how long it takes."""
        self._closing = True
        self._fanout.end()
        for watcher in self._watchers:
            watcher.cancel()
        for supervisor in self._supervisors.values():
            supervisor.stop()
        stopping = (*self._supervisors.values(), *self._retired)
        grace = max((supervisor.grace for supervisor in stopping), default=0.0)
        if self._running:
            await asyncio.wait(self._running, timeout=grace + _STOPPING)
        for task in self._running:
            task.cancel()

    async def _report_conflicts(self) -> None:
        """Say of every name that two claim who has it, once."""
        while True:
            await self._published.wait()
            self._published.clear()
            for conflict in self._registry.snapshot().conflicts:
                what = f"/{conflict.name}" if conflict.kind == "command" else f"{conflict.kind} {conflict.name}"
                told = f"conflict: {conflict.owner} and {conflict.refused} both offer {what}; {conflict.owner} keeps it"
                if told not in self._known_conflicts:
                    self._known_conflicts.add(told)
                    await self._house.agent.tell(Noticed("warn", told))

    def registered(self, name: str) -> Registered:
        """What the extension of this name registered that means something to itself only."""
        extension = self._process(name)
        return extension.methods.registered() if extension else Registered()

    def _messages(self) -> tuple[Message, ...]:
        facilities = self._house.facilities
        return facilities.conversation.messages() if facilities else ()

    def _process(self, name: str) -> Extension | None:
        supervisor = self._supervisors.get(name)
        return supervisor.current if supervisor else None


def _left(one: Found, discovery: Discovery, *, renamed: bool) -> bool:
    """Whether it was removed or switched off, or, if that counts, found under another name."""
    listed = (*discovery.disabled, *discovery.found) if renamed else discovery.disabled
    # One that merely changed goes on as it was when it was trusted.
    barred = any(other.found.where == one.where and not other.known for other in discovery.untrusted)
    return barred or any(other.where == one.where for other in listed) or not _there(one)


def _there(one: Found) -> bool:
    return one.file.exists() if one.file else any((one.where / name).exists() for name in MANIFESTS)


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""
