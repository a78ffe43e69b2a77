"""A tool call against one over the Model Context Protocol with its official Python SDK.

The SDK is no dependency of anything here: it gets an environment of its own, inside the one for development, which
stays for the next time. Without a network there is no SDK, and nothing is measured.
"""

import asyncio
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import hilt_host
from calls import ARGS
from hosts import Opening
from programs import HERE, OtherHost, Program, compiled, in_c, in_python, other_host
from report import Measured
from rounds import one_core, ratios, sequential

ROUNDS = 7
CALLS = 300
VERSION = "2.3.0"
ENVIRONMENT = HERE.parent / ".venv" / f"mcp-{VERSION}"
CLIENT = HERE / "mcp_client.py"
_INSTALLING = 180.0


def run(
    ours: Opening = hilt_host.opened, rounds: int = ROUNDS, calls: int = CALLS, environment: Path = ENVIRONMENT
) -> list[Measured]:
    with compiled("frames_echo", "mcp_echo") as folder:
        python = installed(environment) if folder else None
        if folder is None or python is None:
            return []
        with one_core(), other_host(python, CLIENT, folder / "mcp_echo") as client:
            in_c_there = asyncio.run(_compare(ours, in_c(folder), client, rounds, calls))
        with other_host(python, CLIENT, python, HERE / "mcp_server.py") as client:
            in_python_there = asyncio.run(_compare(ours, in_python(), client, rounds, calls))
    return [
        Measured("call: round trip / MCP Python SDK, C at the other end", in_c_there, round(1 / 11, 3)),
        Measured("call: round trip / MCP Python SDK, Python at both", in_python_there, 1 / 20),
    ]


def installed(environment: Path) -> Path | None:
    """The interpreter that has the SDK. None, and a line that says why, when it cannot be had."""
    python = environment / "bin" / "python"
    done = environment / ".ready"
    if done.exists():
        return python
    try:
        _do(sys.executable, "-m", "venv", environment)
        _do(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"mcp=={VERSION}")
        done.touch()
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(environment, ignore_errors=True)
        told = getattr(error, "stderr", None) or str(error)
        print(f"mcp_sdk: mcp {VERSION} cannot be installed, so it is not measured: {told.strip()}", file=sys.stderr)
        return None
    return python


def _do(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_INSTALLING)


async def _compare(ours: Opening, program: Program, client: OtherHost, rounds: int, calls: int) -> list[float]:
    async with ours([program]) as host:
        work = partial(host.call, program.name, ARGS)
        return await ratios(rounds, partial(client.median, calls), partial(sequential, work, calls))


if __name__ == "__main__":
    for measured in run():
        print(measured.line())
