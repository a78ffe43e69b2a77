"""One process of an extension, from before its start until nothing of it is left."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from hilt.errors import StartError
from hilt.extensions.account import Account
from hilt.extensions.agent import House, Program
from hilt.extensions.dialects import dialect
from hilt.extensions.extension import Extension
from hilt.extensions.launching import Launch
from hilt.packages.arrangement import Pipes, pipes_of
from hilt.packages.discovery import Found
from hilt.packages.members import shown
from hilt.transport.launch import Spec

_IDLE = 0.25
"""Seconds of silence after which it counts as ready, for not all say so."""
_READY = 3.0
_EOF_GRACE = 2.0
_LAST_LINES = 0.5
"""Seconds at most; it takes no time unless much of it is left, or somebody else writes on."""
_LAST_EVENTS = 1.0
"""Seconds in which it may still deal with what has happened before the end."""
_BUSY = "Text file busy"
"""What the shell or the sandbox that was to start it says at the end."""


class Ending(Struct, frozen=True):
    kind: Literal["unstarted", "crashed", "stopped"]
    reason: str = ""
    """Follows the extension's name: `exited with code 3`."""
    hint: str = ""
    transient: bool = False
    """Nothing is wrong with the extension itself: trying again later may help."""


STOPPED = Ending("stopped", "was stopped")


class Owner(Protocol):
    """Whom a life tells. Must neither block nor raise."""

    def changed(self, life: "Life") -> None:
        """It offers something else, it is ready, or it has ended: see its fields."""

    before_asking: Callable[[], None]
    account: Account


class Life:
    """Run it as a task: it ends by itself once it is stopped or its process is gone."""

    def __init__(self, found: Found, house: House, owner: Owner) -> None:
        self.found = found
        self._house = house
        self._owner = owner
        self.before_asking = owner.before_asking
        self.account = owner.account
        self._bell = asyncio.Event()
        self._exit = ""
        self._culprit = ""
        """The limit that may have ended it."""
        self._launch = Launch.of(found, house.places, Path(house.surroundings.cwd), house.keys)
        self._stop = False
        self._drain = 0.0
        self.extension: Extension | None = None
        """Present as long as it can be talked to, from its hello on."""
        self.ready = False
        """It has had its time to register; what comes later is late."""
        self._began = asyncio.get_running_loop().time()
        self.start_ms: int | None = None
        """How long it took until then."""
        self.ending: Ending | None = None
        """Set as soon as it is over for those who talk to it."""
        self.over = asyncio.Event()
        """Nothing of the process is left."""

    def stop(self, *, drain: float = 0.0) -> None:
        """End it, after at most so many seconds for what it is busy with. Returns at once."""
        if self._stop and not drain and self.extension:
            self.extension.gone("was stopped")  # the time it had is cut short
        self._stop = True
        self._drain = drain
        self._bell.set()

    async def run(self) -> None:
        try:
            async with self._house.open(await self._spec()) as program:
                await self._inhabit(program)
        except StartError as error:
            self._end(Ending("unstarted", f"cannot be started: {error.message}", error.hint, error.transient))
        finally:
            self._end(STOPPED)
            self.over.set()
            self._owner.changed(self)

    async def _spec(self) -> Spec:
        manifest = self.found.manifest
        pipes: Pipes = "stdio"
        if manifest.dialect == "jsonrpc":
            # A program may be large, and is looked through.
            try:
                pipes = await asyncio.to_thread(pipes_of, manifest, self.found.directory)
            except RuntimeError:
                pipes = pipes_of(manifest, self.found.directory)  # no thread is to be had, as its start will tell
        tap = trace.tap(self.found) if (trace := self._house.trace) else None
        return self._launch.spec(pipes, self._house.session_id(), tap=tap)

    async def _inhabit(self, program: Program) -> None:
        manifest = self.found.manifest
        program.remark(f"starting {self.found.name}/{manifest.version or '-'}")
        if withheld := self._launch.given.withheld:
            grant = f"`hilt ext grant {self.found.name} env:{shown(withheld[0])}` grants one"
            program.remark(f"withheld from its environment: {', '.join(map(shown, withheld))} ({grant})")
        async with asyncio.TaskGroup() as group:
            extension = dialect(self.found)(self.found, self._house, program, self, group)
            helpers = [group.create_task(extension.chores.run()), group.create_task(self._watch(program))]
            program.channel.listen(extension)
            extension.begin()
            if failure := program.log_failure:
                extension.report(f"what it writes to stderr is not kept: {failure.strerror or failure}")
            try:
                ending = await self._phases(extension)
                program.remark(f"{self.found.name} {ending.reason}")
                self.extension = None
                extension.gone(ending.reason)
                self._end(ending)
            finally:
                self.extension = None
                extension.gone("was stopped")
                for helper in helpers:
                    helper.cancel()

    def _end(self, ending: Ending) -> None:
        if self.ending is None:
            self.ending = ending
            self._owner.changed(self)

    async def _watch(self, program: Program) -> None:
        exit_ = await program.exited()
        await program.channel.drain(_LAST_LINES)  # it may have answered with its last breath
        self._exit = str(exit_)
        self._culprit = self._launch.allowance.culprit(exit_, program.complaints())
        if self.extension:
            self.extension.gone(self._how)  # at once, also where it is being waited for
        self._bell.set()

    @property
    def _how(self) -> str:
        return f"{self._exit}: {self._culprit}" if self._culprit else self._exit

    # What the extension tells

    def changed(self) -> None:
        self._owner.changed(self)

    def trouble(self) -> None:
        self._bell.set()

    # From its start to its end

    async def _phases(self, extension: Extension) -> Ending:
        deadline = self.found.manifest.start_timeout_ms / 1000
        if not await self._until(lambda: extension.introduced, deadline, extension):
            await self._last_moments(extension)
            return self._unstarted(extension, deadline)
        self.extension = extension
        self._owner.changed(self)
        await self._readiness(extension)
        if not self._ended(extension):
            self.ready = True
            self.start_ms = round((asyncio.get_running_loop().time() - self._began) * 1000)
            self._owner.changed(self)
            await self._until(lambda: False, None, extension)
        if self._stop:
            return await self._farewell(extension)
        await self._last_moments(extension)
        if self._exit:
            return Ending("crashed", self._how)
        return Ending("crashed", f"was ended: {extension.fault or 'it closed its output but kept running'}")

    async def _until(self, happened: Callable[[], bool], patience: float | None, extension: Extension) -> bool:
        """Wait for something, or for the end."""
        try:
            async with asyncio.timeout(patience):
                while not happened() and not self._ended(extension):
                    await self._bell.wait()
                    self._bell.clear()
        except TimeoutError:
            pass
        return happened()

    def _ended(self, extension: Extension) -> bool:
        return bool(self._stop or self._exit or extension.fault or extension.closed_output)

    async def _last_moments(self, extension: Extension) -> None:
        """The end of its output is often seen before its exit, which says more."""
        if extension.fault or not extension.closed_output:
            return
        try:
            async with asyncio.timeout(_EOF_GRACE):
                while not self._exit and not self._stop:
                    await self._bell.wait()
                    self._bell.clear()
        except TimeoutError:
            pass

    def _unstarted(self, extension: Extension, deadline: float) -> Ending:
        if self._stop:
            return STOPPED
        words = extension.last_words()
        last = f"; its last words: {words}" if words else ""
        if extension.fault:
            return Ending("unstarted", f"was ended: {extension.fault}{last}")
        hint = f"its log may say why; {extension.opening}"
        if self._exit and words.endswith(_BUSY):
            busy = "cannot be started: its file is being written"
            return Ending("unstarted", busy, "try again when that is done", transient=True)
        if self._exit:
            return Ending("unstarted", f"{self._exit} before its {extension.greeting}{last}", self._culprit or hint)
        if extension.closed_output:
            return Ending("unstarted", f"closed its output before its {extension.greeting}{last}", hint)
        raised = "raise start_timeout_ms in its manifest if it needs longer"
        return Ending("unstarted", f"{extension.silence} within {deadline:g} s{last}", f"{hint}; {raised}")

    async def _readiness(self, extension: Extension) -> None:
        """Until it says so, or is silent for a while: what it registers after that is late, but counts as well."""
        try:
            async with asyncio.timeout(_READY):
                seen = -1
                while extension.lines != seen and not extension.ready and not self._ended(extension):
                    seen = extension.lines
                    await self._until(lambda: extension.ready, _IDLE, extension)
        except TimeoutError:
            pass

    async def _farewell(self, extension: Extension) -> Ending:
        """Let it finish what it is busy with, if there is time, and tell it that this is the end."""
        try:
            async with asyncio.timeout(self._drain):
                await extension.peer.idle()
        except TimeoutError:
            pass
        try:
            async with asyncio.timeout(_LAST_EVENTS):
                await extension.methods.dispatch.settled()
        except TimeoutError:
            pass
        extension.shut_down()
        return STOPPED
