"""What an event costs: until fifty subscribers have it, and until whoever told of it can go on; and their order.

Subscribers acknowledge outside of the host, by a byte in a pipe, so that only the way there is measured.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median

import hilt_host
import prototype
from hosts import Host, Opening
from programs import compiled, in_c, several_in_c
from report import Measured
from rounds import apart, ratios, sequential

ROUNDS = 9
EVENTS = 200
SUBSCRIBERS = 50
ORDERED = 100_000
_BURST = 500
_DEADLINE = 30.0
OBSERVE = ("-e", "turn_start")


def run(
    ours: Opening = hilt_host.opened,
    rounds: int = ROUNDS,
    events: int = EVENTS,
    subscribers: int = SUBSCRIBERS,
    ordered: int = ORDERED,
) -> list[Measured]:
    with compiled("frames_echo") as folder:
        if folder is None:
            return []
        all_told, held = asyncio.run(_measure(ours, folder, rounds, events, subscribers))
        wrong = asyncio.run(_disordered(ours, folder, ordered))
    return [
        # 0.9 of the host in Go, for the prototype's 0.77.
        Measured(f"event: to {subscribers} subscribers / writing to one by one", all_told, 1.17),
        Measured(f"event: how long telling {subscribers} holds the caller", held, 10, "µs"),
        Measured(f"events: lost or out of order of {ordered:,}", [wrong], 0, ""),
    ]


class Acknowledgements:
    """Bytes in a named pipe, one for each event that reached a subscriber."""

    def __init__(self, path: Path) -> None:
        self.options = (*OBSERVE, "-a", str(path))
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)  # for writing too, so that it never ends
        self._missing = 0
        self._all = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._fd, self._on_readable)

    async def arrive(self, number: int) -> None:
        self._missing += number
        if self._missing > 0:
            self._all.clear()
            async with asyncio.timeout(_DEADLINE):
                await self._all.wait()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)

    def _on_readable(self) -> None:
        self._missing -= len(os.read(self._fd, 4096))
        if self._missing <= 0:
            self._all.set()


@contextmanager
def _acknowledgements() -> Iterator[Acknowledgements]:
    with tempfile.TemporaryDirectory() as folder:
        acknowledgements = Acknowledgements(Path(folder, "acknowledgements"))
        try:
            yield acknowledgements
        finally:
            acknowledgements.close()


async def _measure(
    ours: Opening, folder: Path, rounds: int, events: int, subscribers: int
) -> tuple[list[float], list[float]]:
    """The ratios until all were told, and the microseconds for which telling held the caller."""
    steps = count(1)
    held: list[float] = []

    async def tell(host: Host, acknowledgements: Acknowledgements) -> None:
        begun = time.perf_counter()
        await host.emit(next(steps))
        held.append(time.perf_counter() - begun)
        await acknowledgements.arrive(subscribers)

    async def telling(host: Host, acknowledgements: Acknowledgements) -> float:
        held.clear()
        return await sequential(partial(tell, host, acknowledgements), events)

    async def holding(host: Host, acknowledgements: Acknowledgements) -> float:
        taken = await telling(host, acknowledgements)
        medians.append(median(held) * 1e6)
        return taken

    medians: list[float] = []
    with _acknowledgements() as theirs, _acknowledgements() as own, apart() as cores:
        async with (
            prototype.opened(several_in_c(folder, subscribers, *theirs.options)) as raw,
            ours(several_in_c(folder, subscribers, *own.options)) as host,
        ):
            cores.part()
            told = await ratios(rounds, partial(telling, raw, theirs), partial(holding, host, own))
            return told, medians[1:]


async def _disordered(ours: Opening, folder: Path, ordered: int) -> int:
    """How many events one subscriber did not get, or not in their turn. It is given time to keep up."""
    with _acknowledgements() as acknowledgements:
        async with ours([in_c(folder, "echo", *acknowledgements.options)]) as host:
            try:
                for begin in range(0, ordered, _BURST):
                    burst = range(begin, min(begin + _BURST, ordered))
                    for step in burst:
                        await host.emit(step + 1)
                    await acknowledgements.arrive(len(burst))
            except TimeoutError:
                pass  # some were lost; how many is about to be known
            received, disordered, _ = map(int, (await host.call("echo", {"report": True})).split())
            return ordered - received + disordered


if __name__ == "__main__":
    for measured in run():
        print(measured.line())
