"""The beginning of a text file, read so that no file can hang or fill the process."""

import os
import stat
from pathlib import Path

from msgspec import Struct


class Excerpt(Struct, frozen=True):
    text: str
    """Bytes that are not UTF-8 are replaced; a byte order mark is left out."""
    size: int
    """Of the whole file."""
    cut: bool


def read_excerpt(path: Path, limit: int) -> Excerpt | None:
    """The file's first `limit` bytes, or None when there is no regular file. Other trouble is an `OSError`."""
    try:
        # Not opened unless it is a regular file: opening a pipe or a device may block or do something.
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return None
        data = file.read(limit + 1)
    text = data[:limit].decode("utf-8-sig", errors="replace")
    if cut := len(data) > limit:
        text = text.rstrip("\ufffd")  # the cut may have gone through a character
    return Excerpt(text, max(status.st_size, len(data)), cut)
