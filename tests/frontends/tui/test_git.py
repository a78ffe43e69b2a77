"""The branch in the status line, as git itself has it on disk."""

import os
import subprocess
from pathlib import Path

import pytest

from hilt.frontends.tui.git import branch_of


def git(folder: Path, *arguments: str) -> str:
    who = {"GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e", "GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "e"}
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], env=environment, capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "feat/turnips")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_it_is_the_branch_of_a_repository_and_of_every_directory_in_it(repository: Path) -> None:
    deep = repository / "a" / "b"
    deep.mkdir(parents=True)
    assert branch_of(repository) == branch_of(deep) == "feat/turnips"


def test_a_worktree_has_a_branch_of_its_own(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "beets", str(tmp_path / "other"))
    assert branch_of(tmp_path / "other") == "beets"
    assert branch_of(repository) == "feat/turnips"


def test_without_a_branch_it_is_the_commit(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    assert branch_of(repository) == git(repository, "rev-parse", "HEAD")[:8]


def test_outside_of_a_repository_there_is_none(tmp_path: Path) -> None:
    assert branch_of(tmp_path) == ""
    assert branch_of(tmp_path / "gone") == ""


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"gitdir: /nowhere\n", b"gitdir: \x00", b"x" * 100_000])
def test_what_is_no_repository_is_passed_over(repository: Path, content: bytes) -> None:
    inner = repository / "inner"
    inner.mkdir()
    (inner / ".git").write_bytes(content)
    assert branch_of(inner) == "feat/turnips"


def test_a_pipe_in_the_place_of_a_file_holds_nothing_up(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert branch_of(tmp_path) == ""
