"""Console blocks: the commands after `$ `, and the output they promise.

`…` in a promised line stands for any text, and a line that is only `…` for any number of lines.
A command goes on in lines that begin with `> `.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docs.fences import ROOT

_PATIENCE = 120
"""Seconds for a block of commands; one that compiles has much to do on a busy machine."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One command and what it shall print."""

    offset: int
    """Lines below the fence's opening."""
    command: str
    expected: str


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    output: str
    """What came on stdout and stderr, as a terminal would show it."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """A project directory, a home, the examples and no keys: what a reader has who begins."""

    root: Path

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def environment(self) -> Mapping[str, str]:
        # Beside this interpreter is the `hilt` under test. The proxy goes nowhere: nothing may reach a network.
        return {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.root),
            "HILT_HOME": str(self.root / "hilt"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "TERM": "dumb",
            "COLUMNS": "80",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "HTTP_PROXY": "http://127.0.0.1:9",
            # To build the standard library of Go anew takes half a minute.
            "GOCACHE": os.environ.get("GOCACHE") or str(Path.home() / ".cache" / "go-build"),
            "GOTOOLCHAIN": "local",
        }

    def prepare(self) -> None:
        self.project.mkdir(parents=True)
        (self.root / "hilt").mkdir(mode=0o700)
        (self.project / "examples").symlink_to(ROOT / "examples")

    def path(self, name: str) -> Path:
        """Where a file named in a document goes: `$HILT_HOME/…` or below the project."""
        return self.project / name.replace("$HILT_HOME", self.environment["HILT_HOME"])

    def run(self, argv: Sequence[str]) -> Ran:
        with subprocess.Popen(
            argv,
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as child:
            try:
                output, _ = child.communicate(timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                output, _ = child.communicate()
                output += f"\n[killed after {_PATIENCE} s]".encode()
        return Ran(child.returncode, output.decode())


def exchanges_in(text: str) -> list[Exchange]:
    found: list[tuple[int, list[str], list[str]]] = []
    for offset, line in enumerate(text.splitlines(), 1):
        if line.startswith("$ "):
            found.append((offset, [line[2:]], []))
        elif not found:
            raise AssertionError(f"a console block begins with a `$ ` line, not with {line!r}")
        elif line.startswith("> ") and not found[-1][2]:
            found[-1][1].append(line[2:])
        else:
            found[-1][2].append(line)
    return [Exchange(offset, "\n".join(command), "\n".join(output)) for offset, command, output in found]


def run_exchanges(exchanges: Sequence[Exchange], scratch: Scratch) -> list[str]:
    """The output of each command. They share one shell, so `$?` and variables carry over."""
    mark = f"=={os.urandom(8).hex()}=="
    # The exit code is given back after each mark, so that the next command may ask for it.
    after = f"\ncode=$?; printf '%s\\n' '{mark}'; (exit $code)\n"
    ran = scratch.run(["/bin/sh", "-c", "".join(exchange.command + after for exchange in exchanges)])
    outputs = ran.output.split(mark + "\n")
    return outputs[:-1] if len(outputs) > len(exchanges) else outputs


def matches(expected: str, output: str) -> bool:
    return pattern(expected).fullmatch(_tidy(output)) is not None


def pattern(expected: str) -> "re.Pattern[str]":
    parts: list[str] = []
    for line in _tidy(expected).splitlines(keepends=True):
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*")
        else:
            parts.append(".*".join(re.escape(part) for part in line.split("…")))
    return re.compile("".join(parts))


def _tidy(text: str) -> str:
    """Without what cannot be seen: spaces at line ends and empty lines at the end."""
    body = "\n".join(line.rstrip() for line in text.splitlines()).rstrip("\n")
    return body + "\n" if body else ""
