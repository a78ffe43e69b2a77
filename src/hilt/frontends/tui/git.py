"""The branch that is checked out in a directory, read from git's own file: running git for it would take too long."""

from pathlib import Path

_LONGEST = 4096


def branch_of(directory: Path) -> str:
    """Its name, the beginning of a commit's hash when none is checked out, or nothing outside of a repository."""
    for parent in (directory, *directory.parents):
        try:
            head = _head(parent / ".git")
        except (OSError, ValueError):
            continue
        if head:
            return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else head[:8]
    return ""


def _head(git: Path) -> str:
    if git.is_file():  # a worktree says where its own files are
        git = git.parent / _read(git).removeprefix("gitdir: ")
    return _read(git / "HEAD") if (git / "HEAD").is_file() else ""  # to open a pipe may take for ever


def _read(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(_LONGEST).strip()
