"""What memory a host needs for a subscriber that never reads, and for an answer as long as a line may be.

Each round has a process of its own, since one that has been large before need not grow.
"""

import asyncio
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeAlias

import hilt_host
from hosts import Opening
from large import LONGEST, MEGABYTE, large
from programs import compiled, in_c
from report import Measured

from hilt.transport.channels import Bounds

ROUNDS = 7
EVENTS = 100_000
_BURST = 100
_DEADLINE = 60.0

Figures: TypeAlias = dict[str, int]
Experiment: TypeAlias = Callable[[Opening, Path, int], Coroutine[Any, Any, Figures]]


def run(ours: Opening = hilt_host.opened, rounds: int = ROUNDS, events: int = EVENTS) -> list[Measured]:
    with compiled("frames_echo") as folder:
        if folder is None:
            return []
        unread = [_in_a_process(_leave_unread, ours, folder, events) for _ in range(rounds)]
        answers = [_in_a_process(_take_answer, ours, folder, LONGEST) for _ in range(rounds)]
    grown = [one["grown"] / MEGABYTE for one in unread]
    unaccounted = [float(one["unaccounted"]) for one in unread]
    copies = [one["grown"] / LONGEST for one in answers]
    return [
        Measured(f"memory: {events:,} events that nobody reads", grown, round(Bounds().events / MEGABYTE + 4, 1), "MB"),
        Measured("events: neither read nor counted as lost", unaccounted, 0, ""),
        Measured("memory: growth by an answer near 4 MiB / its size", copies, 2.3),
    ]


async def _leave_unread(opening: Opening, folder: Path, events: int) -> Figures:
    with tempfile.TemporaryDirectory() as scratch:
        gate = Path(scratch, "gate")
        os.mkfifo(gate)
        async with opening([in_c(folder, "echo", "-e", "turn_start", "-d", str(gate))]) as host:
            idle = 0
            for step in range(1, events + 1):
                await host.emit(step)
                if step % _BURST == 0:
                    await asyncio.sleep(0)
                if step == _BURST:  # by now all code that is needed has run
                    idle = _forget_peak()
            grown = _peak() - idle
            os.close(os.open(gate, os.O_RDWR))  # from here on it reads, and the answer comes after all the rest
            received = int((await host.call("echo", {"report": True})).split()[0])
            return {"grown": grown, "unaccounted": events - received - host.lost()}


async def _take_answer(opening: Opening, folder: Path, size: int) -> Figures:
    async with opening([in_c(folder)]) as host:
        for _ in range(100):
            await host.call("echo", {"text": "warm"})
        idle = _forget_peak()
        await host.call("echo", large(size))
        return {"grown": _peak() - idle}


def _in_a_process(experiment: Experiment, opening: Opening, folder: Path, size: int) -> Figures:
    names = (experiment.__name__, opening.__module__, opening.__name__)
    command = [sys.executable, __file__, *names, str(folder), str(size)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=2 * _DEADLINE).stdout
    figures: Figures = json.loads(printed)
    return figures


async def _main(experiment: str, module: str, opening: str, folder: str, size: str) -> None:
    async with asyncio.timeout(_DEADLINE):
        figures = await globals()[experiment](
            getattr(importlib.import_module(module), opening), Path(folder), int(size)
        )
    print(json.dumps(figures))


def _forget_peak() -> int:
    """The bytes in use; from now on the peak is that of what follows."""
    Path("/proc/self/clear_refs").write_text("5")
    return _bytes("VmRSS")


def _peak() -> int:
    return _bytes("VmHWM")


def _bytes(field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


if __name__ == "__main__":
    if arguments := sys.argv[1:]:
        asyncio.run(_main(*arguments))
    else:
        for measured in run():
            print(measured.line())
