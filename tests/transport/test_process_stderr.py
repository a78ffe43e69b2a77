"""What children complain about: kept small, kept private, and never their or our problem."""

import asyncio
import os
import stat
import time
from pathlib import Path

import pytest

from hilt.transport.process import started
from hilt.transport.stderr import Log, Stderr
from transport.children import python, shell, until

MEGABYTE = 1024 * 1024


async def test_a_flood_fills_two_files_at_most_and_leaves_the_loop_free(tmp_path: Path) -> None:
    log = tmp_path / "ext.log"
    code = f"import os\nfor n in range(14): os.write(2, b'x' * 79 + b'\\n' + b'y' * ({MEGABYTE} - 81) + b'\\n')"
    longest, size = 0.0, 0
    async with started(python(code, tmp_path, log=log)) as child:
        exited = asyncio.Event()

        async def look() -> None:
            nonlocal longest, size
            while not exited.is_set():
                before = time.perf_counter()
                await asyncio.sleep(0)
                longest = max(longest, time.perf_counter() - before)
                size = max(size, sum(path.stat().st_size for path in tmp_path.glob("ext.log*")))

        async with asyncio.TaskGroup() as group:
            group.create_task(look())
            await child.exited()
            exited.set()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ext.log", "ext.log.1"]
    assert 5 * MEGABYTE < size <= 10 * MEGABYTE
    assert longest < 1


async def test_a_flood_is_read_at_a_limited_rate(tmp_path: Path) -> None:
    code = f"import os\nfor n in range(6): os.write(2, b'x' * {MEGABYTE})"
    begun = time.monotonic()
    async with started(python(code, tmp_path)) as child:
        await child.exited()
    assert time.monotonic() - begun > 0.4


async def test_last_words_of_one_endless_line_are_its_end(tmp_path: Path) -> None:
    async with started(python("import os; os.write(2, b'x' * 200_000 + b'end')", tmp_path)) as child:
        await child.exited()
        (line,) = child.last_words()
    assert line.endswith("xend") and len(line) < 20_000


async def test_last_words_are_complete_although_a_flood_came_before_them(tmp_path: Path) -> None:
    code = f"import os\nos.write(2, b'x' * ({MEGABYTE} + 300_000)); os.write(2, b'\\ngoodbye')"
    async with started(python(code, tmp_path)) as child:
        await child.exited()
        assert child.last_words()[-1] == "goodbye"


def occupy_with_directory(path: Path) -> None:
    path.mkdir()


def occupy_with_link(path: Path) -> None:
    path.symlink_to(path.with_name("elsewhere"))


def occupy_with_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("occupy", [occupy_with_directory, occupy_with_link, occupy_with_pipe])
async def test_a_place_that_cannot_hold_a_log_is_reported_and_the_program_runs(tmp_path: Path, occupy: object) -> None:
    log = tmp_path / "ext.log"
    assert callable(occupy)
    occupy(log)
    async with started(shell("echo oh >&2; cat", tmp_path, log=log)) as child:
        await until(lambda: child.last_words() == ["oh"])
        assert child.log_failure is not None
        assert child.exit is None
    assert not (tmp_path / "elsewhere").exists()


async def test_a_full_disk_is_not_the_programs_problem(tmp_path: Path) -> None:
    async with started(shell("echo oh >&2 && cat", tmp_path, log=Path("/dev/full"))) as child:
        await until(lambda: child.last_words() == ["oh"])
        assert child.log_failure is not None and child.exit is None


def test_a_log_that_exists_is_continued_and_made_private(tmp_path: Path) -> None:
    path = tmp_path / "ext.log"
    path.write_text("before\n")
    path.chmod(0o644)
    log = Log(path)
    log.write(b"after\n")
    log.close()
    assert path.read_text() == "before\nafter\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_that_share_a_log_rotate_it_once(tmp_path: Path) -> None:
    path = tmp_path / "ext.log"
    one, other = Log(path, 100), Log(path, 100)
    one.write(b"a" * 90)
    other.write(b"b" * 20)  # rotates
    one.write(b"c" * 20)  # still has the old file, which is full
    one.close()
    other.close()
    assert path.read_bytes() == b"b" * 20 + b"c" * 20
    assert path.with_name("ext.log.1").read_bytes() == b"a" * 90


def test_a_removed_log_is_made_again_when_it_is_full(tmp_path: Path) -> None:
    path = tmp_path / "ext.log"
    log = Log(path, 100)
    log.write(b"a" * 90)
    path.unlink()
    log.write(b"b" * 20)
    log.close()
    assert path.read_bytes() == b"b" * 20
    assert log.failure is None


async def test_nothing_that_it_writes_passes_for_a_remark_of_ours(tmp_path: Path) -> None:
    log = tmp_path / "ext.log"
    pieces = [
        "[hilt] a\n",
        "\x1b[m[hilt] b\n",
        "c ",
        "[hilt] d\n",
        "e\n[hi",
        "lt] f\n",
        "\u200b[hilt] g\n",
        "\t[hilt] h\n",
    ]
    read, write = os.pipe()
    os.set_blocking(read, False)
    stderr = Stderr(read, Log(log))
    for piece in pieces:
        os.write(write, piece.encode())
        stderr.catch_up()  # so that each is read by itself
    os.close(write)
    stderr.close()
    lines = log.read_text().split("\n")
    assert lines == [
        " [hilt] a",
        " \x1b[m[hilt] b",
        "c [hilt] d",
        "e",
        " [hilt] f",
        " \u200b[hilt] g",
        "\t[hilt] h",
        "",
    ]
