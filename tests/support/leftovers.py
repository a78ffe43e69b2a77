"""What a block of code leaves behind: processes, descriptors, tasks."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from transport.children import open_descriptors, our_children


def working_in(folder: Path) -> list[str]:
    """Processes whose directory is in this one, as those of extensions are."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append(process.name)
        except OSError:
            pass  # gone, or not ours
    return found


def end_all_in(folder: Path) -> None:
    """Kill them, as far as they have not ended in the meantime, perhaps because of one another."""
    for process in working_in(folder):
        with suppress(ProcessLookupError):
            os.kill(int(process), signal.SIGKILL)


async def written_down() -> None:
    """Wait, but not for ever, until a thread that was writing down what the model is told has done so."""
    for _ in range(400):
        if not any(map(_being_written, open_descriptors().values())):
            return
        await asyncio.sleep(0.005)


def _being_written(what: str) -> bool:
    """The file itself, or, once that has its name, its directory, which is opened so that the disk has the name too."""
    return "descriptions.json" in what or Path(what, "descriptions.json").exists()


@asynccontextmanager
async def nothing_left() -> AsyncIterator[None]:
    """Fails if the block has left a child (a zombie is one), a descriptor or a task."""
    children, descriptors, tasks = our_children(), open_descriptors(), asyncio.all_tasks()
    yield
    await written_down()
    left = {number: what for number, what in open_descriptors().items() if number not in descriptors}
    assert our_children() == children, f"processes: {our_children() - children}"
    assert not left, f"descriptors: {left}"
    assert asyncio.all_tasks() == tasks, f"tasks: {asyncio.all_tasks() - tasks}"
