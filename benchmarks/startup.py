"""How long hilt takes to start, as multiples of `python -c pass` in the same rounds."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import Measured

ROUNDS = 15


def run(rounds: int = ROUNDS) -> list[Measured]:
    hilt = str(Path(sys.executable).with_name("hilt"))
    goals = {
        "hilt --version / python -c pass": ([hilt, "--version"], 1.5),
        "hilt --help / python -c pass": ([hilt, "--help"], 2.5),
        "first headless prompt / python -c pass": ([hilt, "-p", "hello"], 10.0),
    }
    with tempfile.TemporaryDirectory() as scratch:
        baseline = [sys.executable, "-c", "pass"]
        commands = [baseline, *(command for command, _ in goals.values())]
        for command in commands:  # write the bytecode, fill the caches
            _time(command, scratch)
        ratios: dict[str, list[float]] = {name: [] for name in goals}
        for _ in range(rounds):
            base = _time(baseline, scratch)
            for name, (command, _goal) in goals.items():
                ratios[name].append(_time(command, scratch) / base)
    return [Measured(name, ratios[name], goal) for name, (_, goal) in goals.items()]


def _time(command: list[str], scratch: str) -> float:
    # Users have bytecode; a development machine that forbids writing it would measure the compiler.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"HILT_HOME": str(Path(scratch, "home"))}
    began = time.perf_counter()
    subprocess.run(command, env=environment, cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    for measured in run():
        print(measured.line())
