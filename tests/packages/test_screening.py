"""Project extensions at the gate: what is admitted, when it is not any more, and what it runs from."""

import json
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hilt.errors import ManifestError
from hilt.packages.choices import Choices
from hilt.packages.discovery import Discovery, Found, discover
from hilt.packages.finder import Finder
from hilt.packages.oddities import oddities_of
from hilt.packages.trees import read_tree
from hilt.packages.trust import trusting
from hilt.packages.trust.screening import Gate
from hilt.packages.trust.store import TrustStore
from hilt.packages.trust.trusting import Proposal, accept, propose
from support.packages import extension, outside


class Project:
    """A folder with extensions of its own, and a home that knows which folders are trusted."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home, self.folder = root / "home", root / "project"
        self.place = self.folder / ".hilt" / "extensions"
        self.place.mkdir(parents=True)
        self.store = TrustStore(self.home / "trust.json")

    def add(self, name: str = "demo", **more: Any) -> Path:
        return extension(self.place / name, name, **more)

    def finder(self, *, open_: bool = False, folder: Path | None = None, **choices: Choices) -> Finder:
        folder = folder or self.folder
        gate = Gate(self.store, folder, self.home / "trusted", "/usr/bin:/bin", open=open_)
        return Finder(
            flags=(),
            user=self.home / "extensions",
            projects=(folder / ".hilt" / "extensions", folder / ".piglet" / "extensions"),
            only_flags=False,
            path=gate.path,
            cwd=folder,
            choices={f"project:{name}": choice for name, choice in choices.items()},
            lock=self.home / "extensions.lock",
            gate=gate,
        )

    def all(self, **options: Any) -> Discovery:
        return self.finder(**options).all()

    def propose(self) -> Proposal:
        return propose(self.finder().gate, self.all().untrusted)

    def trust(self) -> Found:
        """All that is there, of which the one that now may run is given."""
        accept(self.finder().gate, self.propose())
        return self.only()

    def only(self, **options: Any) -> Found:
        found = self.all(**options)
        assert (found.problems, found.untrusted) == ((), ())
        [one] = found.found
        return one


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def reason(project: Project) -> str:
    """Why the only one there may not run."""
    discovery = project.all()
    assert (discovery.found, discovery.problems) == ((), ())
    [one] = discovery.untrusted
    return one.reason


# Before and after the answer


def test_before_it_is_trusted_it_is_listed_and_nothing_at_all_is_written(project: Project) -> None:
    project.add()
    before = outside(project.root, project.home / "none")
    discovery = project.all()
    assert [one.found.name for one in discovery.untrusted] == ["project:demo"] and discovery.found == ()
    project.propose()
    assert outside(project.root, project.home / "none") == before and not project.home.exists()


def test_once_trusted_it_runs_from_a_private_copy_of_the_very_same_bytes(project: Project) -> None:
    where = project.add()
    found = project.trust()
    assert found.directory == project.home / "trusted" / read_tree(where).hash
    assert (found.where, found.argv) == (where, (f"{found.directory}/run",))
    assert read_tree(found.directory) == read_tree(where)
    assert found.directory.parent.stat().st_mode & 0o777 == 0o700


def test_for_one_run_whatever_is_there_is_trusted_and_that_is_not_kept(project: Project) -> None:
    project.add()
    assert project.only(open_=True).argv[0].startswith(str(project.home / "trusted"))
    assert not (project.home / "trust.json").exists()
    assert "you have not trusted it" in reason(project)


def retarget(where: Path) -> None:
    (where / "at").unlink()
    (where / "at").symlink_to("lib/helper.py")


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a byte": (lambda where: (where / "lib/helper.py").write_text("help = 2\n"), "lib/helper.py changed"),
    "the manifest": (lambda where: extension(where, version="1.1"), "extension.json changed"),
    "a right": (lambda where: (where / "lib/helper.py").chmod(0o755), "lib/helper.py changed"),
    "one more": (lambda where: (where / "new").touch(), "new added"),
    "one less": (lambda where: (where / "lib/helper.py").unlink(), "lib/helper.py gone"),
    "a link": (retarget, "at changed"),
    "another name": (lambda where: (where / "lib").rename(where / "bil"), "bil/helper.py added; lib/helper.py gone"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_makes_it_untrusted_and_says_which_file(project: Project, change: str) -> None:
    where = project.add()
    (where / "at").symlink_to("run")
    project.trust()
    apply, said = CHANGES[change]
    apply(where)
    assert reason(project) == f"it changed since you trusted it: {said}"
    assert [one.known for one in project.all().untrusted] == [True]
    with pytest.raises(ManifestError, match="changed since you trusted it"):
        project.finder().gate.again(project.all().untrusted[0].found)


def test_a_renamed_directory_is_another_extension(project: Project) -> None:
    where = project.add()
    project.trust()
    where.rename(project.place / "other")
    assert "you have not trusted it" in reason(project)


def test_what_is_trusted_in_one_folder_is_not_in_another_nor_in_a_moved_one_but_through_a_link(
    project: Project,
) -> None:
    project.add()
    project.trust()
    other, link = project.root / "other", project.root / "link"
    shutil.copytree(project.folder, other)
    link.symlink_to(project.folder)
    assert len(project.all(folder=other).untrusted) == 1
    assert project.only(folder=link).name == "project:demo"
    project.folder.rename(project.root / "moved")
    assert len(project.all(folder=project.root / "moved").untrusted) == 1


def test_of_several_only_the_one_that_changed_is_held_back(project: Project) -> None:
    project.add("one")
    two = project.add("two")
    accept(project.finder().gate, project.propose())
    (two / "run").write_text("#!/bin/sh\nexit 1\n")
    discovery = project.all()
    assert [one.name for one in discovery.found] == ["project:one"]
    assert [one.found.name for one in discovery.untrusted] == ["project:two"]


def test_a_damaged_store_trusts_nothing_and_is_told_once_only_where_it_matters(project: Project) -> None:
    project.home.mkdir()
    (project.home / "trust.json").write_text("{")
    assert project.all() == Discovery((), (), ())
    project.add("one")
    project.add("two")
    discovery = project.all()
    assert len(discovery.untrusted) == 2 and discovery.found == ()
    [problem] = discovery.problems
    assert str(project.home / "trust.json") in problem.message
    with pytest.raises(ManifestError, match=r"trust\.json"):
        project.propose()


def test_a_home_that_cannot_be_written_is_a_problem_and_no_crash(project: Project) -> None:
    project.add()
    project.trust()
    shutil.rmtree(project.home / "trusted")
    (project.home / "trusted").write_text("in the way")
    [problem] = project.all().problems
    assert "cannot be copied" in problem.message and problem.name == "project:demo"


# Hostile trees (A9)


def a_pipe(where: Path) -> None:
    os.mkfifo(where / "pipe")


def a_link_out(where: Path) -> None:
    (where / "keys").symlink_to(where.parents[3] / ".ssh")


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a pipe": (a_pipe, "pipe is neither"),
    "a link out": (a_link_out, "is a link to"),
    "an absolute link": (lambda where: (where / "keys").symlink_to("/etc/passwd"), "is a link to"),
    "a link to nowhere": (lambda where: (where / "later").symlink_to("not-yet"), "is a link to"),
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_a_tree_that_reaches_out_cannot_be_trusted_and_the_others_can(project: Project, attack: str) -> None:
    project.add("good")
    apply, said = HOSTILE[attack]
    apply(project.add("bad"))
    proposal = project.propose()
    assert list(proposal.entries) == [".hilt/extensions/good"]
    [problem] = proposal.problems
    assert problem.startswith("project:bad cannot be trusted") and said in problem and problem in proposal.text
    discovery = project.all(open_=True)
    assert [one.name for one in discovery.found] == ["project:good"]
    assert said in discovery.problems[0].message


def test_an_extension_that_is_itself_a_link_cannot_be_trusted(project: Project) -> None:
    keys = extension(project.root / ".ssh", "demo")
    (project.place / "demo").symlink_to(keys)
    proposal = project.propose()
    assert proposal.entries == {} and "project:demo cannot be trusted" in proposal.problems[0]


@pytest.mark.parametrize("what", ["the folder", "the extension"])
def test_what_has_a_name_that_is_not_utf_8_cannot_be_trusted_and_is_no_crash(project: Project, what: str) -> None:
    where, odd = project.add(), os.fsdecode(b"\xff")
    if what == "the folder":
        project.folder = project.folder.rename(project.root / odd)
    else:
        where.rename(project.place / odd)
    proposal = project.propose()
    assert proposal.entries == {} and proposal.text.isprintable()
    assert "is not UTF-8" in proposal.problems[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"exec": "../../../evil"},
        {"exec": "way/../../evil"},
        {"exec": "{project}/evil"},
        {"exec": "{project}/.hilt/extensions/demo/run"},
        {"exec": "sh", "args": ["{project}/evil"]},
        {"exec": "sh", "args": ["../../../project/evil"]},  # from where its copy lies
        {"exec": "sh", "args": ["-c", "true", "{project}/.hilt/../evil"]},
    ],
)
def test_what_it_runs_must_be_its_own_for_trust_covers_nothing_else(project: Project, fields: Any) -> None:
    filled = json.loads(json.dumps(fields).replace("{project}", str(project.folder)))
    where = project.add(**filled)
    (where / "way").symlink_to(".")
    (project.folder / "evil").write_text("#!/bin/sh\n")
    proposal = project.propose()
    assert proposal.entries == {} and "is not one of the extension's own files" in proposal.problems[0]
    discovery = project.all(open_=True)
    assert discovery.found == () and "is not one of the extension's own files" in discovery.problems[0].message


# The question


def test_what_is_asked_shows_every_command_whole_and_what_each_may_do(project: Project) -> None:
    long = "x" * 10_000
    project.add("one", exec="sh", args=["-c", f"echo {long}; rm -rf /"])
    two = project.add("two", permissions=["net", "auth:openai"])
    proposal = project.propose()
    sh = shutil.which("sh", path="/usr/bin:/bin")
    assert proposal.commands == (
        ("project:one", (sh, "-c", f"echo {long}; rm -rf /")),
        ("project:two", (f"{two}/run",)),
    )
    assert f"{long}; rm -rf /" in proposal.text and "full access" in proposal.text
    assert "use the network" in proposal.text and "have your key for openai" in proposal.text


def test_what_changed_is_shown_by_file_and_by_line(project: Project) -> None:
    where = project.add(files={"gone.py": "x = 1\n", "blob": "a"})
    project.trust()
    (where / "lib/helper.py").write_text("help = 1\nsteal = 2\n")
    (where / "gone.py").unlink()
    (where / "new.py").write_text("x = 2\n")
    (where / "blob").write_bytes(b"\xff")
    text = project.propose().text
    for line in ("~ lib/helper.py", "- gone.py", "+ new.py", "~ blob", "+steal = 2", "-x = 1", "+x = 2"):
        assert line in text
    assert "blob: not shown" in text and "+help" not in text


def test_without_the_old_copy_or_with_one_that_was_touched_only_files_are_named(project: Project) -> None:
    where = project.add()
    copy = project.trust().directory
    (where / "lib/helper.py").write_text("help = 2\n")
    (copy / "lib/helper.py").write_text("help = 3\n")  # which was never trusted
    text = project.propose().text
    assert "~ lib/helper.py" in text and "help = " not in text
    shutil.rmtree(copy)
    assert project.propose().text == text


def test_comparing_what_is_made_to_be_hard_to_compare_takes_no_time(project: Project) -> None:
    dice = random.Random(1)
    first, second = ("".join(f"{dice.randrange(101)}\n" for _ in range(80_000)) for _ in range(2))
    where = project.add(files={"a.txt": first})
    project.trust()
    (where / "a.txt").write_text(second)
    began = time.monotonic()
    text = project.propose().text
    assert time.monotonic() - began < 20  # half a minute, if all of it were compared
    assert "~ a.txt" in text and "a.txt: not shown" in text


def test_what_is_shown_is_what_is_kept_though_files_are_swapped_meanwhile(project: Project) -> None:
    """Whoever agrees to the harmless version must not have agreed to the other."""
    where = project.add()
    harmless, evil = where / "extension.json", project.root / "evil.json"
    good = harmless.read_text()
    evil.write_text(good.replace("./run", "./run-evil"))
    (where / "run-evil").write_text("#!/bin/sh\n")
    untrusted = project.all().untrusted
    shutil.copy(evil, harmless)  # after it was found, before it is shown
    proposal = propose(project.finder().gate, untrusted)
    assert proposal.commands == (("project:demo", (f"{where}/run-evil",)),)
    assert "run-evil" in proposal.text


def test_one_that_took_another_name_since_it_was_found_is_neither_shown_nor_admitted(project: Project) -> None:
    where = project.add()
    [found], untrusted = (one.found for one in project.all().untrusted), project.all().untrusted
    extension(where, "guard")
    assert "changed while it was read" in propose(project.finder().gate, untrusted).problems[0]
    accept(project.finder().gate, project.propose())
    admitted, barred, [problem] = project.finder().gate.screen([found])
    assert (admitted, barred) == ([], []) and "changed while it was read" in problem.message


def test_what_changes_while_it_is_being_described_is_not_put_to_anybody(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = project.add()

    def interrupted(*arguments: Any) -> Any:
        (where / "lib/helper.py").write_text("help = 2\n")
        return oddities_of(*arguments)

    monkeypatch.setattr(trusting, "oddities_of", interrupted)
    proposal = project.propose()
    assert proposal.entries == {} and "changed while it was read" in proposal.problems[0]


def test_files_swapped_while_they_are_read_never_give_a_text_about_other_bytes(project: Project) -> None:
    where = project.add(files={f"data/{number}": "x" * 2000 for number in range(20)})
    versions = {}
    for name in ("safe", "evil"):
        text = (where / "extension.json").read_text().replace("./run", f"./{name}")
        versions[name] = project.root / f"{name}.json"
        versions[name].write_text(text)
    untrusted = project.all().untrusted
    hashes = {}
    for name, file in versions.items():
        shutil.copy(file, where / "extension.json")
        hashes[name] = read_tree(where).hash
    with swapping(where / "extension.json", *versions.values()):
        proposals = [propose(project.finder().gate, untrusted) for _ in range(40)]
    shown = [one for one in proposals if one.entries]
    for proposal in shown:
        [(_, argv)], [entry] = proposal.commands, proposal.entries.values()
        assert entry.tree == hashes[Path(argv[0]).name]
    for proposal in proposals:
        assert proposal.entries or "changed while it was read" in proposal.problems[0]


@contextmanager
def swapping(place: Path, *files: Path) -> Iterator[None]:
    """A file is replaced by one and another of these, over and over, while the block runs."""
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for file in files:
                fresh = place.parent.parent / f".{place.name}"
                shutil.copy(file, fresh)
                fresh.replace(place)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(30)


# Grants


def test_a_grant_holds_for_this_extension_of_this_folder_and_is_dropped_when_it_changes(project: Project) -> None:
    where = project.add(permissions=["net", "env:A_TOKEN", "exec"])
    found = project.trust()
    assert found.choices.grants == ("env:A_TOKEN",)  # it was shown by name
    assert found.permissions.allows("env:A_TOKEN") and not found.permissions.allows("env:OTHER")
    entry = project.store.of(project.folder)[".hilt/extensions/demo"]
    more = msgspec.structs.replace(entry, grants=(*entry.grants, "auth:openai"))
    project.store.add(project.folder, {".hilt/extensions/demo": more})
    assert project.only().permissions.allows("auth:openai")
    (where / "lib/helper.py").write_text("help = 2\n")
    assert not project.only(open_=True).permissions.allows("auth:openai")
    assert not project.trust().permissions.allows("auth:openai")


def test_for_one_run_nothing_is_granted_that_needs_consent(project: Project) -> None:
    project.add(permissions=["net", "env:A_TOKEN"])
    found = project.only(open_=True)
    assert found.permissions.allows("net") and not found.permissions.allows("env:A_TOKEN")


def test_no_grant_made_elsewhere_counts_and_every_refusal_does(project: Project) -> None:
    project.add(permissions=["net"])
    project.trust()
    choices = Choices(grants=("auth:openai",), revoked=("net",))
    found = project.only(demo=choices)
    assert not found.permissions.allows("auth:openai") and not found.permissions.allows("net")
    assert found.sandbox == "strict"


# The copy (A28)


def test_whatever_happens_to_the_project_during_the_start_only_the_trusted_bytes_are_kept(project: Project) -> None:
    where = project.add(files={f"data/{number}": "x" * 2000 for number in range(20)})
    good, evil = project.root / "good", project.root / "evil"
    shutil.copy(where / "run", good)
    evil.write_text("#!/bin/sh\necho evil\n")
    evil.chmod(0o755)
    trusted = project.trust()
    content = read_tree(trusted.directory)
    admitted = barred = 0
    with swapping(where / "run", evil, good):
        for _ in range(60):
            discovery = project.all()
            for found in discovery.found:
                admitted += 1
                assert (found.directory, found.argv) == (trusted.directory, trusted.argv)
                assert read_tree(found.directory) == content
            barred += len(discovery.untrusted) + len(discovery.problems)
    assert admitted + barred == 60


def tampered(copy: Path) -> None:
    (copy / "run").write_text("#!/bin/sh\necho evil\n")


def swapped(copy: Path) -> None:
    copy.rename(copy.with_name("aside"))
    extension(copy, files={"evil.py": "evil\n"})


def blocked(copy: Path) -> None:
    shutil.rmtree(copy)
    copy.write_text("")


def linked(copy: Path) -> None:
    copy.rename(copy.with_name("aside"))
    copy.symlink_to("aside")


TAMPERING: dict[str, Callable[[Path], object]] = {
    "a file changed": tampered,
    "a file added": lambda copy: (copy / "evil.py").write_text("evil\n"),
    "compiled code added": lambda copy: extension(copy / "lib" / "__pycache__"),
    "a repository added": lambda copy: extension(copy / ".git"),
    "a link to compiled code": lambda copy: (copy / "__pycache__").symlink_to("lib"),
    "a file gone": lambda copy: (copy / "run").unlink(),
    "another directory of its name": swapped,
    "a link in its place": linked,
    "a file in its place": blocked,
    "gone": shutil.rmtree,
}


@pytest.mark.parametrize("how", TAMPERING)
def test_a_copy_that_somebody_touched_is_replaced(project: Project, how: str) -> None:
    where = project.add()
    copy = project.trust().directory
    TAMPERING[how](copy)
    found = project.only()
    assert found.directory == copy and not copy.is_symlink()
    assert sorted(path.name for path in copy.rglob("*")) == ["extension.json", "helper.py", "lib", "run"]
    assert read_tree(copy) == read_tree(where)
    fresh = project.finder().again(found)
    assert fresh == found


def test_compiled_code_that_came_with_the_project_is_neither_trusted_nor_copied(project: Project) -> None:
    where = project.add(files={"lib/__pycache__/helper.cpython-311.pyc": "evil"})
    found = project.trust()
    assert not list(found.directory.rglob("__pycache__"))
    (where / "lib/__pycache__/helper.cpython-311.pyc").write_text("other")
    assert project.only() == found


def test_several_starts_at_once_share_one_copy(project: Project) -> None:
    project.add(files={f"data/{number}": "x" * 2000 for number in range(20)})
    accept(project.finder().gate, project.propose())
    copy = project.only().directory
    for _ in range(5):
        shutil.rmtree(copy)
        found: list[Discovery] = []
        threads = [threading.Thread(target=lambda found=found: found.append(project.all())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(found) == 8
        assert {one.found[0].directory for one in found} == {copy}
        assert read_tree(copy).hash == copy.name


def test_another_hilt_that_is_quicker_by_a_moment_is_no_problem(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = project.add()
    copy = project.trust().directory
    shutil.rmtree(copy)

    exists = os.path.lexists

    def meanwhile(path: Path) -> bool:
        if path != copy:
            return exists(path)
        shutil.copytree(where, path)
        return False  # as it was a moment ago

    with monkeypatch.context() as patch:
        patch.setattr(os.path, "lexists", meanwhile)
        found = project.only()
    assert found.directory == copy and read_tree(copy) == read_tree(where)


def test_copies_of_what_nobody_trusts_any_more_are_deleted_once_they_are_old(project: Project) -> None:
    where = project.add()
    first = project.trust().directory
    (where / "run").write_text("#!/bin/sh\nexit 1\n")
    second = project.trust().directory
    assert first.exists()  # something may still run from it
    os.utime(first, (1, 1))
    os.utime(second, (1, 1))
    assert project.only().directory == second
    assert not first.exists() and second.exists()
    os.utime(second, (1, 1))
    project.finder(folder=project.root).gate.sweep()
    assert second.exists()  # one folder's is not another's to delete
    project.store.forget(project.folder)
    project.finder().gate.sweep()
    assert not second.exists()


# Names


def test_a_project_cannot_take_the_place_of_the_users_own_whatever_state_that_is_in(project: Project) -> None:
    mine = extension(project.home / "extensions" / "guard", "guard")
    theirs = project.add("guard")
    for change in ({}, {"enabled": False}, {"exec": 5}, {"exec": "not-on-path"}):
        extension(mine, "guard", **change)
        for open_ in (False, True):
            discovery = project.all(open_=open_)
            assert all(one.source == "user" for one in (*discovery.found, *discovery.disabled))
            assert discovery.untrusted == ()
            [conflict] = [one for one in discovery.problems if "conflict" in one.message]
            assert str(mine) in conflict.message and str(theirs) in conflict.message
            assert conflict.name == "project:guard"


def test_what_is_wrong_with_a_projects_extension_is_never_told_as_if_it_were_the_users(project: Project) -> None:
    (project.place / "guard").symlink_to("gone")
    (project.place / "loop").symlink_to("loop")
    (project.add("torn") / "extension.json").write_text("{")
    names = {one.name for one in project.all().problems}
    assert names == {"project:guard", "project:loop", "project:torn"}


def test_reading_what_a_stranger_put_into_a_folder_has_an_end(project: Project) -> None:
    for number in range(20):
        directory = project.place / f"{number:02}"
        directory.mkdir()
        (directory / "manifest.yaml").write_text(f"name: n{number}\nruntime: python\n# {'x' * 64_000}\n")
    discovery = project.all()
    assert len(discovery.untrusted) == 9
    [problem] = discovery.problems
    assert "the rest is not read" in problem.message


def piglet(project: Project, runtime: str) -> Path:
    where = project.folder / ".piglet" / "extensions" / "pig"
    where.mkdir(parents=True)
    (where / "manifest.yaml").write_text(f"name: pig\nversion: 0.3\nruntime: {runtime}\nentry: main.py\n")
    (where / "main.py").touch()
    return where


def test_one_of_the_other_dialect_is_trusted_like_any_and_its_command_line_is_shown(project: Project) -> None:
    where = piglet(project, "python")
    [untrusted] = project.all().untrusted
    assert (untrusted.found.name, untrusted.found.manifest.dialect) == ("project:pig", "jsonrpc")
    text = project.propose().text
    assert f"runs      /usr/bin/python3 {where}/main.py" in text and "full access" in text
    found = project.trust()
    assert found.argv == ("/usr/bin/python3", str(found.directory / "main.py"))
    assert found.directory.parent == project.home / "trusted" and found.origin == where


def test_one_of_the_other_dialect_whose_runtime_is_missing_says_so(project: Project) -> None:
    piglet(project, "bun")
    [problem] = project.all(open_=True).problems
    assert (problem.name, problem.dialect) == ("project:pig", "jsonrpc")
    assert "runtime bun is not on PATH" in problem.message


def test_full_access_was_agreed_to_only_where_it_was_asked(project: Project) -> None:
    project.add()
    assert not project.only(open_=True).consented, "nobody was asked"
    assert project.trust().consented
    assert project.trust().permissions.may_ask("auth:openai")


def test_discovery_alone_decides_about_no_trust_and_runs_nothing(project: Project) -> None:
    project.add()
    raw = discover((), project.home, [project.place], only_flags=False, path="/bin", cwd=project.folder)
    assert [(one.name, one.source, one.origin) for one in raw.found] == [("project:demo", "project", None)]
