"""hilt's terminal interface in a process of its own, on a terminal, and on an event loop that is watched.

`tui` starts it. The last argument names what is to be done with it; what was found is written to a file. The loop is
watched where it waits: from when it has something to do until it waits again, nothing else can happen on the screen.
"""

import asyncio
import fcntl
import gc
import json
import os
import selectors
import struct
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any, TypeAlias

from textual.events import Event, Key

from hilt.cli import faces
from hilt.cli.flags import parse
from hilt.cli.terminal import show
from hilt.frontends.tui import app as apps

if TYPE_CHECKING:  # it comes after the first frame
    from hilt.frontends.tui.client import Client

FRAME = 0.033
"""Seconds for which nothing may hold the loop: those of a frame."""
PROMPT = "go"
LAST = "that was all"
"""What a flood ends with."""
_DEADLINE = 240.0
_LOOK = 0.02
_TURNS = 1000

Figures: TypeAlias = dict[str, float]


class Watched(selectors.DefaultSelector):
    """Notes for how long the loop did other things than wait: by the clock, and by what its thread computed.

    The second is what a machine without anybody else would take.
    """

    def __init__(self) -> None:
        super().__init__()
        self.began()

    def began(self) -> None:
        """Forget what was noted so far."""
        self._since, self._spent = time.perf_counter(), time.thread_time()
        self._clock: list[float] = []
        self._computed: list[float] = []

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._clock.append(time.perf_counter() - self._since)
        self._computed.append(time.thread_time() - self._spent)
        found = super().select(timeout)
        self._since, self._spent = time.perf_counter(), time.thread_time()
        return found

    def figures(self) -> Figures:
        computed, clock = self._computed, self._clock
        cut = quantiles(computed, n=100)
        return {
            "p50": cut[49],
            "p99": cut[98],
            "longest": max(computed),
            "longest_by_the_clock": max(clock),
            "over": float(sum(one > FRAME for one in computed)),
            "over_by_the_clock": float(sum(one > FRAME for one in clock)),
            "computed": sum(computed),
        }


class Face(apps.HiltApp):
    """Counts what is put on the screen, but for what a key brings about."""

    drawn = 0

    async def on_event(self, event: Event) -> None:
        self.drawn -= isinstance(event, Key)
        await super().on_event(event)

    def _display(self, *args: Any) -> None:
        self.drawn += 1
        super()._display(*args)


class Stage:
    """What an experiment works with."""

    def __init__(self, app: Face, watched: Watched) -> None:
        self.app, self.watched = app, watched

    async def until(self, holds: Callable[[], object]) -> None:
        while not holds():
            assert not self.app.ending, self.app.fault
            await asyncio.sleep(_LOOK)

    async def client(self) -> "Client":
        await self.until(lambda: self.app.client)
        assert self.app.client
        return self.app.client

    async def say(self, text: str) -> Callable[[], bool]:
        """And how to know whether the answer is there."""
        client = await self.client()
        before = len(client.session.transcript.messages)
        client.submit(text)
        return lambda: len(client.session.transcript.messages) > before + 1 and not client.session.busy

    async def key(self, name: str, times: int = 1) -> None:
        for _ in range(times):
            self.app.simulate_key(name)
            await asyncio.sleep(1 / 30)

    async def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        await self.until(lambda: self.app.size.width == columns)
        await asyncio.sleep(0.05)


# What is done


async def nothing(stage: Stage) -> Figures:
    """Open it, and look at it for a moment."""
    await stage.client()
    await asyncio.sleep(0.5)
    return {**stage.watched.figures(), "bytes": _bytes("VmRSS")}


async def answer(stage: Stage) -> Figures:
    """Have the model write."""
    await stage.client()
    await asyncio.sleep(0.3)
    stage.watched.began()
    await stage.until(await stage.say(PROMPT))
    await asyncio.sleep(0.1)
    return stage.watched.figures()


async def wander(stage: Stage) -> Figures:
    """Look here and there, at another width too, while the model writes."""
    await stage.client()
    await asyncio.sleep(0.3)
    stage.watched.began()
    answered = await stage.say(PROMPT)
    for _ in range(_TURNS):
        if answered():
            break
        await stage.key("pageup", 20)
        await stage.key("ctrl+home")
        await stage.key("pagedown", 20)
        for columns in (60, 120, 100):
            await stage.resize(columns, 30)
        await stage.key("ctrl+end")
        await stage.key("pageup", 3)
    return stage.watched.figures()


async def flood(stage: Stage) -> Figures:
    """Have an extension show more than anybody can see."""
    client = await stage.client()
    await stage.until(lambda: all(one.state == "ready" for one in client.session.extensions.statuses()))
    await asyncio.sleep(0.3)
    _forget_peak()
    before, drawn, began = _bytes("VmRSS"), stage.app.drawn, time.monotonic()
    stage.watched.began()
    client.submit("/flood")
    await stage.until(lambda: any(note.message == LAST for note in client.session.notes.shown))
    seconds = time.monotonic() - began
    return {
        **stage.watched.figures(),
        "seconds": seconds,
        "drawn_a_second": (stage.app.drawn - drawn) / seconds,
        "grown": _bytes("VmHWM") - before,
    }


# Around it


async def main(into: str, arguments: list[str], experiment: Callable[[Stage], Any], watched: Watched) -> None:
    opened: asyncio.Queue[Face] = asyncio.Queue(1)

    class Opened(Face):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            opened.put_nowait(self)

    apps.HiltApp = Opened  # type: ignore[misc]  # the one that is shown
    async with asyncio.timeout(_DEADLINE), asyncio.TaskGroup() as group:
        shown = group.create_task(show(parse(arguments), faces.Interrupts(), faces._started))
        app = await opened.get()
        await app.painted.wait()
        figures = await experiment(Stage(app, watched))
        Path(into).write_text(json.dumps(figures))  # noqa: ASYNC240 - nothing is measured any more
        app.exit()
        await shown


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _bytes(field: str) -> float:
    lines = Path("/proc/self/status").read_text().split("\n")
    (line,) = (line for line in lines if line.startswith(f"{field}:"))
    return float(line.split()[1]) * 1024


if __name__ == "__main__":
    gc.disable()  # as `hilt` does until everything is there
    _, into, experiment, *arguments = sys.argv
    watched = Watched()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(watched)) as runner:
        runner.run(main(into, arguments, globals()[experiment], watched))
    os._exit(0)
