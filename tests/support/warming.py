"""Compiles once what everyone who runs tests, and every hilt that they start, would else compile for themselves.

That is the program, and the tests with their asserts rewritten, which takes longer than most of them do. It writes
what Python itself writes where it may; some environments forbid that, and there each process would start from nothing.
"""

import compileall
import os
from pathlib import Path

import pytest

_TESTS = Path(__file__).parent.parent
_PROGRAM = _TESTS.parent / "src"


def warm(config: pytest.Config) -> None:
    """On all processors. Whatever cannot be done here is done where it is needed."""
    at_once = os.cpu_count() or 1
    files = sorted(_TESTS.rglob("test_*.py"))
    children = [_forked(config, files[first::at_once], program=not first) for first in range(at_once)]
    for child in children:
        os.waitpid(child, 0)


def _forked(config: pytest.Config, files: list[Path], *, program: bool) -> int:
    if child := os.fork():
        return child
    try:
        if program:
            compileall.compile_dir(_PROGRAM, quiet=2)
        _rewrite(config, files)
    finally:
        os._exit(0)


def _rewrite(config: pytest.Config, files: list[Path]) -> None:
    """pytest has no public way to do this without running what is in the files."""
    from _pytest.assertion import rewrite

    state = config.stash[rewrite.assertstate_key]
    for file in files:
        cache = rewrite.get_cache_dir(file)
        compiled = cache / f"{file.stem}{rewrite.PYC_TAIL}"
        if rewrite._read_pyc(file, compiled) is None and rewrite.try_makedirs(cache):
            seal, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(state, code, seal, compiled)
