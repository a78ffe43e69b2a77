"""What a tool returned, as extensions leave it: asked one after the other, each given what the one before made of it.

A tool that ran has run: whatever goes wrong here, there is a result. Who changed it, and what it was, is on record.
"""

import asyncio
from collections.abc import Sequence

from msgspec import Struct, field, structs

from hilt.agent.interception import Bench
from hilt.errors import ExtensionError
from hilt.model.contributions import Finished, ResultInterceptor, ToolOutput
from hilt.model.events import Decided, Deciding, Noticed
from hilt.registry.snapshot import Owned
from hilt.sessions.records import NoteRecord

_IMPATIENCE = 1.0


class Review(Struct):
    """Of one result. What has been decided so far counts, also when the rest is cancelled."""

    finished: Finished
    changed_by: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    """Owners, and why they had no say."""
    decisions: list[Decided] = field(default_factory=list)
    """Of all of them, in the order in which they were asked."""

    async def hear(self, owned: Sequence[Owned[ResultInterceptor]], bench: Bench) -> None:
        """Each has its time, for it may ask a model; hardly any if it is among those that failed before."""
        patience, clock = bench.deadlines.result, asyncio.get_running_loop().time
        for one in owned:
            asked = clock()
            seconds = min(patience, _IMPATIENCE) if one.owner in bench.complained else patience
            try:
                with bench.waits.on(one.owner, "result"):
                    async with asyncio.timeout(seconds):
                        output = await one.offer.after(self.finished)
                self._take(one.owner, output, clock() - asked)
            except TimeoutError:
                self._miss(one.owner, f"no answer within {seconds:g} s", clock() - asked)
            except ExtensionError as error:
                self._miss(one.owner, error.message, clock() - asked)

    def _take(self, owner: str, output: ToolOutput, took: float) -> None:
        self.answered.append(owner)
        decision: Deciding = "allow"
        if output != self.finished.output:
            self.finished = structs.replace(self.finished, output=output)
            self.changed_by.append(owner)
            decision = "replace"
        self.decisions.append(Decided(owner, decision, round(took * 1000, 3)))

    def _miss(self, owner: str, why: str, took: float) -> None:
        self.failed.append((owner, why))
        self.decisions.append(Decided(owner, "fail", round(took * 1000, 3), why))

    async def publish(self, original: ToolOutput, bench: Bench) -> None:
        """On record first. A failure is told once of each extension: the next call would only say it again."""
        about = {"id": self.finished.call_id, "name": self.finished.tool_name}
        bench.journal.append(NoteRecord("result_interception", {**about, "decisions": self.decisions}))
        if self.changed_by:
            bench.journal.append(NoteRecord("result_changed", {**about, "by": self.changed_by, "original": original}))
        for owner, why in self.failed:
            bench.journal.append(NoteRecord("result_unchecked", {**about, "extension": owner, "reason": why}))
        bench.complained.difference_update(self.answered)
        for owner, why in self.failed:
            if owner not in bench.complained:
                bench.complained.add(owner)
                what = f"the result of {self.finished.tool_name} is used without it"
                await bench.emit(Noticed("warn", f"result interceptor of {owner}: {why}; {what}"))
