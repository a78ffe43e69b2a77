"""On which pipes a program will speak, as far as that can be known before it runs.

A manifest may say. Where it does not, the program's own file tells: one that knows of descriptors 3 and 4 must ask for
the variable that announces them, so its name stands in the file. All others may be either, and show it themselves.
"""

import os
import stat
from pathlib import Path
from typing import Literal, TypeAlias

from hilt.packages.manifest import RUNTIMES, Manifest

Pipes: TypeAlias = Literal["stdio", "fd34", "either"]

_ANNOUNCED = b"PIGLET_FD"
_PIECE = 1024 * 1024
_MOST_SEARCHED = 256 * 1024 * 1024


def pipes_of(manifest: Manifest, directory: Path) -> Pipes:
    """Reads its files, so it may take some milliseconds, and never raises."""
    if manifest.dialect == "frames":
        return "stdio"
    if manifest.pipes:
        return "fd34" if manifest.pipes == "fd" else "stdio"
    own = "" if manifest.exec in RUNTIMES else manifest.exec
    files = (directory / name for name in (manifest.entry, own) if name)
    return "fd34" if any(map(_mentions, files)) else "either"


def _mentions(file: Path) -> bool:
    """Read, not mapped into memory: it may be replaced meanwhile by a shorter one, which nobody should die of."""
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb", 0) as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                return False
            rest = b""
            for _ in range(_MOST_SEARCHED // _PIECE):
                piece = opened.read(_PIECE)
                if not piece:
                    return False
                if _ANNOUNCED in rest + piece:
                    return True
                rest = piece[-len(_ANNOUNCED) :]
    except (OSError, ValueError):
        pass  # what is wrong with it is said when it is started
    return False
