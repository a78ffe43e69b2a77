"""Keeps one extension running: starts it, restarts it when it crashes, replaces it when it is reloaded.

What it offers is published exactly as long as its process can be talked to; what it guards keeps its place all the
time. One of the four places where exceptions become values.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from hilt.errors import HiltError, ManifestError
from hilt.extensions.account import Account
from hilt.extensions.agent import House
from hilt.extensions.extension import Extension
from hilt.extensions.guards import Guards
from hilt.extensions.life import Ending, Life
from hilt.extensions.recollection import few
from hilt.extensions.registrations import Watch
from hilt.model.actions import Revive, Settle
from hilt.model.contributions import Tool
from hilt.model.events import ExtensionChanged
from hilt.model.extensions import ExtensionState, ExtensionStatus
from hilt.packages.discovery import Found, log_name
from hilt.registry.registry import Publication, Registry
from hilt.registry.snapshot import Owner

log = logging.getLogger(__name__)

_CRASHES = 5
_WINDOW = 300.0
_FIRST_DELAY = 0.5
_LONGEST_DELAY = 30.0
_JITTER = 0.25
_DRAIN = 2.0


class Replaced(Struct, frozen=True):
    """How a reload went."""

    problem: str = ""
    stopped: bool = False


class Audience(Protocol):
    """Who needs to know what becomes of the processes. Must neither block nor raise."""

    before_asking: Callable[[], None]
    """A question is about to be sent to one of them."""

    def joined(self, extension: Extension) -> None:
        """A process is ready."""

    def published(self) -> None:
        """One offers or wants to know something else than before."""


class Supervisor:
    """Run it as a task. Everything else may be called at any time, from the same loop."""

    def __init__(self, found: Found, house: House, registry: Registry, audience: Audience, account: Account) -> None:
        self.found = found
        self.account = account
        self.name = found.name
        self._house = house
        self._registry = registry
        self._audience = audience
        self.before_asking = audience.before_asking
        self.state: ExtensionState = "starting"
        self.reason = ""
        self.restarts = 0
        self.over = asyncio.Event()
        """Nothing of it is left: neither a process nor anything that it offered or guarded."""
        self._life: Life | None = None
        self._lives: list[Life] = []
        """All of which something may be left."""
        self._crashes: deque[float] = deque()
        self._wake = asyncio.Event()
        self._news = asyncio.Event()
        self._stopping = False
        self._reload: tuple[Callable[[], Found], asyncio.Future[Replaced]] | None = None
        self._offer: Publication | None = None
        self._watch: Publication | None = None
        self._watches: tuple[Watch, ...] = ()
        self._guards = Guards(self, found)
        self._publishing = False
        self._idle_switches: set[str] = set()
        """Those that the user was told of."""

    # What others see of it

    @property
    def current(self) -> Extension | None:
        return self._life.extension if self._life else None

    @property
    def coming(self) -> bool:
        return self.state in ("starting", "restarting")

    @property
    def grace(self) -> float:
        """How many seconds its processes may take to end by themselves."""
        return max((life.found.manifest.stop_grace_ms / 1000 for life in self._lives), default=0.0)

    async def news(self) -> None:
        """Wait until its state is another, or what it offers."""
        await self._news.wait()

    async def leaves(self, *states: ExtensionState) -> None:
        """Wait until it is in none of these."""
        while self.state in states:
            await self.news()

    def status(self) -> ExtensionStatus:
        extension = self.current
        offered = extension.registrations if extension else None
        status = ExtensionStatus(
            name=self.name,
            version=self.found.manifest.version or (extension.version if extension else ""),
            dialect=self.found.manifest.dialect,
            state=self.state,
            source=self.found.source,
            directory=str(self.found.where),
            sandbox=self.found.sandbox,
            pid=extension.pid if extension else None,
            restarts=self.restarts,
            start_ms=self._life.start_ms if self._life else None,
            reason=self.reason,
            tools=tuple(tool.name for tool in offered.tools) if offered else (),
            commands=offered.commands if offered else (),
            guards=tuple(dict.fromkeys((*self._guards.declared, *(watch.event for watch in self._watches)))),
            also=offered.others if offered else (),
            events_lost=extension.events_lost if extension else 0,
            mistakes=extension.peer.mistakes if extension else 0,
            unchecked=self._guards.unchecked,
            tokens_used=facilities.minds.used(self.name) if (facilities := self._house.facilities) else 0,
            prompt_tokens=offered.prompt_tokens if offered else 0,
            log=str(self._house.places.logs / log_name(self.name)),
        )
        return self.account.on(status, sum(life.extension.peer.busy for life in self._lives if life.extension))

    def stop(self) -> None:
        """End it for good. Returns at once; `run` ends when nothing of it is left."""
        self._stopping = True
        self._wake.set()

    async def reload(self, again: Callable[[], Found]) -> Replaced:
        """Start it anew as its manifest now says, and forget its crashes. The old process stays until then."""
        if self.state == "stopped":
            return Replaced(f"{self.name}: it was stopped")
        if self._reload:
            return await asyncio.shield(self._reload[1])
        future: asyncio.Future[Replaced] = asyncio.get_running_loop().create_future()
        self._reload = (again, future)
        self._wake.set()
        return await asyncio.shield(future)

    # Its life

    async def run(self) -> None:
        owner = Owner(self.name, order=self.found.order)
        try:
            with self._registry.publish(owner) as self._offer, self._registry.publish(owner) as self._watch:
                await self._run()
        finally:
            self.over.set()

    async def _run(self) -> None:
        self._show_guards()
        try:
            await self._enter("starting")
            while not self._stopping:
                try:
                    await self._supervise()
                except Exception as error:
                    # A mistake of ours must cost one extension, not the host and all the others.
                    log.exception("the supervisor of %s failed", self.name)
                    await self._broke_down(error)
            await self._settle("was stopped")
            await self._enter("stopped")
        finally:
            # Also when it is cancelled, for whoever waits for something of it.
            self.state = "stopped"
            self._spread_news()
            self._answer_reload("it was stopped")

    async def _supervise(self) -> None:
        async with asyncio.TaskGroup() as group:
            try:
                await self._keep(group)
            finally:
                for life in self._lives:
                    life.stop()

    async def _broke_down(self, error: BaseException) -> None:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        reason = f"internal error: {type(error).__name__}: {error}"
        self._life = None
        self._publish()
        await self._settle(f"failed: {reason}")
        await self._enter("failed", reason)
        self._answer_reload(reason)

    def _answer_reload(self, problem: str) -> None:
        """Whoever still waits for one must not wait for ever."""
        if self._reload:
            self._reload[1].set_result(Replaced(f"{self.name}: {problem}"))
            self._reload = None

    async def _keep(self, group: asyncio.TaskGroup) -> None:
        while not self._stopping:
            if self._life is None and self._reload is None and self.state != "failed":
                await self._begin(group)
            elif self._reload is not None:
                await self._replace(group)
            elif self._life and self._life.ending:
                await self._ended(self._life, self._life.ending)
            else:
                await self._wake.wait()
                self._wake.clear()

    async def _begin(self, group: asyncio.TaskGroup) -> None:
        self._life = self._bear(self.found, group)
        await self._until_up(self._life)
        if self._life.ready:
            await self._adopted()

    def _bear(self, found: Found, group: asyncio.TaskGroup) -> Life:
        life = Life(found, self._house, self)
        self._lives = [*(one for one in self._lives if not one.over.is_set()), life]
        group.create_task(life.run(), name=f"extension {self.name}")
        return life

    async def _until_up(self, life: Life) -> None:
        while not (life.ready or life.ending or self._stopping):
            if self.state == "ready" and self._life and self._life.ending:
                # The old one did not wait for the new one, which is now all there is.
                await self._enter("starting", self._life.ending.reason)
            await self._wake.wait()
            self._wake.clear()

    async def _adopted(self) -> None:
        life = self._life
        assert life
        self.found = life.found
        self._guards.settle(life.found)
        self._publish()
        await self._enter("ready")
        if life.extension:
            self._audience.joined(life.extension)
            life.extension.recollection.look()
            self._check_switches(life.extension)
            await self._house.agent.apply((Revive(),), self.name)

    def _check_switches(self, extension: Extension) -> None:
        for part in extension.idle_switches():
            if part not in self._idle_switches:
                self._idle_switches.add(part)
                said = f"config.toml switches off {part}, which extension {self.name} does not have"
                extension.tell("warn", f"{said}: is it misspelt?")

    async def _ended(self, life: Life, ending: Ending) -> None:
        """Its process is gone, or on its way out: wait for it to be, tell, and try again if that makes sense."""
        self._publish()
        self._life = None
        hint = f" ({ending.hint})" if ending.hint else ""
        reason = ending.reason + hint
        self.account.erred(ending.reason)
        await self._settle(ending.reason)
        if ending.kind == "unstarted" and not ending.transient and not self.restarts and not self._crashes:
            await self._enter("failed", reason)
            return
        now = asyncio.get_running_loop().time()
        self._crashes.append(now)
        while self._crashes and now - self._crashes[0] > _WINDOW:
            self._crashes.popleft()
        if len(self._crashes) >= _CRASHES:
            window = f"{_CRASHES} times in {_WINDOW / 60:.0f} minutes"
            await self._enter("failed", f"{reason}; it ended {window}, `/reload-ext {self.name}` tries again")
            return
        await self._enter("restarting", reason)
        await self._pause(life)
        self.restarts += 1

    async def _pause(self, ended: Life) -> None:
        """Before the next attempt: longer each time, and never before the last process is gone."""
        delay = min(_FIRST_DELAY * 2 ** (len(self._crashes) - 1), _LONGEST_DELAY)
        delay *= 1 + random.uniform(-_JITTER, _JITTER)  # spreads load, keeps no secret
        deadline = asyncio.get_running_loop().time() + delay
        await ended.over.wait()
        try:
            async with asyncio.timeout_at(deadline):
                while not self._stopping and self._reload is None:
                    await self._wake.wait()
                    self._wake.clear()
        except TimeoutError:
            pass

    async def _replace(self, group: asyncio.TaskGroup) -> None:
        """New before old: only when the new process is ready does the old one go."""
        assert self._reload
        again, future = self._reload
        self._crashes.clear()
        outcome = await self._attempt(again, group)
        self._reload = None
        future.set_result(outcome)

    async def _attempt(self, again: Callable[[], Found], group: asyncio.TaskGroup) -> Replaced:
        old = self._life if self._life and not self._life.ending else None
        try:
            found = await asyncio.to_thread(again)
        except ManifestError as error:
            return await self._kept(old, f"{error.message} ({error.hint})" if error.hint else error.message)
        except HiltError as error:
            return await self._kept(old, error.message)
        life = self._bear(found, group)
        if old is None:
            await self._enter("starting")
        await self._until_up(life)
        if not life.ready:
            life.stop()
            ending = life.ending
            return await self._kept(old, ending.reason if ending else "it was stopped")
        self._life = life
        self.restarts = 0
        await self._adopted()
        if old:
            old.stop(drain=_DRAIN)
        return Replaced(stopped=old is not None)

    async def _kept(self, old: Life | None, problem: str) -> Replaced:
        self.account.erred(f"not reloaded: {problem}")
        if old is None:
            self._life = None
            await self._settle(problem)
            await self._enter("failed", problem)
        if old is None or old.ending:
            return Replaced(f"{self.name}: {problem}")
        return Replaced(f"{self.name}: {problem}; the one that was running goes on")

    # What a life tells

    def changed(self, life: Life) -> None:
        if life is self._life:
            self._publish_soon()
        self._wake.set()

    def _publish_soon(self) -> None:
        """Once for all that is registered in one go."""
        if self._life and self._life.extension is None:
            self._publish()  # nobody may be sent to a process that is gone
        elif not self._publishing:
            self._publishing = True
            asyncio.get_running_loop().call_soon(self._publish)

    def _publish(self) -> None:
        self._publishing = False
        extension = self.current
        if extension and self.state == "ready":
            self._announce(extension)
        if self._offer:
            self._offer.update(extension.contributions() if extension else ())
        if extension:
            self._watches = self._intercepted(extension)
        self._show_guards()
        self._spread_news()
        self._audience.published()

    def _intercepted(self, extension: Extension) -> tuple[Watch, ...]:
        """What was guarded before a crash stays so until the new process has had its say."""
        said = extension.registrations.watches
        if extension.ready or not self.restarts:
            return said
        return tuple({(watch.event, watch.name): watch for watch in (*self._watches, *said)}.values())

    def _announce(self, extension: Extension) -> None:
        """What comes after it was ready is news: the model sees it from its next answer on."""
        before = [one for one in self._offer.contributions if isinstance(one, Tool)] if self._offer else []
        names = {tool.name for tool in before}
        if late := [tool.name for tool in extension.registrations.tools if tool.name not in names]:
            extension.tell("info", f"extension {self.name} now also offers {few(late)}")
        if not {id(tool) for tool in extension.registrations.tools} <= {id(tool) for tool in before}:
            extension.recollection.look(late=True)

    def _show_guards(self) -> None:
        if self._watch:
            self._watch.update(self._guards.interceptors(self._watches))

    async def _enter(self, state: ExtensionState, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self._spread_news()
        await self._house.agent.tell(ExtensionChanged(self.name, state, reason))

    async def _settle(self, how: str) -> None:
        """There is no process any more, and may never be one again: see to what it had on the screen."""
        await self._house.agent.apply((Settle(f"extension {self.name} {how}"),), self.name)

    def _spread_news(self) -> None:
        """Wake all who wait for some."""
        self._news.set()
        self._news.clear()
