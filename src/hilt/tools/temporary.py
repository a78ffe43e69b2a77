"""The names of half-written files, and clearing away those that a killed process left behind.

A file under such a name is whole or not, but never in use for long: it becomes the target by a rename
or is removed. Only SIGKILL or a power cut leaves one.
"""

import os
import re
import time
from itertools import islice

_NAME = re.compile(r"\.hilt-[0-9a-f]{16}\.tmp")
_STALE_SECONDS = 3_600
"""Far longer than any write takes, so that nobody's running write loses its file."""
_MOST_ENTRIES = 10_000  # looked at; a folder may hold millions, and the write waits for this


def new_name() -> str:
    return f".hilt-{os.urandom(8).hex()}.tmp"


def clear_stale(folder: int) -> None:
    """Remove our own old leftovers from this folder. A tidying: whatever prevents it is no reason not to write."""
    try:
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)  # `folder` may not be listable
    except OSError:
        return
    try:
        with os.scandir(fd) as entries:
            for entry in islice(entries, _MOST_ENTRIES):
                if _NAME.fullmatch(entry.name) and _is_stale(entry):
                    os.unlink(entry.name, dir_fd=folder)
    except OSError:
        pass
    finally:
        os.close(fd)


def _is_stale(entry: os.DirEntry[str]) -> bool:
    status = entry.stat(follow_symlinks=False)
    ours = entry.is_file(follow_symlinks=False) and status.st_uid == os.geteuid()
    return ours and time.time() - status.st_mtime > _STALE_SECONDS
