"""Whether an installed extension is still what was installed: looked at each time before it is started.

Files it recorded must be there, unchanged. What was added is its state, unless it could be run or decides what runs.
"""

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from hilt.packages.install.lock import Entry
from hilt.packages.manifest import MANIFESTS
from hilt.packages.trees import CHUNK, DIRECTORY, FILE, Changes, File, leaves

if TYPE_CHECKING:
    from collections.abc import Callable
    from hashlib import _Hash

_RUNNABLE = (
    *(".py", ".pyc", ".pyw", ".pth", ".so", ".dylib", ".node", ".wasm", ".jar", ".sh", ".bash"),
    *(".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".rb", ".pl", ".pm", ".lua", ".php"),
)
_DECIDING = (
    *(*MANIFESTS, "package.json", "pyvenv.cfg", "bunfig.toml", "deno.json", "deno.jsonc", "tsconfig.json"),
    *(".python-version", ".node-version", ".nvmrc", ".ruby-version", ".tool-versions", "mise.toml", ".mise.toml"),
)
"""Names of files by which others are run: by a runtime, or by what chooses one by the directory it is started in."""


def verify(entry: Entry, directory: Path) -> Changes:
    """What is not as it was installed. Never raises for what is found there; what cannot be read counts as changed."""
    from hashlib import sha256  # loads a large library, and is for nothing where nothing was installed

    recorded = entry.tree.files
    added: list[str] = []
    changed: list[str] = []
    seen: set[str] = set()
    try:
        top = os.open(directory, DIRECTORY)
    except OSError:
        return Changes(removed=tuple(sorted(recorded)))
    try:
        for path, found, within in leaves(top, unreadable=lambda _: None):
            file = recorded.get(path)
            if file is None:
                if _counts(path, found):
                    added.append(path)
                continue
            seen.add(path)
            if not _same(file, found.name, within, sha256):
                changed.append(path)
    except OSError as error:
        changed.append(str(error.filename or directory))
    finally:
        os.close(top)
    return Changes(tuple(sorted(added)), tuple(sorted(recorded.keys() - seen)), tuple(sorted(changed)))


def strays(entry: Entry, directory: Path) -> tuple[str, ...]:
    """Files beside those that were installed: state, or whatever else. Raises `OSError`."""
    top = os.open(directory, DIRECTORY)
    try:
        return tuple(sorted(path for path, _, _ in leaves(top) if path not in entry.tree.files))
    finally:
        os.close(top)


def runnable(path: str) -> bool:
    """Whether its name says that it could be run, or decides what runs."""
    return path.endswith(_RUNNABLE) or path.rpartition("/")[2] in _DECIDING


def _counts(path: str, found: "os.DirEntry[str]") -> bool:
    if runnable(path):
        return True
    try:
        mode = found.stat(follow_symlinks=False).st_mode
    except OSError:
        return False  # gone again
    # Where a link leads may be anything, now or later.
    return stat.S_ISLNK(mode) or (stat.S_ISREG(mode) and bool(mode & 0o111))


def _same(file: File, name: str, within: int, sha256: "Callable[..., _Hash]") -> bool:
    try:
        if file.link:
            return os.readlink(name, dir_fd=within) == file.link
        fd = os.open(name, FILE, dir_fd=within)
    except OSError:
        return False
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_size != file.size:
            return False
        if bool(about.st_mode & 0o111) != file.executable:
            return False
        digest, left = sha256(), file.size
        # No further than it should reach, however it grows meanwhile.
        while left and (chunk := os.read(fd, min(left, CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
        return digest.hexdigest() == file.sha256
    except OSError:
        return False
    finally:
        os.close(fd)
