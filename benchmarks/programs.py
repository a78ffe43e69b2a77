"""The programs at the other end: compiled on the spot, described in one way for every host.

An extension has one tool, which carries the extension's own name.
"""

import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Program:
    name: str
    argv: tuple[str, ...]
    dialect: Literal["frames", "jsonrpc"] = "frames"


@contextmanager
def compiled(*sources: str) -> Iterator[Path | None]:
    """A folder with these programs for as long as the block. None, and a line that says so, without a compiler."""
    if shutil.which("cc") is None:
        print(f"{', '.join(sources)}: no C compiler, so there is nothing to measure with", file=sys.stderr)
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        for source in sources:
            subprocess.run(["cc", "-O2", "-o", Path(folder, source), HERE / f"{source}.c"], check=True)
        yield Path(folder)


def in_c(folder: Path, name: str = "echo", *options: str) -> Program:
    """The options are those of `frames_echo.c`."""
    return Program(name, (str(folder / "frames_echo"), "-t", name, *options))


def several_in_c(folder: Path, count: int, *options: str) -> list[Program]:
    return [in_c(folder, f"echo{number}", *options) for number in range(count)]


def in_python(name: str = "echo") -> Program:
    """Without `site` and the environment: half the time of a plain start."""
    return Program(name, (sys.executable, "-I", "-S", "-E", str(HERE / "frames_echo.py"), name))


def write_manifest(program: Program, folder: Path) -> Path:
    """Make it an extension that a host can be pointed at; its folder."""
    home = folder / program.name
    home.mkdir()
    executable, *args = program.argv
    if program.dialect == "jsonrpc":
        # Its manifest has no arguments.
        script = home / "run"
        script.write_text(f"#!/bin/sh\n# PIGLET_FD\nexec {shlex.join(program.argv)}\n")
        script.chmod(0o755)
        (home / "manifest.yaml").write_text(f"name: {program.name}\nversion: '1'\nruntime: ./run\n")
        return home
    manifest = {"name": program.name, "version": "1", "exec": executable, "args": args}
    (home / "extension.json").write_text(json.dumps(manifest))
    return home


class OtherHost:
    """A host that is a program of its own, with its extension: told a number, it makes so many calls."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    async def median(self, calls: int) -> float:
        """Seconds of the median call. Blocks: nothing else is to run meanwhile."""
        assert self._process.stdin and self._process.stdout
        print(calls, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())


@contextmanager
def other_host(*argv: str | Path) -> Iterator[OtherHost]:
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield OtherHost(process)
