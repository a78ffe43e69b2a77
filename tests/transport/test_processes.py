import os
import signal
import subprocess
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from hilt.transport.processes import Held, find
from tools.kit import until


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    child = subprocess.Popen(["sleep", "300"], start_new_session=True)
    yield child
    child.kill()
    child.wait()


async def test_a_held_process_is_signalled_and_its_end_is_seen(sleeper: "subprocess.Popen[bytes]") -> None:
    (process,) = find(sleeper.pid, "no such marker")
    held = Held()
    held.hold([process, process])
    assert held.alive()
    held.send(signal.SIGKILL)
    await until(lambda: not held.alive())
    held.send(signal.SIGKILL)  # reaches nobody


def test_a_stranger_with_the_same_number_is_not_held(sleeper: "subprocess.Popen[bytes]") -> None:
    (process,) = find(sleeper.pid, "no such marker")
    held = Held()
    held.hold([replace(process, born=process.born - 1)])
    held.send(signal.SIGKILL)
    assert not held.alive()
    assert sleeper.poll() is None


def test_the_search_never_finds_this_process() -> None:
    assert all(process.pid != os.getpid() for process in find(os.getpid(), "no such marker"))
