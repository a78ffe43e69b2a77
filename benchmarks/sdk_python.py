"""What the Python SDK costs: importing it, reaching `ready`, and a call, over Python and a script that use none."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from report import Measured
from rounds import one_core, ratios

HERE = Path(__file__).parent
ROUNDS = 15
CALLS = 2000
SCRIPT = (sys.executable, str(HERE / "frames_echo.py"), "echo")
WITH_SDK = (sys.executable, str(HERE / "sdk_echo.py"))
_ACK = b'{"type":"hello_ack","protocol_version":1,"host":"hilt","host_version":"0.1.0"}\n'


def run(rounds: int = ROUNDS, calls: int = CALLS) -> list[Measured]:
    with one_core():
        over, ready = _starts(rounds)
        with _talking(SCRIPT) as script, _talking(WITH_SDK) as extension:
            trips = asyncio.run(
                ratios(rounds, partial(_round_trip, script, calls), partial(_round_trip, extension, calls))
            )
    return [
        Measured("sdk, Python: import hilt_sdk over python -c pass", over, 15, "ms"),
        Measured("sdk, Python: ready / python -c pass", ready, 1.5),
        Measured("sdk, Python: round trip / bare script", trips, 1.6),
    ]


def _starts(rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds that importing adds to a bare start, and starts until ready over bare ones."""
    over, ready = [], []
    for number in range(rounds + 1):
        bare, spent = _started("pass")
        _, importing = _started("import hilt_sdk")
        until_ready = _until_ready(WITH_SDK)
        if number:  # the first one writes the bytecode
            over.append(1000 * (importing - spent))
            ready.append(until_ready / bare)
    return over, ready


def _environment() -> dict[str, str]:
    # Users have bytecode; a development machine that forbids writing it would measure the compiler.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(HERE.parent / "sdks" / "python" / "src")}


def _started(program: str) -> tuple[float, float]:
    """Seconds until it has ended, and those that it spent itself: milliseconds are lost in what else goes on."""
    began = time.perf_counter()
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", program], _environment())
    _, status, usage = os.wait4(pid, 0)
    assert status == 0
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def _until_ready(argv: tuple[str, ...]) -> float:
    began = time.perf_counter()
    with _talking(argv):
        return time.perf_counter() - began


@contextmanager
def _talking(argv: tuple[str, ...]) -> Iterator["subprocess.Popen[bytes]"]:
    """An extension that has said it is ready."""
    with subprocess.Popen(
        argv, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin and process.stdout
        process.stdin.write(_ACK)
        process.stdin.flush()
        while b'"ready"' not in process.stdout.readline():
            pass
        yield process
        process.kill()


async def _round_trip(process: "subprocess.Popen[bytes]", calls: int) -> float:
    """Seconds of the median call. Blocks: nothing else is to run meanwhile."""
    assert process.stdin and process.stdout
    taken = []
    for number in range(calls):
        line = b'{"type":"tool_call","id":"%d","name":"echo","args":{"text":"%s"}}\n' % (number, b"x" * 60)
        began = time.perf_counter()
        process.stdin.write(line)
        process.stdin.flush()
        process.stdout.readline()
        taken.append(time.perf_counter() - began)
    return median(taken)


if __name__ == "__main__":
    for measured in run():
        print(measured.line())
