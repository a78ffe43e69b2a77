"""What a tool call costs over the least it can cost, alone and among others, and whether every answer arrives.

On one core, with the same program at the other end.
"""

import asyncio
from functools import partial
from pathlib import Path

import hilt_host
import prototype
from hosts import Host, Opening
from programs import OtherHost, compiled, in_c, other_host
from report import Measured
from rounds import concurrent, one_core, ratios, sequential

ROUNDS = 9
CALLS = 3000
CHECKED = 100_000
CALLERS = 64
ARGS = {"text": "x" * 60}
_DEADLINE = 300.0


def run(
    ours: Opening = hilt_host.opened, rounds: int = ROUNDS, calls: int = CALLS, checked: int = CHECKED
) -> list[Measured]:
    """`checked` is how many calls are looked at one by one: a million for the whole claim."""
    with compiled("frames_echo", "frames_host") as folder:
        if folder is None:
            return []
        with one_core(), other_host(folder / "frames_host", *in_c(folder).argv) as floor:
            return asyncio.run(_measure(ours, folder, floor, rounds, calls, checked))


async def _measure(
    ours: Opening, folder: Path, floor: OtherHost, rounds: int, calls: int, checked: int
) -> list[Measured]:
    program = in_c(folder)
    async with prototype.opened([program]) as raw, ours([program]) as host:
        base, work = partial(raw.call, "echo", ARGS), partial(host.call, "echo", ARGS)
        over_c = await ratios(rounds, partial(floor.median, calls), partial(sequential, work, calls))
        alone = await ratios(rounds, partial(sequential, base, calls), partial(sequential, work, calls))
        at_once = {
            callers: await ratios(
                rounds, partial(concurrent, base, calls, callers), partial(concurrent, work, calls, callers)
            )
            for callers in (8, CALLERS)
        }
        missing = await _missing(host, checked)
    return [
        Measured("call: round trip / raw asyncio", alone, 1.3),
        # The prototype takes 3 to 4 times as long as the C host, depending on the machine.
        Measured("call: round trip / C host", over_c, 5),
        # 1.5 and 1.3 times as many calls as the host in Go, of which the prototype makes 1.44 and 1.50 times as many.
        Measured("calls: time of 8 at once / raw asyncio", at_once[8], 0.96),
        Measured(f"calls: time of {CALLERS} at once / raw asyncio", at_once[CALLERS], 1.15),
        Measured(f"calls: lost or crossed of {checked:,}, {CALLERS} at once", [missing], 0, ""),
    ]


async def _missing(host: Host, checked: int) -> int:
    """How many calls did not get the answer that belongs to them."""
    right = 0

    async def caller(number: int) -> None:
        nonlocal right
        for count in range(number, checked, CALLERS):
            text = str(count)
            answer = await host.call("echo", {"text": text})
            right += answer == text

    try:
        async with asyncio.timeout(_DEADLINE), asyncio.TaskGroup() as group:
            for number in range(CALLERS):
                group.create_task(caller(number))
    except TimeoutError:
        pass  # those that still wait have lost theirs
    return checked - right


if __name__ == "__main__":
    for measured in run(checked=1_000_000):
        print(measured.line())
