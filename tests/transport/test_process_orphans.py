"""Orphans become ours when asked for, are reaped, and nobody's own child is taken away."""

import subprocess
import sys
from pathlib import Path

HOST = """
import asyncio, os, subprocess, sys
from pathlib import Path
sys.path[:0] = {path!r}
from hilt.transport.orphans import adopt_orphans
from transport.children import our_children, state, until

ORPHANS = "for n in 1 2 3; do setsid sh -c 'sleep 0.1' & done; sleep 300 & echo $!"

async def main():
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        adopting = group.create_task(adopt_orphans())
        await asyncio.sleep(0.1)
        for _ in range(5):
            own = subprocess.Popen(["sh", "-c", "exit 42"])
            await asyncio.sleep(0.2)  # its owner is not the quickest
            assert own.wait() == 42
        out = (await asyncio.to_thread(subprocess.run, ["sh", "-c", ORPHANS], stdout=subprocess.PIPE)).stdout
        survivor = int(out)
        print("adopted", survivor in our_children())
        os.kill(survivor, 9)
        await until(lambda: not our_children())
        print("children", our_children())
        adopting.cancel()

asyncio.run(main())
"""


def test_orphans_are_adopted_and_leave_no_zombie(tmp_path: Path) -> None:
    code = HOST.format(path=sys.path)
    command = [sys.executable, "-c", code.replace("sleep 300 & echo $!", "sleep 300 >/dev/null & echo $!")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["adopted True", "children set()"]
