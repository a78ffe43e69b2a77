import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hilt.extensions import watch as watching
from hilt.extensions.watch import Watch
from hilt.packages.discovery import discover

BOUND = 10.0
WHILE = 0.25
"""Many times what it takes to notice a change; nothing fails when a machine is too slow for it."""


def put(path: Path, text: str) -> None:
    """Write it so that the file system can tell: its clock is coarse, and a test is quick."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.stat().st_ctime_ns if path.exists() else 0
    path.write_text(text)
    while path.stat().st_ctime_ns == before:
        path.write_text(text)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An extension with a program, an argument that is a file, and sources."""
    directory = tmp_path / "demo"
    manifest = {"name": "demo", "exec": "./bin/program", "args": ["--rules", "rules.txt", "x" * 5000]}
    for name, text in {
        "extension.json": json.dumps(manifest),
        "bin/program": "#!/bin/sh\n",
        "rules.txt": "none\n",
        "main.py": "pass\n",
        "lib/deep/part.mjs": "0\n",
        "state.db": "",
        "node_modules/m/index.js": "",
        ".git/hook.sh": "",
        "__pycache__/main.py": "",
    }.items():
        put(directory / name, text)
    return directory


def watch(place: Path, stable: float = 0.03) -> Watch:
    [found] = discover([str(place)], place, [place], only_flags=True, path=os.environ["PATH"], cwd=place.parent).found
    return Watch(found, interval=0.01, stable=stable)


async def notices(watched: Watch) -> None:
    async with asyncio.timeout(BOUND):
        await watched.changed()


async def rests(watched: Watch) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(WHILE):
            await watched.changed()


@pytest.mark.parametrize("name", ["extension.json", "bin/program", "rules.txt", "main.py", "lib/deep/part.mjs"])
async def test_a_change_of_what_it_was_started_from_is_noticed(directory: Path, name: str) -> None:
    watched = watch(directory)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(notices(watched))
        await asyncio.sleep(0)
        put(directory / name, "something else, longer than before\n")
    await rests(watched)


@pytest.mark.parametrize(
    "name",
    ["state.db", "state.json", "new.log", "main.pyc", "node_modules/m/index.js", ".git/hook.sh", "__pycache__/main.py"],
)
async def test_what_is_no_source_does_not_count(directory: Path, name: str) -> None:
    watched = watch(directory)
    put(directory / name, "something else\n")
    await rests(watched)


async def test_a_touch_is_no_change(directory: Path) -> None:
    watched = watch(directory)
    await rests(watched)
    os.utime(directory / "main.py", (1, 1))
    put(directory / "bin" / "program", "#!/bin/sh\n")
    await rests(watched)
    put(directory / "main.py", "a change\n")
    await notices(watched)


async def test_a_change_that_keeps_size_and_time_is_noticed(directory: Path) -> None:
    watched = watch(directory)
    await rests(watched)
    times = (directory / "main.py").stat()
    put(directory / "main.py", "PASS\n")
    os.utime(directory / "main.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    await notices(watched)


def appears(directory: Path) -> None:
    put(directory / "lib" / "new.py", "")


def disappears(directory: Path) -> None:
    (directory / "lib" / "deep" / "part.mjs").unlink()


def becomes_executable(directory: Path) -> None:
    (directory / "bin" / "program").chmod(0o755)


def is_replaced(directory: Path) -> None:
    put(directory / "new", "another program\n")
    (directory / "new").rename(directory / "bin" / "program")


def all_goes(directory: Path) -> None:
    directory.rename(directory.parent / "elsewhere")


@pytest.mark.parametrize("happens", [appears, disappears, becomes_executable, is_replaced, all_goes])
@pytest.mark.parametrize("late", [False, True])
async def test_what_happens_to_its_files_is_noticed(
    directory: Path, happens: Callable[[Path], None], late: bool
) -> None:
    watched = watch(directory)
    if late:
        await rests(watched)  # by now it knows what was there
    happens(directory)
    await notices(watched)
    await rests(watched)


async def test_a_program_that_is_built_at_last_is_noticed(directory: Path) -> None:
    (directory / "bin" / "program").unlink()
    watched = watch(directory)
    await rests(watched)
    put(directory / "bin" / "program", "#!/bin/sh\n")
    await notices(watched)


async def test_each_change_is_noticed_once(directory: Path) -> None:
    watched = watch(directory)
    await rests(watched)
    for text in ("one\n", "two, longer\n", "pass\n"):
        put(directory / "main.py", text)
        await notices(watched)
        await rests(watched)


async def test_a_file_that_is_still_being_written_delays_the_news(directory: Path) -> None:
    stable = 0.3
    watched = watch(directory, stable)
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as tasks:
        waiter = tasks.create_task(notices(watched))
        with (directory / "main.py").open("a") as file:
            for _ in range(40):
                if waiter.done():
                    break
                file.write("# more\n")
                file.flush()
                written = loop.time()
                await asyncio.sleep(0.02)
        await waiter
        assert loop.time() - written >= stable


async def test_a_cancelled_wait_loses_no_change(directory: Path) -> None:
    watched = watch(directory, stable=1.0)
    put(directory / "main.py", "a change\n")
    await rests(watched)  # cancelled in the midst of waiting for it to be still
    await notices(watched)


async def test_of_a_program_without_a_manifest_only_itself_counts(directory: Path) -> None:
    program = directory / "main.py"
    watched = watch(program)
    put(directory / "other.py", "")
    put(directory / "extension.json", "{}")
    await rests(watched)
    put(program, "a change\n")
    await notices(watched)


async def test_a_program_from_elsewhere_does_not_count(directory: Path) -> None:
    elsewhere = directory.parent / "demo-elsewhere"
    put(elsewhere, "#!/bin/sh\n")
    manifest = {"name": "demo", "exec": str(elsewhere), "args": ["../demo-elsewhere"]}
    put(directory / "extension.json", json.dumps(manifest))
    watched = watch(directory)
    put(elsewhere, "something else\n")
    await rests(watched)


@pytest.mark.timeout(20)
async def test_pipes_and_links_to_folders_are_left_alone(directory: Path) -> None:
    elsewhere = directory.parent / "elsewhere"
    put(elsewhere / "part.py", "")
    (directory / "lib" / "round").symlink_to(directory)
    (directory / "lib" / "linked").symlink_to(elsewhere)
    (directory / "nowhere.py").symlink_to("gone")
    os.mkfifo(directory / "pipe.py")
    watched = watch(directory)
    await rests(watched)
    os.mkfifo(directory / "another.py")
    put(elsewhere / "part.py", "something else\n")
    await rests(watched)
    put(directory / "main.py", "a change\n")
    await notices(watched)


async def test_only_the_five_hundred_files_nearest_to_the_top_count(directory: Path) -> None:
    for number in range(500):
        (directory / f"{number:03}.py").touch()
    watched = watch(directory)
    put(directory / "lib" / "deep" / "part.mjs", "too deep down\n")
    await rests(watched)
    put(directory / "001.py", "a change\n")
    await notices(watched)


async def test_only_so_many_entries_are_looked_at(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        put(directory / "assets" / f"{number}.png", "")
    monkeypatch.setattr(watching, "_MOST_ENTRIES", 40)
    watched = watch(directory)
    put(directory / "lib" / "deep" / "part.mjs", "too far away\n")
    await rests(watched)


async def test_of_a_file_too_large_to_be_read_any_touch_counts(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_LARGEST_READ", 3)
    watched = watch(directory)
    await rests(watched)
    put(directory / "main.py", "pass\n")
    await notices(watched)
