"""What interceptors cost a tool call, over asking one after the other, and that they are heard in their order."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import hilt_host
import prototype
from hosts import Host, Opening
from programs import Program, compiled, in_c, several_in_c
from report import Measured
from rounds import apart, ratios, sequential

ROUNDS = 9
QUESTIONS = 300
GUARD = ("-i", "tool_call")


def run(ours: Opening = hilt_host.opened, rounds: int = ROUNDS, questions: int = QUESTIONS) -> list[Measured]:
    with compiled("frames_echo") as folder:
        if folder is None:
            return []
        # Goals: 0.35, 0.30 and 1.2 of the host in Go, for the prototype's 0.90, 0.89 and 0.90.
        chains = {
            "5 allow": (several_in_c(folder, 5, *GUARD), 0.39),
            "20 allow": (several_in_c(folder, 20, *GUARD), 0.34),
            "5, the third rewrites": (_chain(folder, "--+--"), 1.33),
            "5, all rewrite": (_chain(folder, "abcde"), 1.33),
        }
        return [
            Measured(f"intercept: {name} / one by one", asyncio.run(_compare(ours, chain, rounds, questions)), goal)
            for name, (chain, goal) in chains.items()
        ]


def _chain(folder: Path, suffixes: str) -> list[Program]:
    """One interceptor for each letter, which it appends to the text; one that only allows for each dash."""
    return [
        in_c(folder, f"echo{number}", *GUARD, *(() if suffix == "-" else ("-r", suffix)))
        for number, suffix in enumerate(suffixes)
    ]


async def _compare(ours: Opening, chain: Sequence[Program], rounds: int, questions: int) -> list[float]:
    expected = "ask" + "".join(program.argv[-1] for program in chain if "-r" in program.argv)

    async def ask(host: Host) -> None:
        assert await host.intercept({"text": "ask"}) == {"text": expected}

    async def asking(host: Host) -> float:
        return await sequential(partial(ask, host), questions)

    with apart() as cores:
        async with prototype.opened(chain) as serial, ours(chain) as host:
            cores.part()
            return await ratios(rounds, partial(asking, serial), partial(asking, host))


if __name__ == "__main__":
    for measured in run():
        print(measured.line())
