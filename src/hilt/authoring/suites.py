"""Tests in an extension's own language, run by what that language has for it; left out, and said so, where that is not.

What counts as a test is its name, in the extension's directory or in `tests`: `test_*.py`, `*.test.mjs`, `*.test.js`,
`*.test.ts`, `*_test.go`.
"""

import asyncio
import os
import re
import shutil
import sys
import time
from collections import deque
from pathlib import Path

from msgspec import Struct

from hilt.authoring.trying import Outcome
from hilt.transport.launch import Spec
from hilt.transport.lines import TooLong
from hilt.transport.process import Child, started

_PATIENCE = 600.0
"""Seconds for all tests of one language."""
_TAIL = 200
"""Lines of output that a failure shows."""
_PLACES = (".", "tests", "test")
_STRIPS_TYPES = (22, 18)
"""From this version on Node runs TypeScript as it is."""
_NO_TESTS = 5
"""The exit code of pytest, and of unittest since Python 3.12, when there were none."""
_UNTRACEABLE = {"PYTHONDONTWRITEBYTECODE": "1"}


class Suite(Struct, frozen=True):
    """The tests of one language, and how they are run; or why they are not."""

    name: str
    files: tuple[str, ...]
    cwd: Path
    argv: tuple[str, ...] = ()
    reason: str = ""


async def suites(path: Path) -> list[Suite]:
    """Those that lie beside an extension, if it has a directory."""
    root = _root(path)
    found = []
    if files := _files(root, "test_*.py"):
        found.append(await _python(root, files))
    if files := _files(root, "*.test.mjs", "*.test.js", "*.test.ts"):
        found.append(await _node(root, files))
    if files := _files(root, "*_test.go"):
        found.append(_go(root, files))
    return found


def _root(path: Path) -> Path:
    return path if path.is_dir() else path.parent


async def run_suite(suite: Suite) -> Outcome:
    name = f"{suite.files[0]}{f' and {len(suite.files) - 1} more' if len(suite.files) > 1 else ''}"
    if suite.reason:
        return Outcome(name, name, "skipped", 0.0, suite.name, suite.reason)
    began = time.monotonic()
    code, output = await _run(suite.argv, suite.cwd, _PATIENCE)
    seconds = time.monotonic() - began
    if code == 0:
        return Outcome(name, name, "passed", seconds, suite.name)
    if code == _NO_TESTS and suite.name == "unittest":
        reason = "pytest is not installed, and unittest finds no tests in them: pip install pytest"
        return Outcome(name, name, "skipped", seconds, suite.name, reason)
    end = f"it did not end within {_PATIENCE:g} s" if code is None else f"{suite.name} exited with {code}"
    return Outcome(name, name, "failed", seconds, suite.name, "\n".join([*output, end]))


def _files(root: Path, *patterns: str) -> tuple[str, ...]:
    return tuple(
        str(file.relative_to(root))
        for place in _PLACES
        for pattern in patterns
        for file in sorted((root / place).glob(pattern))
        if file.is_file()
    )


async def _python(root: Path, files: tuple[str, ...]) -> Suite:
    python = shutil.which("python3") or sys.executable
    code, _ = await _run((python, "-c", "import pytest"), root, _PATIENCE)
    if code == 0:
        return Suite("pytest", files, root, (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files))
    modules = tuple(file.removesuffix(".py").replace(os.sep, ".") for file in files)
    return Suite("unittest", files, root, (python, "-m", "unittest", *modules))


async def _node(root: Path, files: tuple[str, ...]) -> Suite:
    node = shutil.which("node")
    if not node:
        return Suite("node", files, root, reason="node is not on PATH")
    _, output = await _run((node, "--version"), root, _PATIENCE)
    version = _numbers(output[0] if output else "")
    if any(file.endswith(".ts") for file in files) and version < _STRIPS_TYPES:
        wanted = ".".join(map(str, _STRIPS_TYPES))
        return Suite("node", files, root, reason=f"TypeScript needs Node {wanted}, and this is {output[0]}")
    return Suite("node", files, root, (node, "--test", *files))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _go(root: Path, files: tuple[str, ...]) -> Suite:
    go = shutil.which("go")
    if not go:
        return Suite("go", files, root, reason="go is not on PATH")
    return Suite("go", files, root, (go, "test", "./..."))


async def _run(argv: tuple[str, ...], cwd: Path, patience: float) -> tuple[int | None, list[str]]:
    """The exit code, None when it took too long, and the end of what it wrote; whatever it started has ended then."""
    spec = Spec(argv=argv, cwd=cwd, env={**os.environ, **_UNTRACEABLE}, grace=0.0)
    async with started(spec) as child:
        output = _Output()
        child.channel.listen(output)
        await child.channel.finish()
        code = await _code(child, patience)
        await child.channel.drain()
        return code, [*output.lines, *child.last_words()]


async def _code(child: Child, patience: float) -> int | None:
    try:
        async with asyncio.timeout(patience):
            exit_ = await child.exited()
    except TimeoutError:
        return None
    return exit_.code if exit_.signal is None else -exit_.signal


class _Output:
    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=_TAIL)

    def line(self, line: bytes) -> None:
        self.lines.append(line.decode(errors="replace"))

    def overlong(self, line: TooLong) -> None:
        self.lines.append(f"{line.head.decode(errors='replace')}…")

    def ended(self) -> None:
        """Its exit is awaited."""

    def broken(self) -> None:
        """It need not read."""

    def stalled(self) -> None:
        """It need not read."""
