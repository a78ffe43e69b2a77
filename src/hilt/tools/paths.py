"""From what the model wrote to a path, and from an OS error to a sentence that helps.

Owns naming only. Opening and the jail's check at the moment of use are `files`'s.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from hilt.errors import ToolError

_MOST_ENTRIES = 2_000  # looked at when suggesting a name; a folder may hold millions
_SHOWN_ENTRIES = 20


def absolute(text: str, cwd: Path) -> Path:
    """The path meant by `text`, with `~` expanded, relative to `cwd`. `..` stays for the system to follow."""
    if not text.strip():
        raise ToolError("path is empty", hint="name a file")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise ToolError(f"path {text!r} cannot be written in the file system's encoding") from None
    if "\0" in text:
        raise ToolError(f"path {text!r} contains a NUL character")
    if text == "~" or text.startswith("~/"):
        text = os.path.expanduser(text)  # noqa: PTH111 - Path.expanduser fails where there is no home; this does not
    return cwd / text


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the OS errors of a block into `ToolError`s about this path."""
    try:
        yield
    except OSError as error:
        raise explain(error, path) from error


def explain(error: OSError, path: Path) -> ToolError:
    match error.errno:
        case errno.ENOENT:
            return _missing(path)
        case errno.ENOTDIR:
            return ToolError(f"{path}: a part of this path is a file, not a directory")
        case errno.ELOOP:
            return ToolError(f"{path}: symbolic links lead in a circle, or changed just now")
        case errno.EACCES | errno.EPERM:
            return ToolError(f"{path}: permission denied", hint="check the owner and the mode with `ls -l`")
        case errno.ENOSPC | errno.EDQUOT:
            return ToolError(f"{path}: no space left; nothing was changed", hint="free some disk space")
        case errno.ENAMETOOLONG:
            return ToolError(f"{str(path)[:200]}…: the path is too long")
        case _:
            return ToolError(f"{path}: {error.strerror or error}")


def directory_refused(path: Path) -> ToolError:
    """What to say when a file was expected; shows what is inside."""
    names = sorted(_entries(path))
    more = ", …" if len(names) > _SHOWN_ENTRIES else ""
    listing = ", ".join(names[:_SHOWN_ENTRIES]) or "(empty)"
    return ToolError(
        f"{path} is a directory; list it with bash: ls. It holds: {listing}{more}", hint="name a file inside it"
    )


def _missing(path: Path) -> ToolError:
    """Say which part of the path is missing and what is there instead."""
    existing = path.parent
    wanted = path.name
    while not existing.is_dir() and existing != existing.parent:
        existing, wanted = existing.parent, existing.name
    from difflib import get_close_matches  # 1 ms, and only a miss needs it

    names = [name.rstrip("/") for name in _entries(existing)]
    close = get_close_matches(wanted, names, n=1, cutoff=0.5)
    suggestion = f"; did you mean {existing / close[0]}?" if close else ""
    where = "" if existing == path.parent else f" ({existing} has no {wanted})"
    return ToolError(f"{path} does not exist{where}{suggestion}", hint="check the path with bash: ls")


def _entries(directory: Path) -> list[str]:
    """Names in a directory, directories marked by a slash; bounded."""
    try:
        with os.scandir(directory) as found:
            return [entry.name + "/" * entry.is_dir() for entry in islice(found, _MOST_ENTRIES)]
    except OSError:
        return []
