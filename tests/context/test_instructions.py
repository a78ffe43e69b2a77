import os
from pathlib import Path

import pytest

from hilt.context.instructions import find_instructions, read_system


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """Two levels below the root of a repository."""
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    folder = tmp_path / "repo" / "a" / "b"
    folder.mkdir(parents=True)
    return folder


def texts(home: Path, cwd: Path) -> list[str]:
    return [found.text for found in find_instructions(home, cwd)]


def test_the_users_own_come_first_then_each_level_down_to_the_folder(home: Path, deep: Path) -> None:
    (deep / "AGENTS.md").write_text("folder\n")
    (deep.parent.parent / "AGENTS.md").write_text("root")
    (deep.parent.parent.parent / "AGENTS.md").write_text("above the repository")
    (home / "AGENTS.md").write_text("mine")
    assert texts(home, deep) == ["mine", "root", "folder"]
    assert find_instructions(home, deep)[2].path == deep / "AGENTS.md"


def test_claude_md_counts_only_where_there_is_no_agents_md(home: Path, deep: Path) -> None:
    (deep / "AGENTS.md").write_text("agents")
    (deep / "CLAUDE.md").write_text("hidden")
    (deep.parent / "CLAUDE.md").write_text("claude")
    assert texts(home, deep) == ["claude", "agents"]


def test_without_a_repository_only_the_folder_counts(home: Path, tmp_path: Path) -> None:
    cwd = tmp_path / "x" / "y"
    cwd.mkdir(parents=True)
    (cwd / "AGENTS.md").write_text("here")
    (cwd.parent / "AGENTS.md").write_text("above")
    assert texts(home, cwd) == ["here"]


def test_the_nearest_repository_is_the_one_that_counts(home: Path, deep: Path) -> None:
    (deep.parent.parent / "AGENTS.md").write_text("outer")
    (deep.parent / "AGENTS.md").write_text("inner")
    (deep.parent / ".git").write_text("gitdir: elsewhere")
    assert texts(home, deep) == ["inner"]


def test_the_same_file_is_read_once(home: Path, deep: Path) -> None:
    (home / "AGENTS.md").write_text("shared")
    (deep / "AGENTS.md").symlink_to(home / "AGENTS.md")
    (deep.parent / "CLAUDE.md").symlink_to(home / "AGENTS.md")
    assert texts(home, deep) == ["shared"]
    assert texts(deep, deep) == ["shared"]


@pytest.mark.parametrize("target", ["{home}/key", "../../../home/key", "/proc/self/environ"])
def test_a_link_that_leads_out_of_the_project_is_told_and_not_read(home: Path, deep: Path, target: str) -> None:
    (home / "key").write_text("of the user")
    (deep / "AGENTS.md").symlink_to(target.replace("{home}", str(home)))
    (deep.parent / "CLAUDE.md").symlink_to("../README")
    (deep.parent.parent / "README").write_text("of the project")
    inside, outside = texts(home, deep)
    assert inside == "of the project"
    assert outside == f"[{deep / 'AGENTS.md'} is a link that leads out of the project, so it is not read]"


def test_a_long_file_is_cut_with_a_note(home: Path, deep: Path) -> None:
    (deep / "AGENTS.md").write_text("é" * 40_000)
    (text,) = texts(home, deep)
    assert text.startswith("é" * 32_768 + "\n\n[cut: ")
    assert "80000 bytes" in text


def test_bytes_that_are_not_utf8_are_replaced_and_a_mark_is_left_out(home: Path, deep: Path) -> None:
    (deep / "AGENTS.md").write_bytes(b"\xef\xbb\xbfcaf\xe9\n")
    assert texts(home, deep) == ["caf\ufffd"]


def test_directories_pipes_and_empty_files_are_ignored(home: Path, deep: Path) -> None:
    (home / "AGENTS.md").mkdir()
    os.mkfifo(deep / "AGENTS.md")
    (deep / "CLAUDE.md").write_text("used instead")
    (deep.parent / "AGENTS.md").write_text(" \n")
    (deep.parent.parent / "AGENTS.md").symlink_to("nowhere")
    assert texts(home, deep) == ["used instead"]


def test_a_file_that_cannot_be_read_is_not_passed_over_in_silence(home: Path, deep: Path) -> None:
    (deep / "AGENTS.md").symlink_to("AGENTS.md")
    (text,) = texts(home, deep)
    assert f"{deep}/AGENTS.md could not be read" in text


def test_a_missing_home_and_folder_yield_nothing(tmp_path: Path) -> None:
    assert find_instructions(tmp_path / "no", tmp_path / "neither") == ()
    assert read_system(tmp_path / "no") is None


def test_the_system_prompt_is_the_trimmed_file_or_none(home: Path) -> None:
    assert read_system(home) is None
    (home / "SYSTEM.md").write_text("\n")
    assert read_system(home) is None
    (home / "SYSTEM.md").write_text("\nBe brief.\n")
    assert read_system(home) == "Be brief."
