"""Which program a bare word means (A27)."""

import os
from pathlib import Path

import pytest

from hilt.errors import ManifestError
from hilt.packages.discovery import discover
from hilt.packages.lookup import look_up, on_path
from hilt.packages.manifest import Manifest, resolve_exec


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def path_of(*folders: Path) -> str:
    return os.pathsep.join(map(str, folders))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_one_that_lies_in_the_project_is_passed_over_for_the_next(tmp_path: Path, project: Path) -> None:
    fake = program(project / "bin" / "python3")
    real = program(tmp_path / "usr" / "python3")
    found = look_up("python3", path_of(fake.parent, project, real.parent), project)
    assert found.found == str(real)
    assert found.passed == (f"{fake} lies in the project",)
    assert on_path("python3", path_of(fake.parent, real.parent), project) == str(real)


def test_the_project_is_where_hilt_stands_unless_it_is_said(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = program(project / "python3")
    assert on_path("python3", str(project), tmp_path / "other") == str(fake)
    monkeypatch.chdir(project)
    assert on_path("python3", str(project)) is None


def test_links_hide_nothing(tmp_path: Path, project: Path) -> None:
    fake = program(project / "python3")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(fake)
    (tmp_path / "link").symlink_to(project)
    real = program(tmp_path / "usr" / "python3")
    (project / "inside").symlink_to(real)
    assert look_up("python3", path_of(tmp_path / "bin", tmp_path / "link"), project).found is None
    assert look_up("python3", str(tmp_path / "link"), tmp_path / "link").found is None
    assert look_up("inside", str(project), project).found is None, "the link itself is the project's"


def test_a_home_directory_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = program(tmp_path / "me" / ".local" / "bin" / "tool")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert on_path("tool", str(mine.parent), tmp_path / "me") == str(mine)
    assert on_path("tool", str(mine.parent), tmp_path) == str(mine)
    assert on_path("tool", str(mine.parent), tmp_path / "me" / ".local") is None


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o703])
def test_one_that_lies_where_anybody_can_put_files_is_passed_over(tmp_path: Path, project: Path, mode: int) -> None:
    planted = program(tmp_path / "open" / "python3")
    planted.parent.chmod(mode)
    real = program(tmp_path / "usr" / "python3")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(planted)
    found = look_up("python3", path_of(planted.parent, tmp_path / "bin", real.parent), project)
    assert found.found == str(real)
    assert [f"lies in {planted.parent}, where anybody can put files" in reason for reason in found.passed] == [True] * 2


def test_one_below_a_directory_that_anybody_can_rename_in_is_passed_over(tmp_path: Path, project: Path) -> None:
    planted = program(tmp_path / "open" / "mine" / "python3")
    (tmp_path / "open").chmod(0o777)
    assert on_path("python3", str(planted.parent), project) is None
    (tmp_path / "open").chmod(0o1777)
    assert on_path("python3", str(planted.parent), project) == str(planted), "what is sticky keeps owners apart"


def test_one_that_anybody_can_change_is_passed_over(tmp_path: Path, project: Path) -> None:
    soft = program(tmp_path / "soft" / "python3", 0o757)
    real = program(tmp_path / "usr" / "python3", 0o775)
    found = look_up("python3", path_of(soft.parent, real.parent), project)
    assert found == look_up("python3", path_of(soft.parent, real.parent), project)
    assert found.found == str(real)
    assert found.passed == (f"{soft} can be changed by anybody",)


def test_relative_entries_and_what_is_no_program_are_not_even_told(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin" / "tool")
    program(tmp_path / "plain" / "tool", 0o644)
    (tmp_path / "folder" / "tool").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    found = look_up("tool", f"bin::.:./bin:{tmp_path / 'plain'}:{tmp_path / 'folder'}:{tmp_path / 'none'}", project)
    assert (found.found, found.passed) == (None, ())


def test_when_nothing_else_is_found_it_is_said_why(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = program(project / "bin" / "deno\u202e")
    monkeypatch.chdir(project)
    with pytest.raises(ManifestError) as caught:
        resolve_exec(Manifest("demo", exec=fake.name), tmp_path, str(fake.parent))
    assert "is not on PATH, but for what is not safe to run: " in caught.value.message
    assert "lies in the project" in caught.value.message
    assert "\u202e" not in caught.value.message + caught.value.hint


def test_a_project_that_has_been_removed_is_in_nobodys_way(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = program(tmp_path / "usr" / "python3")
    monkeypatch.chdir(project)
    project.rmdir()
    try:
        assert on_path("python3", str(real.parent)) == str(real)
    finally:
        os.chdir(tmp_path)


def test_a_single_file_whose_interpreter_is_not_safe_is_refused_and_it_is_said_why(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(project / "node_modules" / "node")
    file = tmp_path / "tool.js"
    file.write_text("")
    monkeypatch.chdir(project)
    path = str(project / "node_modules")
    (problem,) = discover((str(file),), tmp_path / "none", (), only_flags=True, path=path, cwd=project).problems
    assert "lies in the project" in problem.message
