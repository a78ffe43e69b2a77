"""A hundred times the same: nothing adds up."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hilt.errors import StartError
from hilt.transport.launch import Spec
from hilt.transport.process import started
from transport.children import PATH, Heard, open_descriptors, our_children, shell

TIMES = 100
AT_ONCE = 4


async def stop(folder: Path) -> None:
    async with started(shell("read line", folder, log=folder / "x.log")) as child:
        child.channel.listen(Heard())
        child.channel.post(b"event")


async def crash(folder: Path) -> None:
    async with started(shell("echo hello; echo oh >&2; kill -SEGV $$", folder)) as child:
        child.channel.listen(Heard())
        await child.exited()


async def decide(folder: Path) -> None:
    async with started(shell("echo stray; echo '{}'; echo '{}' >&4", folder, pipes="either")) as child:
        child.channel.listen(Heard())
        await child.exited()


async def fail(folder: Path) -> None:
    with pytest.raises(StartError):
        async with started(Spec((str(folder / "nothing"),), folder, PATH)):
            pass


async def many(work: Callable[[Path], Awaitable[None]], folder: Path, times: int) -> None:
    async def repeat() -> None:
        for _ in range(times // AT_ONCE):
            await work(folder)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(repeat())


@pytest.mark.parametrize("work", [stop, crash, decide, fail])
async def test_a_hundred_lives_leave_no_descriptor_process_thread_or_task(
    tmp_path: Path, work: Callable[[Path], Awaitable[None]]
) -> None:
    await many(work, tmp_path, 16)  # threads and what is made once are there after this
    children, descriptors = our_children(), open_descriptors()
    threads, tasks = threading.active_count(), len(asyncio.all_tasks())
    await many(work, tmp_path, TIMES)
    assert our_children() == children
    assert open_descriptors().keys() == descriptors.keys()
    assert len(asyncio.all_tasks()) == tasks
    assert threading.active_count() <= threads + 6, "the pool may still have been growing, but has its size"
