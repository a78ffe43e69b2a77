"""What all tests have in common: how many run at once, what is done once for all of them, and a folder in memory."""

import gc
import os
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

import support.properties  # noqa: F401 - what it sets holds for all
from support.warming import warm

MEMORY = Path("/dev/shm")
LONG = (
    "tests/agent/test_killed.py",
    "tests/benchmarks/test_tui_benchmark.py",
    "tests/extensions/test_interruptions.py",
    "tests/extensions/test_model.py",
    "tests/soak/test_soak.py",
)


def pytest_xdist_auto_num_workers() -> int:
    """More than there are processors: much of the time a test waits for another program."""
    return (os.cpu_count() or 1) * 2


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None):  # those who run the tests are not started yet, and are not told this
        warm(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()  # all that is made now stays
    try:
        return (yield)
    finally:
        gc.freeze()  # nor need it be looked through again and again
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first, so that nobody is left alone with it in the end; else the order is a random one."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.fixture
def quick_path() -> Iterator[Path]:
    """A folder that costs no disk time, for tests that write thousands of files."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)
