"""Processes that die while they write, and processes that want the same session."""

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt.sessions.log import SessionLog
from support.session_files import reread, said, texts, write_session

HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {"PYTHONPATH": str(HERE.parent)}
ROUNDS = int(os.environ.get("HILT_KILL_ROUNDS", "64"))
PARTS = 4
SEED = int(os.environ.get("HILT_KILL_SEED", "1"))


class Writer:
    """The helper process, and the lines it says."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._rest = b""
        self.saved: list[str] = []

    def start(self, path: Path, seed: int) -> int:
        assert self._process.stdin
        self._process.stdin.write(f"{path} {seed}\n".encode())
        self._process.stdin.flush()
        self.saved.clear()
        while not (line := self._line(30)).startswith("writer"):
            self.saved.append(line)  # the writer may speak before its parent says who it is
        return int(line.split()[1])

    def collect(self, seconds: float, until: str = "") -> bool:
        """Take in what is said for so long; True when the awaited line came."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                line = self._line(left)
            except TimeoutError:
                return False
            if line == until:
                return True
            self.saved.append(line)
        return False

    def _line(self, seconds: float) -> str:
        assert self._process.stdout
        deadline = time.monotonic() + seconds
        while b"\n" not in self._rest:
            if not select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError
            part = os.read(self._process.stdout.fileno(), 1 << 16)
            assert part, "the helper died"
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()


@pytest.fixture
def writer() -> Iterator[Writer]:
    command = [sys.executable, str(HERE / "append_forever.py")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=ENVIRONMENT, bufsize=0) as process:
        yield Writer(process)
        process.terminate()


def numbers(found: list[str]) -> list[int]:
    return [int(text.split()[0]) for text in found]


@pytest.mark.timeout(60 + ROUNDS)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_writer_killed_at_any_moment_loses_nothing_it_said_was_saved(
    writer: Writer, tmp_path: Path, part: int
) -> None:
    randomness = random.Random(SEED * PARTS + part)
    for number in range(max(1, ROUNDS // PARTS)):
        path = tmp_path / f"{number}.jsonl"
        pid = writer.start(path, seed=randomness.randrange(1 << 30))
        while not writer.saved:
            writer.collect(0.001)
        writer.collect(randomness.uniform(0.001, 0.080))
        os.kill(pid, signal.SIGKILL)
        assert writer.collect(30, until="dead")
        saved = len(writer.saved)
        with SessionLog.open(path) as log:
            found = numbers(texts(log))
            # All that was acknowledged, and at most the one that was being written.
            assert found == list(range(len(found)))
            assert saved <= len(found) <= saved + 1
            log.append(said(f"{len(found)}"))
            log.append(said(f"{len(found) + 1}"))
            assert log.trouble == ""
        assert numbers(reread(path)) == list(range(len(found) + 2))
        assert path.read_bytes().endswith(b"\n")
        path.unlink()


def test_two_processes_that_take_turns_lose_and_mix_nothing(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    write_session(path, 1)
    turns, appends = 5, 2000
    command = [sys.executable, str(HERE / "append_in_turns.py"), str(path)]
    processes = [
        subprocess.Popen([*command, name, str(turns), str(appends)], env=ENVIRONMENT) for name in ("left", "right")
    ]
    for process in processes:
        assert process.wait(timeout=50) == 0
    with SessionLog.open(path) as log:
        assert log.recovered == []
        found = texts(log)[1:]
    for name in ("left", "right"):
        own = [int(text.split()[1]) for text in found if text.startswith(name)]
        assert own == list(range(turns * appends))
    assert len(found) == 2 * turns * appends
