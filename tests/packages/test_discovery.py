import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hilt.errors import ManifestError
from hilt.packages.discovery import Discovery, Found, discover, find_again


class Places:
    """A home, a project, and a place for programs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.user, self.project, self.cwd = root / "home" / "extensions", root / "work" / "extensions", root / "cwd"
        self.cwd.mkdir()
        self.path = str(root / "bin")

    def add(self, directory: Path, **fields: Any) -> Path:
        """An extension named after its directory, unless the fields say otherwise."""
        directory.mkdir(parents=True, exist_ok=True)
        manifest = {"name": directory.name, "exec": "./run"} | fields
        (directory / "extension.json").write_text(json.dumps(manifest))
        return directory

    def program(self, path: Path, mode: int = 0o755) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(mode)
        return path

    def discover(self, *flags: str | Path, only_flags: bool = False) -> Discovery:
        return discover(
            [str(flag) for flag in flags],
            self.user,
            [self.project],
            only_flags=only_flags,
            path=self.path,
            cwd=self.cwd,
        )


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def names(extensions: Sequence[Found]) -> list[str]:
    return [found.manifest.name for found in extensions]


def only(places: Places, *flags: str | Path) -> Found:
    discovery = places.discover(*flags)
    assert (discovery.problems, discovery.disabled) == ((), ())
    [found] = discovery.found
    return found


def test_where_nothing_is_nothing_is_found(places: Places) -> None:
    assert places.discover() == Discovery((), (), ())


def test_flags_come_first_then_the_users_then_the_projects_sorted_by_directory(places: Places) -> None:
    for directory in (places.project / "d", places.project / "c", places.user / "f", places.user / "e"):
        places.add(directory)
    discovery = places.discover(places.add(places.root / "z"), places.add(places.root / "y"))
    assert names(discovery.found) == ["z", "y", "e", "f", "c", "d"]
    assert [found.source for found in discovery.found] == ["flag", "flag", "user", "user", "project", "project"]
    assert [found.order for found in discovery.found] == [0, 1, 2, 3, 4, 5]
    assert discovery.problems == ()


def test_without_discovery_only_flags_count(places: Places) -> None:
    places.add(places.user / "mine")
    places.add(places.project / "theirs")
    assert names(places.discover(places.add(places.root / "named"), only_flags=True).found) == ["named"]


def test_what_comes_with_a_project_has_a_name_that_none_of_the_users_own_can_have(places: Places) -> None:
    for place in ("a", "b", "c"):
        places.add(places.root / place / f"of-{place}")
    places.add(places.root / "b" / "of-a")  # the first place keeps the name
    projects = [places.root / place for place in ("c", "a", "b")]
    discovery = discover((), places.user, projects, only_flags=False, path=places.path, cwd=places.cwd)
    assert [found.name for found in discovery.found] == ["project:of-c", "project:of-a", "project:of-b"]
    assert [(problem.name, problem.where) for problem in discovery.problems] == [
        ("project:of-a", str(places.root / "b" / "of-a"))
    ]
    places.add(places.user / "mine", name="project:of-c")
    [wrong] = places.discover().problems
    assert '"name" must match' in wrong.message


def test_a_flag_is_relative_to_the_working_directory_and_knows_the_home(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(places.root))
    directories = [places.cwd / "sub" / "a", places.root / "b", places.root / "c"]
    for directory in directories:
        places.add(directory)
    discovery = places.discover("sub/a", "~/b", "../c")
    assert [found.directory for found in discovery.found] == directories
    assert [found.argv for found in discovery.found] == [(f"{found.directory}/run",) for found in discovery.found]
    assert discovery.problems == ()


def test_a_flag_that_goes_up_from_a_link_goes_where_the_file_system_goes(places: Places) -> None:
    places.add(places.cwd / "demo", name="decoy")
    wanted = places.add(places.root / "far" / "demo")
    (places.root / "far" / "folder").mkdir()
    (places.cwd / "link").symlink_to(places.root / "far" / "folder")
    assert only(places, "link/../demo").directory == wanted


def test_a_flag_may_name_the_manifest_itself(places: Places) -> None:
    directory = places.add(places.root / "demo")
    found = only(places, directory / "extension.json")
    assert (found.directory, found.manifest.name, found.file) == (directory, "demo", None)


@pytest.mark.parametrize("flag", ["", "nowhere", "~nobody-of-that-name/x", "/dev/null", "a\0b"])
def test_a_flag_that_names_nothing_usable_is_a_problem_with_a_hint(places: Places, flag: str) -> None:
    discovery = places.discover(flag)
    [problem] = discovery.problems
    assert discovery.found == ()
    assert "--ext" in problem.message and "--ext takes" in problem.hint


def test_a_flagged_directory_without_a_manifest_is_a_problem_and_a_found_one_is_not(places: Places) -> None:
    (places.user / "empty").mkdir(parents=True)
    (places.user / "file").write_text("")
    assert places.discover() == Discovery((), (), ())
    [problem] = places.discover(places.user / "empty").problems
    assert "extension.json" in problem.message and '{"name": ' in problem.hint
    assert problem.where == str(places.user / "empty")


def test_hidden_directories_are_passed_over_and_linked_ones_are_not(places: Places) -> None:
    places.add(places.user / ".hidden", name="hidden")
    real = places.add(places.root / "elsewhere" / "linked")
    (places.user / "link").symlink_to(real)
    found = only(places)
    assert (found.manifest.name, found.directory) == ("linked", places.user / "link")


def test_a_link_that_leads_nowhere_is_said(places: Places) -> None:
    places.user.mkdir(parents=True)
    (places.user / "moved").symlink_to(places.root / "gone")
    [problem] = places.discover().problems
    assert problem.where == str(places.user / "moved")
    assert "leads nowhere" in problem.message


def test_a_broken_manifest_is_a_problem_and_the_others_are_found(places: Places) -> None:
    places.add(places.user / "a", args="x")
    places.add(places.user / "b")
    (places.add(places.user / "c") / "extension.json").write_bytes(b"\xff")
    (places.add(places.user / "d") / "extension.json").unlink()
    (places.user / "d" / "extension.json").symlink_to("gone")
    discovery = places.discover()
    assert names(discovery.found) == ["b"]
    assert [(problem.name, problem.where) for problem in discovery.problems] == [
        (name, str(places.user / name)) for name in ("a", "c", "d")
    ]
    assert all(str(places.user) in problem.message and problem.hint for problem in discovery.problems)


def test_a_program_that_is_not_on_the_path_is_a_problem_that_names_it(places: Places) -> None:
    places.add(places.user / "a", exec="node")
    [problem] = places.discover().problems
    assert problem.name == "a"
    assert "node is not on PATH" in problem.message and "install node" in problem.hint
    node = places.program(places.root / "bin" / "node")
    assert only(places).argv == (str(node),)


def test_of_one_name_the_first_keeps_it_and_the_other_is_a_conflict_of_both_places(places: Places) -> None:
    flagged = places.add(places.root / "x", name="demo")
    mine = places.add(places.user / "y", name="demo")
    theirs = places.add(places.project / "a", name="DEMO")
    discovery = places.discover(flagged)
    assert [found.directory for found in discovery.found] == [flagged]
    assert [(problem.name, problem.where) for problem in discovery.problems] == [
        ("demo", str(mine)),
        ("project:DEMO", str(theirs)),
    ]
    for problem in discovery.problems:
        assert "conflict" in problem.message and problem.hint
        assert str(flagged) in problem.message and problem.where in problem.message
    assert [found.directory for found in places.discover().found] == [mine]


@pytest.mark.parametrize("trouble", [{"enabled": False}, {"exec": "not-there"}, {"args": 5}])
def test_a_project_cannot_take_the_name_of_one_of_the_users_that_does_not_run(
    places: Places, trouble: dict[str, Any]
) -> None:
    mine = places.add(places.user / "x", **({"name": "guard"} | trouble))
    theirs = places.add(places.project / "guard")
    discovery = places.discover()
    assert discovery.found == ()
    problem = discovery.problems[-1]
    assert "conflict" in problem.message and str(mine) in problem.message and problem.where == str(theirs)


def test_a_manifest_that_cannot_be_read_keeps_the_name_of_its_directory(places: Places) -> None:
    (places.add(places.user / "guard") / "extension.json").write_text("{")
    places.add(places.project / "x", name="guard")
    discovery = places.discover()
    assert discovery.found == ()
    assert [problem.where for problem in discovery.problems] == [str(places.user / "guard"), str(places.project / "x")]


@pytest.mark.parametrize("target", ["gone", "guard"])
def test_a_link_that_cannot_be_followed_keeps_its_name_too(places: Places, target: str) -> None:
    places.user.mkdir(parents=True)
    (places.user / "guard").symlink_to(target)
    theirs = places.add(places.project / "guard")
    discovery = places.discover()
    assert discovery.found == ()
    assert [problem.where for problem in discovery.problems] == [str(places.user / "guard"), str(theirs)]
    assert "conflict" in discovery.problems[1].message


def test_one_directory_named_twice_is_loaded_once_and_is_no_conflict(places: Places) -> None:
    mine = places.add(places.user / "demo")
    (places.root / "link").symlink_to(places.user)
    (places.project).parent.mkdir()
    (places.project).symlink_to(places.user)
    discovery = places.discover(mine, places.root / "link" / "demo", f"{mine}/../demo/")
    assert [(found.directory, found.source) for found in discovery.found] == [(mine, "flag")]
    assert discovery.problems == ()


def test_a_disabled_one_is_kept_apart_and_nothing_is_looked_up_for_it(places: Places) -> None:
    places.add(places.user / "off", enabled=False, exec="not-on-path")
    places.add(places.user / "on")
    discovery = places.discover()
    assert names(discovery.found) == ["on"]
    [off] = discovery.disabled
    assert (off.manifest.name, off.argv, off.runs) == ("off", (), False)
    assert discovery.problems == ()
    assert {found.order for found in (*discovery.found, *discovery.disabled)} == {0, 1}


def test_a_flag_runs_even_what_is_disabled(places: Places) -> None:
    directory = places.add(places.user / "off", enabled=False)
    found = only(places, directory)
    assert found.runs and found.argv == (f"{directory}/run",)


def test_a_disabled_one_does_not_stand_against_a_flag_of_its_name(places: Places) -> None:
    places.add(places.user / "demo", enabled=False)
    assert only(places, places.add(places.root / "demo")).source == "flag"


def test_what_has_nothing_to_start_is_neither_found_nor_a_problem(places: Places) -> None:
    themes = places.add(places.user / "theme", exec="")
    (themes / "theme.json").write_text("{}")
    places.add(places.user / "skills", exec="", skills=["s"])
    assert places.discover(themes) == Discovery((), (), ())


def test_an_executable_file_is_an_extension_of_its_own(places: Places) -> None:
    file = places.program(places.cwd / "my tool.sh")
    found = only(places, "my tool.sh")
    assert (found.manifest.name, found.argv, found.directory, found.file) == ("my-tool", (str(file),), places.cwd, file)


def test_a_python_file_need_not_be_executable(places: Places) -> None:
    file = places.program(places.cwd / "demo.py", 0o644)
    assert only(places, file).argv == (sys.executable, str(file))
    python = places.program(places.root / "bin" / "python3")
    assert only(places, file).argv == (str(python), str(file))
    file.chmod(0o755)
    assert only(places, file).argv == (str(file),)


def test_a_file_that_cannot_run_or_has_no_name_is_a_problem(places: Places) -> None:
    plain = places.program(places.cwd / "plain.txt", 0o644)
    nameless = places.program(places.cwd / "日本")
    first, second = places.discover(plain, nameless).problems
    assert "is not executable" in first.message and first.hint == f"chmod +x {plain}"
    assert first.name == "plain"
    assert str(nameless) in second.message and "rename" in second.hint


def test_a_file_beside_a_manifest_is_the_file_that_was_named(places: Places) -> None:
    directory = places.add(places.root / "demo")
    file = places.program(directory / "other")
    discovery = places.discover(file, directory)
    assert [(found.manifest.name, found.argv) for found in discovery.found] == [
        ("other", (str(file),)),
        ("demo", (f"{directory}/run",)),
    ]


def test_a_place_that_cannot_be_read_is_a_problem_and_the_others_are_searched(places: Places) -> None:
    places.user.parent.mkdir()
    places.user.symlink_to(places.user)
    places.add(places.project / "b")
    (places.project / "a").symlink_to("a")
    discovery = places.discover()
    assert names(discovery.found) == ["b"]
    assert [problem.where for problem in discovery.problems] == [str(places.user), str(places.project / "a")]
    assert all("cannot be read" in problem.message and problem.hint for problem in discovery.problems)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_directory_one_may_not_enter_is_a_problem(places: Places) -> None:
    places.add(places.user / "closed").chmod(0)
    try:
        [problem] = places.discover().problems
    finally:
        (places.user / "closed").chmod(0o700)
    assert "cannot be read" in problem.message


def test_a_place_with_far_too_many_entries_is_searched_only_so_far_and_that_is_said(places: Places) -> None:
    for number in range(1001):
        places.add(places.user / f"{number}")
    discovery = places.discover()
    assert len(discovery.found) == 1000
    [problem] = discovery.problems
    assert "more than 1000 entries" in problem.message
    (places.user / "7" / "extension.json").unlink()
    (places.user / "7").rmdir()
    assert places.discover().problems == ()


def test_whatever_a_directory_is_called_what_is_said_about_it_can_be_printed(places: Places) -> None:
    for odd in (b"a\x1b[2Jb", b"a\nb", b"\xff\xfe", "ü".encode()):
        directory = Path(os.fsdecode(os.path.join(os.fsencode(places.user), odd)))
        places.add(directory, name="same", exec="./run")
    places.add(places.user / os.fsdecode(b"broken\xff"), name="a/b")
    discovery = places.discover()
    assert len(discovery.found) == 1 and len(discovery.problems) == 4
    for problem in discovery.problems:
        assert "".join((problem.where, problem.message, problem.hint, problem.name)).isprintable()
        problem.message.encode()


def test_it_is_found_again_as_it_is_now(places: Places) -> None:
    directory = places.add(places.user / "demo")
    places.add(places.user / "a")
    found = places.discover().found[1]
    places.add(directory, version="2", exec="tool", args=["x"])
    tool = places.program(places.root / "bin" / "tool")
    again = find_again(found, places.path)
    assert (again.manifest.version, again.argv) == ("2", (str(tool), "x"))
    assert (again.directory, again.source, again.order) == (found.directory, found.source, found.order)


def test_it_is_found_again_when_it_was_disabled_or_enabled_meanwhile(places: Places) -> None:
    directory = places.add(places.user / "demo")
    found = only(places)
    places.add(directory, enabled=False)
    off = find_again(found, places.path)
    assert (off.runs, off.argv) == (False, ())
    places.add(directory)
    assert find_again(off, places.path) == found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "other"}, '"name" is now "other", it was "demo"'),
        ({"exec": "not-there"}, "not-there is not on PATH"),
        ({"exec": "", "skills": ["s"]}, '"exec" is gone'),
        ({"args": 5}, '"args" must be'),
    ],
)
def test_one_that_can_no_longer_be_used_is_not_found_again(places: Places, change: dict[str, Any], said: str) -> None:
    directory = places.add(places.user / "demo")
    found = only(places)
    places.add(directory, **change)
    with pytest.raises(ManifestError) as caught:
        find_again(found, places.path)
    assert said in caught.value.message and caught.value.hint


def test_a_single_file_is_found_again_while_it_is_there(places: Places) -> None:
    file = places.program(places.cwd / "demo.py", 0o644)
    found = only(places, file)
    file.chmod(0o755)
    assert find_again(found, places.path).argv == (str(file),)
    file.unlink()
    with pytest.raises(ManifestError, match="there is no such file"):
        find_again(found, places.path)
