"""How the texts of two trees differ, line by line, for somebody who is about to agree to the newer one."""

import re
from collections.abc import Iterator
from pathlib import Path

from hilt.packages.trees import Changes

_LARGEST = 256 * 1024


def differences(old: Path, new: Path, changes: Changes) -> str:
    """A unified diff of every file that is text in both, or in the one that has it. Others are named."""
    return "".join(
        piece
        for path in sorted({*changes.added, *changes.changed, *changes.removed})
        for piece in _difference(path, _lines(old / path), _lines(new / path))
    )


def _difference(path: str, before: list[str] | None, after: list[str] | None) -> Iterator[str]:
    from difflib import unified_diff  # 10 ms, and few updates are looked at

    if before is None or after is None:
        yield f"{path}: not shown, for it is not text, or too long\n"
        return
    for line in unified_diff(before, after, f"before/{path}", f"after/{path}"):
        yield line if line.endswith("\n") else f"{line}\n"


def _lines(path: Path) -> list[str] | None:
    """Nothing for one that is not there, None for one that cannot be shown."""
    if path.is_symlink():
        return [f"-> {path.readlink()}\n"]
    if not path.exists():
        return []
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        # Only what every program takes for the end of a line: a separator that few know must not seem to be one.
        return re.findall(r"[^\n]*\n|[^\n]+", path.read_bytes().decode())
    except (OSError, UnicodeDecodeError):
        return None
